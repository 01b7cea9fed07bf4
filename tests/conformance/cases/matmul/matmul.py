"""Matrix products: matmul, linear, addmm, and sparse, batched, minimal, attention and moreh variants."""

from __future__ import annotations

from collections.abc import Iterator

from ttnn_emulator.conformance.case import (
    DTYPES,
    FLOATS,
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

from . import _programs, _relatives
from ._programs import FIDELITIES, KINDS, LINEAR, MATMUL, config, grid, unary

# First operand, second operand: ranks 0 to 5, aligned and odd, matching and not.
PAIRS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((32, 64), (64, 32)),
    ((5, 33), (33, 7)),
    ((64,), (64,)),
    ((64,), (64, 32)),
    ((5, 33), (33,)),
    ((2, 3, 7), (7,)),
    ((64,), (1, 64, 32)),
    ((64,), (3, 64, 32)),
    ((1,), (1, 32)),
    ((3, 45, 70), (70, 13)),
    ((3, 45, 70), (1, 70, 13)),
    ((3, 45, 70), (3, 70, 13)),
    ((1, 45, 70), (3, 70, 13)),
    ((3, 45, 70), (2, 70, 13)),
    ((45, 70), (3, 70, 13)),
    ((45, 70), (1, 70, 13)),
    ((45, 70), (1, 1, 70, 13)),
    ((1, 1, 64, 96), (1, 1, 96, 128)),
    ((2, 3, 17, 40), (2, 3, 40, 5)),
    ((2, 3, 17, 40), (1, 1, 40, 5)),
    ((2, 3, 17, 40), (40, 5)),
    ((2, 3, 17, 40), (3, 40, 5)),
    ((2, 3, 17, 40), (1, 3, 40, 5)),
    ((1, 1, 17, 40), (2, 3, 40, 5)),
    ((1, 3, 17, 40), (2, 3, 40, 5)),
    ((1, 2, 3, 5, 33), (33, 64)),
    ((1, 2, 3, 5, 33), (1, 2, 3, 33, 64)),
    ((1, 2, 3, 5, 33), (1, 1, 1, 33, 64)),
    ((256, 512), (512, 256)),
    ((1, 1, 32, 1024), (1024, 2048)),
    ((2048, 64), (64, 32)),
    ((384, 1024), (1024, 1024)),
    ((8, 12, 128, 64), (8, 12, 64, 128)),
    ((5, 33), (34, 7)),
    ((5, 33), (5, 33)),
    ((), (32, 32)),
    ((32, 32), ()),
    ((0, 33), (33, 7)),
    ((5, 0), (0, 7)),
    ((5, 33), (33, 0)),
)


def cases() -> Iterator[Case]:
    for family in (
        plain,
        transposed,
        dtypes,
        places,
        outputs,
        kernels,
        grids,
        biases,
        activations,
        given_outputs,
        addmm,
    ):
        yield from family()
    yield from sharded()
    yield from _programs.cases()
    yield from _relatives.cases()


def plain() -> Iterator[Case]:
    for left, right in PAIRS:
        yield call(MATMUL, T(left), T(right))
        yield call(LINEAR, T(left), T(right))
    for layouts in (("ROW_MAJOR", "TILE"), ("TILE", "ROW_MAJOR"), ("ROW_MAJOR", "ROW_MAJOR")):
        yield call(MATMUL, T((32, 64), layout=layouts[0]), T((64, 32), layout=layouts[1]))
        yield call(LINEAR, T((5, 33), layout=layouts[0]), T((33, 7), layout=layouts[1]))
    for residences in ((True, False), (False, True), (True, True)):
        yield call(MATMUL, T((32, 64), host=residences[0]), T((64, 32), host=residences[1]))
    yield call(MATMUL, T((32, 64)))
    yield call(MATMUL, T((32, 64)), 2.0)
    yield call(MATMUL, T((32, 64)), T((64, 32)), T((32, 32)))
    yield call(LINEAR, T((32, 64)), T((64, 32)), T((32,)))


