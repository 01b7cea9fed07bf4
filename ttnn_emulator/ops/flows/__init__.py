"""Chains of data-movement kernels inside one call, derived on specs."""
