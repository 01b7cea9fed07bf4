"""Distributed norms: local statistics before the all-gather, the norm after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ttnn_emulator.enums import DataType, Layout, MathFidelity
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import Plan, composite, operation
from ttnn_emulator.hardware.core_grid import CoreRange, CoreRangeSet
from ttnn_emulator.numerics.programs.normalization.norms import norm_by_statistics, row_statistics, shard_statistics
from ttnn_emulator.numerics.units.compute_core import Operand
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.ops.normalization.checks import (
    NORM_DTYPES,
    ROW_MAJOR_WEIGHTS,
    TILE,
    default_program,
    first_stage,
    is_sharded_program,
    require_blocks,
    require_norm_operands,
    require_sharded_norm,
    require_weight,
)
from ttnn_emulator.ops.normalization.layer_norm import LAYER_NORM, RMS_NORM, norm, row_reader
from ttnn_emulator.ops.reduction.device_operations import fitted
from ttnn_emulator.ops.support.common_checks import math_config, memory_of, require_on_device, require_tile
from ttnn_emulator.ops.support.fused_functions import fault_of, fused, require_fusable
from ttnn_emulator.tensors.memory_config import MemoryConfig, ShardSpec
from ttnn_emulator.tensors.spec import Spec


def _math(given: Any) -> MathConfig:
    return math_config(given, fidelity=MathFidelity.HiFi4, approx=True, fp32_acc=False)


# -- before -----------------------------------------------------------------------------------------------------------


def _before(
    kind: str,
    tensor: Spec,
    dtype: DataType,
    residual: Spec | None,
    given: Any,
    program: Any,
    memory: MemoryConfig | None,
    fast: bool,
    reciprocals: Spec | None = None,
    two_dimensional: bool | None = None,
) -> Plan:
    config = _math(given)
    width = 2 * TILE if kind == LAYER_NORM else TILE
    if tensor.is_sharded:
        return _before_of_shards(kind, tensor, residual, config, program, memory_of(memory, tensor), width)
    _require_parts(kind, tensor, residual, config)
    welford = program is not None and program.use_welford
    require(not (welford and kind == RMS_NORM), "rms_norm has no kernel by Welford's algorithm")
    require(not welford or reciprocals is not None, "use_welford needs a recip_tensor")
    require(not (welford and two_dimensional), "use_welford does not support a two-dimensional grid")
    require(tensor.rank >= 4, f"the input must have rank 4, it has {tensor.rank}")
    shape = (*tensor.shape[:3], width, *tensor.shape[4:])
    out = Spec.of(shape, dtype, Layout.TILE, memory_of(memory, tensor))
    require(not out.is_sharded, f"statistics of an interleaved input cannot be {out.memory_config.memory_layout}")
    accurate = tensor.dtype is DataType.FLOAT32 and not fast

    def compute(values: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        statistics = row_statistics(
            Operand(values, tensor.dtype),
            config,
            dtype,
            centred=kind == LAYER_NORM,
            residual=_operand(residual, others),
            accurate=accurate,
        )
        return fitted(statistics, out.shape)

    return Plan(out, compute, reads=_read(residual))


def _before_of_shards(
    kind: str,
    tensor: Spec,
    residual: Spec | None,
    config: MathConfig,
    program: Any,
    memory: MemoryConfig,
    width: int,
) -> Plan:
    """The sharded kernel's statistics. It adds a residual to the input in place."""
    program = program if program is not None else default_program(None)
    out = _staged_output(tensor, residual, program, memory, width)
    assert tensor.shard_spec is not None
    block, line = tensor.shard_spec.shape[1], first_stage(tensor, program)

    def compute(values: torch.Tensor, *others: torch.Tensor) -> Any:
        statistics, kept = shard_statistics(
            Operand(values, tensor.dtype),
            config,
            out.dtype,
            centred=kind == LAYER_NORM,
            block=block,
            line=line,
            residual=_operand(residual, others),
        )
        made = fitted(statistics, out.shape)
        return made if residual is None else [made, kept]

    if residual is None:
        return Plan(out, compute, reads=_read(residual))
    return Plan(
        [out, tensor], compute, reads=_read(residual), into=(None, "input_tensor"), wrap=lambda tensors: tensors[0]
    )


def _operand(residual: Spec | None, others: Sequence[torch.Tensor]) -> Operand | None:
    return Operand(others[0].to(torch.float32), residual.dtype) if residual is not None else None


def _read(residual: Spec | None) -> tuple[str, ...]:
    return ("input_tensor",) if residual is None else ("input_tensor", "residual_input_tensor")