def transposed() -> Iterator[Case]:
    shapes = (
        ((64, 32), (64, 32), True, False),
        ((32, 64), (32, 64), False, True),
        ((64, 32), (32, 64), True, True),
        ((33, 5), (33, 7), True, False),
        ((5, 33), (7, 33), False, True),
        ((3, 70, 45), (70, 13), True, False),
        ((3, 45, 70), (13, 70), False, True),
        ((3, 70, 45), (3, 70, 13), True, False),
        ((3, 45, 70), (3, 13, 70), False, True),
        ((2, 3, 40, 17), (2, 3, 5, 40), True, True),
        ((2, 3, 40, 17), (5, 40), True, True),
        ((64,), (64, 32), True, False),
        ((64,), (32, 64), False, True),
        ((64,), (64,), False, True),
        ((1, 64), (64,), False, True),
        ((1,), (1,), True, True),
        ((1, 1024, 512), (1024, 256), True, False),
        ((5, 33), (33, 7), True, False),
        ((5, 33), (33, 7), False, True),
    )
    for left, right, transpose_a, transpose_b in shapes:
        flags = {"transpose_a": transpose_a, "transpose_b": transpose_b}
        for place in ("DRAM", "L1"):
            yield call(MATMUL, T(left, mem=place), T(right, mem=place), **flags)
        yield call(MATMUL, T(left, "bfloat8_b"), T(right), memory_config=M("L1"), **flags)
        yield call(LINEAR, T(left), T(right), bias=T((right[0] if transpose_b else right[-1],)), **flags)
        yield call(MATMUL, T(left), T(right), core_grid=grid(8, 8), **flags)


def dtypes() -> Iterator[Case]:
    for left, right in product(DTYPES, DTYPES):
        yield call(MATMUL, T((64, 96), left), T((96, 40), right))
    for left, right, out in product(FLOATS, FLOATS, DTYPES):
        yield call(LINEAR, T((64, 96), left), T((96, 40), right), dtype=E(out))
    for dtype in DTYPES:
        yield call(LINEAR, T((5, 33)), T((33, 7)), bias=T((7,), dtype))


def places() -> Iterator[Case]:
    for left, right, out in product(("DRAM", "L1"), ("DRAM", "L1"), ("DRAM", "L1")):
        for shapes in (PAIRS[0], PAIRS[1], PAIRS[11], ((512, 512), (512, 512)), ((32, 64), (64, 4096))):
            yield call(MATMUL, T(shapes[0], mem=left), T(shapes[1], mem=right), memory_config=M(out))
            yield call(
                LINEAR,
                T(shapes[0], mem=left),
                T(shapes[1], mem=right),
                bias=T((shapes[1][-1],), mem=out),
                memory_config=M(out),
            )


SHARDED_OUTPUTS = (
    {"layout": "HEIGHT_SHARDED", "buffer": "L1"},
    {"layout": "WIDTH_SHARDED", "buffer": "L1"},
    {"layout": "BLOCK_SHARDED", "buffer": "L1"},
    height_sharded([32, 128], 4),
    width_sharded([128, 32], 4),
    block_sharded([64, 64], (2, 2)),
    block_sharded([64, 64], (2, 2), orient="COL_MAJOR"),
    block_sharded([32, 128], (1, 4)),
    block_sharded([128, 32], (4, 1)),
    height_sharded([32, 128], 4, buffer="DRAM"),
)


def outputs() -> Iterator[Case]:
    """Interleaved operands, sharded products."""
    for config_ in SHARDED_OUTPUTS:
        for left, right in (((128, 128), (128, 128)), ((2, 64, 96), (96, 128)), ((2, 64, 96), (2, 96, 128))):
            yield call(MATMUL, T(left), T(right), memory_config=M(config_))
        yield call(MATMUL, T((128, 128), mem="L1"), T((128, 128)), memory_config=M(config_))
        yield call(MATMUL, T((128, 128)), T((128, 128)), memory_config=M(config_), core_grid=grid(4, 4))
        yield call(LINEAR, T((128, 128)), T((128, 128)), bias=T((128,)), memory_config=M(config_))
        yield call(MATMUL, T((1024, 512)), T((512, 1024)), memory_config=M(config_))


