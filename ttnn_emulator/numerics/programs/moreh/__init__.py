"""What the kernels of the `moreh` operations compute."""