def _require_parts(kind: str, tensor: Spec, residual: Spec | None, config: MathConfig) -> None:
    if residual is not None:
        require_tile(residual, "the residual")
        require(
            tensor.shape == residual.shape and tensor.padded_shape == residual.padded_shape,
            f"the residual has shape {list(residual.shape)}, the input {list(tensor.shape)}",
        )
        require(not residual.is_sharded, "the residual must be interleaved")
        require_on_device(residual, "the residual")
    require_on_device(tensor)
    require_tile(tensor)
    require(tensor.dtype in NORM_DTYPES, f"the input must be FLOAT32, BFLOAT16 or BFLOAT8_B, not {tensor.dtype}")
    require(tensor.dtype is not DataType.FLOAT32 or config.fp32_acc, f"{kind} of FLOAT32 needs fp32_dest_acc_en=True")


def _staged_output(tensor: Spec, residual: Spec | None, program: Any, memory: MemoryConfig, width: int) -> Spec:
    """The output of the sharded kernel: the statistics of all shards, on the first core."""
    require_norm_operands(tensor, residual, None, None)
    require_sharded_norm(tensor, residual, program, memory, staged=True)
    require(tensor.padded_shape[-2] == TILE, f"the input must be one tile high, it is {tensor.padded_shape[-2]}")
    require_blocks(tensor, program, memory)
    shards = tensor.shard_spec
    assert shards is not None
    first = shards.grid.bounding_box().start
    made = ShardSpec(CoreRangeSet([CoreRange(first, first)]), (shards.shape[0], width), shards.orientation)
    config = MemoryConfig(memory.memory_layout, memory.buffer_type, made)
    return Spec.of((*tensor.shape[:3], width), DataType.BFLOAT16, Layout.TILE, config)


@operation("ttnn.layer_norm_pre_all_gather")
def layer_norm_pre_all_gather(
    input_tensor,
    *,
    dtype=DataType.BFLOAT16,
    residual_input_tensor=None,
    compute_kernel_config=None,
    program_config=None,
    memory_config=None,
    recip_tensor=None,
    fast_and_approximate_mode=False,
):
    """The sums of squares and of values of this device's part of the rows."""
    settings = (compute_kernel_config, program_config, memory_config, fast_and_approximate_mode, recip_tensor)
    return _before(LAYER_NORM, input_tensor, dtype, residual_input_tensor, *settings)


@operation("ttnn.rms_norm_pre_all_gather")
def rms_norm_pre_all_gather(
    input_tensor,
    *,
    dtype=DataType.BFLOAT16,
    residual_input_tensor=None,
    compute_kernel_config=None,
    program_config=None,
    memory_config=None,
    use_2d_core_grid=None,
    fast_and_approximate_mode=False,
):
    """The sums of squares of this device's part of the rows."""
    settings = (compute_kernel_config, program_config, memory_config, fast_and_approximate_mode, None, use_2d_core_grid)
    return _before(RMS_NORM, input_tensor, dtype, residual_input_tensor, *settings)


# -- after ------------------------------------------------------------------------------------------------------------


