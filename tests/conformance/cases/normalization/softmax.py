"""Softmax: over any dimension, scaled and masked, in place, sharded, and `moreh` variants."""

from __future__ import annotations

from collections.abc import Iterator

import torch

import ttnn_emulator as ttnn
from ttnn_emulator.conformance.case import (
    LAYOUTS,
    SHAPES,
    STORABLE,
    C,
    Case,
    M,
    T,
    call,
    height_sharded,
    product,
    sharded_inputs,
)
from ttnn_emulator.conformance.numeric_row import Row

from .normalization import CONFIGS, MEMORIES, SQUARE


def cases() -> Iterator[Case]:
    for family in (softmax, masked_softmax, sharded_softmax, attention_softmax, moreh_softmax):
        yield from family()


def softmax() -> Iterator[Case]:
    op = "ttnn.softmax"
    for shape, dim, layout in product((*SHAPES, (1,), (4, 0, 5), ()), (-1, 0, -2), LAYOUTS):
        yield call(op, T(shape, layout=layout), dim)
    for dim in (1, 2, 3, 4, -5, -4, None, "x", 1.5):
        yield call(op, T((2, 3, 17, 40)), dim)
    for (dtype, layout), dim in product(STORABLE, (-1, -2, 0)):
        yield call(op, T((3, 40, 70), dtype, layout), dim)
        yield call(op, T((1, 2, 64, 64), dtype, layout), dim)
    for memory, dim in product(MEMORIES, (-1, -2, 1)):
        yield call(op, T(SQUARE), dim, memory_config=M(memory))
    for source, dim in product(sharded_inputs(), (-1, -2, 0)):
        yield call(op, source, dim)
        yield call(op, source, dim, memory_config=M("L1"))
    for given, dtype, dim in product(CONFIGS, ("bfloat16", "float32"), (-1, -2, 0)):
        yield call(op, T((2, 33, 40), dtype), dim, compute_kernel_config=given)
    yield call(op, T((5, 33)), -1, numeric_stable=False)
    yield call(op, T((1, 1, 32, 20000)))
    yield call(op, T((1, 1, 20000, 32)), -2)
    yield call(op, T((5, 33), host=True))
    yield call(op, T((5, 33)), -1, memory_config="L1")
    yield call(op, T((5, 33)), output_tensor=T((5, 33)))
    yield call(op)
    op = "ttnn.softmax_in_place"
    for shape, dim in product((*SHAPES, ()), (-1, 0, 3)):
        yield call(op, T(shape), dim)
    for dtype, layout in STORABLE:
        yield call(op, T((1, 2, 40, 70), dtype, layout))
    for source in sharded_inputs():
        yield call(op, source)
    for given in CONFIGS:
        yield call(op, T((1, 2, 40, 70)), compute_kernel_config=given, numeric_stable=False)
    yield call(op, T((1, 2, 40, 70)), program_config=C("SoftmaxDefaultProgramConfig"))
    yield call(op, T((1, 2, 40, 70), host=True))


MASKS = (
    T((1, 1, 32, 96)),
    T((2, 1, 32, 96)),
    T((2, 1, 1, 96)),
    T((2, 1, 64, 96)),
    T((2, 3, 32, 96)),
    T((2, 1, 32, 64)),
    T((2, 1, 32, 96), "float32"),
    T((2, 1, 32, 96), "bfloat8_b"),
    T((2, 1, 3, 32), layout="ROW_MAJOR"),
    T((2, 1, 32, 96), layout="ROW_MAJOR"),
    T((2, 1, 1, 96), layout="ROW_MAJOR"),
    T((2, 1, 32, 96), "int32"),
    T((2, 1, 32, 96), mem="L1"),
    T((2, 1, 32, 96), host=True),
    T((32, 96)),
    T((96,)),
)


