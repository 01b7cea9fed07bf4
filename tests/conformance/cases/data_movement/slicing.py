"""Slicing and concatenation: concat, split, chunk, stack, slice, narrow, pad, roll, fold and experimental variants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ttnn_emulator.conformance.case import (
    DTYPES,
    LAYOUTS,
    SHAPES,
    STORABLE,
    Case,
    G,
    M,
    T,
    block_sharded,
    call,
    height_sharded,
    product,
    sharded_inputs,
    width_sharded,
)

# Block floats exist in TILE layout only.
# One sharding of each kind for a tensor whose height and width are both 128.
SHARDED_OUTPUTS = (
    height_sharded([32, 128], 4),
    width_sharded([128, 32], 4),
    block_sharded([64, 64], (2, 2)),
    block_sharded([64, 64], (2, 2), orient="COL_MAJOR"),
)
ROW_MAJOR_SHARDED = (
    T((1, 1, 128, 128), "bfloat16", "ROW_MAJOR", height_sharded([32, 128], 4)),
    T((1, 1, 128, 128), "bfloat16", "ROW_MAJOR", width_sharded([128, 32], 4)),
    T((1, 1, 128, 128), "bfloat16", "ROW_MAJOR", block_sharded([64, 64], (2, 2))),
)
WITHOUT_SHARDS: tuple[dict[str, Any], ...] = (
    {"layout": "HEIGHT_SHARDED", "buffer": "L1"},
    {"layout": "WIDTH_SHARDED", "buffer": "L1"},
    {"layout": "BLOCK_SHARDED", "buffer": "L1"},
)


def cases() -> Iterator[Case]:
    for family in (concat, split, chunk, stack, slice_, slice_by_tensors, narrow, pad, roll, fold):
        yield from family()
    yield from slice_write()
    yield from padded_slice()


def with_size(shape: tuple[int, ...], dim: int, size: int) -> list[int]:
    changed = list(shape)
    changed[dim] = size
    return changed


def concat() -> Iterator[Case]:
    op = "ttnn.concat"
    for shape, layout in product(SHAPES, LAYOUTS):
        for dim in range(-len(shape), len(shape)):
            yield call(op, [T(shape, layout=layout), T(with_size(shape, dim, 19), layout=layout)], dim)
    for dtype, layout in STORABLE:
        yield call(op, [T((2, 32, 64), dtype, layout)] * 2, dim=1)
        yield call(op, [T((2, 32, 64), dtype, layout)] * 3, dim=-1)
        yield call(op, [T((2, 5, 33), dtype, layout)] * 3, dim=2)
    for dtype in ("float32", "int32"):
        yield call(op, [T((2, 32, 64)), T((2, 32, 64), dtype)], dim=0)
    mixed = [T((1, 2, 32, 64)), T((1, 2, 32, 64), layout="ROW_MAJOR")]
    yield call(op, mixed, dim=1)
    yield call(op, mixed[::-1], dim=1)
    yield call(op, [T((2, 5, 33)), T((2, 5, 33), layout="ROW_MAJOR")], dim=1)
    yield call(op, [T((2, 5, 33), layout="ROW_MAJOR"), T((2, 5, 33))], dim=2)
    # Wrong ranks, sizes, dimensions, storage types.
    yield call(op, [], dim=0)
    yield call(op, [T((3, 4))], dim=0)
    yield call(op, [T((3, 4))], dim=7)
    yield call(op, [T((3, 4)), T((1, 3, 4))], dim=0)
    yield call(op, [T((3, 4)), T((3, 5))], dim=0)
    yield call(op, [T((3, 4, 5)), T((3, 4, 6))], dim=1)
    for dim in (2, -3, 5):
        yield call(op, [T((3, 4)), T((3, 4))], dim=dim)
    yield call(op, [T((3, 4), host=True), T((3, 4), host=True)], dim=0)
    yield call(op, [T((3, 4)), T((3, 4), host=True)], dim=0)
    yield call(op, [T((3, 4)), T((3, 4))], dim=0, output_tensor=T((6, 4)))
    yield call(op, [T((3, 4)), T((3, 4))], dim=0.5)
    yield call(op, T((3, 4)), dim=0)
    yield call(op, [T(()), T(())], dim=0)
    # Memory configs.
    pair = [T((1, 1, 128, 128)), T((1, 1, 128, 128), mem="L1")]
    for memory in ("DRAM", "L1", height_sharded([64, 128], 4), width_sharded([256, 32], 4), *WITHOUT_SHARDS):
        yield call(op, pair, dim=2, memory_config=M(memory))
    yield call(op, [T((1, 1, 128, 128), layout="ROW_MAJOR")] * 2, dim=2, memory_config=M(height_sharded([64, 128], 4)))
    yield call(op, [T((1, 1, 128, 128), layout="ROW_MAJOR")] * 2, dim=2, memory_config=M(width_sharded([256, 32], 4)))
    for tensor, dim in product((*sharded_inputs(), *ROW_MAJOR_SHARDED), (0, 1, 2, 3)):
        yield call(op, [tensor, tensor], dim)
    for tensor, memory in product(sharded_inputs(), (height_sharded([32, 256], 4), width_sharded([256, 32], 4), "L1")):
        yield call(op, [tensor, tensor], dim=3, memory_config=M(memory))
        yield call(op, [tensor, tensor], dim=2, memory_config=M(memory))
    yield call(op, [sharded_inputs()[2]] * 2, dim=3, memory_config=M(block_sharded([64, 128], (2, 2))))
    yield call(op, [sharded_inputs()[2]] * 2, dim=2, memory_config=M(block_sharded([128, 64], (2, 2))))
    yield call(op, [sharded_inputs()[0], T((1, 1, 128, 128))], dim=3)
    yield call(op, [T((1, 1, 128, 128)), sharded_inputs()[0]], dim=3)
    yield call(op, [sharded_inputs()[0], sharded_inputs()[1]], dim=3)
    for groups in (1, 2, 3, 4):
        wide = [ROW_MAJOR_SHARDED[0], ROW_MAJOR_SHARDED[0]]
        yield call(op, wide, dim=3, groups=groups, memory_config=M(height_sharded([32, 256], 4)))
        yield call(op, [T((1, 1, 32, 64))] * 2, dim=3, groups=groups)
    yield call(op, [T((1, 1, 32, 64))] * 2, dim=3, sub_core_grids=G([0, 0, 3, 3]))
    yield call(op, [T((1, 1, 5, 33))] * 2, dim=3, sub_core_grids=G([0, 0, 3, 3]))
    yield call(op, [T((1, 1, 5, 33), layout="ROW_MAJOR")] * 2, dim=3, sub_core_grids=G([0, 0, 3, 3]))
    yield call(op, [T((1, 1, 32, 64))] * 50, dim=3)


def split() -> Iterator[Case]:
    op = "ttnn.split"
    for shape, layout in product(SHAPES, LAYOUTS):
        for dim in range(-1, len(shape)):
            yield call(op, T(shape, layout=layout), 16, dim)
    for dtype, layout in STORABLE:
        yield call(op, T((1, 2, 64, 128), dtype, layout), 64, 3)
        yield call(op, T((3, 45, 70), dtype, layout), [20, 25], 1)
    for sizes in ([32, 32], [32, 31], [0, 64], [64], [65], [], [-1, 65], [10, 20, 34]):
        yield call(op, T((2, 64, 64)), sizes, 1)
    for size in (0, -1, 1, 64, 100):
        yield call(op, T((2, 64, 64)), size, 2)
    for dim in (3, -4):
        yield call(op, T((2, 64, 64)), 32, dim)
    for memory in ("DRAM", "L1", height_sharded([32, 64], 4), width_sharded([128, 32], 2), *WITHOUT_SHARDS):
        yield call(op, T((1, 1, 128, 128)), 64, 3, memory_config=M(memory))
    for tensor in (*sharded_inputs(), *ROW_MAJOR_SHARDED):
        yield call(op, tensor, 64, 3)
        yield call(op, tensor, 64, 2)
        yield call(op, tensor, [32, 96], 3)
        yield call(op, tensor, 64, 3, memory_config=M("DRAM"))
    yield call(op, T((1, 1, 128, 128), mem="L1"), 32, 3)
    yield call(op, T((1, 1, 128, 128), mem="L1"), [28, 100], 3)
    yield call(op, T((3, 4), host=True), 2, 0)
    yield call(op, T(()), 2, 0)
    yield call(op, T((2, 3, 64, 512)), 64, 3)
    yield call(op, T((1, 3, 64, 512)), 128, 3)
    yield call(op, T((1, 9, 64, 128)), 64, 3)
    yield call(op, T((2, 200)), 2, 1)


def chunk() -> Iterator[Case]:
    op = "ttnn.chunk"
    for shape, layout in product(SHAPES, LAYOUTS):
        yield call(op, T(shape, layout=layout), 2, -1)
        yield call(op, T(shape, layout=layout), 3, 0)
    for dtype, layout in STORABLE:
        yield call(op, T((2, 64, 33), dtype, layout), 4, 1)
    for chunks in (0, -1, 1, 5, 64, 100):
        yield call(op, T((2, 64, 33)), chunks, 1)
    for dim in (3, -4, 2, -3):
        yield call(op, T((2, 64, 33)), 2, dim)
    for tensor in sharded_inputs():
        yield call(op, tensor, 2, 3)
        yield call(op, tensor, 2, 2)
    yield call(op, T((4, 4), mem="L1"), 2, 0)
    yield call(op, T((4, 4), host=True), 2, 0)
    yield call(op, T((4, 4)), 2)
    yield call(op, T((4, 4)), 2.0, 0)
    yield call(op, T(()), 1, 0)


def stack() -> Iterator[Case]:
    op = "ttnn.stack"
    for shape, layout in product(SHAPES, LAYOUTS):
        for dim in (0, -1, len(shape) - 1):
            yield call(op, [T(shape, layout=layout)] * 2, dim)
    for dtype, layout in STORABLE:
        yield call(op, [T((32, 64), dtype, layout)] * 3, 0)
    for dim in (3, -4, -3, 2):
        yield call(op, [T((4, 5))] * 2, dim)
    yield call(op, [], 0)
    yield call(op, [T((4, 5))], 1)
    yield call(op, [T((4, 5)), T((4, 6))], 0)
    yield call(op, [T((4, 5)), T((4, 5), "float32")], 0)
    yield call(op, [T((4, 5)), T((1, 4, 5))], 0)
    yield call(op, [T((4, 5), host=True)] * 2, 0)
    yield call(op, [T((4, 5))] * 2)
    for tensor in sharded_inputs():
        yield call(op, [tensor, tensor], 0)


def slice_() -> Iterator[Case]:
    op = "ttnn.slice"
    for shape, layout in product(SHAPES, LAYOUTS):
        zeros, last = [0] * len(shape), len(shape) - 1
        yield call(op, T(shape, layout=layout), zeros, list(shape))
        yield call(op, T(shape, layout=layout), zeros, [max(size - 3, 1) for size in shape])
        yield call(op, T(shape, layout=layout), [size // 2 for size in shape], list(shape))
        yield call(op, T(shape, layout=layout), [*zeros[:last], 3], list(shape))
        yield call(op, T(shape, layout=layout), zeros, list(shape), [2] * len(shape))
        yield call(op, T(shape, layout=layout), zeros, [size + 1 for size in shape])
    for dtype, layout in STORABLE:
        yield call(op, T((2, 64, 96), dtype, layout), [0, 32, 32], [1, 64, 96])
        yield call(op, T((2, 64, 96), dtype, layout), [0, 3, 5], [2, 40, 68])
        yield call(op, T((2, 64, 96), dtype, layout), [0, 0, 0], [2, 64, 96], [1, 2, 3])
        yield call(op, T((2, 45, 70), dtype, layout), [1, 0, 0], [2, 45, 64], memory_config=M("L1"))
    tensor = T((2, 45, 70))
    yield call(op, tensor, [0, -10, 0], [2, -1, -5])
    yield call(op, tensor, [-1, 0, -70], [2, 45, 70])
    yield call(op, tensor, [0, -50, 0], [2, 45, 70])
    yield call(op, tensor, [0, 32, 32], [2, 45, 96])
    yield call(op, tensor, [0, 2, 0], [2, 45, 96])
    yield call(op, tensor, [0, 0, 0], [2, 100, 70])
    yield call(op, tensor, [0, 7, 0], [2, 7, 70])
    yield call(op, tensor, [0, 9, 0], [2, 7, 70])
    yield call(op, tensor, [0, 0], [2, 45])
    yield call(op, tensor, [0, 0, 0], [2, 45])
    yield call(op, tensor, [0, 0, 0], [2, 45, 70], [1, 1])
    for step in (0, -1, 2, 100):
        yield call(op, tensor, [0, 0, 0], [2, 45, 70], [1, step, 1])
        yield call(op, T((2, 45, 70), layout="ROW_MAJOR"), [0, 0, 0], [2, 45, 70], [1, 1, step])
    yield call(op, tensor, [2, 0, 0], [2, 45, 70])
    yield call(op, tensor, [3, 0, 0], [3, 45, 70])
    yield call(op, T((2, 45, 70), layout="ROW_MAJOR"), [2, 0, 0], [2, 45, 70])
    yield call(op, T((2, 45, 70), layout="ROW_MAJOR"), [0, 0, 1], [2, 45, 71])
    yield call(op, T((2, 45, 70), host=True), [0, 0, 0], [2, 45, 70])
    yield call(op, T((2, 45, 70), host=True), [0, 0, 0], [1, 45, 70])
    yield call(op, T((2, 45, 70), layout="ROW_MAJOR", host=True), [0, 0, 0], [1, 45, 70])
    yield call(op, T(()), [], [])
    yield call(op, T((4, 0, 5)), [0, 0, 0], [2, 0, 5])
    yield call(op, tensor, [0, 0, 0])
    yield call(op, tensor, [0.0, 0.0, 0.0], [1, 45, 70])
    for pad_value in (0.0, 3.5):
        yield call(op, tensor, [0, 0, 0], [2, 40, 60], pad_value=pad_value)
        yield call(op, T((2, 64, 96)), [0, 0, 0], [2, 40, 60], pad_value=pad_value)
        yield call(op, T((2, 64, 96), layout="ROW_MAJOR"), [0, 0, 0], [2, 40, 60], pad_value=pad_value)
    # Passed outputs.
    yield call(op, T((2, 64, 96)), [0, 0, 0], [1, 32, 64], output_tensor=T((1, 32, 64)))
    yield call(op, T((2, 64, 96)), [0, 0, 0], [1, 32, 64], output_tensor=T((1, 32, 64), mem="L1"))
    yield call(op, T((2, 64, 96)), [0, 0, 0], [1, 32, 60], output_tensor=T((1, 32, 60)))
    yield call(op, T((2, 64, 96)), [0, 0, 0], [1, 32, 64], output_tensor=T((1, 64, 64)))
    yield call(op, T((2, 64, 96)), [0, 0, 0], [2, 64, 96], output_tensor=T((2, 64, 96)))
    yield call(op, T((2, 64, 96)), [0, 1, 0], [1, 32, 64], output_tensor=T((1, 31, 64)))
    row_major = T((2, 64, 96), layout="ROW_MAJOR")
    yield call(op, row_major, [0, 1, 0], [1, 32, 60], output_tensor=T((1, 31, 60), layout="ROW_MAJOR"))
    yield call(op, row_major, [0, 1, 0], [1, 32, 60], output_tensor=T((1, 31, 60)))
    # Sharded tensors.
    spans = (
        ([0, 0, 0, 0], [1, 1, 64, 128]),
        ([0, 0, 32, 0], [1, 1, 128, 64]),
        ([0, 0, 5, 0], [1, 1, 100, 128]),
        ([0, 0, 0, 32], [1, 1, 128, 128]),
        ([0, 0, 0, 3], [1, 1, 128, 99]),
        ([0, 0, 0, 0], [1, 1, 128, 128]),
    )
    for source, (start, end) in product((*sharded_inputs(), *ROW_MAJOR_SHARDED), spans):
        yield call(op, source, start, end)
    for source in (*sharded_inputs(), *ROW_MAJOR_SHARDED):
        yield call(op, source, [0, 0, 0, 0], [1, 1, 128, 128], [1, 1, 2, 1])
        yield call(op, source, [0, 0, 0, 0], [1, 1, 64, 128], memory_config=M("DRAM"))
        yield call(op, source, [0, 0, 0, 0], [1, 1, 64, 128], memory_config=M(height_sharded([32, 128], 2)))
        for memory in WITHOUT_SHARDS:
            yield call(op, source, [0, 0, 0, 0], [1, 1, 64, 128], memory_config=M(memory))
    odd = T((1, 1, 120, 100), layout="ROW_MAJOR", mem=height_sharded([30, 100], 4))
    yield call(op, odd, [0, 0, 0, 0], [1, 1, 60, 100])
    yield call(op, odd, [0, 0, 3, 5], [1, 1, 60, 100])
    yield call(op, odd, [0, 0, 0, 0], [1, 1, 60, 100], memory_config=M("DRAM"))
    odd = T((1, 1, 120, 100), layout="ROW_MAJOR", mem=width_sharded([120, 20], 5))
    yield call(op, odd, [0, 0, 0, 0], [1, 1, 60, 100])
    yield call(op, odd, [0, 0, 3, 5], [1, 1, 60, 100])
    for layout, memory in product(LAYOUTS, (*SHARDED_OUTPUTS, *WITHOUT_SHARDS)):
        yield call(op, T((1, 2, 128, 128), layout=layout), [0, 0, 0, 0], [1, 1, 128, 128], memory_config=M(memory))
    yield call(op, T((2, 64, 96)), [0, 0, 0], [1, 32, 64], sub_core_grids=G([0, 0, 1, 1]))


def slice_by_tensors() -> Iterator[Case]:
    op = "ttnn.slice"

    def bounds(rank: int, dtype: str = "uint32", **kwargs: Any) -> Case:
        return T((rank,), dtype, "ROW_MAJOR", **kwargs)

    for shape, dim in (((4, 64, 64), 1), ((64, 96), 0), ((1, 2, 64, 64), 2), ((128,), 0), ((4, 60, 64), 1)):
        given = bounds(len(shape))
        for parts in (2, 4, 3):
            yield call(op, T(shape), given, given, slice_dim=dim, num_devices=parts)
    given = bounds(3)
    yield call(op, T((4, 64, 64)), given, given)
    yield call(op, T((4, 64, 64)), given, given, slice_dim=1)
    yield call(op, T((4, 64, 64)), given, given, slice_dim=3, num_devices=2)
    yield call(op, T((4, 64, 64)), given, given, [1, 2, 1], slice_dim=1, num_devices=2)
    yield call(op, T((4, 64, 64)), given, given, [1, 1, 1], slice_dim=1, num_devices=2)
    yield call(op, T((4, 64, 64), layout="ROW_MAJOR"), given, given)
    yield call(op, T((4, 64, 64), layout="ROW_MAJOR"), bounds(2), bounds(2))
    yield call(op, T((4, 64, 64)), T((1, 3), "uint32", "ROW_MAJOR"), given, slice_dim=1, num_devices=2)
    yield call(op, T((4, 64, 64)), bounds(3, host=True), bounds(3, host=True), slice_dim=1, num_devices=2)
    yield call(op, T((4, 64, 64), host=True), given, given, slice_dim=1, num_devices=2)
    yield call(op, T((4, 64, 64)), bounds(3, "bfloat16"), bounds(3, "bfloat16"), slice_dim=1, num_devices=2)
    yield call(op, T((4, 64, 64)), given, given, slice_dim=0, num_devices=2, memory_config=M("L1"))
    yield call(op, T((4, 64, 64), "float32"), given, given, slice_dim=0, num_devices=2)
    yield call(op, T((4, 64, 64), "bfloat8_b"), given, given, slice_dim=0, num_devices=2)


def narrow() -> Iterator[Case]:
    op = "ttnn.narrow"
    for layout in LAYOUTS:
        for dim, start, length in (
            (0, 0, 1),
            (0, 1, 1),
            (0, 12, 12),
            (1, 0, 32),
            (1, 32, 32),
            (1, 3, 5),
            (2, 0, 32),
            (2, 32, 32),
            (2, 0, 64),
            (-1, 0, 64),
            (-3, -12, 12),
            (0, 0, 24),
            (0, 24, 1),
            (0, 0, 0),
            (0, 20, 10),
            (3, 0, 1),
        ):
            yield call(op, T((24, 64, 64), layout=layout), dim, start, length)
        yield call(op, T((1, 384, 64), layout=layout), 1, 0, 32)
        yield call(op, T((1, 384, 64), layout=layout), 1, 192, 32)
        yield call(op, T((1, 384, 64), layout=layout), 1, 96, 32)
        yield call(op, T((64, 64), layout=layout, mem="L1"), 0, 0, 32)
        yield call(op, T((64, 64), layout=layout, host=True), 0, 0, 32)
        yield call(op, T((40, 70), layout=layout), 0, 0, 40)
        yield call(op, T((40, 70), layout=layout), 0, 0, 32)
    for source in (*sharded_inputs(), *ROW_MAJOR_SHARDED):
        for dim, start, length in ((2, 0, 32), (2, 32, 64), (2, 16, 8), (3, 0, 32), (3, 64, 64), (3, 32, 64)):
            yield call(op, source, dim, start, length)
    for dtype in DTYPES:
        yield call(op, T((24, 64, 64), dtype), 0, 12, 6)


def pad() -> Iterator[Case]:
    op = "ttnn.pad"
    for shape, layout in product(SHAPES, LAYOUTS):
        none = [[0, 0]] * len(shape)
        yield call(op, T(shape, layout=layout), none, value=1.0)
        yield call(op, T(shape, layout=layout), [*none[1:], [0, 5]], value=0.0)
        yield call(op, T(shape, layout=layout), [[0, 3], *none[1:]], value=0.0)
        yield call(op, T(shape, layout=layout), [[0, 3]] * len(shape), value=2.5)
        yield call(op, T(shape, layout=layout), [[1, 2]] * len(shape), value=0.0)
        yield call(op, T(shape, layout=layout), [[0, 32]], value=0.0)
    for dtype, layout in STORABLE:
        yield call(op, T((1, 2, 32, 64), dtype, layout), [[0, 0], [0, 1], [0, 32], [0, 32]], value=3.0)
        yield call(op, T((5, 33), dtype, layout), [[0, 27], [0, 31]], value=0.0)
        yield call(op, T((5, 33), dtype, layout), [[0, 2], [0, 3]], value=0.0)
    yield call(op, T((5, 33)), [[0, 1]] * 3, value=0.0)
    yield call(op, T((5, 33)), [[0, -1], [0, 0]], value=0.0)
    yield call(op, T((5, 33)), [[0], [0]], value=0.0)
    yield call(op, T((5, 33)), [0, 1], value=0.0)
    yield call(op, T((5, 33)), [[0, 1], [0, 1]])
    yield call(op, T((5, 33)), [[0, 1], [0, 1]], value=1)
    yield call(op, T((5, 33), host=True), [[0, 1], [0, 1]], value=0.0)
    yield call(op, T((5, 33), layout="ROW_MAJOR", host=True), [[0, 1], [0, 1]], value=0.0)
    yield call(op, T((5, 33), layout="ROW_MAJOR", host=True), [[1, 1], [2, 1]], value=0.0)
    yield call(op, T((5, 33), layout="ROW_MAJOR", host=True), [[0, 0], [0, 0]], value=0.0)
    for use_multicore, layout in product((True, False), LAYOUTS):
        tensor = T((1, 2, 32, 64), layout=layout)
        yield call(op, tensor, [[0, 0], [0, 0], [0, 32], [0, 64]], value=0.0, use_multicore=use_multicore)
        yield call(op, tensor, [[0, 0], [0, 0], [0, 3], [0, 4]], value=0.0, use_multicore=use_multicore)
    # The overload with the whole output shape.
    for layout in LAYOUTS:
        tensor = T((1, 2, 30, 60), layout=layout)
        for target, start in (
            ([1, 2, 32, 64], [0, 0, 0, 0]),
            ([1, 2, 64, 64], [0, 0, 0, 0]),
            ([1, 4, 64, 128], [0, 0, 0, 0]),
            ([1, 4, 40, 70], [0, 1, 2, 3]),
            ([1, 2, 20, 60], [0, 0, 0, 0]),
            ([1, 2, 30, 60], [0, 0, 0, 0]),
            ([1, 2, 30, 60], [0, 0, 1, 0]),
            ([2, 30, 60], [0, 0, 0]),
        ):
            yield call(op, tensor, target, start, 0.0)
        yield call(op, T((30, 60), layout=layout), [1, 1, 32, 64], [0, 0, 0, 0], 0.0)
    for layout, memory in product(LAYOUTS, ("DRAM", "L1", *SHARDED_OUTPUTS, *WITHOUT_SHARDS)):
        tensor = T((1, 1, 100, 120), layout=layout)
        yield call(op, tensor, [[0, 0], [0, 0], [0, 28], [0, 8]], value=0.0, memory_config=M(memory))
        yield call(op, tensor, [[0, 0], [0, 0], [0, 0], [0, 8]], value=0.0, memory_config=M(memory))
    for source in (*sharded_inputs(), *ROW_MAJOR_SHARDED):
        yield call(op, source, [[0, 0], [0, 0], [0, 0], [0, 32]], value=0.0)
        yield call(op, source, [[0, 0], [0, 0], [0, 32], [0, 0]], value=0.0)
        yield call(op, source, [[0, 0], [0, 0], [0, 32], [0, 32]], value=0.0)
        yield call(op, source, [[0, 0], [0, 1], [0, 0], [0, 0]], value=0.0)
        yield call(op, source, [[0, 0], [0, 0], [0, 0], [0, 4]], value=0.0)
        yield call(op, source, [[0, 0], [0, 0], [0, 32], [0, 32]], value=0.0, memory_config=M("DRAM"))
    yield call(op, T((32, 64)), [[0, 32], [0, 0]], value=0.0, sub_core_grids=G([0, 0, 1, 1]))
    yield call(op, T((32, 64)), [[0, 32], [0, 0]], value=0.0, sub_core_grids=G([0, 0, 1, 1]), use_multicore=False)
    yield call(op, sharded_inputs()[0], [[0, 32], [0, 0]], value=0.0, sub_core_grids=G([0, 0, 1, 1]))


def roll() -> Iterator[Case]:
    op = "ttnn.roll"
    for shape, layout in product(SHAPES, LAYOUTS):
        yield call(op, T(shape, layout=layout), 3, 0)
        yield call(op, T(shape, layout=layout), -2, -1)
        yield call(op, T(shape, layout=layout), 5)
        yield call(op, T(shape, layout=layout), [1, 2], [0, len(shape) - 1])
    for dtype, layout in STORABLE:
        yield call(op, T((2, 32, 64), dtype, layout), 32, 2)
        yield call(op, T((2, 5, 33), dtype, layout), 7, 1)
    for shifts, dims in (([1], [0, 1]), ([], []), ([1, 2], [0]), ([1, 1], [1, 1]), ([0, 0], [0, 1]), ([1], [3])):
        yield call(op, T((4, 5, 6)), shifts, dims)
    for dim in (3, -4):
        yield call(op, T((4, 5, 6)), 1, dim)
    yield call(op, T((4, 5), host=True), 1, 0)
    yield call(op, T((4, 5), host=True), 0, 0)
    yield call(op, T(()), 1)
    yield call(op, T((4, 5)), 1.5, 0)
    for memory in ("L1", *SHARDED_OUTPUTS):
        yield call(op, T((1, 1, 128, 128)), 32, 3, memory_config=M(memory))
        yield call(op, T((1, 1, 128, 128)), 5, memory_config=M(memory))
    for source in (*sharded_inputs(), *ROW_MAJOR_SHARDED):
        for shift, dim in ((32, 3), (5, 3), (32, 2), (1, 2), (1, 1), (0, 3)):
            yield call(op, source, shift, dim)
        yield call(op, source, 7)
        yield call(op, source, 32, 3, memory_config=M("DRAM"))


def fold() -> Iterator[Case]:
    op = "ttnn.fold"
    for layout in LAYOUTS:
        for shape, stride in (
            ((1, 32, 32, 16), (2, 2)),
            ((2, 16, 16, 3), (4, 4)),
            ((1, 32, 16, 32), (2, 4)),
            ((1, 30, 30, 8), (3, 2)),
            ((1, 32, 32, 16), (1, 1)),
            ((1, 31, 32, 16), (2, 2)),
            ((1, 32, 31, 16), (2, 2)),
            ((1, 32, 32, 16), (0, 2)),
            ((32, 32, 16), (2, 2)),
        ):
            yield call(op, T(shape, layout=layout), *stride)
        yield call(op, T((1, 32, 32, 16), layout=layout), 2, 2, padding=[1, 1])
        yield call(op, T((1, 30, 30, 16), layout=layout), 2, 2, padding=[1, 1, 1, 1])
        yield call(op, T((1, 30, 30, 3), layout=layout), 2, 2, padding=[1, 1, 1, 1, 0, 1])
        yield call(op, T((1, 32, 32, 16), layout=layout), 2, 2, padding=[1])
        yield call(op, T((1, 32, 32, 16), layout=layout, mem="L1"), 2, 2)
        yield call(op, T((1, 32, 32, 16), layout=layout), 2, 2, collapse_output=True)
    for dtype, layout in STORABLE:
        yield call(op, T((1, 32, 32, 32), dtype, layout), 2, 2)
    sharded = T((1, 32, 32, 16), layout="ROW_MAJOR", mem=height_sharded([128, 16], 8))
    yield call(op, sharded, 2, 2)
    yield call(op, sharded, 4, 2)
    yield call(op, sharded, 2, 2, collapse_output=True)
    yield call(op, T((1, 32, 32, 16), layout="ROW_MAJOR", mem=height_sharded([64, 16], 16)), 4, 4)
    yield call(op, T((1, 32, 32, 64), layout="ROW_MAJOR", mem=width_sharded([1024, 16], 4)), 2, 2)
    yield call(op, T((1, 3, 32, 32), layout="ROW_MAJOR"), 2, 2, use_transpose_as_fold=True)
    yield call(op, T((1, 3, 32, 32), layout="ROW_MAJOR"), 2, 2, use_transpose_as_fold=True, padding=[0, 0, 0])
    yield call(op, T((1, 32, 32, 16), layout="ROW_MAJOR"), 2, 2, override_memory_config=M("L1"))
    yield call(op, T((1, 32, 32, 16), layout="ROW_MAJOR", host=True), 2, 2)


def slice_write() -> Iterator[Case]:
    op = "ttnn.experimental.slice_write"
    for layout in LAYOUTS:
        target = T((2, 64, 64, 32), layout=layout)
        for shape, start, end, step in (
            ((2, 32, 64, 32), [0, 0, 0, 0], [2, 32, 64, 32], [1, 1, 1, 1]),
            ((2, 32, 64, 32), [0, 32, 0, 0], [2, 64, 64, 32], [1, 1, 1, 1]),
            ((2, 64, 32, 32), [0, 0, 32, 0], [2, 64, 64, 32], [1, 1, 1, 1]),
            ((1, 64, 64, 32), [1, 0, 0, 0], [2, 64, 64, 32], [1, 1, 1, 1]),
            ((2, 5, 64, 32), [0, 3, 0, 0], [2, 8, 64, 32], [1, 1, 1, 1]),
            ((2, 64, 64, 32), [0, 0, 0, 0], [2, 64, 64, 32], [1, 1, 1, 1]),
            ((2, 32, 64, 32), [0, 0, 0, 0], [2, 64, 64, 32], [1, 2, 1, 1]),
            ((2, 32, 64, 32), [0, 0, 0, 0], [2, 31, 64, 32], [1, 1, 1, 1]),
            ((2, 32, 64, 32), [0, 40, 0, 0], [2, 72, 64, 32], [1, 1, 1, 1]),
            ((2, 64, 64, 16), [0, 0, 0, 0], [2, 64, 64, 16], [1, 1, 1, 1]),
            ((2, 64, 64, 16), [0, 0, 0, 16], [2, 64, 64, 32], [1, 1, 1, 1]),
            ((2, 32, 64, 32), [0, 32, 0], [2, 64, 64], [1, 1, 1]),
            ((2, 0, 64, 32), [0, 32, 0, 0], [2, 32, 64, 32], [1, 1, 1, 1]),
        ):
            yield call(op, T(shape, layout=layout), target, start, end, step)
    span = ([0, 0, 0, 0], [2, 32, 64, 32], [1, 1, 1, 1])
    for dtype, layout in STORABLE:
        yield call(op, T((2, 32, 64, 32), dtype, layout), T((2, 64, 64, 32), dtype, layout), *span)
    yield call(op, T((2, 32, 64, 32)), T((2, 64, 64, 32), "float32"), *span)
    yield call(op, T((2, 32, 64, 32)), T((2, 64, 64, 32), layout="ROW_MAJOR"), *span)
    yield call(op, T((2, 32, 64, 32), host=True), T((2, 64, 64, 32)), *span)
    yield call(op, T((2, 32, 64, 32)), T((2, 64, 64, 32), mem="L1"), *span)
    rows = T((1, 32, 64, 32), layout="ROW_MAJOR", mem=height_sharded([512, 32], 4))
    whole = T((1, 64, 64, 32), layout="ROW_MAJOR")
    yield call(op, rows, whole, [0, 0, 0, 0], [1, 32, 64, 32], [1, 1, 1, 1])
    yield call(op, rows, whole, [0, 32, 0, 0], [1, 64, 64, 32], [1, 1, 1, 1])
    tiles = T((1, 32, 64, 32), mem=height_sharded([512, 32], 4))
    yield call(op, tiles, T((1, 64, 64, 32)), [0, 0, 0, 0], [1, 32, 64, 32], [1, 1, 1, 1])
    yield call(op, tiles, whole, [0, 0, 0, 0], [1, 32, 64, 32], [1, 1, 1, 1])


def padded_slice() -> Iterator[Case]:
    op = "ttnn.experimental.padded_slice"
    for layout in LAYOUTS:
        source = T((1, 64, 64, 64), layout=layout)
        for start, end, memory in (
            ([0, 0, 0, 0], [1, 32, 64, 64], height_sharded([512, 64], 4)),
            ([0, 32, 0, 0], [1, 64, 64, 64], height_sharded([512, 64], 4)),
            ([0, 0, 0, 0], [1, 16, 64, 64], height_sharded([256, 64], 4)),
            ([0, 0, 8, 0], [1, 64, 40, 64], height_sharded([512, 64], 4)),
            ([0, 0, 0, 0], [1, 32, 64, 64], block_sharded([512, 32], (2, 4))),
            ([0, 0, 0, 0], [1, 32, 64, 64], width_sharded([2048, 16], 4)),
            ([0, 0, 0, 0], [1, 32, 64, 32], height_sharded([512, 32], 4)),
            ([0, 0, 0, 0], [1, 65, 64, 64], height_sharded([1024, 64], 5)),
            ([0, 9, 0, 0], [1, 8, 64, 64], height_sharded([512, 64], 4)),
            ([0, 0, 0], [1, 32, 64], height_sharded([512, 64], 4)),
            ([0, 0, 0, 0], [1, 32, 64, 64], "DRAM"),
            ([0, 0, 0, 0], [1, 32, 64, 64], "L1"),
            ([0, 0, 0, 0], [1, 32, 64, 64], {"layout": "HEIGHT_SHARDED", "buffer": "L1"}),
        ):
            yield call(op, source, start, end, memory_config=M(memory))
        yield call(
            op, source, [0, 0, 0, 0], [1, 32, 64, 64], [1, 1, 1, 1], memory_config=M(height_sharded([512, 64], 4))
        )
        yield call(
            op, source, [0, 0, 0, 0], [1, 32, 64, 64], [1, 2, 1, 1], memory_config=M(height_sharded([256, 64], 4))
        )
        yield call(op, source, [0, 0, 0, 0], [1, 32, 64, 64])
    for dtype, layout in STORABLE:
        yield call(
            op,
            T((1, 64, 64, 64), dtype, layout),
            [0, 0, 0, 0],
            [1, 32, 64, 64],
            memory_config=M(height_sharded([512, 64], 4)),
        )
