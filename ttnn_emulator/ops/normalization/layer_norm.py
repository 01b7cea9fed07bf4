"""layer_norm and rms_norm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from ttnn_emulator.enums import DataType, Layout, MathFidelity
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import Bindable, Plan, composite, internal, ttnn
from ttnn_emulator.numerics.formats.carriers import wide as wide_carrier
from ttnn_emulator.numerics.functions.apply import Activation
from ttnn_emulator.numerics.programs.normalization.norms import bind_norm_rows, norm_rows
from ttnn_emulator.numerics.programs.normalization.wide_rows import norm_wide_rows
from ttnn_emulator.numerics.units.compute_core import Operand
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.ops.normalization.checks import (
    TILE,
    default_program,
    first_stage,
    is_sharded_program,
    require_blocks,
    require_norm_operands,
    require_sharded_norm,
)
from ttnn_emulator.ops.support.common_checks import free_l1, math_config, memory_of
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import round_up
from ttnn_emulator.tensors.spec import Spec, tile_bytes
from ttnn_emulator.tensors.tensor import Tensor

LAYER_NORM, RMS_NORM = "layer_norm", "rms_norm"
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/normalization/layernorm/device/layernorm_op_multi_core.cpp,
# with_weights_max_size and without_weights_max_size
PIECE_TILES = {True: 56, False: 112}  # bfloat16 tiles per row that the large-tensor kernel buffers, by has_weights


def row_reader(width: int, weight: Spec) -> Callable[[torch.Tensor], torch.Tensor]:
    """A weight as the kernel reads it: its first row of tiles, or all of a ROW_MAJOR weight."""
    if weight.is_tile:
        return lambda values: values.reshape(-1, values.shape[-1])[:1, :width]
    return lambda values: values.reshape(1, -1)[:, :width]


@internal("ttnn::prim::layer_norm")
def norm(
    tensor: Spec,
    kind: str,
    epsilon: float,
    config: MathConfig,
    program: Any,
    memory_config: MemoryConfig,
    weight: Spec | None = None,
    bias: Spec | None = None,
    residual: Spec | None = None,
    reciprocals: Spec | None = None,
    activation: Activation | None = None,
) -> Plan:
    """A norm over the last dimension, of interleaved or sharded rows."""
    require_norm_operands(tensor, residual, weight, bias)
    if tensor.is_sharded:
        require_sharded_norm(tensor, residual, program, memory_config, staged=False)
    welford = bool(program.use_welford)
    require(not (welford and kind == RMS_NORM), "rms_norm has no kernel by Welford's algorithm")
    out = _output(tensor, program, memory_config)
    require(not welford or reciprocals is not None or tensor.is_sharded, "use_welford needs a recip_tensor")
    names = [name for name, spec in (("weight", weight), ("bias", bias), ("residual", residual)) if spec is not None]
    width, dtype = tensor.shape[-1], tensor.dtype
    readers = {name: row_reader(width, spec) for name, spec in (("weight", weight), ("bias", bias)) if spec is not None}
    dtypes = {"weight": weight, "bias": bias, "residual": residual}
    block = tensor.shard_spec.shape[1] if tensor.is_sharded and tensor.shard_spec is not None else None
    line = first_stage(tensor, program) if block is not None else None
    l1_bytes, wide = (
        (0, False) if tensor.is_sharded else _buffers(tensor, kind, config, weight, bias, residual, memory_config)
    )
    order = (4 if config.fp32_acc else 8) if tensor.layout is Layout.ROW_MAJOR else None

    centred = kind == LAYER_NORM

    def operands_of(others: Sequence[torch.Tensor]) -> dict[str, Operand]:
        operands = {}
        for name, other in zip(names, others):
            spec = dtypes[name]
            assert spec is not None
            read = readers[name](other) if name in readers else other
            operands[name] = Operand(read.to(torch.float32), spec.dtype)
        return operands

    def compute(values: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        operands = operands_of(others)
        x = Operand(wide_carrier(values), dtype)
        unit_rows = None
        if wide:
            added = operands.get("residual")
            unit_rows = partial(
                norm_wide_rows, x=x, config=config, epsilon=epsilon, centred=centred, residual=added, order=order
            )
        return norm_rows(
            x,
            config,
            epsilon,
            centred=centred,
            activation=activation,
            block=block,
            line=line,
            unit_rows=unit_rows,
            **operands,
        )

    def bind(carriers: Sequence[torch.Tensor], constant: Sequence[bool]) -> Any:
        fixed = all(is_constant for name, is_constant in zip(names, constant[1:]) if name in readers)
        is_wide = carriers[0].dtype is torch.float32 and all(
            carrier.dtype is torch.float32 for name, carrier in zip(names, carriers[1:]) if name not in readers
        )
        if not fixed or not is_wide or activation is not None:
            return None
        return bind_norm_rows(
            Operand(carriers[0], dtype), config, epsilon, centred=centred, **operands_of(carriers[1:])
        )

    into = ("tensor",) if is_sharded_program(program) and program.inplace else ()
    return Plan(out, Bindable(compute, bind), reads=("tensor", *names), into=into, l1_bytes=l1_bytes, narrow=True)


def _output(tensor: Spec, program: Any, memory: MemoryConfig) -> Spec:
    if not is_sharded_program(program):
        return Spec.of(tensor.shape, tensor.dtype, tensor.layout, memory)
    if program.inplace:
        require(memory.is_sharded(), "an in-place norm needs a sharded output")
    require_blocks(tensor, program, memory)
    if program.inplace:
        return tensor
    if memory.shard_spec is None:
        memory = MemoryConfig(memory.memory_layout, memory.buffer_type, tensor.shard_spec)
    return Spec.of(tensor.shape, tensor.dtype, Layout.TILE, memory)


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/normalization/layernorm/device/layernorm_op_multi_core.cpp,
# CB_can_fit_in_L1 and large_tensor_needed
def _buffers(
    tensor: Spec,
    kind: str,
    config: MathConfig,
    weight: Spec | None,
    bias: Spec | None,
    residual: Spec | None,
    memory: MemoryConfig,
) -> tuple[int, bool]:
    """Bytes of circular buffers per core, and whether the large-tensor kernel runs: if whole rows do not fit free L1.

    The large-tensor kernel rereads the row in each step, and does not support ROW_MAJOR weights with a tiled input.
    """
    block = 4 if config.fp32_acc else 8
    own = tile_bytes(tensor.tile, tensor.dtype)
    middle = 4096 if config.fp32_acc else 2048
    row = round_up(round_up(tensor.shape[-1], TILE) // TILE, block)
    row_major = tensor.layout is Layout.ROW_MAJOR
    weights = [tile_bytes(each.tile, each.dtype) for each in (weight, bias) if each is not None]

    def total(row: int, large: bool) -> int:
        line = block if large else row  # tiles per tilized or untilized row
        amount = own * (line if row_major else 2 * block if residual is not None else row)
        amount += own * (line if row_major else 2 * block)
        amount += 2 * 2048 + 2 * 2048 + 2 * middle + row * middle + 8 * middle
        if kind == LAYER_NORM:
            amount += 2 * middle + row * middle
        if residual is not None:
            amount += 2 * block * tile_bytes(residual.tile, residual.dtype) + row * middle
        if large:
            amount += middle + (row * middle if kind == RMS_NORM and residual is None else 0)
        if weights:
            amount += 2 * block * middle + row * sum(weights)
        return amount + (4 * block * own if row_major else 0)

    needed = total(row, large=False)
    by_rows = not row_major and any(each is not None and not each.is_tile for each in (weight, bias))
    if needed < 0.95 * free_l1() or by_rows:
        return needed, False
    pieces = PIECE_TILES[bool(weights) or tensor.dtype is DataType.FLOAT32] * 2048 // middle
    return total(pieces, large=True), True


def _run(
    kind: str,
    tensor: Tensor,
    epsilon: float,
    weight: Tensor | None,
    bias: Tensor | None,
    residual: Tensor | None,
    memory_config: MemoryConfig | None,
    program_config: Any,
    config: MathConfig,
    reciprocals: Tensor | None = None,
    activation: Activation | None = None,
) -> Tensor:
    spec = tensor._spec
    memory = memory_of(memory_config, spec)
    program = program_config if program_config is not None else default_program(spec.shard_spec)
    return norm(tensor, kind, epsilon, config, program, memory, weight, bias, residual, reciprocals, activation)


@composite("ttnn.layer_norm")
def layer_norm(
    input_tensor,
    *,
    epsilon=1e-12,
    weight=None,
    bias=None,
    residual_input_tensor=None,
    memory_config=None,
    program_config=None,
    compute_kernel_config=None,
    recip_tensor=None,
):
    """(x - mean) ÷ √(variance + epsilon) × weight + bias over the last dimension."""
    spec = input_tensor._spec
    require(spec.rank > 0, "a tensor of rank 0 has no layer norm")
    if spec.volume == 0:
        return ttnn.clone(input_tensor, memory_config=memory_of(memory_config, spec))
    config = math_config(compute_kernel_config, fidelity=MathFidelity.HiFi4, approx=False, fp32_acc=True)
    operands = (weight, bias, residual_input_tensor)
    return _run(LAYER_NORM, input_tensor, epsilon, *operands, memory_config, program_config, config, recip_tensor)


@composite("ttnn.rms_norm")
def rms_norm(
    input_tensor,
    *,
    epsilon=1e-12,
    weight=None,
    bias=None,
    residual_input_tensor=None,
    memory_config=None,
    program_config=None,
    compute_kernel_config=None,
):
    """x ÷ √(mean of squares + epsilon) × weight + bias over the last dimension."""
    spec = input_tensor._spec
    require(spec.is_tile, f"the input must be in TILE layout, it is in {spec.layout}")
    memory = memory_of(memory_config, spec)
    if spec.volume == 0:
        return ttnn.clone(input_tensor, memory_config=memory)
    if spec.rank == 0:
        made = ttnn.divide(input_tensor, ttnn.abs(input_tensor, memory_config=memory), memory_config=memory)
        made = ttnn.multiply(made, weight, memory_config=memory) if weight is not None else made
        return ttnn.add(made, bias, memory_config=memory) if bias is not None else made
    config = math_config(compute_kernel_config, fidelity=MathFidelity.HiFi4, approx=True, fp32_acc=False)
    operands = (weight, bias, residual_input_tensor)
    return _run(RMS_NORM, input_tensor, epsilon, *operands, memory_config, program_config, config)


@composite("ttnn.create_layernorm_program_config", ignores=("tile_height", "tile_width"))
def create_layernorm_program_config(shard_spec=None):
    """The default program config of layer_norm for an input with these shards."""
    return default_program(shard_spec)
