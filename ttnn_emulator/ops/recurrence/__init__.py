"""Recurrences along a sequence: the delta rule, Kimi Delta Attention, state-space models."""
