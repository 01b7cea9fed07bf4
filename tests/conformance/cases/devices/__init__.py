"""Collectives of several chips, and functions that the library keeps for its own tests."""
