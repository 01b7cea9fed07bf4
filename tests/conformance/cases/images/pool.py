"""Pools: max_pool2d, avg_pool2d, adaptive_avg_pool2d, adaptive_max_pool2d, global_avg_pool2d."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ttnn_emulator.conformance.case import (
    DTYPES,
    LAYOUTS,
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

MAX, AVG = "ttnn.max_pool2d", "ttnn.avg_pool2d"
ADAPTIVE = ("ttnn.adaptive_avg_pool2d", "ttnn.adaptive_max_pool2d")
# Batch, height, width, channels.
IMAGES = ((1, 8, 8, 32), (2, 7, 9, 40), (1, 16, 16, 96), (3, 5, 6, 8), (1, 28, 28, 256), (1, 12, 10, 3))
# Kernel, stride, padding.
WINDOWS: tuple[tuple[list[int], list[int], list[int]], ...] = (
    ([2, 2], [2, 2], [0, 0]),
    ([3, 3], [2, 2], [1, 1]),
    ([3, 3], [1, 1], [1, 1]),
    ([5, 5], [1, 2], [2, 2]),
    ([2, 3], [2, 1], [1, 0, 0, 1]),
    ([4, 5], [3, 3], [2, 1, 0, 2]),
)
SCHEMES = ("HEIGHT_SHARDED", "WIDTH_SHARDED", "BLOCK_SHARDED", "INTERLEAVED")
# One image [1, 1, 128, 128], 16 × 8 pixels, in each kind of sharding, and in unsupported kinds.
SHARDS = (
    height_sharded([32, 128], 4),
    height_sharded([64, 128], 2),
    width_sharded([128, 32], 4),
    width_sharded([128, 64], 2),
    block_sharded([64, 64], (2, 2)),
    block_sharded([32, 32], (4, 4)),
    height_sharded([32, 128], 4, orient="COL_MAJOR"),
    block_sharded([64, 64], (2, 2), orient="COL_MAJOR"),
    height_sharded([32, 128], 4, buffer="DRAM"),
)


def flat(batch: int, height: int, width: int, channels: int, **options: Any) -> Case:
    return T((1, 1, batch * height * width, channels), **options)


def pool(op: str, source: Case, image: tuple[int, ...], kernel: Any, stride: Any, padding: Any, **options: Any) -> Case:
    """One pool; max pools take a dilation after the padding."""
    dilation = options.pop("dilation", [1, 1])
    if op == MAX:
        return call(op, source, *image, kernel, stride, padding, dilation, **options)
    return call(op, source, *image, kernel, stride, padding, **options)


def cases() -> Iterator[Case]:
    for op in (MAX, AVG):
        yield from windows(op)
        yield from inputs(op)
        yield from results(op)
        yield from sharded(op)
        yield from sliced(op)
        yield from refused(op)
    for family in (max_only, avg_only, adaptive, whole_images):
        yield from family()


def windows(op: str) -> Iterator[Case]:
    """Various windows and images."""
    for image, (kernel, stride, padding) in product(IMAGES, WINDOWS):
        yield pool(op, flat(*image, layout="ROW_MAJOR"), image, kernel, stride, padding)
    for image, (kernel, stride, padding) in product(IMAGES[:4], WINDOWS[1:4]):
        yield pool(op, T(image, layout="ROW_MAJOR"), image, kernel, stride, padding, ceil_mode=True)
        yield pool(op, flat(*image), image, kernel, stride, padding, ceil_mode=True, output_layout=E("TILE_LAYOUT"))
    for kernel in ([1, 1], [1, 8], [8, 1], [7, 7], [6, 6], [8, 8], [9, 9], [8, 9]):
        # For kernels larger than the image, from DRAM, the library computes slices for minutes.
        place = "L1" if max(kernel) > 8 else "DRAM"
        for stride in ([1, 1], [3, 2], kernel):
            yield pool(op, flat(1, 8, 8, 64, layout="ROW_MAJOR", mem=place), (1, 8, 8, 64), kernel, stride, [0, 0])
        yield pool(op, flat(1, 8, 8, 64), (1, 8, 8, 64), kernel, [1, 1], [k // 2 for k in kernel])
    for channels in (1, 5, 15, 16, 17, 31, 33, 48, 100, 290, 512, 1000, 2048):
        image = (1, 6, 6, channels)
        yield pool(op, T(image, layout="ROW_MAJOR"), image, [3, 3], [1, 1], [1, 1])
        yield pool(op, T(image), image, [2, 2], [2, 2], [0, 0])


def inputs(op: str) -> Iterator[Case]:
    """All dtypes, layouts, ranks and memory configs of the input."""
    window = ([2, 2], [2, 2], [0, 0])
    for dtype, layout in product(DTYPES, LAYOUTS):
        if layout == "ROW_MAJOR" and dtype.endswith("_b"):
            continue
        for memory in ("DRAM", "L1"):
            yield pool(op, T((1, 8, 8, 32), dtype, layout, memory), (1, 8, 8, 32), *window)
        yield pool(op, flat(2, 4, 8, 64, dtype=dtype, layout=layout), (2, 4, 8, 64), *window)
    for shape, image in (
        ((8, 8, 32), (1, 8, 8, 32)),
        ((8, 8), (1, 8, 8, 1)),
        ((64, 32), (1, 8, 8, 32)),
        ((2, 8, 8), (2, 8, 8, 1)),
        ((64,), (1, 8, 8, 1)),
        ((1, 1, 8, 8, 32), (1, 8, 8, 32)),
        ((8, 8, 32), (2, 4, 8, 32)),
        ((1, 64, 1, 32), (1, 8, 8, 32)),
        ((1, 8, 8, 32), (1, 4, 16, 32)),
        ((1, 8, 8, 32), (2, 8, 4, 32)),
        ((1, 1, 64, 32), (1, 8, 8, 16)),
        ((1, 1, 64, 32), (1, 8, 9, 32)),
        ((1, 1, 64, 32), (1, 4, 4, 32)),
    ):
        for layout in LAYOUTS:
            yield pool(op, T(shape, layout=layout), image, *window)
    yield pool(op, T((1, 8, 8, 32), host=True), (1, 8, 8, 32), *window)
    yield pool(op, T((1, 8, 8, 32), layout="ROW_MAJOR", host=True), (1, 8, 8, 32), *window)


def results(op: str) -> Iterator[Case]:
    """Dtypes, layouts and memory configs of the result."""
    image = (1, 8, 8, 64)
    window = ([3, 3], [1, 1], [1, 1])
    for dtype, layout in product(DTYPES, LAYOUTS):
        yield pool(op, T(image), image, *window, dtype=E(dtype), output_layout=E(f"{layout}_LAYOUT"))
    for dtype in ("bfloat16", "bfloat8_b", "bfloat4_b"):
        for source in (T((1, 9, 5, 40), layout="ROW_MAJOR"), T((1, 9, 5, 40)), T((1, 9, 5, 40), "bfloat8_b")):
            yield pool(op, source, (1, 9, 5, 40), *window, dtype=E(dtype), output_layout=E("TILE_LAYOUT"))
    places: tuple[Any, ...] = ("DRAM", "L1", height_sharded([8, 64], 8), height_sharded([32, 64], 2))
    places += (width_sharded([64, 32], 2), block_sharded([32, 32], (2, 2)), height_sharded([8, 64], 4))
    for place, layout in product(places, LAYOUTS):
        yield pool(op, T(image), image, *window, memory_config=M(place), output_layout=E(f"{layout}_LAYOUT"))
    for place in ("DRAM", "L1"):
        yield pool(op, flat(*image, mem="L1"), image, *window, memory_config=M(place))
    for scheme, layout in product(SCHEMES, LAYOUTS):
        scheme_given = E(f"TensorMemoryLayout.{scheme}")
        for pixels in ((1, 8, 8, 64), (2, 6, 7, 96), (1, 14, 14, 512)):
            yield pool(op, T(pixels, layout=layout), pixels, *window, applied_shard_scheme=scheme_given)
        tiles = {"applied_shard_scheme": scheme_given, "output_layout": E("TILE_LAYOUT")}
        yield pool(op, T(image, layout=layout, mem="L1"), image, *window, **tiles)
    for flag in (True, False):
        yield pool(op, T(image, mem="L1"), image, *window, deallocate_input=flag)
        yield pool(op, T(image), image, *window, reallocate_halo_output=flag)
        yield pool(op, T(image), image, *window, config_tensor_in_dram=flag)


def sharded(op: str) -> Iterator[Case]:
    """Sharded inputs."""
    shape, image = (1, 1, 128, 128), (1, 16, 8, 128)
    for memory, layout in product(SHARDS, LAYOUTS):
        source = T(shape, layout=layout, mem=memory)
        yield pool(op, source, image, [3, 3], [2, 2], [1, 1])
        yield pool(op, source, image, [2, 2], [2, 2], [0, 0], output_layout=E("TILE_LAYOUT"))
        yield pool(op, source, image, [2, 2], [1, 1], [0, 0], memory_config=M("DRAM"))
        yield pool(op, source, (2, 8, 8, 128), [2, 2], [2, 2], [0, 0], ceil_mode=True)
    for memory in SHARDS[:6]:
        source = T(shape, layout="ROW_MAJOR", mem=memory)
        yield pool(
            op, source, image, [3, 3], [2, 2], [1, 1], applied_shard_scheme=E("TensorMemoryLayout." + SCHEMES[0])
        )
        yield pool(op, source, image, [3, 3], [2, 2], [1, 1], deallocate_input=True)
        for dtype in ("float32", "bfloat8_b", "int32"):
            yield pool(op, T(shape, dtype, mem=memory), image, [3, 3], [2, 2], [1, 1])
    for channels, cores in ((96, 3), (48, 3), (80, 5), (40, 5), (16, 2)):
        memory = width_sharded([64, channels // cores], cores)
        yield pool(
            op, flat(1, 8, 8, channels, layout="ROW_MAJOR", mem=memory), (1, 8, 8, channels), [2, 2], [2, 2], [0, 0]
        )
    for rows, cores in ((8, 8), (16, 4), (24, 3), (5, 13)):
        memory = height_sharded([rows, 64], cores)
        yield pool(op, flat(1, 8, 8, 64, layout="ROW_MAJOR", mem=memory), (1, 8, 8, 64), [3, 3], [1, 1], [1, 1])


def sliced(op: str) -> Iterator[Case]:
    """Images processed slice by slice: large ones, or on request."""
    for kind, count in product(("DRAMSliceHeight", "DRAMSliceWidth", "L1Full"), (0, 1, 2, 4, 16, 65)):
        config = C("Op2DSliceConfig", slice_type=E(f"Op2DSliceConfig.SliceTypeEnum.{kind}"), num_slices=count)
        source = T((1, 64, 64, 64), layout="ROW_MAJOR")
        yield pool(op, source, (1, 64, 64, 64), [3, 3], [2, 2], [1, 1], dram_slice_config=config)
        if count in (0, 2, 4):
            tiles = {"dram_slice_config": config, "output_layout": E("TILE_LAYOUT")}
            yield pool(op, T((1, 64, 64, 64)), (1, 64, 64, 64), [2, 2], [2, 2], [0, 0], **tiles)
            yield pool(op, T((1, 64, 64, 64), mem="L1"), (1, 64, 64, 64), [2, 2], [2, 2], [0, 0], **tiles)
    for image in ((1, 112, 112, 64), (1, 256, 256, 64), (2, 150, 130, 96), (1, 512, 512, 32), (1, 1024, 64, 64)):
        yield pool(op, T(image, layout="ROW_MAJOR"), image, [3, 3], [2, 2], [1, 1])
        yield pool(op, T(image, layout="ROW_MAJOR"), image, [2, 2], [2, 2], [0, 0], ceil_mode=True)
    yield pool(op, T((1, 256, 256, 64), "bfloat8_b"), (1, 256, 256, 64), [3, 3], [2, 2], [1, 1])
    yield pool(op, T((1, 224, 224, 96)), (1, 224, 224, 96), [3, 3], [1, 1], [1, 1], output_layout=E("TILE_LAYOUT"))


def refused(op: str) -> Iterator[Case]:
    """Invalid windows and numbers."""
    image, source = (1, 8, 8, 32), T((1, 8, 8, 32), layout="ROW_MAJOR")
    for kernel, stride, padding in (
        ([0, 2], [1, 1], [0, 0]),
        ([2, 2], [0, 1], [0, 0]),
        ([2, 2], [1, 1], [2, 2]),
        ([3, 3], [1, 1], [2, 1]),
        ([3, 3], [1, 1], [0, 2]),
        ([3, 3], [1, 1], [1, 1, 1, 2]),
        ([3, 3], [1, 1], [1, 2, 1, 1]),
        ([9, 2], [1, 1], [0, 0]),
        ([2, 11], [1, 1], [0, 1]),
        ([2, 2], [-1, 1], [0, 0]),
        ([-2, 2], [1, 1], [0, 0]),
        ([2, 2], [1, 1], [-1, 0]),
        ([2], [1, 1], [0, 0]),
        ([2, 2, 2], [1, 1], [0, 0]),
        ([2, 2], [1], [0, 0]),
        ([2, 2], [1, 1], [0]),
        ([2, 2], [1, 1], [0, 0, 0]),
        (2, 2, 0),
        ([2.0, 2.0], [1, 1], [0, 0]),
        ([2, 2], None, [0, 0]),
    ):
        yield pool(op, source, image, kernel, stride, padding)
        yield pool(op, T((1, 8, 8, 32), mem="L1"), image, kernel, stride, padding, ceil_mode=True)
    window = ([2, 2], [2, 2], [0, 0])
    for wrong in ((0, 8, 8, 32), (1, 0, 8, 32), (1, 8, 0, 32), (1, 8, 8, 0), (-1, 8, 8, 32), (1, 8, 8, -1)):
        yield pool(op, source, wrong, *window)
    for mistyped in ((1, 8, 8), (1.0, 8, 8, 32), ("1", 8, 8, 32)):
        yield pool(op, source, mistyped, *window)  # type: ignore[arg-type]
    for option in (
        {"ceil_mode": 1},
        {"dtype": "bfloat16"},
        {"dtype": None},
        {"output_layout": E("bfloat16")},
        {"memory_config": "L1"},
        {"applied_shard_scheme": "HEIGHT_SHARDED"},
        {"in_place_halo": True},
        {"halo": 1},
        {"applied_shard_scheme": E("TensorMemoryLayout.ND_SHARDED")},
    ):
        yield pool(op, source, image, *window, **option)


def max_only() -> Iterator[Case]:
    """Dilation, and indices of the maxima."""
    for dilation in ([1, 1], [2, 2], [1, 3], [4, 4], [5, 1], [0, 1], [2], [-1, 1], 2):
        for kernel, padding in (([3, 3], [1, 1]), ([2, 2], [0, 0])):
            image = (1, 8, 8, 32)
            yield pool(MAX, T(image, layout="ROW_MAJOR"), image, kernel, [1, 1], padding, dilation=dilation)
    for image, (kernel, stride, padding) in product((*IMAGES[:4], (1, 300, 300, 16)), WINDOWS):
        source = T(image, layout="ROW_MAJOR")
        yield pool(MAX, source, image, kernel, stride, padding, return_indices=True)
    image = (1, 8, 8, 32)
    for dtype, layout in product(("bfloat16", "float32", "bfloat8_b"), LAYOUTS):
        if layout == "TILE" or dtype != "bfloat8_b":
            yield pool(MAX, T(image, dtype, layout), image, [3, 3], [2, 2], [1, 1], return_indices=True)
    for option in (
        {"output_layout": E("TILE_LAYOUT")},
        {"dtype": E("bfloat8_b")},
        {"ceil_mode": True},
        {"dilation": [2, 2]},
        {"memory_config": M("L1")},
        {"memory_config": M("DRAM")},
        {"applied_shard_scheme": E("TensorMemoryLayout.WIDTH_SHARDED")},
        {"applied_shard_scheme": E("TensorMemoryLayout.BLOCK_SHARDED")},
        {"return_indices": 1},
    ):
        yield pool(MAX, T(image), image, [3, 3], [2, 2], [1, 1], **{"return_indices": True, **option})
    for memory in SHARDS:
        source = T((1, 1, 128, 128), layout="ROW_MAJOR", mem=memory)
        yield pool(MAX, source, (1, 16, 8, 128), [3, 3], [2, 2], [1, 1], return_indices=True)
    for kernel in ([5, 5], [6, 6], [9, 9], [1, 32], [4, 8]):
        yield pool(MAX, T((1, 12, 40, 32)), (1, 12, 40, 32), kernel, [1, 1], [0, 0], return_indices=True)


def avg_only() -> Iterator[Case]:
    """Divisors, and averages of whole images."""
    image = (1, 9, 9, 48)
    for counts, ceil, divisor in product((True, False), (True, False), (None, 1, 3, 0, -2, 9.5)):
        options: dict[str, Any] = {"ceil_mode": ceil, "count_include_pad": counts, "divisor_override": divisor}
        yield pool(AVG, T(image, layout="ROW_MAJOR"), image, [3, 3], [2, 2], [1, 1], **options)
        yield pool(AVG, T(image), image, [2, 2], [2, 2], [0, 1], **options, config_tensor_in_dram=True)
    yield pool(AVG, T(image), image, [2, 2], [2, 2], [0, 0], count_include_pad=1)
    yield pool(AVG, T(image), image, [2, 2], [2, 2], [0, 0], dilation=[1, 1], return_indices=True)
    for fidelity, wide in product(("LoFi", "HiFi2", "HiFi4"), (True, False)):
        config = C("WormholeComputeKernelConfig", math_fidelity=E(f"MathFidelity.{fidelity}"), fp32_dest_acc_en=wide)
        yield pool(AVG, T(image), image, [3, 3], [1, 1], [1, 1], compute_kernel_config=config)
        yield pool(AVG, T(image), image, [9, 9], [1, 1], [0, 0], compute_kernel_config=config)
    for batch, dtype, layout in product((1, 2, 3), ("bfloat16", "float32", "bfloat8_b", "int32"), LAYOUTS):
        if layout == "ROW_MAJOR" and dtype == "bfloat8_b":
            continue
        for size in ((8, 8), (7, 7), (4, 8)):
            whole = (batch, *size, 64)
            yield pool(AVG, T(whole, dtype, layout), whole, size, [1, 1], [0, 0])
            yield pool(AVG, flat(*whole, dtype=dtype, layout=layout), whole, size, [1, 1], [0, 0])
    whole = (2, 8, 8, 64)
    for option in (
        {"output_layout": E("TILE_LAYOUT")},
        {"dtype": E("bfloat8_b"), "output_layout": E("TILE_LAYOUT")},
        {"dtype": E("bfloat8_b")},
        {"divisor_override": 5},
        {"divisor_override": 0},
        {"memory_config": M("L1")},
        {"memory_config": M(height_sharded([2, 64], 1))},
        {"memory_config": M(width_sharded([32, 32], 2)), "output_layout": E("TILE_LAYOUT")},
        {"applied_shard_scheme": E("TensorMemoryLayout.HEIGHT_SHARDED")},
        {"ceil_mode": True},
    ):
        for memory in ("DRAM", "L1", height_sharded([64, 64], 2), width_sharded([128, 32], 2)):
            yield pool(AVG, flat(*whole, mem=memory), whole, [8, 8], [1, 1], [0, 0], **option)


def adaptive() -> Iterator[Case]:
    for op, image in product(ADAPTIVE, (*IMAGES, (1, 13, 13, 64), (2, 10, 7, 96), (1, 64, 64, 16))):
        for size in ([1, 1], [2, 2], [3, 3], [4, 4], [5, 3], [7, 7], [1, 4]):
            yield call(op, T(image, layout="ROW_MAJOR"), *image, size)
    for op in ADAPTIVE:
        image = (1, 8, 8, 64)
        for dtype, layout in product(DTYPES, LAYOUTS):
            if layout == "TILE" or not dtype.endswith("_b"):
                yield call(op, T(image, dtype, layout), *image, [2, 2])
                yield call(op, flat(*image, dtype=dtype, layout=layout), *image, [1, 1])
        for odd in ([0, 2], [2, 0], [-1, 2], [2], [2, 2, 2], 2, [9, 9], [8, 8], [16, 8], None, [2.0, 2]):
            yield call(op, T(image), *image, odd)
        for memory, layout in product(SHARDS, LAYOUTS):
            yield call(op, T((1, 1, 128, 128), layout=layout, mem=memory), 1, 16, 8, 128, [4, 4])
        for place in ("DRAM", "L1", height_sharded([4, 64], 4), width_sharded([16, 32], 2)):
            yield call(op, T(image), *image, [4, 4], memory_config=M(place))
        for scheme in SCHEMES:
            yield call(op, T(image), *image, [4, 4], applied_shard_scheme=E(f"TensorMemoryLayout.{scheme}"))
        for shape in ((8, 8, 64), (64, 64), (64,), (1, 1, 8, 8, 64), (2, 8, 8, 64)):
            yield call(op, T(shape), *image, [2, 2])
        for wrong in ((0, 8, 8, 64), (1, 0, 8, 64), (1, 8, 8, 0), (-1, 8, 8, 64), (1, 8, 8), (1, 8, 8, 63)):
            yield call(op, T(image), *wrong, [2, 2])
        for kind, count in product(("DRAMSliceHeight", "DRAMSliceWidth"), (0, 2, 4)):
            config = C("Op2DSliceConfig", slice_type=E(f"Op2DSliceConfig.SliceTypeEnum.{kind}"), num_slices=count)
            yield call(op, T((1, 64, 64, 32)), 1, 64, 64, 32, [8, 8], dram_slice_config=config)
        yield call(op, T(image, host=True), *image, [2, 2])
        yield call(op, T(image, mem="L1"), *image, [2, 2], deallocate_input=True)
        yield call(op, T(image), *image, [2, 2], reallocate_output=False)
        yield call(op, T(image), *image, [2, 2], dtype=E("bfloat16"))
        yield call(op, T(image), *image, [2, 2], compute_kernel_config=C("WormholeComputeKernelConfig"))


def whole_images() -> Iterator[Case]:
    op = "ttnn.global_avg_pool2d"
    shapes = ((1, 8, 8, 32), (2, 7, 7, 64), (3, 5, 9, 33), (1, 1, 1, 32), (1, 32, 32, 8), (2, 4, 8, 2048), (1, 3, 3, 1))
    for shape, layout in product((*shapes, (8, 8, 32), (7, 9), (64,), (), (1, 1, 8, 8, 32), (0, 8, 8, 32)), LAYOUTS):
        yield call(op, T(shape, layout=layout))
    for dtype, layout in product(DTYPES, LAYOUTS):
        if layout == "TILE" or not dtype.endswith("_b"):
            yield call(op, T((2, 8, 8, 32), dtype, layout))
            yield call(op, T((1, 7, 7, 40), dtype, layout))
            yield call(op, T((8, 8, 32), dtype, layout, "L1"))
    for dtype in DTYPES:
        yield call(op, T((1, 8, 8, 32)), dtype=E(dtype))
        yield call(op, T((1, 7, 7, 32), "bfloat8_b"), dtype=E(dtype))
    places: tuple[Any, ...] = ("DRAM", "L1", height_sharded([32, 32], 1), width_sharded([32, 32], 1))
    for place in places:
        yield call(op, T((1, 8, 8, 32)), memory_config=M(place))
        yield call(op, T((2, 8, 8, 32)), memory_config=M(place))
    for memory, layout in product(SHARDS, LAYOUTS):
        yield call(op, T((1, 8, 16, 128), layout=layout, mem=memory))
        yield call(op, T((1, 8, 16, 128), layout=layout, mem=memory), memory_config=M("DRAM"))
    yield call(op, T((1, 8, 8, 32), host=True))
    yield call(op, T((1, 8, 8, 32)), M("L1"))
    yield call(op, T((1, 8, 8, 32)), memory_config="L1")
    yield call(op, T((1, 8, 8, 32)), dtype="bfloat16")
    yield call(op, [1, 2, 3])
    yield call(op)
