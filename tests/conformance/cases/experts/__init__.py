"""Mixtures of experts, and chunked prefill."""
