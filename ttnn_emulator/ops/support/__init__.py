"""Helpers shared by several families; nothing here registers an operation."""
