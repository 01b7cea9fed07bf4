"""Attention, rotary embeddings and the delta rule, as their kernels compute them."""
