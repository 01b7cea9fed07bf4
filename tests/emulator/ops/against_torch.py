"""How an operation is held against float32 torch: rows of data, two tests.

A row names the call, its torch twin, how many inputs it takes and from which range, and by how much it may be off:
PCC at least 0.9999 in float32 and 0.999 in bfloat16, and every element within `ulps` units of the last place of the
output dtype. An error counts against the larger of the reference and `floor` × the largest magnitude that may go in, so
that cancellation is not held against an operation whose inputs were rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from hypothesis import strategies as st

import ttnn_emulator as ttnn
from ttnn_emulator.execution import listeners

SHAPES: tuple[tuple[int, ...], ...] = ((32, 64), (5, 33), (3, 45, 70), (2, 3, 17, 40), (7,), (1, 2, 3, 5, 33))
LEAST_PCC = {"float32": 0.9999, "bfloat16": 0.999, "bfloat8_b": 0.99, "bfloat4_b": 0.9}
EPSILON = {"float32": 2.0**-23, "bfloat16": 2.0**-7, "bfloat8_b": 2.0**-6, "bfloat4_b": 2.0**-2}


@dataclass(frozen=True)
class Row:
    """One operation and its torch twin."""

    name: str
    call: Callable[..., Any]  # (ttnn tensors …) → ttnn tensor
    twin: Callable[..., torch.Tensor]  # (float32 or int torch tensors …) → torch tensor
    inputs: int = 1
    low: float = -4.0
    high: float = 4.0
    dtypes: tuple[str, ...] = ("bfloat16", "float32")
    ulps: dict[str, float] = field(default_factory=dict)
    floor: float = 0.0
    shapes: tuple[tuple[int, ...], ...] = SHAPES
    layout: str = "TILE"

    def __str__(self) -> str:
        return self.name


def same_buffer(one: Any, other: Any) -> bool:
    """Whether two tensors are two handles on one buffer, as a result and the tensor that was given for it are."""
    return one is not other and one._storage is other._storage


def each_dtype(rows: Iterable[Any], dtypes: Sequence[str] = ("bfloat16", "float32")) -> pytest.MarkDecorator:
    """A test of every row in each of these dtypes that it is made for."""
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
    """What the device holds, as float32 or int64."""
    read = ttnn.to_torch(tensor)
    return read.float() if read.is_floating_point() else read.to(torch.int64)


def pcc(ours: torch.Tensor, reference: torch.Tensor) -> float:
    """Pearson correlation of two flattened tensors; of constants, 1 if they agree and 0 if not."""
    a, b = ours.double().flatten(), reference.double().flatten()
    if a.numel() < 2 or a.std() == 0 or b.std() == 0:
        return 1.0 if torch.allclose(a, b, rtol=1e-2, atol=1e-6) else 0.0
    return torch.corrcoef(torch.stack([a, b]))[0, 1].item()


def check(row: Row, dtype: str, shape: tuple[int, ...], seed: int, device: Any) -> None:
    """Run a row on one set of inputs and compare."""
    tensors = [
        upload(values(shape, row.low, row.high, dtype, seed + number), dtype, row.layout, device)
        for number in range(row.inputs)
    ]
    held = [stored(tensor) for tensor in tensors]
    output = row.call(*tensors)
    ours, reference = stored(output), row.twin(*held)
    assert list(ours.shape) == list(reference.shape), f"shape {list(ours.shape)}, torch has {list(reference.shape)}"
    if not reference.is_floating_point():
        assert torch.equal(ours.to(torch.int64), reference.to(torch.int64))
        return
    out_dtype = output.dtype.name.lower()
    if out_dtype in EPSILON:
        scale = reference.abs().clamp(min=row.floor * max(abs(row.low), abs(row.high)) + 2.0**-100)
        error = ((ours - reference).abs() / (scale * EPSILON[out_dtype])).max().item()
        bound = row.ulps.get(out_dtype, 2.0)
        assert error <= bound, f"off by {error:.3g} ulp, {bound} are allowed"
        if reference.numel() > 8:
            found = pcc(ours, reference)
            assert found >= LEAST_PCC[out_dtype], f"PCC {found:.6f}"
    else:
        assert torch.equal(ours, reference.to(ours.dtype))


shapes = st.lists(st.integers(1, 70), min_size=1, max_size=4).map(tuple).filter(lambda s: 0 < _volume(s) < 20_000)


def _volume(shape: tuple[int, ...]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


class Buffers(listeners.Listener):
    """Hears how many bytes of circular buffers a core the largest program takes."""

    found = 0

    def ended(self, event: listeners.OperationEvent) -> None:
        self.found = max(self.found, event.l1_bytes)
