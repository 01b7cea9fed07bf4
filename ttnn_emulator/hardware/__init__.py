"""Boards and devices: chips, cores, memory, and how they are wired."""
