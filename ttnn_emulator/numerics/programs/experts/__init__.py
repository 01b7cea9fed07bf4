"""Gates of mixtures of experts as their kernels compute them."""
