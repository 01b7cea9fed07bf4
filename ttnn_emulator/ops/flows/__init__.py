"""Chains of data-movement kernels inside one call, worked out on specs."""
