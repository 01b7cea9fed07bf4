"""Reductions: sums, means, extremes, variances, products, and `moreh` variants."""

from __future__ import annotations

from collections.abc import Iterator

from ttnn_emulator.conformance.case import (
    INFINITY,
    LAYOUTS,
    SHAPES,
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
    sharded_inputs,
    width_sharded,
)

# Block floats exist in TILE layout only.
ONE_AXIS = ("sum", "mean", "max", "min")
SPREAD = ("std", "var")
SHAPE = (2, 3, 40, 70)
NARROW = C("WormholeComputeKernelConfig", math_fidelity=E("MathFidelity.HiFi2"), fp32_dest_acc_en=False)
WIDE = C("WormholeComputeKernelConfig", math_fidelity=E("MathFidelity.HiFi4"), fp32_dest_acc_en=True)
SHARDS = (
    height_sharded([32, 128], 4),
    width_sharded([128, 32], 4),
    block_sharded([64, 64], (2, 2)),
    {"layout": "HEIGHT_SHARDED", "buffer": "L1"},
    {"layout": "WIDTH_SHARDED", "buffer": "DRAM"},
)


def cases() -> Iterator[Case]:
    for family in (
        generic,
        sums_only,
        product_of_all,
        fast_reduce_nc,
        moreh_sum,
        moreh_mean,
        moreh_norm,
        moreh_abs_pow,
    ):
        yield from family()


# -- the generic reductions -------------------------------------------------------------------------------------------


def generic() -> Iterator[Case]:
    for name in (*ONE_AXIS, *SPREAD):
        yield from _dimensions(f"ttnn.{name}")
        yield from _formats(f"ttnn.{name}")
        yield from _memories(f"ttnn.{name}")
        yield from _wrong(f"ttnn.{name}")


def _dimensions(op: str) -> Iterator[Case]:
    for shape, dim in product((*SHAPES, (1,), (1, 1, 1, 1)), (-1, 0)):
        yield call(op, T(shape), dim)
    for dim, keepdim in product(
        (None, 0, 1, 2, 3, -2, [2, 3], [0, 1], [1, 3], [0, 1, 2, 3], [-1, -3], []), (True, False)
    ):
        yield call(op, T(SHAPE), dim, keepdim)
    for dim in ([1, 2, 3, 4], [0, 4], [2], None):
        yield call(op, T((1, 2, 3, 5, 33)), dim)
    for shape in ((), (0,), (4, 0, 5), (1, 1, 0, 32)):
        yield call(op, T(shape))
        yield call(op, T(shape), 0)
    yield call(op, T((1, 1, 2048, 32)), -2)
    yield call(op, T((1, 1, 32, 2048)), -1)
    yield call(op, T((1, 1, 640, 640)), [-1, -2])


def _formats(op: str) -> Iterator[Case]:
    for (dtype, layout), dim in product(STORABLE, (-1, -2, None, 0)):
        yield call(op, T((2, 40, 70), dtype, layout), dim)
    for layout in LAYOUTS:
        yield call(op, T((1, 1, 1024, 64), layout=layout), -2)
        yield call(op, T((1, 1, 1024, 64), "float32", layout), -2)
        yield call(op, T((3, 5, 64, 64), layout=layout), [0, 2])


def _memories(op: str) -> Iterator[Case]:
    for memory in ("L1", "DRAM", *SHARDS):
        yield call(op, T((1, 1, 128, 128)), -1, memory_config=M(memory))
        yield call(op, T((1, 1, 128, 128)), -2, True, memory_config=M(memory))
    for source, dim in product(sharded_inputs(), (-1, -2, None, 1)):
        yield call(op, source, dim)
    for source in sharded_inputs():
        yield call(op, source, -1, memory_config=M("L1"))
        yield call(op, source, -1, True, memory_config=M(height_sharded([32, 32], 4)))
    yield call(op, T((1, 1, 128, 128), layout="ROW_MAJOR", mem=height_sharded([32, 128], 4)), -1)
    yield call(op, T((1, 1, 128, 128), layout="ROW_MAJOR", mem="L1"), -2)
    for config, dtype in product((NARROW, WIDE), ("bfloat16", "float32", "int32")):
        yield call(op, T((64, 64), dtype), -1, compute_kernel_config=config)
        yield call(op, T((64, 64), dtype), -2, compute_kernel_config=config)
    for grid in (G([0, 0, 3, 3]), G([0, 0, 0, 0]), G([0, 0, 8, 0]), G([0, 0, 3, 0], [0, 2, 1, 2])):
        yield call(op, T((2, 64, 64)), -1, sub_core_grids=grid)
        yield call(op, T((2, 64, 64)), -2, sub_core_grids=grid)
    for scalar in (0.5, 0.0, -2.0, 3):
        yield call(op, T((64, 64)), -1, scalar=scalar)
        yield call(op, T((64, 64), "int32"), -1, scalar=scalar)
    for correction in (True, False):
        yield call(op, T((64, 64)), -1, correction=correction)
        yield call(op, T((1, 1)), -1, correction=correction)


