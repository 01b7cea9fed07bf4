"""Boards and devices: chips, cores, memory and the fabric."""
