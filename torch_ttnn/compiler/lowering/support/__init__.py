"""Helpers shared by several lowerings. Nothing here registers a lowering."""
