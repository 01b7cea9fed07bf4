"""Resampling: upsample, grid_sample, rotate, deformable attention, integral images."""

from __future__ import annotations

from collections.abc import Iterator

from ttnn_emulator.conformance.case import (
    STORABLE,
    C,
    Case,
    E,
    M,
    T,
    block_sharded,
    call,
    height_sharded,
    product,
    width_sharded,
)

# Block floats exist in TILE layout only.


def cases() -> Iterator[Case]:
    for family in (upsample, grid_sample, prepared_grids, rotate, deformable_attention, integral_image):
        yield from family()


def upsample() -> Iterator[Case]:
    op = "ttnn.upsample"
    for mode, shape in product(("nearest", "bilinear"), ((1, 8, 8, 32), (2, 5, 7, 64), (1, 4, 4, 5), (1, 32, 32, 96))):
        for scale in (2, 3, [2, 3], 1.5, [2.0, 1.5], 1):
            yield call(op, T(shape, layout="ROW_MAJOR"), scale, mode=mode)
    for mode in ("nearest", "bilinear", "bicubic", "area"):
        for dtype, layout in STORABLE:
            yield call(op, T((1, 4, 32, 32), dtype, layout), 2, mode=mode)
    rows = T((1, 8, 8, 32), layout="ROW_MAJOR")
    for scale in (0, -1, 0.5, 0.0, [2], [2, 2, 2], "2", None):
        yield call(op, rows, scale)
        yield call(op, rows, scale, mode="bilinear")
    for shape in ((8, 32), (8, 8, 32), (1, 1, 8, 8, 32)):
        yield call(op, T(shape, layout="ROW_MAJOR"), 2)
        yield call(op, T(shape, layout="ROW_MAJOR"), 2, mode="bilinear")
    for memory in (height_sharded([16, 32], 4), width_sharded([64, 8], 4), block_sharded([32, 16], (2, 2))):
        source = T((1, 8, 8, 32), layout="ROW_MAJOR", mem=memory)
        for mode, scale in product(("nearest", "bilinear"), (2, 1.5)):
            yield call(op, source, scale, mode=mode)
        yield call(op, source, 2, memory_config=M("DRAM"))
        yield call(op, rows, 2, memory_config=M(memory))
        yield call(op, rows, 2, mode="bilinear", memory_config=M(memory))
    yield call(op, rows, 2, memory_config=M("L1"))
    yield call(op, rows, 2, mode="bilinear", memory_config=M("L1"))
    yield call(op, T((1, 8, 8, 32), mem=height_sharded([32, 32], 2)), 2)
    yield call(op, T((1, 8, 8, 32), layout="ROW_MAJOR", host=True), 2)
    config = C("WormholeComputeKernelConfig", math_fidelity=E("MathFidelity.LoFi"), fp32_dest_acc_en=True)
    yield call(op, rows, 2, mode="bilinear", compute_kernel_config=config)


def grid_sample() -> Iterator[Case]:
    op = "ttnn.grid_sample"
    image = T((1, 8, 8, 32), layout="ROW_MAJOR")

    def grid(*shape: int, dtype: str = "float32", layout: str = "ROW_MAJOR", mem: object = "DRAM") -> Case:
        return T(shape, dtype, layout, mem)

    for channels, batch in product((32, 64, 33, 256), (1, 2)):
        yield call(op, T((batch, 8, 8, channels), layout="ROW_MAJOR"), grid(batch, 4, 6, 2))
    for mode, prepared in product(("bilinear", "nearest", "bicubic"), (True, False)):
        for numbers in (2, 4, 6, 12, 3):
            points = grid(1, 4, 6, numbers, dtype="bfloat16")
            yield call(op, image, points, mode=mode, use_precomputed_grid=prepared)
            yield call(op, image, points, mode=mode, use_precomputed_grid=prepared, batch_output_channels=True)
    for dtype, layout in STORABLE:
        yield call(op, T((1, 8, 8, 32), dtype, layout), grid(1, 4, 6, 2))
        yield call(op, image, grid(1, 4, 6, 2, dtype=dtype, layout=layout))
    for padding in ("zeros", "border", "reflection"):
        yield call(op, image, grid(1, 4, 6, 2), padding_mode=padding)
    for flag in (True, False):
        yield call(op, image, grid(1, 4, 6, 2), align_corners=flag)
    yield call(op, image, grid(2, 4, 6, 2))
    yield call(op, image, grid(4, 6, 2))
    yield call(op, T((8, 8, 32), layout="ROW_MAJOR"), grid(1, 4, 6, 2))
    yield call(op, T((1, 8, 8, 32), layout="ROW_MAJOR", host=True), grid(1, 4, 6, 2))
    yield call(op, image, grid(1, 4, 6, 2), memory_config=M("L1"))
    yield call(op, image, grid(1, 4, 8, 2), memory_config=M(height_sharded([8, 32], 4)))
    yield call(op, image, grid(1, 4, 8, 2, mem=height_sharded([8, 2], 4)))
    yield call(op, image, grid(1, 4, 8, 4, mem=height_sharded([8, 4], 4)), batch_output_channels=True)
    yield call(op, T((1, 8, 8, 32), layout="ROW_MAJOR", mem=height_sharded([16, 32], 4)), grid(1, 4, 6, 2))
    yield call(op, T((1, 8, 8, 32), layout="ROW_MAJOR", mem=width_sharded([64, 16], 2)), grid(1, 4, 6, 2))