def _wrong(op: str) -> Iterator[Case]:
    for dim in (4, -5, [0, 4], [1, 1], [0, -4], "x", 1.5, [0.5]):
        yield call(op, T(SHAPE), dim)
    yield call(op, T((5, 33), host=True), -1)
    yield call(op, T((5, 33), host=True, layout="ROW_MAJOR"))
    yield call(op)
    yield call(op, 3.0)
    yield call(op, T((5, 33)), -1, "yes")
    yield call(op, T((5, 33)), -1, memory_config="L1")
    yield call(op, T((5, 33)), -1, scalar="one")
    yield call(op, T((5, 33)), axis=-1)
    yield call(op, T((5, 33)), -1, correction=2.5)
    yield call(op, T((5, 33)), -1, compute_kernel_config=3)
    yield call(op, T((5, 33)), -1, output_tensor=T((5, 1)))


def sums_only() -> Iterator[Case]:
    for name in ONE_AXIS:
        op = f"ttnn.{name}"
        for dtype, dim in product(("bfloat16", "float32", "bfloat8_b", "int32"), (-1, -2, None)):
            yield call(op, T((64, 96), dtype), dim, fast_and_approximate_mode=True)
        for layout, dim in product(("TILE_LAYOUT", "ROW_MAJOR_LAYOUT"), (-1, -2, 0, None)):
            yield call(op, T((2, 40, 70)), dim, output_layout=E(layout))
            yield call(op, T((2, 40, 70), layout="ROW_MAJOR"), dim, True, output_layout=E(layout))
            yield call(op, T((2, 40, 70), "bfloat8_b"), dim, output_layout=E(layout))


def product_of_all() -> Iterator[Case]:
    op = "ttnn.prod"
    for shape, dim in product((*SHAPES, (1, 1, 1, 1)), (None, -1, 0)):
        yield call(op, T(shape), dim)
    for (dtype, layout), dim in product(STORABLE, (None, 0, -1, -2)):
        yield call(op, T((1, 2, 40, 70), dtype, layout), dim)
    for dim, keepdim in product((0, 1, 2, 3, -4, 4, -5), (True, False)):
        yield call(op, T(SHAPE), dim, keepdim)
    for memory in ("L1", *SHARDS):
        yield call(op, T((1, 1, 128, 128)), memory_config=M(memory))
        yield call(op, T((1, 1, 128, 128)), -1, memory_config=M(memory))
        yield call(op, T((2, 1, 128, 128)), 0, memory_config=M(memory))
    for source, dim in product(sharded_inputs(), (None, 0, -1)):
        yield call(op, source, dim)
    for out, dims in product(
        (
            T((1, 3, 40, 70)),
            T((1, 1, 40, 70)),
            T((2, 1, 40, 70)),
            T((1, 3, 40, 70), "float32"),
            T((1, 3, 64, 96)),
            T((1, 3, 40, 70), mem="L1"),
        ),
        ([0], [1], [0, 1], [], [2], [-1], [0, 3]),
    ):
        yield call(op, T(SHAPE), out, dims=dims)
    yield call(op, T(SHAPE, "float32"), T((1, 3, 40, 70), "float32"), dims=[0])
    yield call(op, T(SHAPE, layout="ROW_MAJOR"), T((1, 3, 40, 70), layout="ROW_MAJOR"), dims=[0])
    yield call(op, T((3, 40, 70)), T((1, 40, 70)), dims=[0])
    yield call(op, T(SHAPE, host=True))
    yield call(op, T(SHAPE), [0, 1])
    yield call(op, T(SHAPE), "x")
    yield call(op, T(()))
    yield call(op, T((0, 32)))
    yield call(op)


