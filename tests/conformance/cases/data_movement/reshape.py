"""Reshapes, views, squeezes, permutes, transposes and repeats."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from ttnn_emulator.conformance.case import (
    BLOCK_FLOATS,
    DTYPES,
    C,
    Case,
    E,
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

from .layout import TOO_SMALL, creatable, misused

SQUARE = (1, 1, 128, 128)
CONFIGS = (
    height_sharded([32, 128], 4),
    width_sharded([128, 32], 4),
    block_sharded([64, 64], (2, 2)),
    block_sharded([64, 64], (2, 2), orient="COL_MAJOR"),
)
KINDS = tuple({"layout": kind, "buffer": "L1"} for kind in ("HEIGHT_SHARDED", "WIDTH_SHARDED", "BLOCK_SHARDED"))
EVERY_LAYOUT = ("TILE", "ROW_MAJOR")
MEMORIES = ("DRAM", "L1")
# Shapes and targets; the last target of each row has another volume.
RESHAPES: tuple[tuple[tuple[int, ...], tuple[tuple[int, ...], ...]], ...] = (
    ((7,), ((1, 7), (7, 1), (-1,), (7, 1, 1), (8,))),
    ((64,), ((2, 32), (1, 1, 64), (64, 1), (-1, 8), (63,))),
    ((32, 64), ((64, 32), (2048,), (1, 32, 64), (32, 2, 32), (16, 128), (-1, 64), (33, 64))),
    ((5, 33), ((33, 5), (165,), (1, 5, 33), (5, 1, 33), (-1, 3), (5, 34))),
    ((3, 45, 70), ((45, 3, 70), (135, 70), (9450,), (3, 1, 45, 70), (1, -1, 10), (3, -1, -1))),
    ((1, 1, 64, 96), ((64, 96), (1, 64, 1, 96), (2, 32, 96), (96, 64), (1, 1, 32, 192), (6145,))),
    ((2, 3, 17, 40), ((6, 17, 40), (2, 51, 40), (2, 3, 680), (2, 3, 40, 17), (-1,), (2, 3, 17, 41))),
    ((1, 2, 3, 5, 33), ((2, 3, 5, 33), (6, 5, 33), (30, 33), (1, 2, 3, 33, 5), (1, 2, 3, 5, 34))),
    ((2, 2, 32, 32), ((4, 32, 32), (128, 32), (2, 2, 1024), (2, 64, 32), (4096,), (2, 2, 32, 33))),
    ((), ((1,), (1, 1), (1, 1, 1, 1), (), (2,))),
    ((0, 32), ((32, 0), (0,), (0, 4, 8), (-1, 0), (1,))),
)


ILL_FITTING = (
    *TOO_SMALL,
    block_sharded([64, 64], (1, 2)),
    block_sharded([64, 64], (2, 2), buffer="DRAM"),
)


def cases() -> Iterator[Case]:
    for case in every_case():
        if creatable(case):
            yield case


def every_case() -> Iterator[Case]:
    yield from reshapes()
    yield from views()
    yield from squeezes()
    yield from permutes()
    yield from transposes()
    yield from repeats()
    yield from mismatched_shards()
    yield from wrong_types()


def mismatched_shards() -> Iterator[Case]:
    for config, dtype, layout in product(ILL_FITTING, ("bfloat16", "float32"), EVERY_LAYOUT):
        source = T(SQUARE, dtype, layout)
        yield call("ttnn.reshape", source, [1, 1, 64, 256], memory_config=M(config))
        yield call("ttnn.reshape", source, [128, 128], memory_config=M(config))
        yield call("ttnn.permute", source, [0, 1, 3, 2], memory_config=M(config))
        yield call("ttnn.permute", source, [0, 2, 1, 3], memory_config=M(config))
        yield call("ttnn.transpose", source, 2, 3, memory_config=M(config))
        yield call("ttnn.transpose", source, 1, 2, memory_config=M(config))
        yield call("ttnn.repeat", T([1, 1, 64, 128], dtype, layout), [1, 1, 2, 1], memory_config=M(config))
        yield call("ttnn.repeat_interleave", T([1, 1, 64, 128], dtype, layout), 2, 2, memory_config=M(config))
        yield call("ttnn.expand", T([1, 1, 1, 128], dtype, layout), [1, 1, 128, 128], memory_config=M(config))
    for dtype, layout in product(DTYPES, EVERY_LAYOUT):
        host = T([2, 3, 17, 40], dtype, layout, host=True)
        yield call("ttnn.permute", host, [0, 1, 3, 2])
        yield call("ttnn.transpose", host, 2, 3)
        yield call("ttnn.repeat", host, [2, 1, 1, 1])
        yield call("ttnn.repeat_interleave", host, 2, 0)
        yield call("ttnn.view", host, [6, 17, 40])
        yield call("ttnn.expand", T([1, 40], dtype, layout, host=True), [5, 40])
        for shape, target in (
            ([5, 33], [5, 34]),
            ([3, 45, 70], [3, 45, 71]),
            ([64], [63]),
            ([2, 3, 17, 40], [2, 3, 17]),
        ):
            yield call("ttnn.reshape", T(shape, dtype, layout), target)
            yield call("ttnn.view", T(shape, dtype, layout), target)


def wrong_types() -> Iterator[Case]:
    good = T([32, 64])
    for op, arguments in (
        ("reshape", ([64, 32],)),
        ("reshape_on_device", (1, 1, 64, 32)),
        ("view", ([1, 32, 64],)),
        ("experimental.view", ([1, 32, 64],)),
        ("squeeze", (0,)),
        ("unsqueeze", (0,)),
        ("unsqueeze_to_4D", ()),
        ("permute", ([1, 0],)),
        ("transpose", (0, 1)),
        ("repeat", ([2, 1],)),
        ("repeat_interleave", (2, 0)),
        ("expand", ([32, 64],)),
    ):
        yield from misused(f"ttnn.{op}", good, arguments, surplus=1)


def reshapes() -> Iterator[Case]:
    for shape, targets in RESHAPES:
        for target, layout in product(targets, EVERY_LAYOUT):
            yield call("ttnn.reshape", T(shape, layout=layout), list(target))
            yield call("ttnn.reshape", T(shape, "float32", layout, host=True), list(target))
    for dtype, layout, target in product(DTYPES, EVERY_LAYOUT, ((45, 210), (135, 70), (5, 27, 70), (9450,))):
        yield call("ttnn.reshape", T([3, 45, 70], dtype, layout), list(target))
    for dtype, target in product(DTYPES, ((2, 32, 64), (64, 64), (128, 32), (2048, 2))):
        yield call("ttnn.reshape", T([1, 2, 32, 64], dtype), list(target), memory_config=M("L1"))
    for layout, memory, target in product(EVERY_LAYOUT, MEMORIES, ((64, 96), (32, 192), (1, 1, 64, 96))):
        yield call("ttnn.reshape", T([1, 1, 64, 96], layout=layout, mem=memory), list(target), memory_config=M("L1"))
    for shape, padded in (
        ((1, 1, 5, 33), (1, 1, 32, 64)),
        ((5, 33), (32, 64)),
        ((1, 5, 33), (1, 32, 64)),
        ((2, 32), (32, 64)),
        ((165,), (192,)),
    ):
        for layout in EVERY_LAYOUT:
            yield call("ttnn.reshape", T([5, 33], layout=layout), C("Shape", list(shape)), C("Shape", list(padded)))
    for target in ((1, 5, 33), (33, 5), (6, 33), (5, 1, 33)):
        for layout in EVERY_LAYOUT:
            yield call("ttnn.reshape", T([5, 33], layout=layout), C("Shape", list(target)))
    for source, target in product(sharded_inputs(), ((128, 128), (1, 128, 1, 128), (64, 256), (2, 64, 128), (16384,))):
        yield call("ttnn.reshape", source, list(target))
    for source, target in product(sharded_inputs("bfloat8_b"), ((128, 128), (64, 256))):
        yield call("ttnn.reshape", source, list(target))
    for config in (
        height_sharded([32, 128], 4),
        width_sharded([128, 32], 4),
        block_sharded([64, 64], (2, 2)),
        {"layout": "HEIGHT_SHARDED", "buffer": "L1"},
    ):
        for shape, layout in product(((1, 1, 128, 128), (1, 1, 64, 256), (128, 128)), EVERY_LAYOUT):
            yield call("ttnn.reshape", T(shape, layout=layout), [1, 1, 128, 128], memory_config=M(config))
    for config, target in product(
        (height_sharded([32, 128], 4), width_sharded([128, 32], 4), block_sharded([64, 64], (2, 2))),
        ((128, 128), (256, 64), (1, 128, 128), (64, 256), (32, 512)),
    ):
        yield call("ttnn.reshape", T([1, 1, 128, 128], layout="ROW_MAJOR", mem=config), list(target))
        yield call("ttnn.reshape", T([1, 1, 128, 128], mem=config), list(target), memory_config=M("DRAM"))
        yield call("ttnn.reshape", T([1, 1, 128, 128], "float32", mem=config), list(target), memory_config=M("L1"))
    grid = G([0, 0, 3, 3])
    for dtype, layout in product(("bfloat16", "bfloat8_b"), EVERY_LAYOUT):
        yield call("ttnn.reshape", T([64, 64], dtype, layout), [32, 128], sub_core_grids=grid)
    yield call("ttnn.reshape", sharded_inputs()[0], [64, 256], sub_core_grids=grid)
    yield call("ttnn.reshape", T([5, 33]), [33, 5], pad_value=1.0)
    yield call("ttnn.reshape", T([5, 33]), [33, 5], pad_value=3)
    yield call("ttnn.reshape", T([5, 33]), [33, 5], skip_padding_fill=True, pad_value=1.0)
    yield call("ttnn.reshape", T([5, 33]), [33, 5], reshape_tile_mode=E("TileReshapeMapMode.RECREATE"))
    yield call("ttnn.reshape", T([5, 33]), [33, 5], pad_value="zero")
    yield call("ttnn.reshape", T([5, 33]), 165)
    yield call("ttnn.reshape", T([5, 33]), [33.0, 5])
    yield call("ttnn.reshape", T([5, 33]), [-33, -5])
    yield call("ttnn.reshape", T([5, 33]))
    for target in (
        (1, 1, 64, 96),
        (1, 1, 96, 64),
        (1, 64, 1, 96),
        (2, 32, 96, 1),
        (1, 1, 32, 192),
        (1, 1, 3072, 2),
        (1, -1, 4, 48),
        (1, 1, 1, 7),
    ):
        for layout, dtype in product(EVERY_LAYOUT, ("bfloat16", "float32", "int32")):
            yield call("ttnn.reshape_on_device", T([1, 1, 64, 96], dtype, layout), *target)
    for target in ((1, 1, 5, 33), (1, 5, 1, 33), (1, 1, 33, 5), (1, 1, 1, 165)):
        for layout in EVERY_LAYOUT:
            yield call("ttnn.reshape_on_device", T([1, 1, 5, 33], layout=layout), *target)
    yield call("ttnn.reshape_on_device", T([5, 33]), 1, 1, 33, 5)
    yield call("ttnn.reshape_on_device", T([1, 1, 5, 33], host=True), 1, 1, 33, 5)
    yield call("ttnn.reshape_on_device", sharded_inputs()[0], 1, 1, 64, 256)
    yield call("ttnn.reshape_on_device", T([1, 1, 64, 64]), 1, 1, 32, 128, memory_config=M("L1"))


def views() -> Iterator[Case]:
    for shape, targets in RESHAPES:
        for target, layout in product(targets, EVERY_LAYOUT):
            yield call("ttnn.view", T(shape, layout=layout), list(target))
            if layout == "ROW_MAJOR" or shape not in ((), (0, 32)):
                yield call("ttnn.experimental.view", T(shape, layout=layout), list(target))
    for dtype, target in product(DTYPES, ((64, 32), (1, 32, 64))):
        yield call("ttnn.view", T([32, 64], dtype), list(target))
    for source, target in product(sharded_inputs(), ((128, 128), (64, 256), (2, 64, 128))):
        yield call("ttnn.view", source, list(target))
        yield call("ttnn.experimental.view", source, list(target))
    for config, target in product(
        (height_sharded([32, 128], 4), width_sharded([128, 32], 4)), ((64, 256), (4, 32, 128))
    ):
        yield call("ttnn.experimental.view", T([128, 128], layout="ROW_MAJOR", mem=config), list(target))
    yield call("ttnn.view", T([32, 64], host=True), [64, 32])
    yield call("ttnn.view", T([32, 64], host=True), [1, 32, 64])
    yield call("ttnn.view", T([32, 64]), C("Shape", [1, 32, 64]))
    yield call("ttnn.view", T([32, 64]), C("Shape", [64, 32]))
    yield call("ttnn.experimental.view", T([1, 1, 32, 64]), 1, 2, 16, 64)
    yield call("ttnn.experimental.view", T([1, 1, 32, 64], layout="ROW_MAJOR"), 1, 2, 16, 64)
    yield call("ttnn.experimental.view", T([1, 1, 32, 64]), 1, 2, 16, 65)


def squeezes() -> Iterator[Case]:
    for shape in (
        (1, 7),
        (7, 1),
        (1, 5, 33),
        (5, 1, 33),
        (5, 33, 1),
        (1, 1, 64, 96),
        (2, 1, 17, 1),
        (1, 2, 1, 5, 33),
        (1,),
        (1, 1),
        (),
        (3, 45, 70),
        (1, 0, 4),
    ):
        for dim in (None, 0, 1, -1, -2, 4, [0, 1], [0, 0], [-1], []):
            arguments = () if dim is None else (dim,)
            yield call("ttnn.squeeze", T(shape), *arguments)
            if dim in (None, 1, -1):
                yield call("ttnn.squeeze", T(shape, "float32", "ROW_MAJOR"), *arguments)
    for shape in ((), (7,), (5, 33), (3, 45, 70), (1, 1, 64, 96), (1, 2, 3, 5, 33), (0, 4)):
        for dim in (0, 1, 2, -1, -2, -3, 5):
            yield call("ttnn.unsqueeze", T(shape), dim)
        yield call("ttnn.unsqueeze", T(shape, "int32", "ROW_MAJOR"), 1)
        yield call("ttnn.unsqueeze", T(shape, "float32", host=True), 0)
        yield call("ttnn.unsqueeze_to_4D", T(shape))
        yield call("ttnn.unsqueeze_to_4D", T(shape, "uint16", "ROW_MAJOR"))
        yield call("ttnn.unsqueeze_to_4D", T(shape, "uint32", "ROW_MAJOR", "L1"))
        yield call("ttnn.unsqueeze_to_4D", T(shape, "bfloat8_b"))
    for dtype in DTYPES:
        yield call("ttnn.unsqueeze", T([5, 33], dtype), 2)
        yield call("ttnn.unsqueeze", T([5, 33], dtype), 1)
        yield call("ttnn.squeeze", T([1, 5, 1, 33], dtype), 2)
        yield call("ttnn.squeeze", T([1, 5, 33, 1], dtype))
    for source in sharded_inputs():
        yield call("ttnn.squeeze", source)
        yield call("ttnn.squeeze", source, 0)
        yield call("ttnn.unsqueeze", source, 0)
        yield call("ttnn.unsqueeze", source, -1)
        yield call("ttnn.unsqueeze_to_4D", source)
    yield call("ttnn.squeeze", T([1, 5]), 0.5)
    yield call("ttnn.unsqueeze", T([5]))
    yield call("ttnn.unsqueeze", T([5]), [0])
    yield call("ttnn.unsqueeze_to_4D", T([5]), 4)


def permutes() -> Iterator[Case]:
    for shape in (
        (7,),
        (),
        (5, 33),
        (32, 64),
        (3, 45, 70),
        (1, 1, 64, 96),
        (2, 3, 17, 40),
        (1, 2, 3, 5, 33),
        (0, 32),
        (2, 0, 3),
    ):
        rank = len(shape)
        orders = list(itertools.permutations(range(rank)))[:: max(1, 24 // 12 if rank < 5 else 11)]
        for order, layout in product(orders, EVERY_LAYOUT):
            yield call("ttnn.permute", T(shape, layout=layout), list(order))
        yield call("ttnn.permute", T(shape), list(range(rank + 1)))
        yield call("ttnn.permute", T(shape), [-1 - index for index in range(rank)])
    for dtype, order in product(
        DTYPES, ((0, 1, 3, 2), (0, 2, 1, 3), (1, 0, 2, 3), (0, 3, 1, 2), (3, 2, 1, 0), (0, 1, 2, 3))
    ):
        yield call("ttnn.permute", T([2, 3, 17, 40], dtype), list(order))
        if dtype not in BLOCK_FLOATS:
            yield call("ttnn.permute", T([2, 3, 17, 40], dtype, "ROW_MAJOR"), list(order), memory_config=M("L1"))
    for dtype, order in product(DTYPES, ((0, 1, 2, 4, 3), (0, 2, 1, 3, 4), (4, 3, 2, 1, 0))):
        yield call("ttnn.permute", T([1, 2, 3, 5, 33], dtype), list(order))
    for config, layout, order in product(
        CONFIGS, EVERY_LAYOUT, ((0, 1, 3, 2), (0, 2, 1, 3), (1, 0, 2, 3), (0, 3, 1, 2), (3, 2, 1, 0))
    ):
        yield call("ttnn.permute", T(SQUARE, layout=layout, mem=config), list(order))
        yield call("ttnn.permute", T(SQUARE, layout=layout, mem=config), list(order), memory_config=M("DRAM"))
    for config, order in product((*CONFIGS, *KINDS), ((0, 1, 3, 2), (0, 2, 1, 3), (0, 3, 1, 2))):
        yield call("ttnn.permute", T(SQUARE), list(order), memory_config=M(config))
        yield call("ttnn.permute", T(SQUARE, layout="ROW_MAJOR"), list(order), memory_config=M(config))
        yield call("ttnn.permute", T(SQUARE, mem=CONFIGS[0]), list(order), memory_config=M(config))
    for order in ((0, 0), (0, 2), (1, -1), (0.5, 1), (-3, 1)):
        yield call("ttnn.permute", T([5, 33]), list(order))
        yield call("ttnn.permute", T([5, 33], layout="ROW_MAJOR"), list(order))
    for order in ((0, 0, 1), (2, 1, 1), (0, 1, 3)):
        yield call("ttnn.permute", T([3, 45, 70]), list(order))
    for order, layout in product(((0, 1, 3, 2), (0, 2, 1, 3), (3, 2, 1, 0)), EVERY_LAYOUT):
        yield call("ttnn.permute", T([2, 3, 17, 40], layout=layout), list(order), pad_value=1.0)
        yield call("ttnn.permute", T([2, 3, 17, 40], layout=layout), list(order), 1.0)
        yield call("ttnn.permute", T([2, 3, 17, 40], layout=layout, host=True), list(order))
    yield call("ttnn.permute", T([5, 33]), 1)
    yield call("ttnn.permute", T([5, 33]))
    yield call("ttnn.permute", T([5, 33]), [1, 0], memory_config="L1")


def transposes() -> Iterator[Case]:
    for shape in ((7,), (), (5, 33), (3, 45, 70), (1, 1, 64, 96), (2, 3, 17, 40), (1, 2, 3, 5, 33), (0, 32)):
        rank = len(shape)
        for (one, two), layout in product(
            ((0, 1), (-1, -2), (0, -1), (1, 2), (0, 0), (0, rank), (-rank, -1)), EVERY_LAYOUT
        ):
            yield call("ttnn.transpose", T(shape, layout=layout), one, two)
    for dtype, (one, two) in product(DTYPES, ((2, 3), (1, 2), (0, 1), (1, 3), (0, 3), (0, 2))):
        yield call("ttnn.transpose", T([2, 3, 17, 40], dtype), one, two)
        if dtype not in BLOCK_FLOATS:
            yield call("ttnn.transpose", T([2, 3, 17, 40], dtype, "ROW_MAJOR", "L1"), one, two)
    for config, layout, (one, two) in product(CONFIGS, EVERY_LAYOUT, ((2, 3), (1, 2), (0, 1), (0, 3))):
        yield call("ttnn.transpose", T(SQUARE, layout=layout, mem=config), one, two)
        yield call("ttnn.transpose", T([2, 2, 64, 64], layout=layout, mem=height_sharded([64, 64], 4)), one, two)
    for source, target, (one, two) in product(
        ("DRAM", *CONFIGS[:3]), ("DRAM", "L1", *CONFIGS[:3], *KINDS), ((2, 3), (1, 2))
    ):
        yield call("ttnn.transpose", T(SQUARE, mem=source), one, two, memory_config=M(target))
        yield call("ttnn.transpose", T(SQUARE, layout="ROW_MAJOR", mem=source), one, two, memory_config=M(target))
    for config, target in product(
        (width_sharded([40, 16], 4), block_sharded([20, 32], (2, 2)), height_sharded([20, 64], 2)), ("DRAM", *KINDS)
    ):
        yield call("ttnn.transpose", T([1, 1, 40, 64], layout="ROW_MAJOR", mem=config), 2, 3, memory_config=M(target))
        yield call("ttnn.transpose", T([1, 1, 40, 64], layout="ROW_MAJOR", mem=config), 1, 2)
    for (one, two), layout, value in product(((2, 3), (1, 2), (0, 1)), EVERY_LAYOUT, (0.0, 2.0)):
        yield call("ttnn.transpose", T([2, 3, 17, 40], layout=layout), one, two, pad_value=value)
        yield call("ttnn.transpose", T([2, 3, 17, 40], layout=layout), one, two, value)
    yield call("ttnn.transpose", T([5, 33], host=True), 0, 1)
    yield call("ttnn.transpose", T([5, 33], layout="ROW_MAJOR", host=True), 0, 1)
    yield call("ttnn.transpose", T([5, 33]), 0)
    yield call("ttnn.transpose", T([5, 33]), [0, 1])
    yield call("ttnn.transpose", T([5, 33]), 0, 1.0)


def repeats() -> Iterator[Case]:
    for shape in ((7,), (), (5, 33), (32, 64), (3, 45, 70), (1, 1, 64, 96), (2, 3, 17, 40), (1, 2, 3, 5, 33), (0, 32)):
        rank = len(shape)
        for times, layout in product(_repetitions(rank), EVERY_LAYOUT):
            yield call("ttnn.repeat", T(shape, layout=layout), list(times))
        for times, dim, layout in product((1, 2, 3), (0, 1, -1, -2, rank), EVERY_LAYOUT):
            yield call("ttnn.repeat_interleave", T(shape, layout=layout), times, dim)
        yield call("ttnn.repeat_interleave", T(shape), 0, 0)
        yield call("ttnn.repeat_interleave", T(shape), -1, 0)
    for dtype, layout in product(DTYPES, EVERY_LAYOUT):
        if layout == "ROW_MAJOR" and dtype in BLOCK_FLOATS:
            continue
        for times in ((2, 1, 1, 1), (1, 1, 2, 1), (1, 1, 1, 3), (2, 3, 2, 2)):
            yield call("ttnn.repeat", T([2, 3, 17, 40], dtype, layout), list(times))
            yield call("ttnn.repeat", T([1, 2, 32, 64], dtype, layout), list(times))
        for dim in (0, 1, 2, 3):
            yield call("ttnn.repeat_interleave", T([2, 3, 17, 40], dtype, layout), 2, dim)
        for target in ([2, 5, 33], [4, 5, 33], [2, 5, -1]):
            yield call("ttnn.expand", T([1, 5, 33], dtype, layout), target)
    for config, layout, times in product(
        (*CONFIGS, height_sharded([16, 128], 8)),
        EVERY_LAYOUT,
        ([1, 1, 2, 1], [1, 1, 1, 2], [2, 1, 1, 1], [2, 1, 2, 1], [1, 1, 1, 1]),
    ):
        if layout == "TILE" and config["shard"] == [16, 128]:
            continue
        yield call("ttnn.repeat", T(SQUARE, layout=layout, mem=config), times)
        yield call("ttnn.repeat", T(SQUARE, layout=layout, mem=config), times, memory_config=M("DRAM"))
    for layout, dim, config in product(EVERY_LAYOUT, (0, 1, 2, 3), CONFIGS):
        yield call("ttnn.repeat_interleave", T(SQUARE, layout=layout, mem=config), 2, dim)
        yield call("ttnn.repeat_interleave", T(SQUARE, "float32", layout), 2, dim, memory_config=M(config))
    for target, times in product(
        ("DRAM", "L1", height_sharded([64, 128], 4), *KINDS), ([1, 1, 2, 1], [1, 2, 1, 1], [1, 1, 1, 1], [1, 1, 0, 1])
    ):
        yield call("ttnn.repeat", T(SQUARE), times, memory_config=M(target))
        yield call("ttnn.repeat", T(SQUARE, layout="ROW_MAJOR"), times, memory_config=M(target))
        yield call("ttnn.repeat", T(SQUARE, mem=CONFIGS[0]), times, memory_config=M(target))
        yield call("ttnn.repeat", T([1, 1, 40, 50]), times, memory_config=M(target))
    for shape in ((2, 3, 4, 40), (4, 3, 17, 40), (4, 3, 17)):
        yield call("ttnn.repeat", T([2, 3, 17, 40]), [2, 1, 1, 1], optional_output_tensor=T(shape))
        yield call("ttnn.repeat", T([2, 3, 17, 40]), [2, 1, 1, 1], optional_output_tensor=T(shape, "float32"))
        yield call("ttnn.repeat", T([2, 3, 17, 40]), [2, 1, 1, 1], optional_output_tensor=T(shape, layout="ROW_MAJOR"))
        yield call(
            "ttnn.repeat",
            T([2, 3, 17, 40]),
            [2, 1, 1, 1],
            optional_output_tensor=T(shape, mem="L1"),
            memory_config=M("DRAM"),
        )
    yield call("ttnn.repeat", T([5, 33]), C("Shape", [2, 3]))
    yield call("ttnn.repeat", T([5, 33]), [-1, 2])
    yield call("ttnn.repeat", T([5, 33]), 2)
    yield call("ttnn.repeat", T([5, 33]), [1.5, 2])
    yield call("ttnn.repeat", T([5, 33]))
    for layout in EVERY_LAYOUT:
        yield call("ttnn.repeat", T([5, 33], layout=layout, host=True), [2, 1])
        yield call("ttnn.repeat_interleave", T([5, 33], layout=layout, host=True), 2, 0)
        yield call("ttnn.repeat_interleave", T([2, 5, 33], "float32", layout), 2, 0, memory_config=M("L1"))
        yield call("ttnn.repeat_interleave", T([5, 33], layout=layout), 2, 1, memory_config=M("L1"))
        yield call("ttnn.repeat_interleave", T([5, 33], layout=layout), 40, 0)
        yield call("ttnn.expand", T([1, 33], layout=layout, host=True), [2, 33])
        yield call("ttnn.repeat_interleave", T([5, 33], layout=layout), 2.0, 0)
        yield call("ttnn.repeat_interleave", T([5, 33], layout=layout), 2)
    expanded: tuple[tuple[tuple[int, ...], tuple[list[int], ...]], ...] = (
        ((1, 33), ([5, 33], [-1, 33], [1, 33], [2, 5, 33], [5, -1], [5, 34], [33], [-2, 33], [-1, 5, 33], [0, 33])),
        ((5, 1), ([5, 33], [5, -1], [6, 33], [2, 5, 64])),
        ((1,), ([7], [3, 7], [-1], [-1, 7])),
        ((), ([3], [2, 3], [])),
        ((1, 1, 64, 96), ([2, 3, 64, 96], [1, 1, 64, 96], [2, -1, -1, -1], [2, 1, 65, 96], [1, 1, 1, 64, 96])),
        ((1, 2, 1, 5, 33), ([3, 2, 4, 5, 33], [1, 2, 1, 5, 33], [1, 2, 1, 10, 33])),
    )
    for before, targets in expanded:
        for wanted, layout in product(targets, EVERY_LAYOUT):
            yield call("ttnn.expand", T(before, layout=layout), wanted)
    for place in ("L1", *CONFIGS[:2], *KINDS):
        yield call("ttnn.expand", T([1, 1, 32, 128]), [1, 4, 32, 128], memory_config=M(place))
        yield call("ttnn.expand", T([1, 1, 1, 128], layout="ROW_MAJOR"), [1, 1, 128, 128], memory_config=M(place))
    yield call("ttnn.expand", T([1, 33]), 5)
    yield call("ttnn.expand", T([1, 33]))


def _repetitions(rank: int) -> Iterator[tuple[int, ...]]:
    for dim in range(rank):
        yield tuple(2 if index == dim else 1 for index in range(rank))
    yield (1,) * rank
    yield (2,) * rank
    yield (3, *(1,) * rank)
    yield (2,)
    yield (0,) * rank
    yield (1,) * (rank + 2)
