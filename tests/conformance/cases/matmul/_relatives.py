"""Variants of matmul: sparse, batched, minimal, attention and moreh."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ttnn_emulator.conformance.case import (
    DTYPES,
    FLOATS,
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

SHARDED = (height_sharded([32, 128], 4), width_sharded([128, 32], 4), block_sharded([64, 64], (2, 2)))


def cases() -> Iterator[Case]:
    for family in (sparse, batched_weights, minimal, minimal_split, attention, from_cache, group_attention):
        yield from family()
    for family in (moreh_matmul, moreh_bmm, moreh_linear, moreh_dot, moreh_dot_backward):
        yield from family()
    for family in (moreh_matmul_backward, moreh_bmm_backward, moreh_linear_backward):
        yield from family()


def core(x: int, y: int) -> Case:
    return C("CoreCoord", x, y)


def config(fidelity: str = "HiFi4", **fields: Any) -> Case:
    return C("WormholeComputeKernelConfig", math_fidelity=E(f"MathFidelity.{fidelity}"), **fields)


def line(x: int, y: int, inner: int, rows: int, columns: int, **more: Any) -> Case:
    """A 1D program config."""
    return C(
        "MatmulMultiCoreReuseMultiCast1DProgramConfig",
        compute_with_storage_grid_size={"tuple": [x, y]},
        in0_block_w=inner,
        per_core_M=rows,
        per_core_N=columns,
        **({"out_subblock_h": 1, "out_subblock_w": 1, "fuse_batch": False, "mcast_in0": True} | more),
    )


# -- sparse, batched, minimal -----------------------------------------------------------------------------------------


def flags(*shape: int, **more: Any) -> Case:
    return T(shape, **({"layout": "ROW_MAJOR"} | more))


def sparse() -> Iterator[Case]:
    op = "ttnn.sparse_matmul"
    left, right, program = T((1, 2, 32, 64)), T((1, 4, 64, 128)), line(4, 1, 1, 1, 1)
    good = {"sparsity": flags(1, 2, 1, 4), "program_config": program}
    yield call(op, left, right, **good)
    for more in (
        {"nnz": 3},
        {"nnz": 0},
        {"nnz": 9},
        {"dtype": E("bfloat8_b")},
        {"dtype": E("float32")},
        {"memory_config": M("L1")},
        {"core_grid": C("CoreGrid", x=4, y=1)},
        {"compute_kernel_config": config("HiFi2", fp32_dest_acc_en=True)},
        {"is_input_b_sparse": False},
        {"is_input_a_sparse": True},
        {"output_tile": C("Tile", {"tuple": [32, 32]})},
        {"optional_output_tensor": T((1, 2, 1, 4, 32, 128))},
        {"optional_output_tensor": T((1, 2, 1, 4, 32, 64))},
        {"optional_output_tensor": T((1, 3, 32, 128)), "nnz": 3},
        {"indices": flags(1, 1, 1, 3, dtype="uint16")},
        {"indices": flags(1, 1, 1, 3, dtype="uint32")},
        {"indices": flags(1, 1, 3, 1, dtype="uint16")},
        {"indices": flags(1, 1, 1, 5, dtype="uint16")},
        {"indices": flags(1, 1, 1, 3, dtype="uint16"), "nnz": 3},
        {"sparsity": flags(1, 1, 1, 4)},
        {"sparsity": T((1, 2, 1, 4))},
        {"sparsity": flags(8)},
        {"sparsity": flags(1, 2, 1, 4, host=True)},
    ):
        yield call(op, left, right, **(good | more))
    for a_sparse, b_sparse in product((False, True), (False, True)):
        which = {"is_input_a_sparse": a_sparse, "is_input_b_sparse": b_sparse, "program_config": program}
        for count in (1, 4, 8):
            yield call(op, T((1, 4, 32, 64)), right, sparsity=flags(1, 1, 1, count), **which)
            yield call(op, T((1, 4, 32, 64)), T((1, 1, 64, 128)), sparsity=flags(1, 1, 1, count), **which)
    for shape in ((32, 64), (2, 32, 64), (1, 2, 30, 50), (2, 2, 32, 64)):
        yield call(op, T(shape), T((4, shape[-1], 128)), sparsity=flags(1, 1, 1, 8), program_config=program)
        yield call(op, T(shape), right, sparsity=flags(1, 1, 1, 8), program_config=program)
    for change in (
        line(1, 1, 1, 1, 4),
        line(2, 1, 2, 1, 2),
        line(4, 1, 3, 1, 1),
        line(4, 1, 0, 1, 1),
        line(2, 1, 1, 1, 1),
        line(3, 2, 1, 1, 1),
        line(4, 1, 1, 1, 1, mcast_in0=False),
        line(4, 1, 1, 1, 1, out_subblock_w=2),
        line(4, 1, 1, 1, 1, fused_activation=C("UnaryWithParam", E("UnaryOpType.RELU"))),
    ):
        yield call(op, left, right, sparsity=flags(1, 2, 1, 4), program_config=change)
    for dtype, layout in product(DTYPES, LAYOUTS):
        if layout == "TILE" or not dtype.endswith("_b"):
            yield call(op, T((1, 2, 32, 64), dtype, layout), right, **good)
            yield call(op, left, T((1, 4, 64, 128), dtype, layout), **good)
    for dtype in DTYPES[:2] + DTYPES[4:]:
        yield call(op, left, right, **(good | {"sparsity": flags(1, 2, 1, 4, dtype=dtype)}))
    yield call(op, left, T((1, 4, 96, 128)), **good)
    yield call(op, left, right, sparsity=flags(1, 2, 1, 4))


def batched_weights() -> Iterator[Case]:
    op = "ttnn.matmul_batched_weights"
    left, weights, program = T((32, 64)), [T((64, 64)), T((64, 64))], line(2, 1, 1, 1, 1)
    for more in (
        {},
        {"memory_config": M("L1")},
        {"memory_config": M("L1"), "program_config": program},
        {"transpose_a": True},
        {"transpose_b": True},
        {"activation": "relu"},
        {"core_grid": C("CoreGrid", x=2, y=1)},
        {"output_tile": C("Tile", {"tuple": [32, 32]})},
        {"optional_output_tensor": T((32, 64))},
        {"dtype": E("bfloat8_b")},
        {"compute_kernel_config": config()},
    ):
        for shape in ((32, 64), (1, 1, 32, 64)):
            yield call(op, T(shape), weights, **more)
    yield call(op, left, T((64, 64)))
    yield call(op, left, [])


MINIMAL = "ttnn.experimental.minimal_matmul"


def blocks(rows: int, inner: int, columns: int, sub_h: int, sub_w: int, x: int = 8, y: int = 8) -> Case:
    return C(
        "MinimalMatmulConfig",
        M_block_size=rows,
        K_block_size=inner,
        N_block_size=columns,
        subblock_h=sub_h,
        subblock_w=sub_w,
        compute_with_storage_grid_size=core(x, y),
    )


def minimal() -> Iterator[Case]:
    op = MINIMAL
    for a, b in (
        ((256, 256), (256, 256)),
        ((32, 64), (64, 32)),
        ((5, 33), (33, 7)),
        ((2, 3, 40, 50), (50, 60)),
        ((2, 3, 40, 50), (1, 1, 50, 60)),
        ((1, 2, 3, 5, 33), (33, 64)),
        ((2, 40, 50), (2, 50, 60)),
        ((64,), (64, 32)),
        ((32, 64), (64,)),
        ((32, 64), (65, 32)),
    ):
        yield call(op, T(a), T(b))
        yield call(op, T(a), T(b), bias_tensor=T((1, b[-1])))
    left, right = T((128, 256)), T((256, 128))
    for dtype in DTYPES:
        yield call(op, T((128, 256), dtype), right)
        yield call(op, left, T((256, 128), dtype))
        yield call(op, left, right, bias_tensor=T((128,), dtype))
        yield call(op, left, right, dtype=E(dtype))
    for bias in ((128,), (1, 1, 1, 128), (128, 128), (1, 64), (1,)):
        yield call(op, left, right, bias_tensor=T(bias))
    for given in (
        blocks(8, 8, 8, 2, 2),
        blocks(8, 8, 8, 4, 2),
        blocks(2, 4, 2, 1, 1, 4, 4),
        blocks(2, 4, 2, 2, 3),
        blocks(0, 4, 2, 1, 1),
        blocks(2, 2, 2, 1, 1, 1, 8),
        blocks(2, 2, 2, 1, 1, 9, 8),
        blocks(4, 3, 4, 4, 1),
    ):
        yield call(op, left, right, config=given)
        yield call(op, left, right, config=given, compute_kernel_config=config("HiFi2", packer_l1_acc=True))
    for function in ("RELU", "GELU", "SILU", "EXP"):
        given = C("UnaryWithParam", E(f"UnaryOpType.{function}"))
        yield call(op, left, right, fused_activation=given)
        yield call(op, left, right, fused_activation=given, fuse_swiglu=True)
    for width in (128, 192, 96, 1024):
        yield call(op, T((64, 128)), T((128, width)), fuse_swiglu=True)
    yield call(op, [left, left], T((512, 128)))
    yield call(op, [left, T((128, 100))], T((384, 128)))
    yield call(op, [left, T((128, 100))], T((356, 128)))
    yield call(op, [left, T((64, 256))], T((512, 128)))
    yield call(op, [left, T((128, 256), "float32")], T((512, 128)))
    yield call(op, [left], right)
    yield call(op, T((128, 256), layout="ROW_MAJOR"), right)
    yield call(op, T((128, 256), host=True), right)
    yield call(op, T((128, 256), mem="L1"), right)
    yield call(op, T((128, 256), mem="L1"), right, memory_config=M("DRAM"))
    for memory in SHARDED:
        yield call(op, T((128, 128), mem=memory), T((128, 128)))
        yield call(op, T((128, 128)), T((128, 128)), memory_config=M(memory))


def minimal_split() -> Iterator[Case]:
    op = MINIMAL + "_split"
    for width, chunks in ((192, 3), (192, 2), (192, 1), (192, 0), (192, 6), (192, 4), (128, 3), (100, 2)):
        yield call(op, T((64, 96)), T((96, width)), chunks=chunks)
        yield call(op, T((2, 40, 50)), T((50, width)), chunks=chunks, bias_tensor=T((1, width)))
        yield call(op, T((64, 96)), T((96, width)), chunks=chunks, fuse_swiglu=True)
    for dim in (-1, 1, 0):
        yield call(op, T((64, 96)), T((96, 192)), dim=dim)
    for dtype in DTYPES:
        yield call(op, T((64, 96), dtype), T((96, 192)))


# -- attention --------------------------------------------------------------------------------------------------------


def attention() -> Iterator[Case]:
    op = "ttnn.experimental.attn_matmul"
    grid = {"compute_with_storage_grid_size": core(8, 8)}
    for a, b in (
        ((1, 8, 32, 64), (32, 1, 64, 96)),
        ((1, 71, 32, 64), (32, 1, 64, 128)),
        ((1, 3, 64, 40), (64, 1, 40, 50)),
        ((1, 3, 30, 40), (32, 1, 40, 50)),
        ((2, 3, 32, 64), (32, 1, 64, 96)),
        ((1, 8, 32, 64), (32, 2, 64, 96)),
        ((1, 8, 32, 64), (16, 1, 64, 96)),
        ((1, 8, 32, 64), (32, 1, 96, 64)),
        ((8, 32, 64), (32, 64, 96)),
        ((32, 64), (64, 96)),
    ):
        yield call(op, T(a), T(b), **grid)
        yield call(op, T(a, mem="L1"), T(b), memory_config=M("DRAM"), **grid)
    left, right = T((1, 8, 32, 64)), T((32, 1, 64, 96))
    for dtype in DTYPES:
        yield call(op, T((1, 8, 32, 64), dtype), right, **grid)
        yield call(op, left, T((32, 1, 64, 96), dtype), **grid)
        yield call(op, left, right, dtype=E(dtype), **grid)
    for wide in (False, True):
        given = config("HiFi4", fp32_dest_acc_en=wide)
        pair = T((1, 8, 32, 64), "float32"), T((32, 1, 64, 96), "float32")
        yield call(op, *pair, compute_kernel_config=given, **grid)
        yield call(op, left, right, compute_kernel_config=given, dtype=E("float32"), **grid)
    for x, y in ((1, 1), (8, 1), (9, 9), (0, 1)):
        yield call(op, left, right, compute_with_storage_grid_size=core(x, y))
    yield call(op, left, right, output_tensor=T((1, 8, 32, 96)), **grid)
    yield call(op, left, right, output_tensor=T((1, 8, 32, 96), "float32"), **grid)
    yield call(op, T((1, 8, 32, 64), layout="ROW_MAJOR"), right, **grid)
    yield call(op, left, right)
    yield call(op, T((1, 4, 32, 128), mem=SHARDED[0]), T((32, 1, 128, 64)), **grid)


def from_cache() -> Iterator[Case]:
    op = "ttnn.experimental.attn_matmul_from_cache"
    grid = {"compute_with_storage_grid_size": core(8, 8)}
    for tokens, transposed in product((0, 1, 32, 50, 64, 128, 129), (False, True)):
        named = {"num_tokens": tokens, "transpose_hw": transposed, **grid}
        yield call(op, T((1, 8, 32, 64)), T((32, 1, 128, 64)), **named)
        yield call(op, T((1, 8, 32, 64)), T((32, 1, 128, 96)), **named)
        yield call(op, T((1, 8, 32, 64)), T((32, 2, 128, 64)), **named)
    named = {"num_tokens": 64, "transpose_hw": True, **grid}
    for dtype in DTYPES:
        yield call(op, T((1, 8, 32, 64), dtype), T((32, 1, 128, 64), dtype), **named)
        yield call(op, T((1, 8, 32, 64)), T((32, 1, 128, 64)), dtype=E(dtype), **named)
    yield call(op, T((1, 8, 32, 64)), T((32, 1, 128, 64)), memory_config=M("L1"), **named)
    yield call(op, T((1, 8, 32, 64)), T((32, 128, 64)), **named)
    yield call(op, T((1, 8, 32, 64)), T((32, 1, 128, 64)), **grid)


def group_attention() -> Iterator[Case]:
    op = "ttnn.experimental.group_attn_matmul"
    grid = {"compute_with_storage_grid_size": core(8, 8)}
    for a, b in (
        ((1, 8, 32, 64), (32, 1, 64, 96)),
        ((1, 16, 32, 64), (32, 4, 64, 128)),
        ((1, 16, 32, 64), (32, 3, 64, 128)),
        ((1, 64, 32, 64), (32, 8, 64, 64)),
        ((1, 65, 32, 64), (32, 1, 64, 64)),
        ((1, 8, 64, 64), (64, 2, 64, 96)),
        ((2, 8, 32, 64), (32, 2, 64, 96)),
        ((1, 8, 30, 50), (32, 2, 50, 96)),
        ((1, 8, 32, 64), (32, 2, 96, 64)),
        ((8, 32, 64), (32, 64, 96)),
    ):
        yield call(op, T(a), T(b), **grid)
    left, right = T((1, 8, 32, 64)), T((32, 2, 64, 96))
    for dtype in DTYPES:
        yield call(op, T((1, 8, 32, 64), dtype), right, **grid)
        yield call(op, left, T((32, 2, 64, 96), dtype), **grid)
        yield call(op, left, right, dtype=E(dtype), **grid)
    for x, y in ((1, 1), (8, 4), (8, 3), (9, 9)):
        yield call(op, left, right, compute_with_storage_grid_size=core(x, y))
    for orient in ("ROW_MAJOR", "COL_MAJOR"):
        queries = T((1, 8, 32, 64), mem=height_sharded([32, 64], 8, orient=orient))
        keys = T((32, 2, 64, 96), mem=height_sharded([128, 96], 32, orient=orient))
        for out in ("DRAM", {"layout": "HEIGHT_SHARDED", "buffer": "L1"}, {"layout": "BLOCK_SHARDED", "buffer": "L1"}):
            for operands in ((queries, right), (left, keys), (queries, keys), (left, right)):
                yield call(op, *operands, memory_config=M(out), **grid)
        yield call(op, queries, keys, memory_config=M(height_sharded([32, 96], 8, orient=orient)), **grid)
        yield call(op, queries, keys, memory_config=M(height_sharded([32, 96], 16, orient=orient)), **grid)
    yield call(op, T((1, 8, 32, 64), mem=height_sharded([64, 64], 4)), right, **grid)
    yield call(op, left, right, optional_output_tensor=T((1, 8, 32, 96)), **grid)
    yield call(op, T((1, 8, 32, 64), layout="ROW_MAJOR"), right, **grid)


# -- moreh ------------------------------------------------------------------------------------------------------------

MOREH_PAIRS = (
    ((64, 96), (96, 40)),
    ((5, 33), (33, 7)),
    ((2, 3, 17, 40), (2, 3, 40, 5)),
    ((1, 3, 17, 40), (2, 1, 40, 5)),
    ((3, 17, 40), (2, 1, 40, 5)),
    ((17, 40), (2, 3, 40, 5)),
    ((1, 2, 3, 5, 33), (33, 64)),
    ((64,), (64, 32)),
    ((1, 64), (64,)),
    ((5, 33), (34, 7)),
    ((2, 5, 33), (3, 33, 7)),
    ((1, 1, 1, 100), (1, 1, 1, 100)),
    ((1, 1, 1, 100), (1, 1, 100, 1)),
)


def moreh_matmul() -> Iterator[Case]:
    op = "ttnn.moreh_matmul"
    for a, b in MOREH_PAIRS:
        yield call(op, T(a), T(b))
        yield call(op, T(a), T(b), memory_config=M("L1"))
        if len(a) > 1 and len(b) > 1:
            flipped_a, flipped_b = (*a[:-2], a[-1], a[-2]), (*b[:-2], b[-1], b[-2])
            yield call(op, T(flipped_a), T(b), transpose_input=True)
            yield call(op, T(a), T(flipped_b), transpose_other=True)
            yield call(op, T(flipped_a), T(flipped_b), transpose_input=True, transpose_other=True)
    left, right = T((64, 96)), T((96, 40))
    for dtype in DTYPES:
        yield call(op, T((64, 96), dtype), right)
        yield call(op, left, T((96, 40), dtype))
        yield call(op, left, right, output=T((64, 40), dtype))
        yield call(op, left, right, bias=T((1, 40), dtype))
    for bias in ((1, 40), (1, 1), (40,), (1, 1, 1, 40), (1, 41), (64, 40)):
        yield call(op, left, right, bias=T(bias))
    for shape in ((64, 40), (40, 64), (1, 64, 40), (64, 41), (2, 64, 40)):
        yield call(op, left, right, output=T(shape))
    yield call(op, T((64, 96), layout="ROW_MAJOR"), right)
    yield call(op, T((64, 96), host=True), right)
    yield call(op, left, right, compute_kernel_config=config("HiFi4", fp32_dest_acc_en=True))
    for memory in SHARDED:
        yield call(op, T((128, 128), mem=memory), T((128, 128)))
        yield call(op, T((128, 128)), T((128, 128)), memory_config=M(memory))


def moreh_bmm() -> Iterator[Case]:
    op = "ttnn.moreh_bmm"
    for left, right in MOREH_PAIRS:
        yield call(op, T(left), T(right))
    for dtype in DTYPES:
        yield call(op, T((2, 64, 96), dtype), T((2, 96, 40), dtype))
    for shape in ((2, 64, 40), (1, 64, 40), (2, 40, 64), (64, 40)):
        yield call(op, T((2, 64, 96)), T((2, 96, 40)), output=T(shape))
    yield call(op, T((2, 64, 96)), T((2, 96, 40)), memory_config=M("L1"), compute_kernel_config=config())


def moreh_linear() -> Iterator[Case]:
    op = "ttnn.moreh_linear"
    for left, right in MOREH_PAIRS:
        flipped = (*right[:-2], right[-1], right[-2]) if len(right) > 1 else right
        yield call(op, T(left), T(flipped))
        yield call(op, T(left), T(flipped), bias=T((1, flipped[-2] if len(flipped) > 1 else 1)))
    for dtype in DTYPES:
        yield call(op, T((64, 96), dtype), T((40, 96), dtype))
        yield call(op, T((64, 96)), T((40, 96)), bias=T((1, 40), dtype))
    for bias in ((1, 1), (40,), (1, 41), (1, 1, 1, 40)):
        yield call(op, T((2, 64, 96)), T((40, 96)), bias=T(bias), memory_config=M("L1"))
    yield call(op, T((2, 64, 96)), T((40, 96)), output=T((2, 64, 40)))
    yield call(op, T((2, 64, 96)), T((40, 96)), output=T((64, 40)))


def moreh_dot() -> Iterator[Case]:
    op = "ttnn.moreh_dot"
    for shape in ((1, 1, 1, 100), (1, 1, 1, 32), (1, 1, 1, 1), (1, 100), (100,), (1, 1, 2, 32), (2, 1, 1, 32)):
        yield call(op, T(shape), T(shape))
        yield call(op, T(shape), T(shape), memory_config=M("L1"))
        yield call(op, T(shape), T((1, 1, 1, 64)))
    for left, right in product(DTYPES, DTYPES[:4]):
        yield call(op, T((1, 1, 1, 70), left), T((1, 1, 1, 70), right))
    for dtype in DTYPES:
        yield call(op, T((1, 1, 1, 70)), T((1, 1, 1, 70)), dtype=E(dtype))
        yield call(op, T((1, 1, 1, 70)), T((1, 1, 1, 70)), output=T((1, 1, 1, 1), dtype))
    yield call(op, T((1, 1, 1, 70), layout="ROW_MAJOR"), T((1, 1, 1, 70), layout="ROW_MAJOR"))
    yield call(op, T((1, 1, 1, 70), host=True), T((1, 1, 1, 70)))
    yield call(op, T((1, 1, 1, 70)), T((1, 1, 1, 70)), compute_kernel_config=config("LoFi", fp32_dest_acc_en=True))


def moreh_dot_backward() -> Iterator[Case]:
    op = "ttnn.moreh_dot_backward"
    one = T((1, 1, 1, 1))
    for shape in ((1, 1, 1, 100), (1, 1, 1, 32), (1, 100), (100,), (1, 1, 2, 32)):
        row = T(shape)
        yield call(op, one, row, row)
        yield call(op, one, row, row, input_grad=row)
        yield call(op, one, row, row, other_grad=row)
        yield call(op, one, row, row, input_grad=row, other_grad=row)
        yield call(op, T((1, 1)), row, row, input_grad=row, other_grad=row)
    row = T((1, 1, 1, 100))
    for dtype in DTYPES:
        yield call(op, one, T((1, 1, 1, 100), dtype), row, input_grad=row)
        yield call(op, one, row, row, input_grad=T((1, 1, 1, 100), dtype))
    yield call(op, T((1, 1, 1, 2)), row, row, input_grad=row)
    yield call(op, one, row, T((1, 1, 1, 64)), input_grad=row)
    yield call(op, one, row, row, input_grad=T((1, 1, 1, 64)))
    yield call(op, one, row, row, input_grad=T((1, 1, 1, 100), host=True))


def moreh_matmul_backward() -> Iterator[Case]:
    op = "ttnn.moreh_matmul_backward"
    for grad, left, right in (
        ((64, 40), (64, 96), (96, 40)),
        ((2, 3, 17, 5), (2, 3, 17, 40), (2, 3, 40, 5)),
        ((2, 3, 17, 5), (1, 3, 17, 40), (2, 1, 40, 5)),
        ((2, 3, 17, 5), (3, 17, 40), (2, 1, 40, 5)),
        ((1, 1, 1, 1), (1, 1, 1, 100), (1, 1, 1, 100)),
        ((64, 41), (64, 96), (96, 40)),
    ):
        tensors = T(grad), T(left), T(right)
        yield call(op, *tensors)
        yield call(op, *tensors, input_a_grad=T(left), input_b_grad=T(right))
        yield call(op, *tensors, input_a_grad=T(left), are_required_outputs=[True, False])
        yield call(op, *tensors, input_b_grad=T(right), are_required_outputs=[False, True])
        yield call(op, *tensors, are_required_outputs=[False, False])
        yield call(op, *tensors, input_a_grad=T(right), input_b_grad=T(left))
    for dtype in DTYPES:
        tensors = T((64, 40), dtype), T((64, 96), dtype), T((96, 40), dtype)
        yield call(op, *tensors, input_a_grad=tensors[1], input_b_grad=tensors[2])


def moreh_bmm_backward() -> Iterator[Case]:
    op = "ttnn.moreh_bmm_backward"
    for grad, left, right in (
        ((2, 64, 40), (2, 64, 96), (2, 96, 40)),
        ((3, 5, 7), (3, 5, 33), (3, 33, 7)),
        ((64, 40), (64, 96), (96, 40)),
        ((2, 64, 41), (2, 64, 96), (2, 96, 40)),
    ):
        tensors = T(grad), T(left), T(right)
        yield call(op, *tensors)
        yield call(op, *tensors, input_grad=T(left), mat2_grad=T(right))
        yield call(op, *tensors, input_grad=T(left), are_required_outputs=[True, False])
        yield call(op, *tensors, mat2_grad=T(right), are_required_outputs=[False, True])
        yield call(op, *tensors, are_required_outputs=[False, False])
        yield call(op, *tensors, input_grad=T(right), mat2_grad=T(left))
        memory = {"input_grad_memory_config": M("L1"), "mat2_grad_memory_config": M("DRAM")}
        yield call(op, *tensors, input_grad=T(left), mat2_grad=T(right), **memory)
    for dtype in FLOATS:
        tensors = T((2, 64, 40), dtype), T((2, 64, 96), dtype), T((2, 96, 40), dtype)
        yield call(op, *tensors, input_grad=tensors[1], mat2_grad=tensors[2])


def moreh_linear_backward() -> Iterator[Case]:
    op = "ttnn.moreh_linear_backward"
    for grad, left, weight in (
        ((64, 40), (64, 96), (40, 96)),
        ((5, 7), (5, 33), (7, 33)),
        ((2, 3, 17, 5), (2, 3, 17, 40), (5, 40)),
        ((2, 64, 41), (2, 64, 96), (40, 96)),
    ):
        tensors, row = (T(grad), T(left), T(weight)), T((1, grad[-1]))
        yield call(op, *tensors)
        given = {"input_grad": T(left), "weight_grad": T(weight), "bias_grad": row, "bias": row}
        yield call(op, *tensors, **given)
        yield call(op, *tensors, **(given | {"bias_grad": T((1, 1)), "bias": T((1, 1))}))
        yield call(op, *tensors, **(given | {"bias_grad": T((2, grad[-1]))}))
        yield call(op, *tensors, **(given | {"input_grad": T(weight)}))
        yield call(op, *tensors, **(given | {"weight_grad": T(left)}))
        for required in ([True, False, False], [False, True, False], [False, False, True], [False] * 3, [True] * 2):
            yield call(op, *tensors, are_required_outputs=required, **given)
        yield call(op, *tensors, input_grad=T(left), are_required_outputs=[True, True, False])
    for dtype in DTYPES:
        tensors = T((64, 40), dtype), T((64, 96), dtype), T((40, 96), dtype)
        yield call(op, *tensors, input_grad=tensors[1], are_required_outputs=[True, False, False])
        yield call(op, *tensors, bias_grad=T((1, 40), dtype), are_required_outputs=[False, False, True])