def fast_reduce_nc() -> Iterator[Case]:
    op = "ttnn.experimental.fast_reduce_nc"
    for dims in ([0], [1], [0, 1], [1, 0], [2], [3], [-1], [-3], [], [4], [0, 0]):
        yield call(op, T(SHAPE), dims=dims)
        yield call(op, T((2, 3, 4, 40, 70)), dims=dims)
    for (dtype, layout), dims in product(STORABLE, ([0], [1])):
        yield call(op, T((2, 3, 32, 64), dtype, layout), dims=dims)
    for shape in SHAPES:
        yield call(op, T(shape), dims=[0])
    for memory in ("L1", *SHARDS):
        yield call(op, T((2, 4, 128, 128)), dims=[1], memory_config=M(memory))
    for source in sharded_inputs():
        yield call(op, source, dims=[0])
    for out in (T((1, 3, 40, 70)), T((2, 3, 40, 70)), T((1, 3, 40, 70), "float32"), T((1, 3, 40, 70), mem="L1")):
        yield call(op, T(SHAPE), dims=[0], output=out)
    for config in (NARROW, WIDE):
        yield call(op, T(SHAPE), dims=[0], compute_kernel_config=config)
    yield call(op, T(SHAPE), dims=[0], sub_core_grids=G([0, 0, 3, 3]))
    yield call(op, T(SHAPE, host=True), dims=[0])
    yield call(op, T(SHAPE))
    yield call(op, T(SHAPE), [0])
    yield call(op)


# -- moreh ------------------------------------------------------------------------------------------------------------


def _moreh_shapes(op: str, **fixed: object) -> Iterator[Case]:
    """Dimensions, formats and memory configs of an operation that takes `dim` and `keepdim`."""
    for dim, keepdim in product((None, 0, 1, 2, 3, [2, 3], [0, 1], [3, 0], [0, 1, 2, 3]), (True, False)):
        yield call(op, T(SHAPE), dim=dim, keepdim=keepdim, **fixed)
    for dim in (4, -1, [0, 4], [-1], "x"):
        yield call(op, T(SHAPE), dim=dim, **fixed)
    for shape in ((32, 64), (5, 33), (3, 45, 70), (1, 2, 3, 5, 33)):
        for dim in (0, 1, [0, 1]):
            yield call(op, T(shape), dim=dim, **fixed)
    for dtype, layout in STORABLE:
        yield call(op, T((2, 40, 70), dtype, layout), dim=1, **fixed)
    for memory in ("L1", *SHARDS):
        yield call(op, T((2, 1, 128, 128)), dim=0, memory_config=M(memory), **fixed)
        yield call(op, T((2, 1, 128, 128)), dim=3, keepdim=True, memory_config=M(memory), **fixed)
    for source, dim in product(sharded_inputs(), (0, 2, 3)):
        yield call(op, source, dim=dim, **fixed)
    for config in (NARROW, WIDE):
        yield call(op, T(SHAPE), dim=2, compute_kernel_config=config, **fixed)
    for out, dim, keepdim in product(
        (T((2, 1, 40, 70)), T((2, 40, 70)), T((2, 3, 40, 1)), T((2, 3, 1, 70)), T((2, 1, 40, 70), "float32")),
        (1, 2, 3),
        (True, False),
    ):
        yield call(op, T(SHAPE), dim=dim, keepdim=keepdim, output=out, **fixed)
    yield call(op, T(SHAPE), dim=1, keepdim=True, output=T((2, 1, 40, 70), layout="ROW_MAJOR"), **fixed)
    yield call(op, T(SHAPE, host=True), dim=1, **fixed)


def moreh_sum() -> Iterator[Case]:
    yield from _moreh_shapes("ttnn.moreh_sum")
    op = "ttnn.moreh_sum_backward"
    for dim, keepdim in product((None, 0, 1, 2, 3, [2, 3], [0, 1], [0, 1, 2, 3], 4), (True, False)):
        for gradient in ((2, 3, 1, 1), (1, 1, 40, 70), (40, 70), (3, 40, 70), (1, 1), (2, 3, 40, 70)):
            yield call(op, T(gradient), input=T(SHAPE), dim=dim, keepdim=keepdim)
    for dtype, layout in STORABLE:
        yield call(op, T((1, 40, 70), dtype, layout), input=T((2, 40, 70)), dim=0, keepdim=True)
        yield call(op, T((1, 40, 70)), input=T((2, 40, 70), dtype, layout), dim=0, keepdim=True)
    yield call(op, T((1, 40, 70)))
    yield call(op, T((1, 40, 70)), dim=0, keepdim=True, input_grad=T((2, 40, 70)))
    yield call(op, T((1, 40, 70)), input=T((2, 40, 70)), dim=0, keepdim=True, input_grad=T((2, 40, 70)))
    yield call(op, T((1, 40, 70)), input=T((2, 40, 70)), dim=0, keepdim=True, input_grad=T((3, 40, 70)))
    for memory in ("L1", *SHARDS):
        yield call(op, T((1, 1, 1, 128)), input=T((1, 1, 128, 128)), dim=2, keepdim=True, memory_config=M(memory))


