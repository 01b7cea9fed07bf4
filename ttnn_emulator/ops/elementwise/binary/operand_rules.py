"""Rules of binary operations: dtypes, numbers, broadcasting, and the memory config of the result."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch

from ttnn_emulator.api.config_types import UnaryWithParam
from ttnn_emulator.enums import (
    FLOAT_DTYPES,
    BufferType,
    DataType,
    Layout,
)
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.numerics.formats.carriers import CARRIER, round_bf16_nearest_even
from ttnn_emulator.ops.support.derived_shards import fresh_shards, lacks_shards
from ttnn_emulator.ops.support.fused_functions import fused
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import TILE_SIZE
from ttnn_emulator.tensors.spec import Spec

Number = int | float

INT32, UINT32, UINT16, UINT8 = DataType.INT32, DataType.UINT32, DataType.UINT16, DataType.UINT8
WIDE_INTEGERS = frozenset({INT32, UINT32})
ARITHMETIC = FLOAT_DTYPES | {UINT32, UINT16, INT32}
RELATIONAL = ARITHMETIC | {UINT8}
SHIFTED = frozenset({UINT32, UINT16, INT32})
CONDITIONAL = FLOAT_DTYPES | WIDE_INTEGERS

# Dtypes of the first operand per kind; the second has the same dtype, unless in MIXED.
DTYPES: dict[str, frozenset[DataType]] = {
    **dict.fromkeys(
        ("ADD", "SUB", "MUL", "RSUB", "SQUARED_DIFFERENCE", "LOGICAL_AND", "LOGICAL_OR", "LOGICAL_XOR"), ARITHMETIC
    ),
    **dict.fromkeys(("GT", "LT", "LE", "GE", "EQ", "NE"), RELATIONAL),
    **dict.fromkeys(("REMAINDER", "MAXIMUM", "MINIMUM"), FLOAT_DTYPES | WIDE_INTEGERS),
    **dict.fromkeys(("DIV", "FMOD", "ISCLOSE"), FLOAT_DTYPES | {INT32}),
    **dict.fromkeys(("BITWISE_AND", "BITWISE_OR", "BITWISE_XOR", "LEFT_SHIFT", "RIGHT_SHIFT"), SHIFTED),
    "LOGICAL_RIGHT_SHIFT": WIDE_INTEGERS,
    **dict.fromkeys(("GCD", "LCM", "DIV_FLOOR", "DIV_TRUNC"), frozenset({INT32})),
    **dict.fromkeys(
        ("LOGADDEXP", "LOGADDEXP2", "LDEXP", "BIAS_GELU", "POWER", "XLOGY", "ATAN2", "HYPOT", "QUANT"), FLOAT_DTYPES
    ),
    "NEXTAFTER": frozenset({DataType.BFLOAT16, DataType.FLOAT32}),
    **dict.fromkeys(("WHERE_TST", "WHERE_TTS"), CONDITIONAL),
    **dict.fromkeys(("REQUANT", "DEQUANT"), frozenset({INT32, UINT8})),
}
# Kinds whose operands may be two different floating dtypes.
MIXED = frozenset(
    ("ADD SUB MUL RSUB SQUARED_DIFFERENCE LOGICAL_AND LOGICAL_OR LOGICAL_XOR GT LT LE GE EQ NE DIV").split(" ")
)
QUANTIZING = frozenset({"QUANT", "REQUANT", "DEQUANT"})
WHERE = frozenset({"WHERE_TST", "WHERE_TTS"})
# Kinds that promote 32-bit integers to floats when combined with floats, or with a floating-point number.
PROMOTING_TENSORS = frozenset({"MUL", "DIV"})
PROMOTING_NUMBERS = frozenset({"MUL", "DIV", "REMAINDER", "FMOD"})
# Kinds that cast operands of one dtype to another before anything else.
CAST_BEFORE: dict[str, tuple[DataType, DataType]] = {
    **dict.fromkeys(("GT", "LT", "LE", "GE", "EQ", "NE"), (UINT8, UINT16)),
    "ISCLOSE": (INT32, DataType.FLOAT32),
}
ROUNDS_WHEN_ACCURATE = frozenset({"ADD", "SUB", "RSUB"})
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/eltwise/binary_ng/device/binary_ng_device_operation.cpp, the check that
# allows broadcasting up to rank 6
LARGEST_BROADCAST_RANK = 6


# -- numbers ----------------------------------------------------------------------------------------------------------


def as_number(value: Number) -> Number:
    """A number as the library stores it: int32, uint32 or float32."""
    if isinstance(value, int) and -(2**31) <= value < 2**32:
        return value
    return float(np.float32(value))


def fits(value: Number, dtype: DataType) -> bool:
    """Whether a number is representable as an integer of `dtype`."""
    if isinstance(value, int):
        return True
    low, high = (-(2**31), 2**31 - 1) if dtype is INT32 else (0, 2**32 - 1)
    return math.isfinite(value) and value == math.trunc(value) and low <= value <= high


def number_carrier(value: Number, dtype: DataType) -> torch.Tensor:
    """A tile filled with a number, in the format of the other operand."""
    if dtype in FLOAT_DTYPES:
        held = torch.tensor(float(np.float32(value)), dtype=torch.float32)
        return held if dtype is DataType.FLOAT32 else round_bf16_nearest_even(held)
    whole = int(value) if math.isfinite(value) else 0
    if dtype is UINT16:
        whole &= 0xFFFF
    elif dtype is INT32:
        whole = (whole + 2**31) % 2**32 - 2**31
    else:
        whole &= 0xFFFFFFFF
    return torch.tensor(whole, dtype=CARRIER[dtype])


# -- shapes -----------------------------------------------------------------------------------------------------------


def broadcast(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    """The broadcast shape of both operands."""
    rank = max(len(a), len(b))
    left = (1,) * (rank - len(a)) + tuple(a)
    right = (1,) * (rank - len(b)) + tuple(b)
    for dim, (x, y) in enumerate(zip(left, right)):
        require(x == y or x == 1 or y == 1, f"shapes {list(a)} and {list(b)} do not broadcast")
        require(
            x == y or rank - dim <= LARGEST_BROADCAST_RANK,
            f"shapes {list(a)} and {list(b)} broadcast beyond the last {LARGEST_BROADCAST_RANK} dimensions",
        )
    return tuple(x if y == 1 else y for x, y in zip(left, right))


def within_tiles(small: Spec, large: Spec) -> bool:
    """Whether `small` is broadcast along the height or width of its tiles."""
    return any(_side(small, dim) == 1 and _side(large, dim) > 1 for dim in (-1, -2))


def _side(spec: Spec, dim: int) -> int:
    return spec.shape[dim] if len(spec.shape) >= -dim else 1


def same_but_for_leading_ones(shape: Sequence[int], other: Sequence[int]) -> bool:
    rank = max(len(shape), len(other))
    return (1,) * (rank - len(shape)) + tuple(shape) == (1,) * (rank - len(other)) + tuple(other)


# -- where the result is placed ---------------------------------------------------------------------------------------


def adjusted_shards(shard: ShardSpec, before: Sequence[int], after: Sequence[int]) -> ShardSpec:
    """A shard spec scaled from one padded shape to another; shards are never smaller than a tile."""
    height = max(shard.shape[0] * math.prod(after[:-1]) // math.prod(before[:-1]), TILE_SIZE)
    width = max(shard.shape[1] * after[-1] // before[-1], TILE_SIZE)
    return ShardSpec(shard.grid, (height, width), shard.orientation)


def inherited(source: Spec, other: Sequence[int]) -> MemoryConfig:
    """The memory config of a sharded operand, for its broadcast shape."""
    shard = source.shard_spec
    require(shard is not None, f"{source.memory_config.brief()} has no two-dimensional shards to inherit")
    assert shard is not None
    after = padded(source, broadcast(source.shape, other))
    config = source.memory_config
    return MemoryConfig(config.memory_layout, config.buffer_type, adjusted_shards(shard, source.padded_shape, after))


def padded(like: Spec, shape: Sequence[int]) -> tuple[int, ...]:
    return like.with_(shape=tuple(shape), memory_config=DRAM_MEMORY_CONFIG).padded_shape


def output_memory(a: Spec, b: Spec | None, asked: MemoryConfig | None, shape: Sequence[int]) -> MemoryConfig:
    """The memory config of a new result: as requested, or that of the operand sharded over more cores."""
    if asked is not None and not lacks_shards(asked):
        return asked
    if asked is not None:
        if b is None and a.is_sharded:
            return asked.with_shard_spec(a.shard_spec)
        if a.is_sharded:
            return inherited(a, b.shape if b is not None else a.shape)
        if b is not None and b.is_sharded:
            return inherited(b, a.shape)
        shards = fresh_shards(current_board().grid, padded(a, shape), asked.memory_layout, tiles=a.is_tile)
        return asked.with_shard_spec(shards)
    if b is None:
        return a.memory_config
    if b.is_sharded and not a.is_sharded and a.memory_config.buffer_type is BufferType.DRAM:
        return inherited(b, a.shape)
    if b.is_sharded and a.is_sharded and _cores(b) > _cores(a):
        return inherited(b, a.shape)
    return inherited(a, b.shape) if a.is_sharded else a.memory_config


def _cores(spec: Spec) -> int:
    require(spec.shard_spec is not None, f"{spec.memory_config.brief()} has no two-dimensional shards")
    assert spec.shard_spec is not None
    return spec.shard_spec.num_cores()


def tiled(spec: Spec) -> Spec:
    """The spec after `to_layout(…, TILE)`."""
    return spec if spec.is_tile else spec.with_(layout=Layout.TILE)


# -- dtypes -----------------------------------------------------------------------------------------------------------


def require_dtypes(kind: str, a: DataType, b: DataType | None) -> None:
    allowed = DTYPES[kind]
    require(a in allowed, f"a first operand of {a} is not supported for binary operation {kind}")
    if b is None:
        return
    if kind in QUANTIZING:
        require(b is DataType.FLOAT32, f"the scale of {kind} must be float32, it is {b}")
        return
    require(b in allowed, f"{kind} does not take a second operand of {b}")
    mixed = kind in MIXED and a in FLOAT_DTYPES and b in FLOAT_DTYPES
    close = kind == "ISCLOSE" and {a, b} <= {DataType.FLOAT32, DataType.BFLOAT16}
    require(a is b or mixed or close, f"Mixed dtype is not supported for binary operation {kind}: {a} with {b}")


def promoted(dtype: DataType, other: DataType) -> DataType:
    """A 32-bit integer dtype as the float that meets `other`."""
    return DataType.FLOAT32 if other is DataType.FLOAT32 else DataType.BFLOAT16


def activation_names(activations: Sequence[UnaryWithParam]) -> tuple[tuple, ...]:
    """Functions in the computation's form: name and parameters; a `~` suffix marks the approximate mode."""
    if not activations:
        return ()
    found = (fused(item) for item in activations)
    return tuple((each.name + "~" * each.approx, *each.params) for each in found)