def kernels() -> Iterator[Case]:
    for fidelity, wide, l1_acc, sync in product(FIDELITIES, (False, True), (False, True), (False, True)):
        given = config(fidelity, fp32_dest_acc_en=wide, packer_l1_acc=l1_acc, dst_full_sync_en=sync)
        yield call(MATMUL, T((64, 256)), T((256, 64)), compute_kernel_config=given)
        yield call(LINEAR, T((2, 40, 50)), T((50, 60)), bias=T((60,)), compute_kernel_config=given)
    yield call(MATMUL, T((64, 256)), T((256, 64)), compute_kernel_config=E("MathFidelity.HiFi4"))
    for tile in ((32, 32), (16, 32), (32, 16), (32, 64)):
        yield call(MATMUL, T((64, 256)), T((256, 64)), output_tile=C("Tile", {"tuple": list(tile)}))


def grids() -> Iterator[Case]:
    for x, y in ((1, 1), (2, 4), (8, 8), (8, 1), (1, 8), (9, 9), (0, 4)):
        for left, right in (
            ((64, 64), (64, 64)),
            ((5, 33), (33, 7)),
            ((512, 512), (512, 512)),
            ((2048, 64), (64, 64)),
            ((32, 256), (256, 2048)),
            ((2, 3, 64, 40), (2, 3, 40, 96)),
            ((2, 3, 64, 40), (40, 96)),
            ((1, 3, 45, 70), (1, 3, 70, 13)),
        ):
            yield call(MATMUL, T(left), T(right), core_grid=grid(x, y))
        yield call(LINEAR, T((2, 64, 96)), T((96, 128)), bias=T((128,)), core_grid=grid(x, y), activation="gelu")
    yield call(MATMUL, T((64,)), T((64,)), core_grid=grid(8, 8))
    yield call(MATMUL, T((64, 64)), T((64,)), core_grid=grid(8, 8))
    yield call(MATMUL, T((64,)), T((64, 64)), core_grid=grid(8, 8))
    yield call(MATMUL, T((5, 33)), T((34, 7)), core_grid=grid(8, 8))
    yield call(MATMUL, T((5, 33), "int32"), T((33, 7), "int32"), core_grid=grid(8, 8))


def biases() -> Iterator[Case]:
    for left, right in (((64, 96), (96, 64)), ((2, 17, 40), (40, 50)), ((2, 64, 40), (2, 40, 50)), ((1, 33), (33, 7))):
        rows, columns = left[-2], right[-1]
        for bias in (
            (columns,),
            (1, columns),
            (1, 1, columns),
            (1, 1, 1, columns),
            (rows, columns),
            (2, rows, columns),
            (2, 1, columns),
            (1,),
            (columns + 1,),
            (columns - 1,),
            (rows, 1),
            (rows + 1, columns),
            (),
        ):
            yield call(LINEAR, T(left), T(right), bias=T(bias))
        yield call(LINEAR, T(left), T(right), bias=T((1, columns), layout="ROW_MAJOR"))
        yield call(LINEAR, T(left), T(right), bias=T((1, columns), host=True))
        yield call(LINEAR, T(left), T(right), bias=T((1, columns)), memory_config=M("L1"))
        yield call(LINEAR, T(left), T(right), bias=T((1, columns)), core_grid=grid(4, 4))
        yield call(LINEAR, T(left), T(right), bias=T((rows, columns)), core_grid=grid(4, 4))
        yield call(LINEAR, T(left), T(right), bias=T((1, columns)), dtype=E("float32"))
        yield call(LINEAR, T(left), T(right), bias=T((1, columns), "bfloat8_b"), dtype=E("bfloat8_b"))


NAMED = ("relu", "relu6", "gelu", "silu", "sigmoid", "tanh", "exp", "gelu_approx", "square", "mish", "nonsense", "")
UNARIES = ("RELU", "GELU", "SILU", "SIGMOID", "TANH", "HARDTANH", "SOFTPLUS", "SELU", "EXP", "LEAKY_RELU")


