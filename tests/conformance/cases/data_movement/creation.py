"""Tensor creation: constant, ranges and random."""

from __future__ import annotations

from collections.abc import Iterator

from ttnn_emulator.conformance.case import (
    DEVICE,
    DTYPES,
    INFINITY,
    LAYOUTS,
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

EDGES: tuple[tuple[int, ...], ...] = ((), (0,), (0, 32), (2, 0, 3), (1, 1, 1, 1))
SQUARE = (1, 1, 128, 128)
CONFIGS = (
    height_sharded([32, 128], 4),
    width_sharded([128, 32], 4),
    block_sharded([64, 64], (2, 2)),
    height_sharded([32, 64], 4),
    height_sharded([20, 128], 7),
    {"layout": "HEIGHT_SHARDED", "buffer": "L1"},
)


def cases() -> Iterator[Case]:
    yield from of_one_value()
    yield from like_another()
    yield from ranges()
    yield from by_kernels()
    yield from random()
    yield from wrong_types()


def wrong_types() -> Iterator[Case]:
    good = T([5, 33])
    for op, arguments in (
        ("zeros_like", (good,)),
        ("ones_like", (good,)),
        ("full_like", (good, 1.0)),
        ("empty_like", (good,)),
        ("moreh_full_like", (good, 1.0)),
        ("uniform", (good, 0.0, 1.0)),
        ("bernoulli", (good,)),
        ("experimental.dropout", (good, 0.2, 1.25, 7)),
        ("rand", (C("Shape", [5, 33]), DEVICE)),
        ("randn", (C("Shape", [5, 33]), DEVICE)),
        ("full", ([5, 33], 1.0)),
        ("zeros", ([5, 33],)),
        ("ones", ([5, 33],)),
    ):
        name = f"ttnn.{op}"
        for wrong in (None, 3.5, "tensor"):
            yield call(name, wrong, *arguments[1:])
        yield call(name, *arguments, unknown=1)
        yield call(name, *arguments, memory_config="L1")
        yield call(name, *arguments, dtype="bfloat16")
    parts = (good, T([5, 33], "float32", "ROW_MAJOR"), T([6, 33], host=True), 1.0)
    for real, imaginary in product(parts, parts):
        yield call("ttnn.complex_tensor", real, imaginary)
    for wrong in (None, [good, good], "tensor", E("bfloat16"), 3):
        yield call("ttnn.complex_tensor", wrong, good)
        yield call("ttnn.complex_tensor", wrong)


def of_one_value() -> Iterator[Case]:
    for op, extra in (("empty", {}), ("zeros", {}), ("ones", {}), ("full", {"fill_value": 2.5})):
        name = f"ttnn.{op}"
        for shape, layout in product((*SHAPES, *EDGES), LAYOUTS):
            yield call(name, list(shape), layout=E(f"{layout}_LAYOUT"), device=DEVICE, **extra)
            if op != "empty":
                yield call(name, list(shape), layout=E(f"{layout}_LAYOUT"), **extra)
        for dtype, layout in product(DTYPES, LAYOUTS):
            options = {"dtype": E(dtype), "layout": E(f"{layout}_LAYOUT"), **extra}
            yield call(name, [5, 33], device=DEVICE, **options)
            yield call(name, [5, 33], device=DEVICE, memory_config=M("L1"), **options)
            yield call(name, [5, 33], dtype=E(dtype), device=DEVICE, **extra)
            yield call(name, [5, 33], dtype=E(dtype), **extra)
        for config, layout in product(CONFIGS, LAYOUTS):
            options = {"layout": E(f"{layout}_LAYOUT"), "memory_config": M(config), **extra}
            yield call(name, list(SQUARE), device=DEVICE, **options)
            yield call(name, list(SQUARE), **options)
        yield call(name, [-1, 4], device=DEVICE, **extra)
        yield call(name, [2.5, 4], device=DEVICE, **extra)
        yield call(name, 4, device=DEVICE, **extra)
        yield call(name, C("Shape", [4, 5]), device=DEVICE, **extra)
        yield call(name, [4, 5], dtype="float32", device=DEVICE, **extra)
        yield call(name, [1 << 18, 1 << 17], device=DEVICE, **extra)
        yield call(name, [4, 5], **extra)
    for value, dtype in product((0, 1, -1, 7, 300, 70000, 0.1, -2.5, 1e10, INFINITY), DTYPES):
        yield call("ttnn.full", [5, 33], value, E(dtype), TILE, DEVICE)
    for shape, dtype, layout in product(([5, 33], [5, 34]), ("bfloat16", "float32", "bfloat8_b", "int32"), LAYOUTS):
        if not (dtype == "bfloat8_b" and layout == "ROW_MAJOR"):
            yield call("ttnn.full", [5, 33], 1.0, optional_tensor=T(shape, dtype, layout))
            yield call("ttnn.full", [5, 33], 1.0, E("float32"), optional_tensor=T(shape, dtype, layout, "L1"))
    yield call("ttnn.full", [5, 33], device=DEVICE)
    yield call("ttnn.full", [5, 33], "one", device=DEVICE)


def like_another() -> Iterator[Case]:
    for op, extra in (
        ("empty_like", {}),
        ("zeros_like", {}),
        ("ones_like", {}),
        ("full_like", {"fill_value": 2.5}),
        ("full_like", {"fill_value": 3}),
    ):
        name = f"ttnn.{op}"
        for shape, layout in product((*SHAPES, *EDGES), LAYOUTS):
            yield call(name, T(shape, layout=layout), **extra)
            yield call(name, T(shape, "float32", layout, host=True), **extra)
        for dtype, layout in product(DTYPES, LAYOUTS):
            if layout == "TILE" or dtype not in ("bfloat8_b", "bfloat4_b"):
                yield call(name, T([5, 33], dtype, layout), **extra)
                yield call(name, T([5, 33], dtype, layout, "L1"), **extra)
            yield call(name, T([5, 33], layout=layout), dtype=E(dtype), **extra)
        for layout, target in product(LAYOUTS, (TILE, ROWS)):
            yield call(name, T([5, 33], layout=layout), layout=target, **extra)
            yield call(name, T([5, 33], layout=layout, host=True), layout=target, device=DEVICE, **extra)
        for config in (*CONFIGS, "L1"):
            yield call(name, T(SQUARE), memory_config=M(config), **extra)
            yield call(name, T(SQUARE, layout="ROW_MAJOR"), memory_config=M(config), **extra)
            if config not in CONFIGS[3:]:
                yield call(name, T(SQUARE, mem=config), **extra)
                yield call(name, T(SQUARE, "int32", mem=config), memory_config=M("DRAM"), **extra)
        if op != "empty_like":
            for shape, dtype in product(([5, 33], [6, 33]), ("bfloat16", "float32")):
                yield call(name, T([5, 33]), optional_tensor=T(shape, dtype), **extra)
        yield call(name, **extra)
        yield call(name, [5, 33], **extra)


def ranges() -> Iterator[Case]:
    for bounds in (
        (5,),
        (0,),
        (-3,),
        (0, 10),
        (2, 11, 3),
        (10, 0, -2),
        (10, 0),
        (0, 10, -1),
        (0, 10, 0),
        (5, 5),
        (-5, 5, 2),
    ):
        for layout in LAYOUTS:
            yield call("ttnn.arange", *bounds, device=DEVICE, layout=E(f"{layout}_LAYOUT"))
            yield call("ttnn.arange", *bounds, dtype=E("int32"), layout=E(f"{layout}_LAYOUT"))
    for dtype, layout in product(DTYPES, LAYOUTS):
        yield call("ttnn.arange", 0, 40, 1, dtype=E(dtype), device=DEVICE, layout=E(f"{layout}_LAYOUT"))
        yield call("ttnn.arange", 40, dtype=E(dtype), device=DEVICE, memory_config=M("L1"))
    for config in (width_sharded([1, 32], 2), width_sharded([32, 32], 2), height_sharded([32, 64], 1)):
        yield call("ttnn.arange", 64, device=DEVICE, memory_config=M(config))
        yield call("ttnn.arange", 64, device=DEVICE, memory_config=M(config), layout=TILE)
    yield call("ttnn.arange", 0.5, 4)
    yield call("ttnn.arange")
    for bounds in ((0, 5, 1), (0.0, 10.0, 2.5), (5, 0, -1), (5, 0, 1), (0, 5, 0), (3, 3, 1), (0.5, 7.2, 0.3)):
        for flag in (True, False):
            yield call("ttnn.moreh_arange", *bounds, DEVICE, untilize_out=flag)
    for dtype, flag in product(DTYPES, (True, False)):
        yield call("ttnn.moreh_arange", 0, 40, 1, DEVICE, dtype=E(dtype), untilize_out=flag)
        yield call("ttnn.moreh_arange", 0, 40, 1, DEVICE, dtype=E(dtype), untilize_out=flag, memory_config=M("L1"))
    for shape, dtype, layout, flag in product(
        ([1, 40], [40], [1, 32]), ("bfloat16", "float32"), LAYOUTS, (True, False)
    ):
        yield call("ttnn.moreh_arange", 0, 40, 1, DEVICE, output=T(shape, dtype, layout), untilize_out=flag)
    yield call("ttnn.moreh_arange", 0, 40, 1)
    for dtype in DTYPES:
        for layout in (None, TILE, ROWS):
            options = {} if layout is None else {"layout": layout}
            yield call("ttnn.from_buffer", [1, 2, 3, 4, 5, 6], C("Shape", [2, 3]), E(dtype), DEVICE, **options)
        yield call("ttnn.from_buffer", [1, 2, 3, 4, 5], C("Shape", [2, 3]), E(dtype), DEVICE)
        yield call("ttnn.from_buffer", [1.5, 2.5], C("Shape", [2]), E(dtype), DEVICE)
        yield call("ttnn.from_buffer", [-1, 70000], C("Shape", [2]), E(dtype), DEVICE, memory_config=M("L1"))
    yield call("ttnn.from_buffer", "ab", C("Shape", [2]), E("uint8"), DEVICE)


def by_kernels() -> Iterator[Case]:
    for shape, layout in product((*SHAPES, *EDGES), LAYOUTS):
        yield call("ttnn.moreh_full", list(shape), 2.5, DEVICE, layout=E(f"{layout}_LAYOUT"))
        yield call("ttnn.moreh_full_like", T(shape, layout=layout), 2.5)
    for dtype, layout, value in product(DTYPES, LAYOUTS, (2.5, 3)):
        yield call("ttnn.moreh_full", [5, 33], value, DEVICE, dtype=E(dtype), layout=E(f"{layout}_LAYOUT"))
        yield call("ttnn.moreh_full_like", T([5, 33], layout=layout), value, E(dtype))
        if layout == "TILE" or dtype not in ("bfloat8_b", "bfloat4_b"):
            yield call("ttnn.moreh_full_like", T([5, 33], dtype, layout), value)
    for config, layout in product(("L1", *CONFIGS), LAYOUTS):
        yield call("ttnn.moreh_full", list(SQUARE), 1.0, DEVICE, layout=E(f"{layout}_LAYOUT"), memory_config=M(config))
        yield call("ttnn.moreh_full_like", T(SQUARE), 1.0, layout=E(f"{layout}_LAYOUT"), memory_config=M(config))
    yield call("ttnn.moreh_full_like", T([5, 33], host=True), 1.0)
    yield call("ttnn.moreh_full", [5, 33], 1.0)
    for dtype, layout, memory in product(("bfloat16", "float32", "int32"), LAYOUTS, ("DRAM", "L1")):
        like = T([5, 33], dtype, layout, memory)
        yield call("ttnn.fill_rm", 1, 2, 32, 64, 5, 33, like, 3.0, 1.0)
        yield call("ttnn.fill_ones_rm", 1, 2, 32, 64, 5, 33, like)
        yield call("ttnn.fill_ones_rm", 1, 2, 32, 64, 5, 33, like, memory_config=M("L1"))
    for sizes in (
        (1, 1, 5, 33, 5, 33),
        (1, 1, 5, 33, 6, 33),
        (1, 1, 5, 33, 5, 34),
        (0, 1, 5, 33, 5, 33),
        (2, 3, 17, 40, 0, 0),
        (1, 1, 5, 33, -1, 3),
        (1, 1, 5.5, 33, 1, 1),
    ):
        yield call("ttnn.fill_rm", *sizes, T([5, 33]), 3.0, 1.0)
        yield call("ttnn.fill_ones_rm", *sizes, T([5, 33]))
    for config in CONFIGS[:3]:
        yield call("ttnn.fill_rm", 1, 1, 128, 128, 5, 33, T(SQUARE, mem=config), 3.0, 1.0)
        yield call("ttnn.fill_ones_rm", 1, 1, 128, 128, 5, 33, T(SQUARE), memory_config=M(config))
    yield call("ttnn.fill_rm", 1, 1, 5, 33, 5, 33, T([5, 33], host=True), 3.0, 1.0)


def random() -> Iterator[Case]:
    for shape, layout in product((*SHAPES, *EDGES), LAYOUTS):
        dims = C("Shape", list(shape))
        yield call("ttnn.rand", dims, DEVICE, layout=E(f"{layout}_LAYOUT"))
        yield call("ttnn.randn", dims, DEVICE, layout=E(f"{layout}_LAYOUT"))
        yield call("ttnn.uniform", T(shape, layout=layout))
        yield call("ttnn.bernoulli", T(shape, layout=layout))
        yield call("ttnn.experimental.dropout", T(shape, layout=layout), 0.2, 1.25, 7)
    for dtype, layout in product(DTYPES, LAYOUTS):
        dims = C("Shape", [5, 33])
        yield call("ttnn.rand", dims, DEVICE, dtype=E(dtype), layout=E(f"{layout}_LAYOUT"))
        yield call("ttnn.rand", dims, DEVICE, dtype=E(dtype), memory_config=M("L1"), seed=3)
        yield call("ttnn.randn", dims, DEVICE, dtype=E(dtype), layout=E(f"{layout}_LAYOUT"), seed=3)
        yield call("ttnn.bernoulli", T([5, 33]), 3, dtype=E(dtype), memory_config=M("L1"))
        if layout == "TILE" or dtype not in ("bfloat8_b", "bfloat4_b"):
            yield call("ttnn.uniform", T([5, 33], dtype, layout), -1.0, 1.0, 3)
            yield call("ttnn.bernoulli", T([5, 33], dtype, layout), 3)
            yield call("ttnn.experimental.dropout", T([5, 33], dtype, layout), 0.5, 2.0, 3)
    for low, high in (
        (0.0, 1.0),
        (1.0, 1.0),
        (1.0, 0.0),
        (-5.0, 5.0),
        (0.0, INFINITY),
        (-3e38, 3e38),
        (0, 1e-40),
        (1.0, 1.001),
    ):
        for dtype in ("bfloat16", "float32", "int32"):
            yield call("ttnn.rand", C("Shape", [5, 33]), DEVICE, dtype=E(dtype), low=low, high=high)
        yield call("ttnn.uniform", T([5, 33]), low, high)
        yield call("ttnn.uniform", T([5, 33], "float32"), low, high)
    for config in ("L1", *CONFIGS):
        yield call("ttnn.rand", C("Shape", list(SQUARE)), DEVICE, memory_config=M(config))
        yield call("ttnn.randn", C("Shape", list(SQUARE)), DEVICE, memory_config=M(config))
        yield call("ttnn.randn", C("Shape", list(SQUARE)), DEVICE, memory_config=M(config), layout=ROWS)
        yield call("ttnn.uniform", T(SQUARE), memory_config=M(config))
        yield call("ttnn.bernoulli", T(SQUARE), memory_config=M(config))
        yield call("ttnn.experimental.dropout", T(SQUARE), 0.2, 1.25, 7, memory_config=M(config))
        if config not in CONFIGS[3:]:
            yield call("ttnn.uniform", T(SQUARE, mem=config))
            yield call("ttnn.bernoulli", T(SQUARE, mem=config))
            yield call("ttnn.experimental.dropout", T(SQUARE, mem=config), 0.2, 1.25, 7)
    for shape, dtype, layout in product(([5, 33], [33, 5], [5, 34]), ("bfloat16", "float32"), LAYOUTS):
        yield call("ttnn.bernoulli", T([5, 33]), output=T(shape, dtype, layout))
        yield call("ttnn.experimental.dropout", T([5, 33]), 0.2, 1.25, 7, output_tensor=T(shape, dtype, layout))
    for flag in (True, False):
        yield call("ttnn.experimental.dropout", T([5, 33]), 0.2, 1.25, 7, use_per_device_seed=flag)
    for op in ("uniform", "bernoulli"):
        yield call(f"ttnn.{op}", T([5, 33], host=True))
        yield call(
            f"ttnn.{op}", T([5, 33]), compute_kernel_config=C("WormholeComputeKernelConfig", fp32_dest_acc_en=True)
        )
        yield call(f"ttnn.{op}")
    yield call("ttnn.experimental.dropout", T([5, 33], host=True), 0.2, 1.25, 7)
    yield call("ttnn.experimental.dropout", T([5, 33]), 0.2, 1.25)
    yield call("ttnn.rand", [5, 33], DEVICE)
    yield call("ttnn.randn", [5, 33], DEVICE)
    yield call("ttnn.rand", C("Shape", [5, 33]))
    yield call("ttnn.randn", C("Shape", [5, 33]))
    yield call("ttnn.rand", C("Shape", [5, 33]), DEVICE, seed=-1)
    yield call("ttnn.manual_seed", 5)
    yield call("ttnn.manual_seed", 5, device=DEVICE)
    yield call("ttnn.manual_seed", device=DEVICE)
    yield call("ttnn.manual_seed", -5, device=DEVICE)
    for user in (0, 31, 32, -1):
        yield call("ttnn.manual_seed", 5, device=DEVICE, user_ids=user)
    for dtype, layout, shape in product(("uint32", "int32", "bfloat16"), LAYOUTS, ([4], [1, 4], [32])):
        seeds = T(shape, dtype, layout)
        yield call("ttnn.manual_seed", seeds)
        yield call("ttnn.manual_seed", seeds, user_ids=seeds)
        yield call("ttnn.manual_seed", 5, device=DEVICE, user_ids=seeds)
    yield call("ttnn.manual_seed", T([4], "uint32", "ROW_MAJOR"), user_ids=T([5], "uint32", "ROW_MAJOR"))
    yield call("ttnn.manual_seed", T([4], "uint32", "ROW_MAJOR"), user_ids=3)
    yield call("ttnn.manual_seed", 5, device=DEVICE, sub_core_grids=G([0, 0, 1, 1]))
