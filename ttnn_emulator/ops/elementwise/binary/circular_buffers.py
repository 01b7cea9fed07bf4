"""Circular buffers of the binary program."""

from __future__ import annotations

import math

from ttnn_emulator.enums import BufferType, DataType, TensorMemoryLayout
from ttnn_emulator.tensors.shapes import DEFAULT_TILE
from ttnn_emulator.tensors.spec import Spec, tile_bytes

BUFFERED_TILES = 2
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/eltwise/binary_ng/device/binary_ng_program_factory.cpp, num_tiles_per_cycle
# Tiles per block when every core computes on its own shards.
MATRIX_TILES, VECTOR_TILES = 8, 2


def buffer_bytes(
    a: Spec,
    b: Spec | None,
    out: Spec,
    *,
    b_dtype: DataType,
    vector: bool,
    functions: tuple[bool, bool],
    between: DataType | None = None,
) -> int:
    """Bytes of L1 per core; `functions` marks the operands with fused input functions."""
    in_place = computes_in_shards(a, b, out)
    of_a, of_b, of_out = (tile_bytes(DEFAULT_TILE, dtype) for dtype in (a.dtype, b_dtype, out.dtype))
    held = 0 if in_place and a.is_sharded else BUFFERED_TILES * of_a
    if b is None:
        held += of_b
    elif not (in_place and b.is_sharded):
        held += BUFFERED_TILES * of_b
    if not in_place:
        held += BUFFERED_TILES * of_out
    wide_a, wide_b = broadcast_operands(a, b) if b is not None else (False, False)
    held += BUFFERED_TILES * (of_a * wide_a + of_b * wide_b)
    at_once = 1
    if in_place and a.is_sharded and (b is None or (b.is_sharded and not (wide_a or wide_b))):
        at_once = VECTOR_TILES if vector else MATRIX_TILES
    for needed, dtype in zip(functions, (a.dtype, b_dtype)):
        if needed:
            held += at_once * tile_bytes(DEFAULT_TILE, between or dtype)
    return held


def broadcast_operands(a: Spec, b: Spec) -> tuple[bool, bool]:
    """The operand that the kernel broadcasts within tiles; of two, the row."""
    (a_height, a_width), (b_height, b_width) = _sides(a), _sides(b)
    if (a_height, a_width) == (b_height, b_width):
        return False, False
    if (a_height, a_width) == (1, 1):
        return True, False
    if (b_height, b_width) == (1, 1):
        return False, True
    if b_height == 1 and a_height != 1:
        return False, True
    first = a_height == 1 or a_width == 1
    return first, not first


def _sides(spec: Spec) -> tuple[int, int]:
    shape = (1, 1, *spec.shape)
    return shape[-2], shape[-1]


def computes_in_shards(a: Spec, b: Spec | None, out: Spec) -> bool:
    """Whether every core computes on its own shards; otherwise tiles are copied through circular buffers."""
    if not out.is_sharded or not (a.is_sharded or (b is not None and b.is_sharded)):
        return False
    if b is None:
        return not is_uneven(a) and not is_uneven(out)
    one_sharded = a.is_sharded and not b.is_sharded and a.shape == out.shape and not is_uneven(a)
    if one_sharded and any(broadcast_operands(a, b)) and 1 in (_sides(a)[1], _sides(b)[1]) and not _is_row(a, b):
        by_height = a.memory_config.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED
        return by_height and not is_uneven(out)
    if a.shape != b.shape or a.memory_config != b.memory_config:
        return False
    same = a.shard_spec == b.shard_spec == out.shard_spec
    in_l1 = all(spec.memory_config.buffer_type is BufferType.L1 for spec in (a, b, out))
    if is_uneven(a) or is_uneven(out):
        return in_l1 and same
    return (
        in_l1 and a.shard_spec is not None and out.shard_spec is not None and a.shard_spec.grid == out.shard_spec.grid
    )


def _is_row(a: Spec, b: Spec) -> bool:
    """One operand a row, the other a column."""
    (a_height, a_width), (b_height, b_width) = _sides(a), _sides(b)
    return (a_height == 1 != a_width and b_width == 1 != b_height) or (
        a_width == 1 != a_height and b_height == 1 != b_width
    )


def is_uneven(spec: Spec) -> bool:
    shards = spec.shard_spec
    if shards is None:
        return False
    padded = spec.padded_shape
    return bool(math.prod(padded[:-1]) % shards.shape[0] or padded[-1] % shards.shape[1])