def activations() -> Iterator[Case]:
    for name in NAMED:
        yield call(MATMUL, T((64, 96)), T((96, 64)), activation=name)
        yield call(LINEAR, T((64, 96)), T((96, 64)), bias=T((64,)), activation=name)
        yield call(LINEAR, T((64, 96)), T((96, 64)), bias=T((64,)), activation=name, core_grid=grid(2, 2))
    for name in UNARIES:
        yield call(MATMUL, T((5, 33)), T((33, 7)), activation=unary(name))
        yield call(LINEAR, T((5, 33)), T((33, 7)), bias=T((7,)), activation=unary(name), core_grid=grid(2, 2))
    yield call(LINEAR, T((64, 96)), T((96, 64)), activation=unary("LEAKY_RELU", 0.1))
    yield call(LINEAR, T((64, 96)), T((96, 64)), activation=unary("HARDTANH", -2.0, 2.0), core_grid=grid(2, 2))
    yield call(LINEAR, T((64, 96)), T((96, 64)), activation=unary("SOFTPLUS", 0.0, 20.0), core_grid=grid(2, 2))
    yield call(LINEAR, T((2, 64, 96)), T((2, 96, 64)), activation="relu", core_grid=grid(2, 2))
    yield call(LINEAR, T((64, 96)), T((96, 64)), activation=E("UnaryOpType.RELU"))
    yield call(LINEAR, T((64, 96)), T((96, 64)), activation=T((64, 64)))


def given_outputs() -> Iterator[Case]:
    for shape, dtype, place in (
        ((64, 64), "bfloat16", "DRAM"),
        ((64, 64), "bfloat16", "L1"),
        ((64, 64), "float32", "DRAM"),
        ((64, 64), "int32", "DRAM"),
        ((1, 64, 64), "bfloat16", "DRAM"),
        ((32, 128), "bfloat16", "DRAM"),
        ((64, 65), "bfloat16", "DRAM"),
    ):
        out = T(shape, dtype, mem=place)
        for more in ({}, {"dtype": E("bfloat16")}, {"memory_config": M("L1")}, {"activation": "relu"}):
            yield call(MATMUL, T((64, 96)), T((96, 64)), optional_output_tensor=out, **more)
        yield call(LINEAR, T((64, 96)), T((96, 64)), bias=T((64,)), optional_output_tensor=out)
        yield call(LINEAR, T((64, 96)), T((96, 64)), bias=T((64, 64)), optional_output_tensor=out)
    yield call(MATMUL, T((64, 96)), T((96, 64)), optional_output_tensor=T((64, 64), layout="ROW_MAJOR"))


def addmm() -> Iterator[Case]:
    op = "ttnn.addmm"
    for left, right in PAIRS:
        product_shape = (left[0] if left else 1, right[-1] if right else 1)
        yield call(op, T(product_shape), T(left), T(right))
    for dtype in DTYPES:
        yield call(op, T((64, 40), dtype), T((64, 96)), T((96, 40)))
        yield call(op, T((64, 40)), T((64, 96), dtype), T((96, 40)))
        yield call(op, T((64, 40)), T((64, 96)), T((96, 40), dtype))
        yield call(op, T((64, 40), dtype), T((64, 96), dtype), T((96, 40), dtype))
        yield call(op, T((64, 40)), T((64, 96)), T((96, 40)), dtype=E(dtype))
    for alpha, beta in product((1.0, 0.5, 0.0, -2), (1.0, 0.5, 0.0, 3)):
        yield call(op, T((64, 40)), T((64, 96)), T((96, 40)), alpha=alpha, beta=beta)
    for shape in ((1, 40), (40,), (64, 1), (64, 41), (1, 64, 40), (2, 64, 40)):
        yield call(op, T(shape), T((64, 96)), T((96, 40)))
        yield call(op, T(shape), T((64, 96)), T((96, 40)), beta=0.0)
    for place in ("DRAM", "L1"):
        yield call(op, T((64, 40)), T((64, 96)), T((96, 40)), memory_config=M(place), core_grid=grid(4, 4))
        yield call(op, T((64, 40)), T((64, 96)), T((96, 40)), optional_output_tensor=T((64, 40), mem=place))
    yield call(op, T((64, 40)), T((64, 96)), T((96, 40)), output_tile=C("Tile", {"tuple": [32, 32]}))
    yield call(op, T((64, 40)), T((64, 96)), T((96, 40)), compute_kernel_config=config("HiFi4"))
    yield call(op, T((64, 40), layout="ROW_MAJOR"), T((64, 96)), T((96, 40)))
    yield call(op, T((64, 40), host=True), T((64, 96)), T((96, 40)))


