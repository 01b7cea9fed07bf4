"""Runs compiled programs: weights, traces, replay, specialisation by shape."""
