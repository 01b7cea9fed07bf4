"""Mixtures of experts: gates, weights, and the exchange of tokens."""
