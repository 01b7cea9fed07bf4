"""Norms: of rows, of rows distributed over devices, of channels, and `moreh` variants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ttnn_emulator.conformance.case import (
    DTYPES,
    LAYOUTS,
    SHAPES,
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
    sharded_inputs,
    width_sharded,
)

# Block floats exist in TILE layout only.
SQUARE = (1, 1, 128, 128)
MEMORIES = (
    "L1",
    "DRAM",
    height_sharded([32, 128], 4),
    width_sharded([128, 32], 4),
    block_sharded([64, 64], (2, 2)),
    {"layout": "HEIGHT_SHARDED", "buffer": "L1"},
)


def config(fidelity: str = "HiFi4", **fields: Any) -> Case:
    return C("WormholeComputeKernelConfig", math_fidelity=E(f"MathFidelity.{fidelity}"), **fields)


CONFIGS = (
    config(fp32_dest_acc_en=True),
    config("LoFi", math_approx_mode=False),
    config("HiFi2", fp32_dest_acc_en=True, packer_l1_acc=True),
)


def cases() -> Iterator[Case]:
    for family in (
        row_norms,
        sharded_norms,
        gathered_norms,
        batch_norm,
        group_norm,
        group_norm_helpers,
        moreh_layer_norm,
        moreh_group_norm,
    ):
        yield from family()


# -- norms of rows ----------------------------------------------------------------------------------------------------

# Weights for rows of 96.
WEIGHTS = (
    T((96,)),
    T((1, 96)),
    T((1, 1, 1, 96)),
    T((1, 1, 32, 96)),
    T((3, 32), layout="ROW_MAJOR"),
    T((1, 1, 3, 32), layout="ROW_MAJOR"),
    T((96,), layout="ROW_MAJOR"),
    T((1, 1, 1, 96), layout="ROW_MAJOR"),
    T((64,)),
    T((1, 1, 2, 32), layout="ROW_MAJOR"),
    T((2, 96)),
    T((96,), "float32"),
    T((96,), "bfloat8_b"),
    T((96,), "int32"),
    T((1, 1, 3, 32), "float32", "ROW_MAJOR"),
    T((96,), mem="L1"),
    T((96,), host=True),
)


def row_norms() -> Iterator[Case]:
    for name in ("layer_norm", "rms_norm"):
        op = f"ttnn.{name}"
        for shape, layout in product((*SHAPES, (1,), (1, 1, 1, 1), (4, 0, 5), ()), LAYOUTS):
            yield call(op, T(shape, layout=layout))
            yield call(op, T(shape, layout=layout), weight=T((shape[-1] if shape else 1,)))
        for dtype, layout in STORABLE:
            yield call(op, T((2, 40, 70), dtype, layout))
            yield call(op, T((2, 40, 96), dtype, layout), weight=T((96,)), bias=T((96,)))
            yield call(op, T((2, 40, 96)), residual_input_tensor=T((2, 40, 96), dtype, layout))
        for weight in WEIGHTS:
            yield call(op, T((2, 40, 96)), weight=weight)
            yield call(op, T((2, 40, 96)), bias=weight)
            yield call(op, T((2, 40, 96), "float32"), weight=weight, bias=weight)
        for residual in (
            T((2, 40, 96), mem="L1"),
            T((1, 40, 96)),
            T((2, 40, 64)),
            T((80, 96)),
            T((2, 40, 96), host=True),
        ):
            yield call(op, T((2, 40, 96)), residual_input_tensor=residual)
        for memory in MEMORIES:
            yield call(op, T(SQUARE), memory_config=M(memory))
            yield call(op, T(SQUARE), weight=T((128,)), memory_config=M(memory))
        for source in sharded_inputs():
            yield call(op, source)
            yield call(op, source, memory_config=M("L1"))
        for given, dtype in product(CONFIGS, ("bfloat16", "float32")):
            yield call(op, T((5, 33), dtype), compute_kernel_config=given)
        for epsilon in (1e-5, 0.0, 1, "x"):
            yield call(op, T((5, 33)), epsilon=epsilon)
        yield call(op, T((5, 33)), program_config=C("LayerNormDefaultProgramConfig"))
        yield call(op, T((1, 1, 32, 16384)), weight=T((16384,)))
        yield call(op, T((5, 33), host=True))
        yield call(op, T((5, 33)), T((33,)))
        yield call(op)


def _norm_program(grid: tuple[int, int], block_h: int, block_w: int, subblock_w: int = 1, **fields: Any) -> Case:
    return C(
        "LayerNormShardedMultiCoreProgramConfig",
        compute_with_storage_grid_size=list(grid),
        subblock_w=subblock_w,
        block_h=block_h,
        block_w=block_w,
        inplace=fields.pop("inplace", False),
        **fields,
    )


def sharded_norms() -> Iterator[Case]:
    sources = (
        T((1, 1, 32, 256), mem=width_sharded([32, 64], 4)),
        T((1, 1, 128, 256), mem=block_sharded([64, 64], (4, 2))),
        T((1, 1, 128, 256), mem=block_sharded([64, 64], (2, 4), orient="COL_MAJOR")),
        T((1, 1, 128, 64), mem=height_sharded([32, 64], 4)),
    )
    programs = (
        _norm_program((4, 1), 1, 2),
        _norm_program((4, 1), 1, 2, 2, inplace=True),
        _norm_program((4, 1), 1, 2, 3),
        _norm_program((4, 2), 2, 2),
        _norm_program((2, 4), 2, 2),
        _norm_program((4, 2), 1, 2),
        _norm_program((4, 1), 2, 1),
        C("LayerNormDefaultProgramConfig"),
        None,
    )
    for name, source, program in product(("layer_norm", "rms_norm"), sources, programs):
        op, shape = f"ttnn.{name}", source["T"][0]
        memory = source["T"][3]
        yield call(op, source, program_config=program)
        yield call(op, source, program_config=program, weight=T((shape[-1],)), memory_config=M(memory))
        yield call(op, source, program_config=program, residual_input_tensor=source, memory_config=M(memory))
        yield call(op, source, program_config=program, memory_config=M("DRAM"))
    for grid, block_h in (((4, 1), 1), ((4, 2), 2)):
        yield call("ttnn.layer_norm", T((1, 1, 128, 256)), program_config=_norm_program(grid, block_h, 2))
        yield call("ttnn.rms_norm", T((1, 1, 128, 256)), program_config=_norm_program(grid, block_h, 2))
    for source in sources:
        yield call("ttnn.layer_norm", source, weight=T((1, 1, source["T"][0][-1] // 32, 32), layout="ROW_MAJOR"))


def gathered_norms() -> Iterator[Case]:
    for kind, tiles in (("layer", 2), ("rms", 1)):
        op = f"ttnn.{kind}_norm_pre_all_gather"
        for shape in (*SHAPES, (1, 1, 32, 2048), (2, 1, 64, 128)):
            yield call(op, T(shape))
        for dtype, layout in STORABLE:
            yield call(op, T((1, 1, 64, 128), dtype, layout))
            yield call(op, T((1, 1, 64, 128)), dtype=E(dtype))
            yield call(op, T((1, 1, 64, 128)), residual_input_tensor=T((1, 1, 64, 128), dtype, layout))
        for memory in MEMORIES:
            yield call(op, T(SQUARE), memory_config=M(memory))
        for source in sharded_inputs():
            yield call(op, source)
        for given in CONFIGS:
            yield call(op, T((1, 1, 64, 128)), compute_kernel_config=given)
            yield call(op, T((1, 1, 64, 128)), compute_kernel_config=given, fast_and_approximate_mode=True)
        for residual in (T((1, 1, 32, 128)), T((1, 1, 64, 64))):
            yield call(op, T((1, 1, 64, 128)), residual_input_tensor=residual)
        yield call(op, T((1, 1, 64, 128), host=True))
        yield call(op)
        op = f"ttnn.{kind}_norm_post_all_gather"
        for devices, shape in product((1, 2, 4), ((1, 1, 64, 128), (2, 1, 32, 96), (1, 1, 33, 70))):
            stats = (*shape[:-1], 32 * tiles * devices)
            yield call(op, T(shape), T(stats))
            yield call(op, T(shape), T(stats), weight=T((1, 1, shape[-1] // 32, 32), layout="ROW_MAJOR"))
            yield call(op, T(shape), T(stats), weight=T((shape[-1],)), bias=T((shape[-1],)))
        for dtype, layout in STORABLE:
            good = T((1, 1, 64, 32 * tiles))
            yield call(op, T((1, 1, 64, 128), dtype, layout), good)
            yield call(op, T((1, 1, 64, 128)), T((1, 1, 64, 32 * tiles), dtype, layout))
            yield call(op, T((1, 1, 64, 128)), good, dtype=E(dtype))
            yield call(op, T((1, 1, 64, 128)), good, weight=T((128,), dtype, layout))
        for stats in ((1, 1, 64, 32), (1, 1, 64, 96), (1, 1, 32, 64), (1, 1, 64, 33), (64, 64)):
            yield call(op, T((1, 1, 64, 128)), T(stats))
        for memory in MEMORIES:
            yield call(op, T(SQUARE), T((1, 1, 128, 32 * tiles)), memory_config=M(memory))
        for source in sharded_inputs():
            yield call(op, source, T((1, 1, 128, 32 * tiles)))
        for given in CONFIGS:
            yield call(op, T((1, 1, 64, 128)), T((1, 1, 64, 32 * tiles)), compute_kernel_config=given, epsilon=1e-5)
        yield call(op, T((1, 1, 64, 128)))
    for flag in (True, False, None):
        yield call("ttnn.rms_norm_pre_all_gather", T((1, 1, 64, 128)), use_2d_core_grid=flag)
        yield call("ttnn.rms_norm_post_all_gather", T((1, 1, 64, 128)), T((1, 1, 64, 32)), use_2d_core_grid=flag)
    op = "ttnn.experimental.dit_rms_norm_unary_fused"
    for activation in ("silu", "gelu", "x", None):
        yield call(op, T((1, 1, 64, 128)), activation=activation)
        yield call(op, T((2, 40, 70)), 1e-5, T((70,)), activation=activation)
    for dtype, layout in STORABLE:
        yield call(op, T((2, 40, 70), dtype, layout), activation="silu")
    for memory in MEMORIES:
        yield call(op, T(SQUARE), memory_config=M(memory))


# -- norms of channels ------------------------------------------------------------------------------------------------


def batch_norm() -> Iterator[Case]:
    op = "ttnn.batch_norm"
    shape, channel = (2, 5, 40, 33), (1, 5, 1, 1)
    for training, given in product((True, False), ((), ("running_mean",), ("running_mean", "running_var"))):
        running = {name: T(channel) for name in given}
        yield call(op, T(shape), training=training, **running)
        yield call(op, T(shape), training=training, weight=T(channel), bias=T(channel), **running)
        yield call(op, T(shape), training=training, momentum=0.5, eps=1e-3, **running)
        yield call(op, T(shape, "float32"), training=training, **running)
    for dtype, layout in STORABLE:
        for training in (True, False):
            both = {"running_mean": T(channel, dtype, layout), "running_var": T(channel, dtype, layout)}
            yield call(op, T(shape, dtype, layout), training=training, **both)
        fixed = {"running_mean": T(channel), "running_var": T(channel)}
        yield call(op, T(shape), weight=T(channel, dtype, layout), **fixed)
        yield call(op, T(shape), bias=T(channel, dtype, layout), **fixed)
        yield call(op, T(shape, dtype, layout), **fixed)
    fixed = {"running_mean": T(channel), "running_var": T(channel)}
    for other in ((5,), (1, 1, 1, 5), (1, 4, 1, 1), (2, 5, 1, 1), (1, 5, 32, 32)):
        yield call(op, T(shape), running_mean=T(other), running_var=T(other))
        yield call(op, T(shape), weight=T(other), **fixed)
        yield call(op, T(shape), bias=T(other), **fixed)
        yield call(op, T(shape), running_mean=T(other), running_var=T(other), training=True)
    for trained in SHAPES:
        yield call(op, T(trained), training=True)
    for out in (T(shape), T(shape, "float32"), T((2, 5, 40, 32)), T(shape, mem="L1"), T(shape, layout="ROW_MAJOR")):
        yield call(op, T(shape), output=out, **fixed)
    for memory in MEMORIES:
        yield call(op, T((1, 5, 128, 128)), memory_config=M(memory), **fixed)
        yield call(op, T((1, 1, 128, 128)), training=True, memory_config=M(memory))
    for source in sharded_inputs():
        yield call(op, source, running_mean=T((1, 1, 1, 1)), running_var=T((1, 1, 1, 1)))
        yield call(op, source, training=True)
    for given in CONFIGS:
        yield call(op, T(shape), compute_kernel_config=given, **fixed)
    yield call(op, T(shape, host=True), **fixed)
    yield call(op, T(shape), T(channel), **fixed)
    yield call(op)


GRID = C("CoreGrid", y=1, x=1)


def group_norm() -> Iterator[Case]:
    op = "ttnn.group_norm"
    plain = T((1, 1, 64, 64))
    mask, row = T((1, 2, 32, 32)), T((1, 1, 2, 32), layout="ROW_MAJOR")
    for inplace, grid in product((True, False, None), (GRID, C("CoreGrid", y=2, x=1), C("CoreGrid", y=9, x=9), None)):
        yield call(op, plain, num_groups=2, input_mask=mask, core_grid=grid, inplace=inplace)
        yield call(op, plain, num_groups=2, input_mask=mask, weight=row, bias=row, core_grid=grid, inplace=inplace)
    common: dict[str, Any] = {"core_grid": GRID, "inplace": False}
    for groups in (0, 1, 2, 3, 4, 64, -1):
        yield call(op, plain, num_groups=groups, **common)
        yield call(op, plain, num_groups=groups, input_mask=T((1, max(groups, 1), 32, 32)), **common)
    for dtype, layout in STORABLE:
        yield call(op, T((1, 1, 64, 64), dtype, layout), num_groups=2, input_mask=mask, **common)
        yield call(op, plain, num_groups=2, input_mask=T((1, 2, 32, 32), dtype, layout), **common)
        yield call(op, plain, num_groups=2, weight=T((1, 1, 2, 32), dtype, layout), **common)
        yield call(op, plain, num_groups=2, dtype=E(dtype), **common)
    for shape in (
        (1, 1, 64, 96),
        (2, 1, 64, 64),
        (1, 2, 64, 64),
        (1, 1, 50, 64),
        (1, 1, 64, 60),
        (64, 64),
        (3, 64, 64),
    ):
        yield call(op, T(shape), num_groups=2, input_mask=mask, **common)
    for other in ((1, 2, 32, 64), (1, 1, 32, 32), (2, 2, 32, 32), (1, 2, 64, 32), (2, 32, 32)):
        yield call(op, plain, num_groups=2, input_mask=T(other), **common)
        yield call(op, plain, num_groups=2, input_mask=mask, weight=T(other, layout="ROW_MAJOR"), **common)
    for blocks in (1, 2, 0, -1, 4):
        yield call(op, plain, num_groups=2, input_mask=mask, num_out_blocks=blocks, **common)
    for layout in ("TILE_LAYOUT", "ROW_MAJOR_LAYOUT"):
        yield call(op, plain, num_groups=2, input_mask=mask, output_layout=E(layout), **common)
    for given in CONFIGS:
        yield call(op, plain, num_groups=2, input_mask=mask, compute_kernel_config=given, epsilon=1e-5, **common)
        yield call(op, plain, num_groups=2, use_welford=True, compute_kernel_config=given, **common)
    sharded = (
        T((1, 1, 128, 64), layout="ROW_MAJOR", mem=height_sharded([32, 64], 4)),
        T((1, 1, 128, 64), mem=height_sharded([32, 64], 4)),
        T((1, 1, 128, 128), layout="ROW_MAJOR", mem=block_sharded([64, 64], (2, 2))),
        T((1, 1, 128, 128), mem=block_sharded([64, 64], (2, 2), orient="COL_MAJOR")),
        T((1, 1, 128, 128), layout="ROW_MAJOR", mem=width_sharded([128, 64], 2)),
    )
    for source, inplace in product(sharded, (True, False)):
        memory, width = source["T"][3], source["T"][0][-1]
        grid = C("CoreGrid", y=1, x=4) if "HEIGHT" in memory["layout"] else C("CoreGrid", y=2, x=2)
        options = {"num_groups": 2, "core_grid": grid, "inplace": inplace, "memory_config": M(memory)}
        yield call(op, source, input_mask=T((1, 2, 32, width // 2)), **options)
        yield call(op, source, weight=T((1, 1, width // 32, 32), layout="ROW_MAJOR"), **options)
        yield call(op, source, negative_mask=T((1, 2, 32, width // 2)), **options)
        yield call(op, source, **{**options, "memory_config": M("DRAM")})
        yield call(op, source, use_welford=True, **options)
    for memory in MEMORIES:
        yield call(op, plain, num_groups=2, input_mask=mask, memory_config=M(memory), **common)
    yield call(op, plain)
    yield call(op, T((1, 1, 64, 64), host=True), num_groups=2, **common)


def group_norm_helpers() -> Iterator[Case]:
    for name in ("create_group_norm_input_mask", "create_group_norm_input_negative_mask"):
        op = f"ttnn.{name}"
        for channels, groups, cores in product((64, 96, 320), (1, 2, 32, 3), (1, 2, 4)):
            yield call(op, channels, groups, cores)
        for dtype in DTYPES:
            yield call(op, 64, 2, 1, E(dtype))
        yield call(op, 64, 0, 1)
        yield call(op, 64, 2)
        yield call(op, "x", 2, 1)
    for rows in (0, 1, 16, 32):
        yield call("ttnn.create_group_norm_input_mask", 64, 2, 1, rows_in_last_tile=rows)


# -- moreh ------------------------------------------------------------------------------------------------------------


def moreh_layer_norm() -> Iterator[Case]:
    op = "ttnn.moreh_layer_norm"
    shape = (2, 3, 40, 70)
    for dims in (0, 1, 2, 3, 4, 5, -1, "x"):
        yield call(op, T(shape), dims)
        yield call(op, T(shape), dims, 1e-5, T((70,)), T((70,)))
    for other, dims in product(SHAPES, (1, 2)):
        yield call(op, T(other), dims)
    for dtype, layout in STORABLE:
        yield call(op, T((2, 40, 70), dtype, layout), 1)
        yield call(op, T((2, 40, 70)), 1, gamma=T((70,), dtype, layout))
        yield call(op, T((2, 40, 70)), 1, beta=T((70,), dtype, layout))
        yield call(op, T((2, 40, 70)), 1, mean=T((2, 40), dtype, layout))
    for dims, statistic in product((1, 2, 3), ((2, 3, 40), (2, 3), (1, 2), (2,), (1, 1), (2, 3, 40, 1))):
        yield call(op, T(shape), dims, mean=T(statistic))
        yield call(op, T(shape), dims, mean=T(statistic), rstd=T(statistic))
    for memory in MEMORIES:
        yield call(op, T(SQUARE), 1, memory_config=M(memory))
    for source in sharded_inputs():
        yield call(op, source, 2)
    for out in (T(shape), T(shape, "float32"), T((2, 3, 40, 64)), T(shape, mem="L1")):
        yield call(op, T(shape), 1, output=out)
    for given in CONFIGS:
        yield call(op, T(shape), 1, compute_kernel_config=given)
    yield call(op, T(shape, host=True), 1)
    op = "ttnn.moreh_layer_norm_backward"
    for dims, statistic in product((0, 1, 2, 3, 4, 5), ((2, 3, 40), (2, 3), (1, 2), (1, 1))):
        normal, gradient, row = T(shape), T(shape), T(shape[4 - dims :] if 0 < dims < 5 else (70,))
        yield call(op, gradient, normal, T(statistic), T(statistic), dims, input_grad=T(shape))
        yield call(op, gradient, normal, T(statistic), T(statistic), dims, gamma=row, input_grad=T(shape))
        yield call(op, gradient, normal, T(statistic), T(statistic), dims, gamma_grad=row, beta_grad=row)
    statistic = T((2, 3, 40))
    for dtype, layout in STORABLE:
        yield call(op, T(shape, dtype, layout), T(shape), statistic, statistic, 1, input_grad=T(shape))
        yield call(op, T(shape), T(shape), T((2, 3, 40), dtype, layout), statistic, 1, input_grad=T(shape))
        yield call(op, T(shape), T(shape), statistic, statistic, 1, input_grad=T(shape, dtype, layout))
        yield call(op, T(shape), T(shape), statistic, statistic, 1, beta_grad=T((70,), dtype, layout))
    for other in ((2, 3, 40, 64), (6, 40, 70)):
        yield call(op, T(other), T(shape), statistic, statistic, 1, input_grad=T(shape))
        yield call(op, T(shape), T(shape), statistic, statistic, 1, input_grad=T(other))
        yield call(op, T(shape), T(shape), statistic, statistic, 1, gamma_grad=T(other))
    yield call(op, T(shape), T(shape), statistic, statistic, 1)


def moreh_group_norm() -> Iterator[Case]:
    op = "ttnn.moreh_group_norm"
    shape, row = (2, 6, 40, 70), T((1, 1, 1, 6))
    for groups, wanted in product((0, 1, 2, 3, 4, 6, -1), ([True, False, False], [True, True, True], [False] * 3)):
        yield call(op, T(shape), groups, are_required_outputs=wanted)
        yield call(op, T(shape), groups, 1e-5, row, row, are_required_outputs=wanted)
    for dtype, layout in STORABLE:
        yield call(op, T(shape, dtype, layout), 2)
        yield call(op, T(shape), 2, gamma=T((1, 1, 1, 6), dtype, layout))
        yield call(op, T(shape), 2, mean=T((1, 1, 2, 2), dtype, layout))
    for other in SHAPES:
        yield call(op, T(other), 1)
    for given in ((6,), (1, 6), (1, 1, 1, 5), (1, 1, 1, 12)):
        yield call(op, T(shape), 2, gamma=T(given))
    for memory in MEMORIES:
        yield call(op, T((1, 2, 128, 128)), 2, memory_config=M(memory))
        options = {"mean_memory_config": M(memory), "rstd_memory_config": M(memory)}
        yield call(op, T((1, 2, 128, 128)), 2, are_required_outputs=[True, True, True], **options)
    for out in (T(shape), T(shape, "float32"), T((2, 5, 40, 70)), T(shape, mem="L1")):
        yield call(op, T(shape), 2, output=out)
    for sizes in ((1, 1, 2, 2), (2, 2), (1, 1, 2, 3)):
        yield call(op, T(shape), 2, mean=T(sizes), rstd=T(sizes))
    op = "ttnn.moreh_group_norm_backward"
    statistic = T((1, 1, 2, 2))
    for wanted in product((True, False), (True, False), (True, False)):
        asked: dict[str, Any] = {"are_required_outputs": list(wanted)}
        yield call(op, T(shape), T(shape), statistic, statistic, 2, **asked)
        yield call(op, T(shape), T(shape), statistic, statistic, 2, gamma=row, **asked)
        grads = {"input_grad": T(shape), "gamma_grad": row, "beta_grad": row}
        yield call(op, T(shape), T(shape), statistic, statistic, 2, **grads, **asked)
    for groups in (0, 1, 3, 4, 6):
        yield call(op, T(shape), T(shape), T((1, 1, 2, groups or 1)), statistic, groups)
        yield call(op, T(shape), T(shape), *[T((1, 1, 2, groups or 1))] * 2, groups, are_required_outputs=[True] * 3)
    for dtype, layout in STORABLE:
        yield call(op, T(shape, dtype, layout), T(shape), statistic, statistic, 2)
        yield call(op, T(shape), T(shape, dtype, layout), statistic, statistic, 2)
        yield call(op, T(shape), T(shape), T((1, 1, 2, 2), dtype, layout), statistic, 2)
    for memory in MEMORIES:
        operands = [T((1, 2, 128, 128))] * 2 + [T((1, 1, 1, 2))] * 2
        yield call(op, *operands, 2, input_grad_memory_config=M(memory))
        yield call(op, *operands, 2, are_required_outputs=[True] * 3, gamma_grad_memory_config=M(memory))