def masked_softmax() -> Iterator[Case]:
    for name in ("scale_mask_softmax", "scale_mask_softmax_in_place", "scale_causal_mask_hw_dims_softmax_in_place"):
        op = f"ttnn.{name}"
        for mask, scale in product(MASKS, (0.5, None)):
            yield call(op, T((2, 3, 64, 96)), scale, mask)
        for shape in (*SHAPES, ()):
            yield call(op, T(shape))
            yield call(op, T(shape), 0.5)
        for shape, mask in (((64, 96), (1, 1, 32, 96)), ((3, 64, 96), (1, 1, 32, 96)), ((5, 33), (1, 1, 1, 33))):
            yield call(op, T(shape), 2.0, T(mask))
        for dtype, layout in STORABLE:
            yield call(op, T((2, 3, 64, 96), dtype, layout), 0.5, T((2, 1, 32, 96)))
            yield call(op, T((2, 3, 64, 96), dtype, layout))
        for source in sharded_inputs():
            yield call(op, source, 0.5, T((1, 1, 32, 128)))
        for given in CONFIGS:
            yield call(op, T((2, 3, 64, 96)), 0.5, MASKS[1], compute_kernel_config=given, numeric_stable=True)
        yield call(op, T((2, 3, 64, 96)), "x", MASKS[1])
        yield call(op)
    for name, causal in product(("scale_mask_softmax", "scale_mask_softmax_in_place"), (True, False)):
        yield call(f"ttnn.{name}", T((2, 3, 64, 96)), 0.5, MASKS[1], is_causal_mask=causal)
        yield call(f"ttnn.{name}", T((2, 3, 64, 96)), 0.5, MASKS[3], is_causal_mask=causal)
        yield call(f"ttnn.{name}", T((2, 3, 64, 96)), is_causal_mask=causal)
    for memory in MEMORIES:
        yield call("ttnn.scale_mask_softmax", T(SQUARE), 0.5, T((1, 1, 32, 128)), memory_config=M(memory))


def _softmax_program(grid: tuple[int, int], block_h: int, block_w: int, subblock_w: int = 1) -> Case:
    return C(
        "SoftmaxShardedMultiCoreProgramConfig",
        compute_with_storage_grid_size=list(grid),
        subblock_w=subblock_w,
        block_h=block_h,
        block_w=block_w,
    )


def sharded_softmax() -> Iterator[Case]:
    heights = T((1, 4, 64, 128), mem=height_sharded([64, 128], 4))
    programs = (
        _softmax_program((4, 1), 2, 4),
        _softmax_program((4, 1), 2, 4, 4),
        _softmax_program((4, 1), 2, 4, 3),
        _softmax_program((4, 1), 1, 4),
        _softmax_program((4, 1), 2, 2),
        _softmax_program((2, 2), 2, 4),
        _softmax_program((8, 8), 2, 4),
        C("SoftmaxDefaultProgramConfig"),
    )
    masks = (
        T((1, 1, 32, 128)),
        T((1, 1, 64, 128)),
        T((1, 1, 4, 32), layout="ROW_MAJOR"),
        T((1, 4, 64, 128), mem=height_sharded([64, 128], 4)),
        None,
    )
    for program in programs:
        yield call("ttnn.softmax_in_place", heights, program_config=program)
        yield call("ttnn.softmax_in_place", T((1, 4, 64, 128)), program_config=program)
        for mask in masks:
            for causal in (True, False):
                op = "ttnn.scale_mask_softmax_in_place"
                yield call(op, heights, 0.5, mask, program_config=program, is_causal_mask=causal)
            op = "ttnn.scale_causal_mask_hw_dims_softmax_in_place"
            yield call(op, heights, 0.5, mask, program_config=program)
            yield call(op, heights, None, mask, program_config=program)


def attention_softmax() -> Iterator[Case]:
    for name in ("attention_softmax", "attention_softmax_"):
        op = f"ttnn.transformer.{name}"
        for head, causal in product((64, None, 33), (True, False, None)):
            yield call(op, T((2, 3, 64, 96)), head_size=head, attention_mask=T((2, 1, 32, 96)), causal_mask=causal)
            yield call(op, T((2, 3, 64, 96)), head_size=head, attention_mask=T((2, 1, 64, 96)), causal_mask=causal)
            yield call(op, T((2, 3, 64, 96)), head_size=head, causal_mask=causal)
        for dtype, layout in STORABLE:
            yield call(op, T((2, 3, 64, 96), dtype, layout), head_size=32, attention_mask=T((2, 1, 32, 96)))
        for shape in SHAPES:
            yield call(op, T(shape), head_size=32)
        for memory in MEMORIES:
            yield call(op, T(SQUARE), head_size=32, attention_mask=T((1, 1, 32, 128)), memory_config=M(memory))
        yield call(op, T((2, 3, 64, 96)), head_size=0)
        yield call(op, T((2, 3, 64, 96), host=True), head_size=8)