def moreh_mean() -> Iterator[Case]:
    op = "ttnn.moreh_mean"
    yield from _moreh_shapes(op)
    for divisor in (1, 7):
        yield call(op, T(SHAPE), dim=1, divisor=divisor)
    op = "ttnn.moreh_mean_backward"
    for dim, keepdim in product((None, 0, 1, 2, 3, [2, 3], [0, 1], 4), (True, False)):
        for gradient in ((2, 3, 1, 1), (40, 70), (2, 3, 40, 70)):
            yield call(op, T(gradient), input_grad_shape=list(SHAPE), dim=dim, keepdim=keepdim)
    for dtype, layout in STORABLE:
        yield call(op, T((1, 40, 70), dtype, layout), input_grad_shape=[2, 40, 70], dim=0, keepdim=True)
        yield call(op, T((1, 40, 70)), input_grad=T((2, 40, 70), dtype, layout), dim=0, keepdim=True)
    yield call(op, T((1, 40, 70)))
    yield call(op, T((1, 40, 70)), keepdim=True)
    for memory in ("L1", *SHARDS):
        yield call(
            op, T((1, 1, 1, 128)), input_grad_shape=[1, 1, 128, 128], dim=2, keepdim=True, memory_config=M(memory)
        )


def moreh_norm() -> Iterator[Case]:
    op = "ttnn.moreh_norm"
    for order in (2.0, 0.0, INFINITY):
        yield from _moreh_shapes(op, p=order)
    for order in (1.0, 0.5, -1.5, 3):
        yield call(op, T(SHAPE), order, dim=1)
        yield call(op, T(SHAPE), order)
    yield call(op, T(SHAPE), "x")
    op = "ttnn.moreh_norm_backward"
    for dim, keepdim in product((None, 0, 2, 3, [2, 3], [0, 1], 4), (True, False)):
        for order in (2.0, 0.0, INFINITY):
            yield call(op, T(SHAPE), T((2, 3, 1, 1)), T((2, 3, 1, 1)), order, dim=dim, keepdim=keepdim)
    for dtype, layout in STORABLE:
        norm = T((2, 40, 1))
        yield call(op, T((2, 40, 70), dtype, layout), norm, norm, 2.0, dim=2, keepdim=True)
        yield call(op, T((2, 40, 70)), T((2, 40, 1), dtype, layout), norm, 2.0, dim=2, keepdim=True)
        yield call(op, T((2, 40, 70)), norm, T((2, 40, 1), dtype, layout), 2.0, dim=2, keepdim=True)
    for out in (T((2, 40, 70)), T((2, 40, 70), "float32"), T((2, 40, 70), mem="L1")):
        yield call(op, T((2, 40, 70)), T((2, 40, 1)), T((2, 40, 1)), 2.0, dim=2, keepdim=True, input_grad=out)


def moreh_abs_pow() -> Iterator[Case]:
    op = "ttnn.moreh_abs_pow"
    for shape, power in product(SHAPES, (2.0, 0.5, -1.0, 0.0)):
        yield call(op, T(shape), power)
    for dtype, layout in STORABLE:
        yield call(op, T((5, 33), dtype, layout), 2.0)
        yield call(op, T((5, 33)), 2.0, output=T((5, 33), dtype, layout))
    for memory in ("L1", *SHARDS):
        yield call(op, T((1, 1, 128, 128)), 2.0, memory_config=M(memory))
    for source in sharded_inputs():
        yield call(op, source, 2.0)
    yield call(op, T((5, 33)), 2.0, compute_kernel_config=WIDE)
    yield call(op, T((5, 33)), "x")
    yield call(op, T((5, 33), host=True), 2.0)
    yield call(op, T((5, 33)))
