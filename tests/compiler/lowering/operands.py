"""Operands for tests of elementwise operations: any rank, broadcasting, all dtypes, values that bfloat16 holds exactly.

Rounding inputs is no fault of an operation, and floor(2.999) is another number than floor(3): so floats are drawn from
a grid that survives an upload.
"""

from __future__ import annotations

import torch
from hypothesis import settings
from hypothesis import strategies as st

EXAMPLES = settings(max_examples=settings().max_examples * 2)  # 24 in `make test`, 800 in `make sweep`

SIZES = st.sampled_from((1, 2, 3, 5, 17, 32, 33))
FLOATS = (torch.float32, torch.bfloat16, torch.float16)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
DTYPES = (*FLOATS, *INTEGERS, torch.bool)
PRECISIONS = st.sampled_from(("bfloat16", "float32"))


@st.composite
def shapes(draw: st.DrawFn, ranks: tuple[int, int] = (0, 5)) -> tuple[int, ...]:
    rank = draw(st.integers(*ranks))
    small = (*[draw(st.integers(1, 3)) for _ in range(max(rank - 2, 0))], *[draw(SIZES) for _ in range(min(rank, 2))])
    return tuple(small)


@st.composite
def broadcast_shapes(draw: st.DrawFn, count: int = 2) -> list[tuple[int, ...]]:
    """Shapes that broadcast against each other: dimensions become ones, or leading ones are omitted."""
    full = draw(shapes())
    made = []
    for _ in range(count):
        sizes = [1 if draw(st.integers(0, 3)) == 0 else size for size in full]
        made.append(tuple(sizes[draw(st.sampled_from((0, 0, 0, 1, 2))) :]))
    return made


def tensor(shape: tuple[int, ...], dtype: torch.dtype, seed: int, low: float = -8, high: float = 8) -> torch.Tensor:
    """Values from `low` to `high`, floats in steps of 1/8 (or finer for small ranges) that bfloat16 holds exactly."""
    generator = torch.Generator().manual_seed(seed)
    if dtype is torch.bool:
        return torch.rand(shape, generator=generator) < 0.5
    if dtype.is_floating_point:
        drawn = torch.rand(shape, generator=generator) * (high - low) + low
        return (((drawn * 8).round() / 8).clamp(low, high) + 0.0).bfloat16().to(dtype)  # no minus zero
    low = max(low, 0) if dtype is torch.uint8 else low
    return torch.randint(int(low), int(high) + 1, shape, generator=generator).to(dtype)


def tensors(dtypes: tuple[torch.dtype, ...] = DTYPES) -> st.SearchStrategy[torch.Tensor]:
    return st.builds(tensor, shapes(), st.sampled_from(dtypes), st.integers(0, 999))


@st.composite
def pairs(draw: st.DrawFn, dtypes: tuple[torch.dtype, ...] = DTYPES) -> tuple[torch.Tensor, torch.Tensor]:
    left, right = draw(broadcast_shapes())
    seed = draw(st.integers(0, 999))
    return (
        tensor(left, draw(st.sampled_from(dtypes)), seed),
        tensor(right, draw(st.sampled_from(dtypes)), seed + 1000),
    )