# -- sharding ---------------------------------------------------------------------------------------------------------

INPUTS = (
    ((128, 128), height_sharded([32, 128], 4)),
    ((128, 128), height_sharded([64, 128], 2)),
    ((128, 128), width_sharded([128, 32], 4)),
    ((128, 128), width_sharded([128, 64], 2)),
    ((128, 128), block_sharded([64, 64], (2, 2))),
    ((128, 128), block_sharded([64, 64], (2, 2), orient="COL_MAJOR")),
    ((128, 128), block_sharded([32, 128], (1, 4))),
    ((128, 128), block_sharded([128, 32], (4, 1))),
    ((128, 128), block_sharded([64, 32], (4, 2))),
    ((4, 32, 128), height_sharded([32, 128], 4)),
    ((2, 2, 64, 128), height_sharded([64, 128], 4)),
    ((2, 2, 64, 128), height_sharded([128, 128], 2)),
    ((2, 64, 128), block_sharded([64, 64], (2, 2))),
    ((100, 120), height_sharded([32, 128], 4)),
    ((32, 256), width_sharded([32, 64], 4)),
    ((128, 128), height_sharded([32, 128], 4, orient="COL_MAJOR")),
)


def sharded() -> Iterator[Case]:
    for shape, memory in INPUTS:
        inner, batch = shape[-1], shape[:-2]
        left = T(shape, mem=memory)
        for columns in (128, 40):
            yield call(MATMUL, left, T((inner, columns)))
            yield call(LINEAR, left, T((inner, columns)), bias=T((columns,)))
            yield call(MATMUL, left, T((*batch, inner, columns)))
            yield call(MATMUL, left, T((inner, columns)), memory_config=M("L1"))
        for kind in KINDS:
            out = M({"layout": kind, "buffer": "L1"})
            yield call(MATMUL, left, T((inner, 128)), memory_config=out)
            yield call(LINEAR, left, T((inner, 256)), bias=T((256,)), memory_config=out)
            yield call(MATMUL, left, T((*batch, inner, 64)), memory_config=out)
        yield call(MATMUL, left, T((inner, 128)), memory_config=M(memory))
        yield call(MATMUL, left, T((inner, 128)), core_grid=grid(4, 4))
        yield call(MATMUL, left, T((inner, 128)), activation="relu")
        yield call(MATMUL, left, T((128, inner)), transpose_b=True)
        yield call(MATMUL, left, T((shape[-2], 64)), transpose_a=True)
        yield call(MATMUL, T(shape, "float32", mem=memory), T((inner, 128), "float32"))
        yield call(MATMUL, T((96, shape[-2])), left)
        yield call(MATMUL, T((*batch, 96, shape[-2])), left, core_grid=grid(4, 4))
        yield call(MATMUL, left, T((inner, 128), mem=width_sharded([inner, 32], 4)))
    for memory in (height_sharded([64, 96], 4), height_sharded([128, 96], 2)):
        for other in (height_sharded([96, 64], 4), height_sharded([192, 64], 2), "DRAM", "L1"):
            for place in ("L1", {"layout": "HEIGHT_SHARDED", "buffer": "L1"}):
                pair = T((2, 2, 64, 96), mem=memory), T((2, 2, 96, 64), mem=other)
                yield call(MATMUL, *pair, memory_config=M(place))
