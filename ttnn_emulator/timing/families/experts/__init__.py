"""Mixtures of experts: choosing experts, and summing their outputs."""
