"""Lowerings of recurrent layers."""
