"""Conversions of layout, dtype and memory config."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ttnn_emulator.conformance.case import (
    DTYPES,
    INFINITY,
    ROWS,
    SHAPES,
    TILE,
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
    width_sharded,
)

BOTH = ("TILE", "ROW_MAJOR")
PLAIN_DTYPES = ("bfloat16", "float32", "int32", "uint32", "uint16", "uint8")
EDGES: tuple[tuple[int, ...], ...] = ((), (0,), (0, 32), (2, 0, 32), (1, 1, 1, 1), (2, 1, 3, 64, 64))
SQUARE = (1, 1, 128, 128)
CONFIGS = (
    height_sharded([32, 128], 4),
    height_sharded([64, 128], 2),
    width_sharded([128, 32], 4),
    width_sharded([128, 64], 2),
    block_sharded([64, 64], (2, 2)),
    block_sharded([32, 64], (2, 4)),
    block_sharded([64, 64], (2, 2), orient="COL_MAJOR"),
    block_sharded([64, 32], (4, 2)),
)
DRAM_CONFIGS = (
    height_sharded([32, 128], 4, buffer="DRAM"),
    width_sharded([128, 32], 4, buffer="DRAM"),
    block_sharded([64, 64], (2, 1), buffer="DRAM"),
)
TARGETS = ("DRAM", "L1", *CONFIGS, *DRAM_CONFIGS, {"layout": "HEIGHT_SHARDED", "buffer": "L1"})


# Shards that do not fit a tensor of 128 x 128: too narrow, too few, or not tile-aligned.
TOO_SMALL = (
    height_sharded([32, 64], 4),
    height_sharded([32, 128], 3),
    height_sharded([20, 128], 7),
    width_sharded([64, 32], 4),
    width_sharded([128, 32], 3),
)
ILL_FITTING = (
    *TOO_SMALL,
    width_sharded([128, 20], 7),
    block_sharded([64, 64], (1, 2)),
    block_sharded([40, 64], (2, 4)),
    height_sharded([32, 128], 4, buffer="L1_SMALL"),
)


def cases() -> Iterator[Case]:
    for case in every_case():
        if creatable(case):
            yield case


def creatable(case: Case) -> bool:
    """Block floats exist in TILE layout only: row-major inputs of them are left out."""
    inputs = [*case.get("args", []), *case.get("kwargs", {}).values()]
    tensors = [item["T"] for item in inputs if isinstance(item, dict) and "T" in item]
    return not any(tensor[2] == "ROW_MAJOR" and tensor[1] in ("bfloat8_b", "bfloat4_b") for tensor in tensors)


def every_case() -> Iterator[Case]:
    yield from to_layout()
    yield from tilize()
    yield from untilize()
    yield from memory()
    yield from shards()
    yield from partial_shards()
    yield from copies()
    yield from typecasts()
    yield from mismatched_shards()
    yield from on_the_host()
    yield from wrong_types()


def mismatched_shards() -> Iterator[Case]:
    for config, dtype, layout in product(ILL_FITTING, ("bfloat16", "float32"), BOTH):
        source, other = T(SQUARE, dtype, layout), TILE if layout == "ROW_MAJOR" else ROWS
        yield call("ttnn.to_memory_config", source, M(config))
        yield call("ttnn.interleaved_to_sharded", source, M(config))
        yield call("ttnn.assign", source, memory_config=M(config))
        yield call("ttnn.clone", source, memory_config=M(config))
        yield call("ttnn.move", source, memory_config=M(config))
        yield call("ttnn.reallocate", source, M(config))
        yield call("ttnn.to_layout", source, other, memory_config=M(config))
        yield call("ttnn.bitcast", source, E("uint16" if dtype == "bfloat16" else "int32"), memory_config=M(config))
        yield call("ttnn.tilize" if layout == "ROW_MAJOR" else "ttnn.untilize", source, memory_config=M(config))
        yield call("ttnn.reshard", T(SQUARE, dtype, layout, CONFIGS[0]), M(config))
        yield call("ttnn.to_memory_config", T(SQUARE, dtype, layout, CONFIGS[2]), M(config))
        yield call("ttnn.typecast", T(SQUARE, dtype, layout, CONFIGS[0]), E("uint32"), memory_config=M(config))


def on_the_host() -> Iterator[Case]:
    for dtype, layout in product(DTYPES, BOTH):
        source = T([64, 64], dtype, layout, host=True)
        yield call("ttnn.tilize", source)
        yield call("ttnn.untilize", source)
        yield call("ttnn.tilize_with_zero_padding", source)
        yield call("ttnn.untilize_with_unpadding", source, C("Shape", [63, 63]))
        yield call("ttnn.clone", source)
        yield call("ttnn.copy", source, T([64, 64], dtype, layout))
        yield call("ttnn.assign", source, memory_config=M("L1"))
        yield call("ttnn.reshard", source, M(height_sharded([32, 64], 2)))
        yield call("ttnn.interleaved_to_sharded", source, M(height_sharded([32, 64], 2)))
        yield call("ttnn.experimental.typecast", source, E("bfloat16"))
        yield call("ttnn.bitcast", source, E("uint16"))
        yield call("ttnn.to_dtype", T([64, 64], dtype, layout), E("float32"))


def misused(name: str, good: Case, arguments: tuple, *, surplus: int) -> Iterator[Case]:
    """Calls with a wrong tensor, none, an unknown keyword, wrong arguments, and `surplus` tensors after them."""
    for wrong in (None, 3, "tensor", [good]):
        yield call(name, wrong, *arguments)
    yield call(name)
    yield call(name, good, *arguments, unknown=1)
    yield call(name, good, *arguments, memory_config="L1")
    yield call(name, good, *(["wrong"] * len(arguments)), *([good] * surplus))


def wrong_types() -> Iterator[Case]:
    good = T([64, 64])
    for op, arguments in (
        ("to_layout", (TILE,)),
        ("to_memory_config", (M("L1"),)),
        ("to_dtype", (E("float32"),)),
        ("typecast", (E("float32"),)),
        ("bitcast", (E("uint16"),)),
        ("experimental.typecast", (E("float32"),)),
        ("clone", ()),
        ("copy", (good,)),
        ("assign", (good,)),
        ("move", ()),
        ("reallocate", ()),
        ("tilize", ()),
        ("tilize_with_zero_padding", ()),
        ("tilize_with_val_padding", (C("Shape", [64, 64]), 0.0)),
        ("untilize", ()),
        ("untilize_with_unpadding", (C("Shape", [63, 63]),)),
        ("fill_implicit_tile_padding", (0.0,)),
        ("sharded_to_interleaved", ()),
        ("reshard", (M(CONFIGS[0]),)),
        ("interleaved_to_sharded", (M(CONFIGS[0]),)),
    ):
        yield from misused(f"ttnn.{op}", good, arguments, surplus=4)


def to_layout() -> Iterator[Case]:
    for shape, dtype in product((*SHAPES, *EDGES), PLAIN_DTYPES):
        yield call("ttnn.to_layout", T(shape, dtype, "ROW_MAJOR"), TILE)
        yield call("ttnn.to_layout", T(shape, dtype, "TILE"), ROWS)
    for shape, layout in product(SHAPES, (TILE, ROWS)):
        yield call("ttnn.to_layout", T(shape, "bfloat8_b"), layout)
        yield call("ttnn.to_layout", T(shape, "bfloat4_b"), layout)
        yield call("ttnn.to_layout", T(shape, "float32", "ROW_MAJOR", host=True), layout)
        yield call("ttnn.to_layout", T(shape, "bfloat16", "TILE", host=True), layout)
    for dtype, target in product(("bfloat16", "float32", "int32"), DTYPES):
        yield call("ttnn.to_layout", T([64, 64], dtype, "ROW_MAJOR"), TILE, dtype=E(target))
        yield call("ttnn.to_layout", T([5, 33], dtype, "ROW_MAJOR"), TILE, dtype=E(target))
        yield call("ttnn.to_layout", T([64, 64], dtype, "TILE"), ROWS, dtype=E(target))
    yield call("ttnn.to_layout", T([64, 64], "bfloat8_b"), ROWS, dtype=E("bfloat16"))
    yield call("ttnn.to_layout", T([64, 64], "bfloat8_b"), ROWS, dtype=E("float32"))
    for config, layout in product(CONFIGS, BOTH):
        other = ROWS if layout == "TILE" else TILE
        yield call("ttnn.to_layout", T(SQUARE, layout=layout, mem=config), other)
        yield call("ttnn.to_layout", T(SQUARE, "float32", layout, config), other)
        yield call("ttnn.to_layout", T(SQUARE, layout=layout, mem=config), other, memory_config=M("DRAM"))
        yield call("ttnn.to_layout", T(SQUARE, layout=layout, mem=config), other, memory_config=M("L1"))
        yield call("ttnn.to_layout", T(SQUARE, layout=layout), other, memory_config=M(config))
    for config in (
        height_sharded([10, 64], 4),
        height_sharded([40, 64], 1),
        width_sharded([40, 16], 4),
        width_sharded([40, 32], 2),
        block_sharded([20, 32], (2, 2)),
    ):
        yield call("ttnn.to_layout", T([1, 1, 40, 64], layout="ROW_MAJOR", mem=config), TILE)
        yield call("ttnn.to_layout", T([40, 64], layout="ROW_MAJOR", mem=config), TILE)
    for config in (height_sharded([32, 64], 2), width_sharded([64, 32], 2), block_sharded([32, 32], (2, 2))):
        yield call("ttnn.to_layout", T([1, 1, 40, 50], mem=config), ROWS)
        yield call("ttnn.to_layout", T([40, 50], mem=config), ROWS, memory_config=M("DRAM"))
    for value in (1.5, -3.0, INFINITY):
        for dtype in ("bfloat16", "int32", "uint32", "uint16"):
            yield call("ttnn.to_layout", T([5, 33], dtype, "ROW_MAJOR"), TILE, pad_value=value)
    for layout in BOTH:
        yield call("ttnn.to_layout", T([32, 64], layout=layout), TILE, sub_core_grids=G([0, 0, 1, 1]))
        yield call("ttnn.to_layout", T([64, 64], layout=layout), ROWS, sub_core_grids=G([0, 0, 1, 1]))
        yield call("ttnn.to_layout", T([32, 64], layout=layout), ROWS, sub_core_grids=G([0, 0, 1, 1]))
    yield call("ttnn.to_layout", T([32, 64]), E("Layout.INVALID"))
    yield call("ttnn.to_layout", T([32, 64]), "TILE")
    yield call("ttnn.to_layout", T([32, 64]))


def tilize() -> Iterator[Case]:
    for shape, dtype in product((*SHAPES, *EDGES), ("bfloat16", "float32", "uint16")):
        yield call("ttnn.tilize", T(shape, dtype, "ROW_MAJOR"))
        yield call("ttnn.tilize_with_zero_padding", T(shape, dtype, "ROW_MAJOR"))
    for dtype, layout in product(DTYPES, BOTH):
        yield call("ttnn.tilize", T([2, 32, 64], dtype, layout))
        yield call("ttnn.tilize_with_zero_padding", T([2, 30, 50], dtype, layout))
        yield call("ttnn.tilize_with_val_padding", T([2, 30, 50], dtype, layout), C("Shape", [2, 32, 64]), 1.0)
    for dtype in DTYPES:
        yield call("ttnn.tilize", T([64, 64], layout="ROW_MAJOR"), dtype=E(dtype))
        yield call("ttnn.tilize_with_zero_padding", T([60, 64], layout="ROW_MAJOR"), output_dtype=E(dtype))
        yield call(
            "ttnn.tilize_with_val_padding", T([60, 64], layout="ROW_MAJOR"), C("Shape", [64, 64]), 0.0, dtype=E(dtype)
        )
    for target in ((64, 64), (32, 64), (96, 128), (40, 64), (1, 64, 64), (64,), (64, 96)):
        yield call("ttnn.tilize_with_val_padding", T([40, 50], layout="ROW_MAJOR"), C("Shape", list(target)), 0.0)
        yield call("ttnn.tilize_with_val_padding", T([40, 50], "int32", "ROW_MAJOR"), C("Shape", list(target)), 7)
    for shape, target in (
        ((7,), (32, 32)),
        ((7,), (32,)),
        ((1, 2, 3, 5, 33), (1, 2, 3, 32, 64)),
        ((2, 2, 3, 5, 33), (2, 2, 3, 32, 64)),
        ((0, 32), (0, 32)),
        ((3, 5, 33), (4, 32, 64)),
    ):
        yield call("ttnn.tilize_with_val_padding", T(shape, layout="ROW_MAJOR"), C("Shape", list(target)), 0.0)
    for config in (*CONFIGS, *DRAM_CONFIGS):
        source = T(SQUARE, layout="ROW_MAJOR", mem=config)
        for options in ({}, {"memory_config": M("DRAM")}, {"memory_config": M("L1")}, {"use_multicore": False}):
            yield call("ttnn.tilize", source, **options)
        yield call("ttnn.tilize_with_zero_padding", source)
        yield call("ttnn.tilize_with_val_padding", source, C("Shape", [1, 1, 160, 128]), 0.0)
        yield call("ttnn.tilize", T(SQUARE, layout="ROW_MAJOR"), memory_config=M(config))
    for height in (32, 16, 8):
        for dtype in ("bfloat16", "bfloat8_b"):
            yield call("ttnn.tilize", T([64, 64], layout="ROW_MAJOR"), tile=C("Tile", [height, 32]), dtype=E(dtype))
    yield call("ttnn.tilize", T([64, 64], layout="ROW_MAJOR"), tile=C("Tile", [32, 16]))
    yield call("ttnn.tilize", T([64, 64]), tile=C("Tile", [16, 32]))
    yield call("ttnn.tilize", T([64, 64], layout="ROW_MAJOR"), use_low_perf=True)
    yield call("ttnn.tilize", T([64, 64], layout="ROW_MAJOR"), sub_core_grids=G([0, 0, 1, 1]))
    yield call("ttnn.tilize", T([64, 64], layout="ROW_MAJOR", host=True))
    yield call("ttnn.tilize_with_zero_padding", T([64, 64], layout="ROW_MAJOR", host=True))
    yield call("ttnn.tilize_with_val_padding", T([64, 64], layout="ROW_MAJOR", host=True), C("Shape", [64, 64]), 0.0)
    yield call("ttnn.tilize_with_val_padding", T([64, 64], layout="ROW_MAJOR"), C("Shape", [64, 64]))


def untilize() -> Iterator[Case]:
    for shape, dtype in product((*SHAPES, *EDGES), ("bfloat16", "float32", "bfloat8_b", "int32")):
        yield call("ttnn.untilize", T(shape, dtype))
        if shape:
            yield call(
                "ttnn.untilize_with_unpadding", T(shape, dtype), C("Shape", [max(size - 1, 0) for size in shape])
            )
    for dtype, layout in product(DTYPES, BOTH):
        yield call("ttnn.untilize", T([2, 32, 64], dtype, layout))
        yield call("ttnn.untilize_with_unpadding", T([2, 30, 50], dtype, layout), C("Shape", [1, 29, 49]))
    for end in ((29, 49), (31, 63), (9, 9), (63, 63), (29,), (0, 29, 49)):
        yield call("ttnn.untilize_with_unpadding", T([30, 50]), C("Shape", list(end)))
        yield call("ttnn.untilize_with_unpadding", T([64, 64], "float32"), C("Shape", list(end)))
    for shape in ([32, 64], [64, 64], [5, 33]):
        for options in ({"use_multicore": False}, {"sub_core_grids": G([0, 0, 1, 1])}, {"memory_config": M("L1")}):
            yield call("ttnn.untilize", T(shape), **options)
            yield call(
                "ttnn.untilize_with_unpadding", T(shape, "float32"), C("Shape", [size - 1 for size in shape]), **options
            )
    for config in (*CONFIGS, *DRAM_CONFIGS):
        source = T(SQUARE, mem=config)
        for options in (
            {},
            {"memory_config": M("DRAM")},
            {"memory_config": M("L1")},
            {"use_multicore": False},
            {"sub_core_grids": G([0, 0, 1, 1])},
        ):
            yield call("ttnn.untilize", source, **options)
            yield call("ttnn.untilize_with_unpadding", source, C("Shape", [0, 0, 99, 127]), **options)
        yield call("ttnn.untilize_with_unpadding", source, C("Shape", [0, 0, 99, 99]))
        yield call("ttnn.untilize", T(SQUARE), memory_config=M(config))
        yield call("ttnn.untilize_with_unpadding", T(SQUARE), C("Shape", [0, 0, 99, 127]), memory_config=M(config))
        for other in CONFIGS[:5]:
            yield call("ttnn.untilize", source, memory_config=M(other))
            yield call("ttnn.untilize_with_unpadding", source, C("Shape", [0, 0, 99, 127]), memory_config=M(other))
    for shape, config in (
        ((2, 1, 40, 64), height_sharded([64, 64], 2)),
        ((4, 1, 20, 64), height_sharded([64, 64], 2)),
        ((2, 1, 64, 128), width_sharded([128, 32], 4)),
    ):
        yield call("ttnn.untilize_with_unpadding", T(shape, mem=config), C("Shape", [size - 1 for size in shape]))
        yield call(
            "ttnn.untilize_with_unpadding",
            T(shape, mem=config),
            C("Shape", [size - 1 for size in shape]),
            memory_config=M("DRAM"),
        )
    yield call("ttnn.untilize", T([64, 64], host=True))
    yield call("ttnn.untilize_with_unpadding", T([64, 64], host=True), C("Shape", [63, 63]))
    for shape, dtype, layout in product(((5, 33), (32, 64), (7,), (2, 3, 17, 40), (1, 2, 3, 5, 33)), DTYPES, BOTH):
        yield call("ttnn.fill_implicit_tile_padding", T(shape, dtype, layout), 1.0)
    yield call("ttnn.fill_implicit_tile_padding", T([5, 33], "int32"), 3)
    yield call("ttnn.fill_implicit_tile_padding", T([5, 33]), 0.0, memory_config=M("L1"))
    yield call("ttnn.fill_implicit_tile_padding", T([5, 33], host=True), 0.0)
    yield call("ttnn.fill_implicit_tile_padding", T([1, 1, 100, 120], mem=height_sharded([32, 128], 4)), 0.0)


def memory() -> Iterator[Case]:
    for source, target, layout in product(TARGETS[:-1], TARGETS, BOTH):
        yield call("ttnn.to_memory_config", T(SQUARE, layout=layout, mem=source), M(target))
    for shape, layout, target in product((*SHAPES, *EDGES), BOTH, ("DRAM", "L1")):
        yield call("ttnn.to_memory_config", T(shape, layout=layout), M(target))
    for dtype, target in product(DTYPES, DTYPES):
        yield call("ttnn.to_memory_config", T([64, 64], dtype), M("L1"), dtype=E(target))
    for dtype, target in product(("bfloat16", "float32"), ("bfloat16", "float32", "bfloat8_b")):
        yield call("ttnn.to_memory_config", T([64, 64], dtype), M(height_sharded([32, 64], 2)), dtype=E(target))
        yield call(
            "ttnn.to_memory_config", T([64, 64], dtype, mem=height_sharded([32, 64], 2)), M("DRAM"), dtype=E(target)
        )
        yield call(
            "ttnn.to_memory_config",
            T([64, 64], dtype, mem=height_sharded([32, 64], 2)),
            M(width_sharded([64, 32], 2)),
            dtype=E(target),
        )
        yield call("ttnn.to_memory_config", T([64, 64], dtype, "ROW_MAJOR"), M("L1"), dtype=E(target))
    for shape, config in product(
        ((5, 33), (40, 50), (3, 45, 70), (64,)),
        (height_sharded([32, 64], 2), width_sharded([32, 32], 2), block_sharded([32, 32], (2, 2))),
    ):
        yield call("ttnn.to_memory_config", T(shape), M(config))
        yield call("ttnn.to_memory_config", T(shape, layout="ROW_MAJOR"), M(config))
    for shape in ([64, 64], [32, 64]):
        yield call("ttnn.to_memory_config", T([64, 64]), M("L1"), output_tensor=T(shape, mem="L1"))
        yield call("ttnn.to_memory_config", T([64, 64]), M("L1"), output_tensor=T(shape, "float32", mem="L1"))
        yield call("ttnn.to_memory_config", T([64, 64]), M("L1"), output_tensor=T(shape))
    yield call("ttnn.to_memory_config", T([64, 64], host=True), M("L1"))
    yield call("ttnn.to_memory_config", T([64, 64]), "L1")
    yield call("ttnn.to_memory_config", T([64, 64]))


def shards() -> Iterator[Case]:
    for config, dtype, layout in product(
        (*CONFIGS, *DRAM_CONFIGS), ("bfloat16", "float32", "bfloat8_b", "uint32"), BOTH
    ):
        yield call("ttnn.interleaved_to_sharded", T(SQUARE, dtype, layout), M(config))
        yield call("ttnn.sharded_to_interleaved", T(SQUARE, dtype, layout, config), M("DRAM"))
    for source, target in product((*CONFIGS, *DRAM_CONFIGS), (*CONFIGS, *DRAM_CONFIGS, "DRAM")):
        yield call("ttnn.reshard", T(SQUARE, mem=source), M(target))
        yield call("ttnn.reshard", T(SQUARE, "float32", "ROW_MAJOR", source), M(target))
    for shape in ((5, 33), (40, 50), (64,), (3, 45, 70)):
        for config in (height_sharded([32, 64], 2), height_sharded([64, 64], 1), width_sharded([64, 32], 2)):
            yield call("ttnn.interleaved_to_sharded", T(shape), M(config))
            yield call("ttnn.interleaved_to_sharded", T(shape, layout="ROW_MAJOR"), M(config))
    for dtype, layout in product(DTYPES, BOTH):
        yield call("ttnn.interleaved_to_sharded", T(SQUARE, layout=layout), M(CONFIGS[0]), E(dtype))
        yield call("ttnn.sharded_to_interleaved", T(SQUARE, layout=layout, mem=CONFIGS[0]), M("L1"), E(dtype))
    row, column = E("ShardOrientation.ROW_MAJOR"), E("ShardOrientation.COL_MAJOR")
    for scheme, shard in (
        ("HEIGHT_SHARDED", [32, 128]),
        ("WIDTH_SHARDED", [128, 32]),
        ("BLOCK_SHARDED", [64, 64]),
        ("BLOCK_SHARDED", [32, 64]),
        ("INTERLEAVED", [32, 32]),
        ("HEIGHT_SHARDED", [32, 64]),
    ):
        for grid, orient in product(
            (C("CoreCoord", 4, 1), C("CoreCoord", 2, 2), G([0, 0, 3, 0]), G([0, 0, 1, 1])), (row, column)
        ):
            yield call("ttnn.interleaved_to_sharded", T(SQUARE), grid, shard, E(f"TensorMemoryLayout.{scheme}"), orient)
    yield call(
        "ttnn.interleaved_to_sharded",
        T(SQUARE),
        C("CoreCoord", 4, 1),
        [32, 128],
        E("TensorMemoryLayout.HEIGHT_SHARDED"),
        row,
        E("bfloat8_b"),
    )
    yield call("ttnn.interleaved_to_sharded", T(SQUARE), M(CONFIGS[0]), preallocated_output=T(SQUARE, mem=CONFIGS[0]))
    yield call("ttnn.interleaved_to_sharded", T(SQUARE), M(CONFIGS[0]), preallocated_output=T(SQUARE, mem=CONFIGS[1]))
    yield call("ttnn.interleaved_to_sharded", T(SQUARE), M("L1"))
    yield call("ttnn.interleaved_to_sharded", T(SQUARE), M(CONFIGS[0]), keep_l1_aligned=True)
    yield call("ttnn.interleaved_to_sharded", T(SQUARE, host=True), M(CONFIGS[0]))
    yield call("ttnn.sharded_to_interleaved", T(SQUARE))
    yield call("ttnn.sharded_to_interleaved", T(SQUARE), M("L1"))
    yield call("ttnn.sharded_to_interleaved", T(SQUARE, mem=CONFIGS[0]))
    yield call("ttnn.sharded_to_interleaved", T(SQUARE, mem=CONFIGS[0]), M(CONFIGS[0]))
    yield call("ttnn.sharded_to_interleaved", T([1, 1, 100, 120], mem=CONFIGS[0]))
    yield call("ttnn.sharded_to_interleaved", T([1, 1, 100, 120], layout="ROW_MAJOR", mem=height_sharded([25, 120], 4)))
    yield call("ttnn.sharded_to_interleaved", T([1, 1, 100, 33], layout="ROW_MAJOR", mem=height_sharded([25, 33], 4)))
    yield call("ttnn.reshard", T(SQUARE), M(CONFIGS[0]))
    yield call("ttnn.reshard", T(SQUARE, mem=CONFIGS[0]), M(CONFIGS[1]), T(SQUARE, mem=CONFIGS[1]))
    yield call(
        "ttnn.reshard", T(SQUARE, mem=CONFIGS[0]), M(CONFIGS[1]), T([1, 1, 64, 128], mem=height_sharded([32, 128], 2))
    )
    yield call(
        "ttnn.reshard",
        T([1, 1, 100, 33], layout="ROW_MAJOR", mem=height_sharded([25, 33], 4)),
        M(height_sharded([50, 33], 2)),
    )
    yield call(
        "ttnn.reshard",
        T([1, 1, 100, 36], layout="ROW_MAJOR", mem=height_sharded([25, 36], 4)),
        M(width_sharded([100, 18], 2)),
    )


def partial_shards() -> Iterator[Case]:
    row = E("ShardOrientation.ROW_MAJOR")

    def partial(tensor: Any, cores: Any, **options: Any) -> Case:
        height = E("TensorMemoryLayout.HEIGHT_SHARDED")
        return call("ttnn.interleaved_to_sharded_partial", tensor, cores, [32, 128], 2, 0, height, row, **options)

    schemes = (("HEIGHT_SHARDED", [32, 128]), ("WIDTH_SHARDED", [64, 32]), ("BLOCK_SHARDED", [32, 64]))
    for (scheme, shard), (slices, index) in product(schemes, ((2, 0), (2, 1), (2, 2), (4, 1), (3, 0))):
        for layout in BOTH:
            yield call(
                "ttnn.interleaved_to_sharded_partial",
                T(SQUARE, layout=layout),
                C("CoreCoord", 4, 2),
                shard,
                slices,
                index,
                E(f"TensorMemoryLayout.{scheme}"),
                row,
            )
    part = T([1, 1, 64, 128], mem=height_sharded([32, 128], 2))
    for dtype in ("bfloat16", "float32", "bfloat8_b"):
        yield partial(T(SQUARE), C("CoreCoord", 4, 2), output_dtype=E(dtype))
        yield call("ttnn.sharded_to_interleaved_partial", part, T(SQUARE, dtype), 2, 0)
        yield call("ttnn.sharded_to_interleaved_partial", part, T(SQUARE), 2, 0, output_dtype=E(dtype))
    yield partial(T(SQUARE), G([0, 0, 3, 0]))
    yield partial(T(SQUARE), C("CoreCoord", 9, 9))
    yield partial(T([128, 128]), C("CoreCoord", 4, 2))
    yield partial(T([1, 128, 128]), C("CoreCoord", 4, 2))
    yield partial(T(SQUARE, mem=CONFIGS[0]), C("CoreCoord", 4, 2))
    for slices, index, layout in product((2, 4, 3), (0, 1, 3), BOTH):
        yield call("ttnn.sharded_to_interleaved_partial", part, T(SQUARE, layout=layout), slices, index)
    yield call("ttnn.sharded_to_interleaved_partial", T([1, 1, 64, 128]), T(SQUARE), 2, 0)
    yield call("ttnn.sharded_to_interleaved_partial", part, T(SQUARE), 2, 0, memory_config=M("L1"))
    yield call("ttnn.sharded_to_interleaved_partial", part, T(SQUARE), 2, -1)


def copies() -> Iterator[Case]:
    for shape, layout, dtype in product((*SHAPES, *EDGES), BOTH, ("bfloat16", "float32", "uint8")):
        yield call("ttnn.clone", T(shape, dtype, layout))
        yield call("ttnn.move", T(shape, dtype, layout))
        yield call("ttnn.reallocate", T(shape, dtype, layout, "L1"))
        yield call("ttnn.copy", T(shape, dtype, layout), T(shape, dtype, layout))
        yield call("ttnn.assign", T(shape, dtype, layout), memory_config=M("L1"))
    for dtype, target in product(DTYPES, DTYPES):
        yield call("ttnn.clone", T([64, 64], dtype), dtype=E(target))
        yield call("ttnn.copy", T([64, 64], dtype), T([64, 64], target))
        yield call("ttnn.assign", T([64, 64], dtype), memory_config=M("DRAM"), dtype=E(target))
    for dtype in ("bfloat16", "float32", "int32"):
        yield call("ttnn.clone", T([64, 64], layout="ROW_MAJOR"), dtype=E(dtype))
        yield call("ttnn.copy", T([64, 64], layout="ROW_MAJOR"), T([64, 64], dtype, "ROW_MAJOR"))
        yield call("ttnn.assign", T([64, 64], layout="ROW_MAJOR"), T([64, 64], dtype, "ROW_MAJOR"))
    for source, target in product(TARGETS[:9], TARGETS):
        yield call("ttnn.clone", T(SQUARE, mem=source), memory_config=M(target))
        yield call("ttnn.move", T(SQUARE, mem=source), memory_config=M(target))
        yield call("ttnn.reallocate", T(SQUARE, "float32", "ROW_MAJOR", source), M(target))
        yield call("ttnn.assign", T(SQUARE, mem=source), memory_config=M(target))
        if target != TARGETS[-1]:
            yield call("ttnn.copy", T(SQUARE, mem=source), T(SQUARE, mem=target))
    for shape in ([64, 64], [32, 64], [1, 64, 64]):
        yield call("ttnn.copy", T([64, 64]), T(shape))
        yield call("ttnn.copy", T([64, 64]), T(shape, layout="ROW_MAJOR"))
        yield call("ttnn.assign", T([64, 64]), T(shape))
        yield call("ttnn.assign", T([64, 64]), memory_config=M("DRAM"), output_tensor=T(shape))
        yield call("ttnn.assign", T([64, 64]), memory_config=M("L1"), output_tensor=T(shape))
    for op in ("clone", "move", "reallocate"):
        yield call(f"ttnn.{op}", T([64, 64], host=True))
        yield call(f"ttnn.{op}", T([64, 64]), dtype="bfloat16")
    yield call("ttnn.copy", T([64, 64], host=True), T([64, 64]))
    yield call("ttnn.copy", T([64, 64]), T([64, 64], host=True))
    yield call("ttnn.copy", T([64, 64]))
    yield call("ttnn.assign", T([64, 64]))
    yield call(
        "ttnn.clone",
        T([64, 64]),
        compute_kernel_config=C("WormholeComputeKernelConfig", fp32_dest_acc_en=True),
        dtype=E("float32"),
    )


def typecasts() -> Iterator[Case]:
    for dtype, target, layout in product(DTYPES, DTYPES, BOTH):
        yield call("ttnn.typecast", T([5, 33], dtype, layout), E(target))
        yield call("ttnn.typecast", T([5, 33], dtype, layout, host=True), E(target))
        yield call("ttnn.experimental.typecast", T([2, 3, 17, 40], dtype, layout), E(target))
        yield call("ttnn.to_dtype", T([5, 33], dtype, layout, host=True), E(target))
        yield call("ttnn.to_dtype", T([64, 64], dtype, layout, host=True), E(target))
        yield call("ttnn.bitcast", T([64, 64], dtype, layout), E(target))
    for shape, layout in product((*SHAPES, *EDGES), BOTH):
        yield call("ttnn.typecast", T(shape, layout=layout), E("float32"))
        yield call("ttnn.bitcast", T(shape, layout=layout), E("uint16"))
        yield call("ttnn.to_dtype", T(shape, layout=layout, host=True), E("bfloat8_b"))
        yield call("ttnn.to_dtype", T(shape, layout=layout), E("float32"))
    for config, target in product(("DRAM", "L1", *CONFIGS[:5], *DRAM_CONFIGS[:2]), ("DRAM", "L1", *CONFIGS[:5])):
        yield call("ttnn.typecast", T(SQUARE, mem=config), E("float32"), memory_config=M(target))
        yield call("ttnn.bitcast", T(SQUARE, mem=config), E("uint16"), memory_config=M(target))
        yield call("ttnn.experimental.typecast", T(SQUARE, mem=config), E("bfloat8_b"), M(target))
    for config, layout, target in product(CONFIGS[:5], BOTH, ("float32", "bfloat8_b", "uint16")):
        yield call("ttnn.typecast", T(SQUARE, layout=layout, mem=config), E(target))
    yield call("ttnn.typecast", T([1, 1, 100, 33], layout="ROW_MAJOR", mem=height_sharded([25, 33], 4)), E("float32"))
    for shape, dtype in product(([64, 64], [32, 64]), ("float32", "bfloat16")):
        yield call("ttnn.typecast", T([64, 64]), E("float32"), output_tensor=T(shape, dtype))
        yield call("ttnn.experimental.typecast", T([64, 64]), E("float32"), optional_output_tensor=T(shape, dtype))
        yield call("ttnn.bitcast", T([64, 64], "int32"), E("float32"), output_tensor=T(shape, dtype))
    for first in ("bfloat16", "float32"):
        yield call("ttnn.typecast", T([64, 64]), E(first), E("int32"))
    yield call("ttnn.typecast", T([64, 64]), E("float32"), sub_core_grids=G([0, 0, 1, 1]))
    yield call("ttnn.typecast", T([64, 64], layout="ROW_MAJOR"), E("float32"), sub_core_grids=G([0, 0, 1, 1]))
    yield call("ttnn.typecast", T([64, 64], host=True), E("float32"), sub_core_grids=G([0, 0, 1, 1]))
    yield call("ttnn.typecast", T([64, 64], host=True), E("float32"), output_tensor=T([64, 64], "float32"))
    yield call("ttnn.bitcast", T([64, 64], host=True), E("uint16"))
    yield call("ttnn.typecast", T([64, 64]), "float32")
    yield call("ttnn.typecast", T([64, 64]))
    yield call("ttnn.to_dtype", T([64, 64], host=True))
