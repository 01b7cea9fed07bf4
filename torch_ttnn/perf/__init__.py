"""Predicted times of compiled programs on a card."""
