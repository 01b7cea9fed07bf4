"""Values for tests of data movement: numbers that are exact in every dtype, in any storage order."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import torch

from tests.compiler.against_torch import Outcome, check

DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool]
FLOATS_AND_INTEGERS = [torch.float32, torch.bfloat16, torch.int64, torch.int32]
SIZES = st.sampled_from([1, 2, 3, 4, 5, 7, 8, 31, 32, 33])
LARGEST = 6000  # elements


def shapes(least: int = 0, most: int = 5) -> st.SearchStrategy[list[int]]:
    return st.lists(SIZES, min_size=least, max_size=most).map(_bounded)


def _bounded(shape: list[int]) -> list[int]:
    while math.prod(shape) > LARGEST:
        shape[shape.index(max(shape))] = 2
    return shape


def numbers(shape: list[int] | tuple[int, ...], dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    """Whole numbers up to 120: exact in every dtype, so nothing may differ."""
    generator = torch.Generator().manual_seed(seed)
    if dtype is torch.bool:
        return torch.randint(0, 2, tuple(shape), generator=generator).bool()
    low = 0 if dtype is torch.uint8 else -120
    return torch.randint(low, 121, tuple(shape), generator=generator).to(dtype)


@st.composite
def values(
    draw: Any, least: int = 0, most: int = 5, dtypes: list[torch.dtype] = DTYPES
) -> tuple[torch.Tensor, list[int]]:
    """A stored tensor, and the permutation to the value under test."""
    shape = draw(shapes(least, most))
    order = draw(st.permutations(range(len(shape))))
    return numbers(shape, draw(st.sampled_from(dtypes))), list(order)


precisions = st.sampled_from(["bfloat16", "float32"])


def dims_of(x: torch.Tensor) -> st.SearchStrategy[int]:
    return st.integers(-x.dim(), x.dim() - 1) if x.dim() else st.sampled_from([-1, 0])


def moves(function: Callable[..., Any], *args: Any, **options: Any) -> Outcome:
    """The result must equal torch's exactly."""
    return check(function, *args, relative=0.0, absolute=0.0, **options)
