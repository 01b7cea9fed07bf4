"""The computations of each family of operations, built on `units`, `formats` and `functions`."""
