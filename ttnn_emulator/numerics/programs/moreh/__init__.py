"""The `moreh` operations as their kernels compute them."""
