"""Checks that the `moreh` operations share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ttnn_emulator.enums import DataType, Layout, MathFidelity
from ttnn_emulator.errors import require
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.ops.support.common_checks import math_config
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.spec import Spec

TILE = 32
# tt-metal v0.77.0: ttnn/api/ttnn/tensor/types.hpp, MAX_NUM_DIMENSIONS
MAX_DIMS = 8
BFLOAT16 = (DataType.BFLOAT16,)


def require_operand(spec: Spec | None, name: str, dtypes: Sequence[DataType] = BFLOAT16) -> None:
    """A tensor in tiles on the device, of one of the dtypes, or None."""
    if spec is None:
        return
    require(spec.is_tile, f"{name} must be in TILE layout, it is in {spec.layout}")
    require(spec.on_device, f"{name} must be on a device, it is on the host")
    require(spec.dtype in dtypes, f"{name} is {spec.dtype}, supported are {[each.name for each in dtypes]}")


def settings_of(given: Any) -> MathConfig:
    return math_config(given, fidelity=MathFidelity.HiFi4)


def tiled(spec: Spec, shape: Sequence[int], memory: MemoryConfig | None, like: Spec | None = None) -> Spec:
    """A TILE spec of this shape with the dtype of `spec`, in the requested memory config or that of `like`."""
    chosen = memory if memory is not None else (like or spec).memory_config
    return Spec.of(tuple(shape), spec.dtype, Layout.TILE, chosen)


def dims_of(dim: int | Sequence[int] | None, rank: int) -> list[int]:
    """The named dimensions; None means all."""
    if isinstance(dim, int):
        return [dim]
    return list(dim) if dim else list(range(rank))


def require_dim(spec: Spec, dim: int) -> None:
    rank = len(spec.padded_shape)
    require(0 <= dim < rank, f"dimension {dim} is not between 0 and {rank - 1}")


def kept_shape(shape: Sequence[int], dim: int, keepdim: bool) -> tuple[int, ...]:
    """The shape after reducing `dim`; the last two dimensions are always kept as 1."""
    if keepdim or dim >= len(shape) - 2:
        return (*shape[:dim], 1, *shape[dim + 1 :])
    return (*shape[:dim], *shape[dim + 1 :])


def require_output(spec: Spec, output: Spec | None, dim: int, keepdim: bool) -> None:
    """An output tensor must have the shape of the result."""
    if output is None:
        return
    in_tile = dim >= spec.rank - 2
    if keepdim:
        for shape, given, one in (
            (spec.padded_shape, output.padded_shape, TILE if in_tile else 1),
            (spec.shape, output.shape, 1),
        ):
            want = (*shape[:dim], one, *shape[dim + 1 :])
            have = (1,) * (MAX_DIMS - len(given)) + tuple(given)
            require(have[MAX_DIMS - len(want) :] == want, f"the output has shape {list(given)}, not {list(want)}")
        return
    for shape, given in ((spec.padded_shape, output.padded_shape), (spec.shape, output.shape)):
        have = tuple(given) if in_tile else (*given[:dim], 1, *given[dim:])
        require(len(have) <= len(shape), f"the output has rank {len(given)}, too many for {list(shape)}")
        fits = all(axis == dim or shape[axis] == size for axis, size in enumerate(have))
        require(fits, f"the output has shape {list(given)}, which does not fit {list(shape)} without {dim}")


def canonical(shape: Sequence[int]) -> tuple[int, ...]:
    """A shape of at least two dimensions."""
    return (1,) * (2 - len(shape)) + tuple(shape)
