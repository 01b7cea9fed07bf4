"""Compares operations with float32 torch, row by row (`ttnn_emulator/conformance/numeric_row.py`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
import torch
from hypothesis import strategies as st

import ttnn_emulator as ttnn
from ttnn_emulator.conformance.numeric_row import Row
from ttnn_emulator.execution import listeners

LEAST_PCC = {"float32": 0.9999, "bfloat16": 0.999, "bfloat8_b": 0.99, "bfloat4_b": 0.9}
EPSILON = {"float32": 2.0**-23, "bfloat16": 2.0**-7, "bfloat8_b": 2.0**-6, "bfloat4_b": 2.0**-2}


def same_buffer(one: Any, other: Any) -> bool:
    """Whether two tensor objects share one buffer, like a result and its `output_tensor`."""
    return one is not other and one._storage is other._storage


def each_dtype(rows: Iterable[Any], dtypes: Sequence[str] = ("bfloat16", "float32")) -> pytest.MarkDecorator:
    """A test of every row in each of these dtypes that it supports."""
    pairs = [(row, dtype) for row in rows for dtype in dtypes if dtype in row.dtypes]
    return pytest.mark.parametrize(("row", "dtype"), pairs, ids=[f"{row}-{dtype}" for row, dtype in pairs])


def values(shape: tuple[int, ...], low: float, high: float, dtype: str, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    if dtype in ("int32", "uint32", "uint16", "uint8"):
        return torch.randint(int(low), int(high) + 1, shape, generator=generator, dtype=torch.int64)
    return torch.rand(shape, generator=generator) * (high - low) + low


def upload(tensor: torch.Tensor, dtype: str, layout: str, device: Any) -> Any:
    return ttnn.from_torch(tensor, dtype=getattr(ttnn, dtype), layout=getattr(ttnn, f"{layout}_LAYOUT"), device=device)


def stored(tensor: Any) -> torch.Tensor:
    """The values on the device, as float32 or int64."""
    read = ttnn.to_torch(tensor)
    return read.float() if read.is_floating_point() else read.to(torch.int64)


def pcc(ours: torch.Tensor, reference: torch.Tensor) -> float:
    """Pearson correlation of two flattened tensors; for constants, 1 if they agree, else 0."""
    a, b = ours.double().flatten(), reference.double().flatten()
    if a.numel() < 2 or a.std() == 0 or b.std() == 0:
        return 1.0 if torch.allclose(a, b, rtol=1e-2, atol=1e-6) else 0.0
    return torch.corrcoef(torch.stack([a, b]))[0, 1].item()


def check(row: Row, dtype: str, shape: tuple[int, ...], seed: int, device: Any) -> None:
    """Run a row on one set of inputs and compare the results."""
    tensors = [
        upload(values(shape, row.low, row.high, dtype, seed + number), dtype, row.layout, device)
        for number in range(row.inputs)
    ]
    inputs = [stored(tensor) for tensor in tensors]
    output = row.call(*tensors)
    ours, reference = stored(output), row.counterpart(*inputs)
    assert list(ours.shape) == list(reference.shape), f"shape {list(ours.shape)}, torch has {list(reference.shape)}"
    if not reference.is_floating_point():
        assert torch.equal(ours.to(torch.int64), reference.to(torch.int64))
        return
    out_dtype = output.dtype.name.lower()
    if out_dtype in EPSILON:
        scale = reference.abs().clamp(min=row.floor * max(abs(row.low), abs(row.high)) + 2.0**-100)
        error = ((ours - reference).abs() / (scale * EPSILON[out_dtype])).max().item()
        bound = row.ulps.get(out_dtype, 2.0)
        assert error <= bound, f"error of {error:.3g} ulp, {bound} allowed"
        if reference.numel() > 8:
            correlation = pcc(ours, reference)
            assert correlation >= LEAST_PCC[out_dtype], f"PCC {correlation:.6f}"
    else:
        assert torch.equal(ours, reference.to(ours.dtype))


shapes = st.lists(st.integers(1, 70), min_size=1, max_size=4).map(tuple).filter(lambda s: 0 < _volume(s) < 20_000)


def _volume(shape: tuple[int, ...]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


class Buffers(listeners.Listener):
    """Records the circular buffer bytes per core of the largest program."""

    largest = 0

    def ended(self, event: listeners.OperationEvent) -> None:
        self.largest = max(self.largest, event.l1_bytes)
