"""Images and videos: folds, channel order, broadcasts, colour conversion, 3-d convolutions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ttnn_emulator.conformance.case import (
    DEVICE,
    DTYPES,
    INFINITY,
    LAYOUTS,
    STORABLE,
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

ROWS: dict[str, Any] = {"layout": "ROW_MAJOR"}


def cases() -> Iterator[Case]:
    for family in (moreh_fold, chw, hwc, transpose_rm, broadcast_to, rgb_to_yuv, moe, prepare_conv3d_weights, conv3d):
        yield from family()


def moreh_fold() -> Iterator[Case]:
    op = "ttnn.moreh_fold"

    def columns(size: list[int], kernel: list[int], channels: int, batch: int | None, **window: Any) -> tuple[int, ...]:
        dilation, padding, stride = (
            window.get(n, d) for n, d in (("dilation", [1, 1]), ("padding", [0, 0]), ("stride", [1, 1]))
        )
        places = [
            (s + 2 * p - d * (k - 1) - 1) // t + 1 for s, p, d, k, t in zip(size, padding, dilation, kernel, stride)
        ]
        shape = (channels * kernel[0] * kernel[1], places[0] * places[1])
        return shape if batch is None else (batch, *shape)

    for size, kernel in product(([4, 4], [8, 6], [7, 5]), ([2, 2], [3, 1], [1, 3])):
        for window in (
            {},
            {"stride": [2, 2]},
            {"padding": [1, 1]},
            {"dilation": [2, 1], "padding": [1, 0]},
            {"stride": [1, 3], "padding": [0, 2]},
        ):
            shape = columns(size, kernel, 3, 2, **window)
            yield call(op, T(shape, **ROWS), output_size=size, kernel_size=kernel, **window)
    whole = {"output_size": [4, 4], "kernel_size": [2, 2]}
    for dtype, layout in STORABLE:
        yield call(op, T((2, 12, 9), dtype, layout), **whole)
    for shape in ((12, 9), (8,), (1, 2, 12, 9), (2, 11, 9), (2, 12, 8), (0, 12, 9)):
        yield call(op, T(shape, **ROWS), **whole)
    source = T((2, 12, 9), **ROWS)
    for wrong in (
        {"stride": [0, 1]},
        {"kernel_size": [0, 2]},
        {"kernel_size": [2]},
        {"output_size": [4, 4, 4]},
        {"padding": [1]},
        {"stride": 1},
        {"dilation": [-1, 1]},
        {"padding": [1, 1]},
        {"size": 1},
        {"memory_config": "L1"},
    ):
        yield call(op, source, **{**whole, **wrong})
    yield call(op, source)
    yield call(op, T((2, 12, 9), **ROWS, host=True), **whole)
    for place in ("L1", "DRAM", height_sharded([8, 4], 3), width_sharded([24, 4], 1)):
        yield call(op, source, **whole, memory_config=M(place))
    for shape in ((2, 3, 4, 4), (3, 4, 4), (2, 2, 4, 4), (1, 3, 4, 4), (2, 3, 4, 5)):
        yield call(op, source, output=T(shape, **ROWS), **whole)
    yield call(op, T((2, 12, 9), **ROWS, mem="L1"), **whole)
    yield call(op, T((2, 12, 9), **ROWS, mem=height_sharded([6, 9], 4)), **whole)


def chw() -> Iterator[Case]:
    op = "ttnn.experimental.convert_to_chw"
    for channels, pixels, cores in product((1, 3, 4, 16, 32, 33), (64, 128, 256), (2, 4)):
        for layout in LAYOUTS:
            wide = 32 * -(-channels // 32) if layout == "TILE" else channels
            shards = height_sharded([pixels // cores, wide], cores)
            yield call(op, T((1, 1, pixels, channels), layout=layout, mem=shards))
    for dtype, target in product(DTYPES, (None, "bfloat16", "float32")):
        source = T((1, 1, 128, 8), dtype, mem=height_sharded([64, 32], 2))
        yield call(op, source, **({"dtype": E(target)} if target else {}))
    for shape, memory in (
        ((1, 2, 64, 8), height_sharded([64, 32], 2)),
        ((2, 1, 64, 8), height_sharded([64, 32], 2)),
        ((1, 128, 8), height_sharded([64, 32], 2)),
        ((128, 8), height_sharded([64, 32], 2)),
        ((1, 1, 128, 8), "DRAM"),
        ((1, 1, 128, 8), "L1"),
        ((1, 1, 128, 32), width_sharded([128, 32], 1)),
        ((1, 1, 128, 32), block_sharded([64, 32], (1, 2))),
        ((1, 1, 100, 8), height_sharded([64, 32], 2)),
        ((1, 1, 96, 8), height_sharded([64, 32], 2)),
        ((1, 1, 128, 8), height_sharded([64, 32], 4)),
        ((1, 1, 128, 8), height_sharded([32, 32], 4, orient="COL_MAJOR")),
        ((1, 1, 128, 8), height_sharded([32, 32], 4, buffer="DRAM")),
    ):
        yield call(op, T(shape, mem=memory))
    yield call(op, T((1, 1, 128, 8), host=True))
    yield call(op, T((1, 1, 128, 8), mem=height_sharded([64, 32], 2)), memory_config=M("L1"))


def hwc() -> Iterator[Case]:
    op = "ttnn.experimental.convert_to_hwc"
    for channels, pixels, cores in product((1, 3, 8, 20, 32, 33), (64, 128, 256), (1, 2, 4)):
        yield call(op, T((1, 1, channels, pixels), **ROWS, mem=width_sharded([channels, pixels // cores], cores)))
    for batch in (2, 3):
        shards = width_sharded([batch * 4, 32], 4)
        yield call(op, T((1, batch, 4, 128), **ROWS, mem=shards))
        yield call(op, T((1, batch, 4, 100), **ROWS, mem=shards))
    for dtype, target in product(DTYPES, (None, "bfloat16", "float32")):
        layout = "TILE" if dtype.endswith("_b") else "ROW_MAJOR"
        rows = 32 if layout == "TILE" else 8
        source = T((1, 1, rows, 128), dtype, layout, width_sharded([rows, 64], 2))
        yield call(op, source, **({"dtype": E(target)} if target else {}))
    for memory in ("DRAM", "L1", height_sharded([64, 8], 2), height_sharded([32, 8], 4), width_sharded([128, 8], 1)):
        yield call(op, T((1, 1, 8, 128), **ROWS, mem=width_sharded([8, 64], 2)), memory_config=M(memory))
        yield call(op, T((1, 1, 8, 128), **ROWS), memory_config=M(memory))
        dram = width_sharded([8, 64], 2, buffer="DRAM")
        yield call(op, T((1, 1, 8, 128), **ROWS, mem=dram), memory_config=M(memory))
    for width in (4, 16, 24):
        rows_of = M(height_sharded([64, width], 2))
        yield call(op, T((1, 1, 3, 128), **ROWS, mem=width_sharded([3, 64], 2)), memory_config=rows_of)
    for shape, memory in (
        ((1, 8, 128), width_sharded([8, 64], 2)),
        ((8, 128), width_sharded([8, 64], 2)),
        ((2, 1, 8, 128), width_sharded([16, 64], 2)),
        ((1, 1, 8, 100), width_sharded([8, 32], 4)),
        ((1, 1, 8, 96), width_sharded([8, 48], 2)),
        ((1, 1, 8, 128), height_sharded([4, 128], 2)),
        ((1, 1, 8, 128), width_sharded([8, 64], 2, orient="COL_MAJOR")),
    ):
        yield call(op, T(shape, **ROWS, mem=memory))
    yield call(op, T((1, 1, 32, 128), mem=width_sharded([32, 64], 2)))
    yield call(op, T((1, 1, 8, 128), **ROWS, host=True))
    yield call(op, T((1, 1, 8, 128), **ROWS))


def transpose_rm() -> Iterator[Case]:
    op = "ttnn.experimental.transpose_rm"
    for shape in ((64, 96), (32, 32), (2, 64, 96), (2, 3, 32, 64), (1, 2, 3, 32, 64), (1, 1, 256, 32)):
        for layout in LAYOUTS:
            yield call(op, T(shape, layout=layout))
    for odd in ((64,), (33, 64), (64, 33), (16, 32), (2, 3, 5, 7), (0, 32), (2, 0, 32, 32), ()):
        yield call(op, T(odd, **ROWS))
    for dtype, layout in STORABLE:
        yield call(op, T((1, 1, 64, 64), dtype, layout))
    for memory in ("L1", height_sharded([32, 64], 2), width_sharded([64, 32], 2), block_sharded([32, 32], (2, 2))):
        yield call(op, T((1, 1, 64, 64), **ROWS, mem=memory))
        yield call(op, T((64, 64), "float32", **ROWS, mem=memory))
    yield call(op, T((64, 64), **ROWS, host=True))
    yield call(op, T((64, 64), **ROWS), 0)


def broadcast_to() -> Iterator[Case]:
    op = "ttnn.experimental.broadcast_to"
    for shape in ((1, 1, 1, 1), (1, 64), (33, 1), (2, 1, 5), (3, 1, 1, 40), (1, 1), (64, 64)):
        for target in ((2, 3, 64, 40), (3, 2, 33, 64), (33, 64), (2, 7, 5), (3, 1, 5, 40), (64, 64), (1, 1, 2, 33, 40)):
            yield call(op, T(shape), list(target))
    for dtype, layout in STORABLE:
        yield call(op, T((1, 64), dtype, layout), [32, 64])
        yield call(op, T((2, 1, 1), dtype, layout), [2, 40, 33])
    for flat in ((64,), (1,), (), (1, 0)):
        yield call(op, T(flat), [2, 64])
    for memory in ("L1", "DRAM", height_sharded([32, 64], 2)):
        yield call(op, T((1, 64)), [64, 64], memory_config=M(memory))
        yield call(op, T((64, 64), mem=memory), [2, 64, 64])
    for output in (
        T((64, 64)),
        T((64, 32)),
        T((64, 64), "float32"),
        T((64, 64), layout="ROW_MAJOR"),
        T((64, 64), mem="L1"),
    ):
        yield call(op, T((1, 64)), [64, 64], output=output)
    for wrong in ([], [64], [-1, 64], 64, None, [64.0, 64]):
        yield call(op, T((1, 64)), wrong)
    yield call(op, T((1, 64), host=True), [64, 64])


def rgb_to_yuv() -> Iterator[Case]:
    for op in ("ttnn.rgb_to_yuv", "ttnn.experimental.rgb_to_yuv"):
        for shape, wide in product(
            ((3, 4, 6, 5), (3, 2, 2, 1), (3, 8, 8, 32), (3, 4, 128, 40), (3, 64, 64, 16)), (0, 1)
        ):
            yield call(op, T(shape, **ROWS), wide_rows=bool(wide))
        source = T((3, 4, 6, 8), **ROWS)
        for shape in (
            (3, 5, 6, 8),
            (3, 4, 5, 8),
            (4, 4, 6, 8),
            (1, 4, 6, 8),
            (3, 4, 6),
            (1, 3, 4, 6, 8),
            (3, 4, 6, 0),
            (3, 0, 6, 8),
        ):
            yield call(op, T(shape, **ROWS))
        for dtype, layout in STORABLE:
            yield call(op, T((3, 4, 6, 8), dtype, layout))
        for name, members in (
            ("color_space", ("YUVColorSpace.BT601", "YUVColorSpace.BT709", "YUVColorSpace.BT2020")),
            ("input_range", ("RGBRange.MinusOneToOne", "RGBRange.ZeroToOne")),
            ("output_range", ("YUVRange.Full", "YUVRange.Limited")),
            ("format", ("YUVFormat.YUV420Planar", "YUVRange.Full")),
        ):
            for member in members:
                yield call(op, source, **{name: E(member)})
        for memory in ("L1", "DRAM", height_sharded([6, 8], 4)):
            yield call(op, source, memory_config=M(memory))
            yield call(
                op,
                T(
                    (3, 4, 6, 8),
                    **ROWS,
                    mem=memory if memory != height_sharded([6, 8], 4) else height_sharded([18, 8], 4),
                ),
            )
        row = [0.3, 0.5, 0.2, 16.0]
        yield call(op, source, coefficients=C("YUVCoefficients", row, row, row))
        yield call(op, source, coefficients=C("YUVCoefficients", row, row, [INFINITY, 0.5, 0.2, 16.0]))
        yield call(op, source, coefficients=C("yuv_bt709_coefficients"))
        yield call(op, source, coefficients=row)
        yield call(op, T((3, 4, 6, 8), **ROWS, host=True))
        yield call(op, source, True)
        yield call(op, source, wide_rows=1)
    for name in ("yuv_bt601_coefficients", "yuv_bt709_coefficients"):
        yield call(f"ttnn.{name}")
        yield call(f"ttnn.experimental.{name}")
        yield call(f"ttnn.{name}", 1)


def moe() -> Iterator[Case]:
    op = "ttnn.moe"

    def masks(width: int, **options: Any) -> tuple[Case, Case]:
        return T((1, 1, 1, width), **options), T((1, 1, 1, 32), **options)

    for shape in ((1, 1, 32, 64), (1, 2, 32, 128), (2, 1, 64, 256), (1, 1, 32, 1024), (1, 1, 5, 64), (1, 3, 40, 64)):
        yield call(op, T(shape), *masks(shape[-1]))
        yield call(op, T(shape), *masks(shape[-1]), 32, memory_config=M("L1"))
    for odd in (
        (1, 1, 32, 32),
        (1, 1, 32, 96),
        (1, 1, 32, 50),
        (32, 64),
        (1, 32, 64),
        (1, 1, 1, 32, 64),
        (1, 1, 0, 64),
        (1, 1, 32, 0),
    ):
        yield call(op, T(odd), *masks(odd[-1]))
    for dtype, layout in STORABLE:
        yield call(op, T((1, 1, 32, 64), dtype, layout), *masks(64))
        yield call(op, T((1, 1, 32, 64)), T((1, 1, 1, 64), dtype, layout), T((1, 1, 1, 32), dtype, layout))
    source = T((1, 1, 32, 64))
    for k in (16, 33, 64, 0, -1, "32", 70000):
        yield call(op, source, *masks(64), k)
    for expert, best in (
        ((1, 1, 32, 64), (1, 1, 1, 32)),
        ((1, 64), (1, 32)),
        ((64,), (32,)),
        ((1, 1, 1, 32), (1, 1, 1, 32)),
        ((1, 1, 1, 64), (1, 1, 1, 64)),
        ((1, 1, 1, 64), (1, 1, 32, 32)),
    ):
        yield call(op, source, T(expert), T(best))
    for memory in ("DRAM", height_sharded([32, 32], 1)):
        yield call(op, source, *masks(64), memory_config=M(memory))
    for output in (T((1, 1, 32, 1)), T((1, 1, 32, 1), mem="L1"), T((1, 1, 32, 2)), T((1, 1, 32, 1), "float32")):
        yield call(op, source, *masks(64), output_tensor=output)
    yield call(op, T((1, 1, 32, 64), mem=height_sharded([32, 64], 1)), *masks(64))
    yield call(op, T((1, 1, 32, 64), host=True), *masks(64))
    yield call(op, source, T((1, 1, 1, 64), host=True), T((1, 1, 1, 32)))
    yield call(op, source)


def prepare_conv3d_weights() -> Iterator[Case]:
    op = "ttnn.experimental.prepare_conv3d_weights"
    for shape in ((32, 32, 3, 3, 3), (64, 16, 1, 3, 3), (40, 3, 3, 1, 1), (8, 8, 2, 2, 2), (32, 64, 1, 1, 1)):
        for options in ({}, {"C_in_block": 16}, {"C_in_block": 32}, {"alignment": 16}, {"groups": 2}, {"alignment": 1}):
            yield call(op, weight_tensor=T(shape, **ROWS, host=True), device=DEVICE, **options)
    for dtype, layout in STORABLE:
        yield call(op, weight_tensor=T((32, 32, 3, 3, 3), dtype, layout, host=True), device=DEVICE)
        yield call(op, weight_tensor=T((32, 32, 1, 3, 3), dtype, layout), device=DEVICE)
    for odd in ((32, 32, 3, 3), (32,), (1, 32, 32, 3, 3, 3)):
        yield call(op, weight_tensor=T(odd, **ROWS, host=True), device=DEVICE)
    source = T((32, 32, 3, 3, 3), **ROWS, host=True)
    yield call(op, weight_tensor=source)
    yield call(op, weight_tensor=T((32, 32, 3, 3, 3), **ROWS))
    for options in (
        {"C_in_block": 24},
        {"C_in_block": 64},
        {"groups": 0},
        {"groups": -1},
        {"alignment": 0},
        {"groups": 3},
    ):
        yield call(op, weight_tensor=source, device=DEVICE, **options)
    for dtype, layout in STORABLE:
        yield call(op, weight_tensor=T((32, 16, 1, 3, 3), dtype, layout, host=True), groups=2, device=DEVICE)
    for shape, block in product(((32, 48, 1, 3, 3), (32, 20, 1, 3, 3), (32, 32, 1, 1, 1)), (7, 10, 40, 48, 33, 96)):
        yield call(op, weight_tensor=T(shape, **ROWS, host=True), C_in_block=block, device=DEVICE)
    for mistaken in (
        {"groups": "two"},
        {"groups": None},
        {"C_in_block": -1},
        {"C_in_block": 16.0},
        {"alignment": -32},
        {"channels": 32},
        {"alignment": 24},
        {"alignment": 7},
    ):
        yield call(op, weight_tensor=source, device=DEVICE, **mistaken)
    yield call(op, weight_tensor=None, device=DEVICE)
    yield call(op, device=DEVICE)
    yield call(op, weight_tensor=source, device="one")
    yield call(op, source, device=DEVICE)


def conv3d() -> Iterator[Case]:
    op = "ttnn.experimental.conv3d"

    def run(shape: Any, out: int, kernel: list[int], **options: Any) -> Case:
        dtype = options.pop("of", "bfloat16")
        taps = kernel[0] * kernel[1] * kernel[2] * shape[-1]
        weight = options.pop("weight", T((taps, out), dtype))
        source = options.pop("source", T(shape, dtype, **ROWS))
        settings = {"dtype": E("bfloat16"), "output_channels": out, "kernel_size": kernel, **options}
        return call(op, input_tensor=source, weight_tensor=weight, **settings)

    plain = (1, 4, 6, 6, 32)
    for shape, out in product((plain, (2, 3, 8, 7, 64), (1, 2, 5, 5, 16), (1, 5, 4, 4, 96)), (32, 64, 40)):
        for kernel, window in (
            ([3, 3, 3], {}),
            ([1, 1, 1], {}),
            ([1, 3, 3], {"padding": [0, 1, 1]}),
            ([2, 2, 2], {"stride": [2, 2, 2]}),
            ([3, 3, 3], {"padding": [1, 1, 1], "padding_mode": "replicate"}),
            ([1, 2, 2], {"dilation": [1, 2, 2]}),
        ):
            yield run(shape, out, kernel, **window)
    small = [1, 3, 3]
    for dtype, target in product(("bfloat16", "float32", "int32", "uint16"), DTYPES):
        yield run(plain, 32, small, of=dtype, dtype=E(target))
    for wrong in (
        {"padding_mode": "reflect"},
        {"groups": 3},
        {"groups": 2},
        {"dilation": [0, 1, 1]},
        {"dilation": [1, 5, 1]},
        {"kernel_size": [3, 3]},
        {"stride": [0, 1, 1]},
        {"output_channels": 33},
        {"weight": T((289, 32))},
        {"weight": T((288, 32), "float32")},
        {"weight": T((288, 32), **ROWS)},
        {"weight": T((1, 288, 32))},
        {"weight": T((32, 32, 1, 3, 3), **ROWS)},
        {"source": T(plain)},
        {"source": T((4, 6, 6, 32), **ROWS)},
        {"source": T(plain, **ROWS, host=True)},
        {"output_pad_h": 1, "output_pad_w": 2},
        {"kernel_size": [5, 3, 3]},
        {"bias_tensor": T((1, 32))},
        {"bias_tensor": T((32,))},
        {"bias_tensor": T((1, 64))},
        {"bias_tensor": T((1, 32), **ROWS)},
        {"bias_tensor": T((1, 32), "float32")},
    ):
        yield run(plain, 32, small, **wrong)
    for shape in ((32, 32, 1, 3, 3), (64, 32, 1, 3, 3), (32, 16, 1, 3, 3)):
        weight = T(shape, **ROWS, host=True)
        yield run(plain, shape[0], small, weight=weight, device=DEVICE)
        yield run(plain, shape[0], small, weight=weight)
        yield run(plain, shape[0], small, weight=weight, device=DEVICE, groups=2)
    for place in ("L1", "DRAM", height_sharded([16, 32], 4)):
        yield run(plain, 32, small, memory_config=M(place))
    for settings in (
        {"C_in_block": 32},
        {"C_in_block": 16},
        {"C_in_block": 24},
        {"C_out_block": 32},
        {"C_out_block": 16},
        {"C_out_block": 64},
        {"T_out_block": 2, "H_out_block": 2, "W_out_block": 2},
        {"dilation": [1, 1, 1]},
        {"dilation": [1, 2, 2]},
        {"output_layout": E("TILE_LAYOUT")},
        {"weights_dtype": E("float32")},
    ):
        config = C("Conv3dConfig", compute_with_storage_grid_size=C("CoreCoord", 8, 8), **settings)
        yield run(plain, 32, small, config=config)
        yield run(plain, 32, small, config=config, dilation=[1, 2, 2])
    for grid in ((8, 8), (1, 1), (9, 8), (2, 4)):
        config = C("Conv3dConfig", compute_with_storage_grid_size=C("CoreCoord", *grid))
        yield run((1, 4, 6, 6, 96), 32, small, config=config)
    yield run(plain, 32, small, config=C("Conv3dConfig"))
    math = C("WormholeComputeKernelConfig", math_fidelity=E("MathFidelity.HiFi4"), fp32_dest_acc_en=True)
    yield run(plain, 32, small, compute_kernel_config=math)
    yield run(plain, 32, small, halo_buffer=T((200, 32), **ROWS), padding=[0, 1, 1])
    yield run(plain, 32, small, halo_buffer=T((20, 32), **ROWS), padding=[0, 1, 1])
    yield run(plain, 32, small, grid=G([0, 0, 1, 1]))