def _after(
    kind: str,
    tensor: Spec,
    stats: Spec,
    epsilon: float,
    weight: Spec | None,
    bias: Spec | None,
    memory_config: MemoryConfig | None,
    given: Any,
    program: Any,
    dtype: DataType | None,
) -> Plan:
    config = _math(given)
    memory = memory_of(memory_config, tensor)
    if tensor.is_sharded:
        out = _staged_result(kind, tensor, stats, weight, bias, program, memory, dtype)
    else:
        _require_gathered(kind, tensor, stats, weight, bias, config)
        welford = program is not None and program.use_welford
        require(not (welford and kind == RMS_NORM), "rms_norm has no kernel by Welford's algorithm")
        out = Spec.of(tensor.shape, dtype or tensor.dtype, Layout.TILE, memory)
    width = tensor.shape[-1]
    names = [(name, spec) for name, spec in (("weight", weight), ("bias", bias)) if spec is not None]
    readers = [row_reader(width, spec) for _, spec in names]

    def compute(values: torch.Tensor, statistics: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        operands = {name: Operand(read(other), spec.dtype) for (name, spec), read, other in zip(names, readers, others)}
        return norm_by_statistics(
            Operand(values, tensor.dtype),
            Operand(torch.nn.functional.pad(statistics, (0, -statistics.shape[-1] % TILE)), stats.dtype),
            config,
            epsilon,
            out.dtype,
            centred=kind == LAYER_NORM,
            of_means=tensor.is_sharded,
            **operands,
        )

    return Plan(out, compute, reads=("input_tensor", "stats", *[name for name, _ in names]))


def _require_gathered(
    kind: str, tensor: Spec, stats: Spec, weight: Spec | None, bias: Spec | None, config: MathConfig
) -> None:
    for name, spec in (("input", tensor), ("statistics", stats)):
        require_tile(spec, f"the {name}")
        require(spec.dtype in NORM_DTYPES, f"the {name} must be FLOAT32, BFLOAT16 or BFLOAT8_B, not {spec.dtype}")
        require_on_device(spec, f"the {name}")
        narrow = spec.dtype is DataType.FLOAT32 and not config.fp32_acc
        require(not narrow, f"the {name} is FLOAT32: that needs fp32_dest_acc_en=True")
    require(
        len(stats.padded_shape) >= 3
        and len(tensor.padded_shape) >= 3
        and stats.padded_shape[:3] == tensor.padded_shape[:3],
        f"the statistics {list(stats.padded_shape)} are not of the rows of {list(tensor.padded_shape)}",
    )
    for name, row in (("weight", weight), ("bias", bias)):
        if row is not None:
            require(row.dtype in ROW_MAJOR_WEIGHTS, f"the {name} must be BFLOAT16 or FLOAT32, not {row.dtype}")
            require_weight(tensor, row, name, same_width=True)
    tiles, each = stats.padded_shape[-1] // TILE, 2 if kind == LAYER_NORM else 1
    require(tiles >= each and tiles % each == 0, f"{tiles} tiles of statistics are not a multiple of {each}")


def _staged_result(
    kind: str,
    tensor: Spec,
    stats: Spec,
    weight: Spec | None,
    bias: Spec | None,
    program: Any,
    memory: MemoryConfig,
    dtype: DataType | None,
) -> Spec:
    program = program if program is not None else default_program(None)
    require_norm_operands(tensor, None, weight, bias)
    require_sharded_norm(tensor, None, program, memory, staged=True)
    require(tensor.padded_shape[-2] == TILE, f"the input must be one tile high, it is {tensor.padded_shape[-2]}")
    require(stats.is_sharded, "the statistics must be sharded")
    require_tile(stats, "the statistics")
    require(stats.dtype is DataType.BFLOAT16, f"the statistics must be BFLOAT16, not {stats.dtype}")
    step = 2 * TILE if kind == LAYER_NORM else TILE
    require(
        stats.padded_shape[-1] % step == 0, f"statistics {stats.padded_shape[-1]} wide are not a multiple of {step}"
    )
    require_blocks(tensor, program, memory)
    require(stats.shard_spec is not None and stats.shard_spec.num_cores() == 1, "the statistics must be on one core")
    assert is_sharded_program(program)
    if program.inplace:
        return tensor
    if memory.shard_spec is None:
        memory = MemoryConfig(memory.memory_layout, memory.buffer_type, tensor.shard_spec)
    return Spec.of(tensor.shape, dtype or tensor.dtype, Layout.TILE, memory)


@operation("ttnn.layer_norm_post_all_gather")
def layer_norm_post_all_gather(
    input_tensor,
    stats,
    *,
    epsilon=1e-12,
    weight=None,
    bias=None,
    memory_config=None,
    compute_kernel_config=None,
    program_config=None,
    dtype=None,
):
    """The layer norm of this device's part of the rows, from the gathered sums of all parts."""
    settings = (memory_config, compute_kernel_config, program_config, dtype)
    return _after(LAYER_NORM, input_tensor, stats, epsilon, weight, bias, *settings)


@operation("ttnn.rms_norm_post_all_gather", ignores=("use_2d_core_grid",))
def rms_norm_post_all_gather(
    input_tensor,
    stats,
    *,
    epsilon=1e-12,
    weight=None,
    bias=None,
    memory_config=None,
    compute_kernel_config=None,
    program_config=None,
    dtype=None,
):
    """The RMS norm of this device's part of the rows, from the gathered sums of squares."""
    settings = (memory_config, compute_kernel_config, program_config, dtype)
    return _after(RMS_NORM, input_tensor, stats, epsilon, weight, bias, *settings)


# -- with an activation -----------------------------------------------------------------------------------------------


@composite("ttnn.experimental.dit_rms_norm_unary_fused")
def dit_rms_norm_unary_fused(
    input_tensor,
    epsilon=1e-5,
    weight=None,
    bias=None,
    residual_input_tensor=None,
    *,
    memory_config=None,
    program_config=None,
    compute_kernel_config=None,
    activation=None,
):
    """rms_norm followed by a fused elementwise function."""
    spec = input_tensor._spec
    program = program_config if program_config is not None else default_program(spec.shard_spec)
    function = None
    if activation is not None:
        require_fusable(activation)
        fault = fault_of(activation)
        if fault is not None:
            raise fault
        function = fused(activation)
    operands = (weight, bias, residual_input_tensor)
    memory = memory_of(memory_config, spec)
    config = math_config(compute_kernel_config, fidelity=MathFidelity.HiFi4, approx=True, fp32_acc=False)
    return norm(input_tensor, RMS_NORM, epsilon, config, program, memory, *operands, None, function)
