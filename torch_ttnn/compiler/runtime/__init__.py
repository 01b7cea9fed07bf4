"""The compiled program and how it runs: weights, traces, replay, specialisation by shape."""