def prepared_grids() -> Iterator[Case]:
    op = "ttnn.prepare_grid_sample_grid"
    points = T((1, 4, 6, 2), "float32", "ROW_MAJOR", host=True)
    for mode, shape in product(
        ("nearest", "bilinear", "bicubic"), ((1, 4, 6, 2), (2, 3, 5, 2), (1, 4, 6, 4), (4, 6, 2))
    ):
        yield call(op, T(shape, "float32", "ROW_MAJOR", host=True), [1, 8, 8, 32], mode=mode)
    for dtype, layout in STORABLE:
        yield call(op, T((1, 4, 6, 2), dtype, layout, host=True), [1, 8, 8, 32])
    for flag in (True, False):
        yield call(op, points, [1, 8, 8, 32], align_corners=flag)
    for padding in ("zeros", "border"):
        yield call(op, points, [1, 8, 8, 32], padding_mode=padding)
    for dtype in ("bfloat16", "float32"):
        yield call(op, points, [1, 8, 8, 32], output_dtype=E(dtype))
    for size in ([8, 8, 32], [1, 1, 1, 32], [8]):
        yield call(op, points, size)
    yield call(op, T((1, 4, 6, 2), "float32", "ROW_MAJOR"), [1, 8, 8, 32])
    yield call(op, points)


def rotate() -> Iterator[Case]:
    op = "ttnn.rotate"
    image = T((1, 8, 8, 32), layout="ROW_MAJOR")
    for mode, shape in product(("nearest", "bilinear"), ((1, 8, 8, 32), (2, 5, 7, 33), (1, 4, 4, 288), (8, 8, 32))):
        yield call(op, T(shape, layout="ROW_MAJOR"), 30.0, interpolation_mode=mode)
    for dtype, layout in STORABLE:
        yield call(op, T((1, 8, 8, 32), dtype, layout), 45.0)
        yield call(op, T((1, 8, 8, 32), dtype, layout), 45.0, interpolation_mode="bilinear")
    for angle in (0.0, 90, -10.5, 720.0, "30"):
        yield call(op, image, angle)
    yield call(op, image, 30.0, center={"tuple": [2.0, 3.0]})
    yield call(op, image, 30.0, center={"tuple": [2.0]})
    yield call(op, image, 30.0, fill=1.5)
    yield call(op, image, 30.0, expand=True)
    yield call(op, image, 30.0, interpolation_mode="bicubic")
    yield call(op, image, 30.0, memory_config=M("L1"))
    yield call(op, image, 30.0, memory_config=M(height_sharded([16, 32], 4)))
    yield call(op, T((1, 8, 8, 32), layout="ROW_MAJOR", host=True), 30.0)
    for memory in (height_sharded([16, 32], 4), width_sharded([64, 8], 4), block_sharded([32, 16], (2, 2))):
        yield call(op, T((1, 8, 8, 32), layout="ROW_MAJOR", mem=memory), 30.0)
        yield call(op, T((1, 8, 8, 32), layout="ROW_MAJOR", mem=memory), 30.0, interpolation_mode="bilinear")


def deformable_attention() -> Iterator[Case]:
    op = "ttnn.experimental.multi_scale_deformable_attn"

    def rows(*shape: int, dtype: str = "bfloat16", layout: str = "ROW_MAJOR", **more: object) -> Case:
        return T(shape, dtype, layout, **more)  # type: ignore[arg-type]

    def given(n: int = 2, size: int = 10, depth: int = 32, queries: int = 16, points: int = 4) -> tuple[Case, ...]:
        return rows(n, size, size, depth), rows(n, queries * points, 1, 2), rows(n, queries, points)

    for depth, queries, points in product((16, 32, 48, 96), (1, 16, 50), (1, 4)):
        yield call(op, *given(depth=depth, queries=queries, points=points), align_corners=points == 4)
    for depth in (0, 8, 24, 40):
        yield call(op, *given(depth=depth))
    value, grid, attn = given()
    for dtype, layout in STORABLE:
        yield call(op, rows(2, 10, 10, 32, dtype=dtype, layout=layout), grid, attn)
        yield call(op, value, rows(2, 64, 1, 2, dtype=dtype, layout=layout), attn)
        yield call(op, value, grid, rows(2, 16, 4, dtype=dtype, layout=layout))
    for other in (rows(1, 64, 1, 2), rows(2, 60, 1, 2), rows(2, 32, 2, 2), rows(2, 64, 1, 3), rows(2, 64, 2)):
        yield call(op, value, other, attn)
    yield call(op, value, grid, rows(2, 1, 16, 4))
    yield call(op, rows(2, 100, 32), grid, attn)
    yield call(op, rows(2, 10, 10, 32, mem=height_sharded([50, 32], 4)), grid, attn)
    yield call(op, rows(2, 10, 10, 32, host=True), grid, attn)
    for config in ("L1", "DRAM", height_sharded([8, 32], 4)):
        yield call(op, value, grid, attn, memory_config=M(config))
    yield call(op, rows(2, 10, 10, 32, mem="L1"), grid, attn)


def integral_image() -> Iterator[Case]:
    op = "ttnn.experimental.intimg"
    for shape in ((1, 12, 40, 256), (1, 1, 1, 1), (1, 50, 33, 65), (1, 96, 32, 32), (2, 12, 40, 64), (1, 0, 32, 32)):
        for dtype in ("bfloat16", "float32"):
            yield call(op, T(shape, dtype))
    for shape in ((32, 32), (4, 32, 32), (1, 1, 4, 32, 32)):
        yield call(op, T(shape))
    for dtype, layout in STORABLE:
        yield call(op, T((1, 4, 32, 32), dtype, layout))
    yield call(op, T((1, 4, 32, 32), host=True))
    yield call(op, T((1, 4, 32, 32), mem="L1"))
    yield call(op, T((1, 4, 32, 32), mem=height_sharded([32, 32], 4)))
    yield call(op, T((1, 4, 32, 64), mem=width_sharded([128, 32], 2)))
