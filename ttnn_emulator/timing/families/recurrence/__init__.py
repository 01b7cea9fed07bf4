"""Recurrences along a sequence: running averages, state spaces, delta rules."""
