"""Tensors: shapes, specs, memory configs, storage, and the way between torch and the device."""
