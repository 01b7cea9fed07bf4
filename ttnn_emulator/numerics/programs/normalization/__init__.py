"""Norms and softmax, as their kernels compute them."""
