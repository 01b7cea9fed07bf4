"""Compiles models, compares their results with torch's, and counts the DRAM that they use."""

from __future__ import annotations

import torch

import ttnn_emulator

WIDTH = 32


def compiled(module, **options):
    return torch.compile(module, backend="ttnn", options=options or None)


def dram_in_use(device) -> int:
    return ttnn_emulator.get_memory_view(device, ttnn_emulator.BufferType.DRAM).total_bytes_allocated_per_bank


def assert_near(got, want, tolerance=0.05):
    torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance)