def moreh_softmax() -> Iterator[Case]:
    shape = (2, 3, 40, 70)
    for name in ("softmax", "softmin", "logsoftmax"):
        op = f"ttnn.moreh_{name}"
        for dim in (0, 1, 2, 3, 4, -1, "x"):
            yield call(op, T(shape), dim)
        for other, dim in product(SHAPES, (0, 1)):
            yield call(op, T(other), dim)
        for (dtype, layout), dim in product(STORABLE, (0, 2)):
            yield call(op, T((2, 40, 70), dtype, layout), dim)
        for memory in MEMORIES:
            yield call(op, T(SQUARE), 3, memory_config=M(memory))
        for source in sharded_inputs():
            yield call(op, source, 2)
        for given in CONFIGS:
            yield call(op, T(shape), 2, compute_kernel_config=given)
        for out in (T(shape), T(shape, "float32"), T((2, 3, 40, 64)), T(shape, mem="L1"), T(shape, layout="ROW_MAJOR")):
            yield call(op, T(shape), 3, output_tensor=out)
        yield call(op, T((1, 1, 32, 8192)), 3)
        yield call(op, T(shape, host=True), 3)
        op = f"ttnn.moreh_{name}_backward"
        for dim in (0, 1, 2, 3, 4, -1):
            yield call(op, T(shape), T(shape), dim)
        for other, dim in product(SHAPES, (0, 1)):
            yield call(op, T(other), T(other), dim)
        for dtype, layout in STORABLE:
            yield call(op, T((2, 40, 70), dtype, layout), T((2, 40, 70)), 1)
            yield call(op, T((2, 40, 70)), T((2, 40, 70), dtype, layout), 1)
        for memory in MEMORIES:
            yield call(op, T(SQUARE), T(SQUARE), 3, memory_config=M(memory))
        for out in (T(shape), T(shape, "float32"), T(shape, mem="L1")):
            yield call(op, T(shape), T(shape), 3, input_grad_tensor=out)
        yield call(op, T((1, 1, 32, 8192)), T((1, 1, 32, 8192)), 3)


# -- compared with torch -----------------------------------------------------------------------------------------------

# The default exponential of bfloat16 is approximate; float32 goes through registers that keep 11 bits of its mantissa.
ROUGH = {"bfloat16": 8.0, "float32": 2.0**16}
MOREH = {"bfloat16": 6.0, "float32": 2.0**16}
RANK_4 = ((2, 3, 17, 40), (1, 1, 64, 96))
RANK_2_TO_4 = ((32, 64), (5, 33), (3, 45, 70), (2, 3, 17, 40))
PRECISE = ttnn.WormholeComputeKernelConfig(
    math_fidelity=ttnn.MathFidelity.HiFi4, math_approx_mode=False, fp32_dest_acc_en=True
)

NUMERIC_ROWS = (
    Row("softmax", lambda x: ttnn.softmax(x, dim=-1), lambda x: x.softmax(-1), ulps=ROUGH),
    Row("softmax over -2", lambda x: ttnn.softmax(x, dim=-2), lambda x: x.softmax(-2), ulps=ROUGH, shapes=RANK_2_TO_4),
    Row("softmax over 0", lambda x: ttnn.softmax(x, dim=0), lambda x: x.softmax(0), ulps=ROUGH),
    Row(
        "softmax, not numerically stable",
        lambda x: ttnn.softmax(x, dim=-1, numeric_stable=False),
        lambda x: x.softmax(-1),
        ulps=ROUGH,
    ),
    Row(
        "softmax precise",
        lambda x: ttnn.softmax(x, dim=-1, compute_kernel_config=PRECISE),
        lambda x: x.softmax(-1),
        ulps={"bfloat16": 2.0, "float32": 2.0**16},
    ),
    Row("softmax_in_place", ttnn.softmax_in_place, lambda x: x.softmax(-1), ulps=ROUGH, shapes=RANK_4),
    Row(
        "attention_softmax",
        lambda x: ttnn.transformer.attention_softmax(x, head_size=4),
        lambda x: (x / 2).softmax(-1),
        ulps=ROUGH,
        shapes=RANK_4,
    ),
    *(
        Row(
            f"moreh_{name} over {dim}",
            lambda x, name=name, dim=dim: getattr(ttnn, f"moreh_{name}")(x, dim % len(x.shape)),
            lambda x, function=function, dim=dim: function(x, dim),
            ulps=MOREH,
            floor=0.25 if name == "logsoftmax" else 0.0,
            shapes=RANK_2_TO_4,
        )
        for dim in (-1, -2, 0)
        for name, function in (
            ("softmax", torch.softmax),
            ("softmin", lambda x, dim: (-x).softmax(dim)),
            ("logsoftmax", torch.log_softmax),
        )
    ),
)
