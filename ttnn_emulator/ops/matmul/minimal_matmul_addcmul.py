"""dit_minimal_matmul_addcmul_fused: minimal_matmul whose result is scaled, gated and added to a residual."""

from __future__ import annotations

from typing import Any

import torch

from ttnn_emulator.enums import FLOAT_DTYPES, DataType, Layout
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.numerics.programs.products.matmul import Kernel
from ttnn_emulator.numerics.units.compute_core import Core
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.ops.matmul.minimal_matmul import (
    BLOCK,
    blocks_of,
    buffer_bytes,
    math_of,
    require_blocks,
    require_operands,
)
from ttnn_emulator.ops.support.common_checks import memory_of, require_on_device, require_tile
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import TILE_SIZE, Tile, div_up
from ttnn_emulator.tensors.spec import Spec, tile_bytes


@operation("ttnn.experimental.dit_minimal_matmul_addcmul_fused")
def dit_minimal_matmul_addcmul_fused(
    matmul_input_tensor: Spec,
    matmul_weight_tensor: Spec,
    scalar: float,
    addcmul_input_tensor1: Spec,
    addcmul_input_tensor2: Spec,
    bias_tensor: Spec | None = None,
    *,
    config: Any = None,
    memory_config: MemoryConfig | None = None,
    dtype: DataType | None = None,
    compute_kernel_config: Any = None,
) -> Plan:
    """residual + scalar × (input @ weight + bias) × gate; the gate is one row, or as large as the residual."""
    input, weight, bias = matmul_input_tensor, matmul_weight_tensor, bias_tensor
    residual, gate = addcmul_input_tensor1, addcmul_input_tensor2
    math, blocks = math_of(compute_kernel_config), blocks_of(config)
    require_operands(input, weight, None, bias)
    _require_ternary(input, weight, residual, gate)
    if blocks is not None:
        require_blocks(blocks, math, bool(compute_kernel_config and compute_kernel_config.dst_full_sync_en))
    # tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/minimal_matmul/device/minimal_matmul_program_factory.cpp,
    # ternary_a_data_format
    require(residual.dtype is weight.dtype, f"the residual is {residual.dtype}, the weight {weight.dtype}")
    width = weight.shape[-1]
    out = Spec.of((*input.shape[:-1], width), dtype or input.dtype, Layout.TILE, memory_of(memory_config, input))
    product = _product(input, weight, math, blocks[1] if blocks is not None else BLOCK)
    # The kernel tests the gate's height in tiles, not in rows (broadcast_ternary_b).
    one_row = gate.padded_shape[-2:][0] == TILE_SIZE
    fault = _fault(input, residual, gate, one_row)

    def compute(x: torch.Tensor, y: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
        if fault is not None:
            raise fault
        added, opened, *row = rest
        core = Core.of(math, out.volume)
        y = y.reshape(y.shape[-2:])
        sums = core.through(product(x, y, row[0].reshape(1, -1)) if row else product(x, y))
        if one_row:
            opened = opened.reshape(-1, width)[:1]
        else:
            opened = opened.reshape(-1, *opened.shape[-2:])[: out.volume // (out.shape[-2] * width)]
            opened = opened.reshape(out.shape)
        opened = core.source(opened, gate.dtype)
        by_vector_unit = gate.dtype is DataType.FLOAT32
        gated = core.vector("mul", sums, opened) if by_vector_unit else core.mul(sums, opened)
        added = added.reshape(-1, *added.shape[-2:])[: out.volume // (out.shape[-2] * width)].reshape(out.shape)
        total = core.add(core.through(core.scaled(gated, scalar)), core.source(added, residual.dtype))
        return core.packed(total, out.dtype)

    reads = ["matmul_input_tensor", "matmul_weight_tensor", "addcmul_input_tensor1", "addcmul_input_tensor2"]
    reads += [] if bias is None else ["bias_tensor"]
    rows, _, columns = blocks[:3] if blocks is not None else (BLOCK,) * 3
    ternary = rows * columns * tile_bytes(Tile(), residual.dtype) + columns * tile_bytes(Tile(), gate.dtype)
    return Plan(
        out, compute, reads=tuple(reads), l1_bytes=buffer_bytes(input, weight, bias, out, math, blocks, False) + ternary
    )


def _require_ternary(input: Spec, weight: Spec, residual: Spec, gate: Spec) -> None:
    rows, width = input.shape[-2], weight.shape[-1]
    for name, spec in (("residual", residual), ("gate", gate)):
        require_on_device(spec, f"the {name}")
        require_tile(spec, f"the {name}")
        require(spec.dtype in FLOAT_DTYPES, f"the {name} must be of floats, not {spec.dtype}")
        require(spec.rank > 0, f"the {name} must have a dimension")
    for name, spec, allowed in (("residual", residual, (rows,)), ("gate", gate, (1, rows))):
        found = (1, *spec.shape)[-2:]
        require(
            found[0] in allowed and found[1] == width,
            f"the {name} is {found[0]} × {found[1]}; it must have {width} columns and {allowed} rows",
        )


def _product(input: Spec, weight: Spec, config: MathConfig, inner_block: int) -> Any:
    """The sums as the matrix unit reads them from L1, including the bias if there is one."""
    several = div_up(div_up(weight.shape[-2], TILE_SIZE), inner_block) > 1
    between = DataType.FLOAT32 if config.fp32_acc else DataType.BFLOAT16
    math = MathConfig(config.fidelity, config.fp32_acc, config.approx, several, inner_block)
    return Kernel(math, input.dtype, weight.dtype, between, between=between, through_l1=True).compute()


def _fault(input: Spec, residual: Spec, gate: Spec, one_row: bool) -> ChipFault | None:
    batches = _batches(input)
    if _batches(residual) < batches or (not one_row and _batches(gate) < batches):
        return ChipFault(
            f"an input of {batches} batches reads past a residual {list(residual.shape)} and gate {list(gate.shape)}"
        )
    if one_row and (1, *gate.shape)[-2] > 1:
        return ChipFault(
            f"of a gate of {gate.shape[-2]} rows, which fit into one tile, the kernel takes the first for all",
            hint="Multiply and add after minimal_matmul.",
        )
    return None


def _batches(spec: Spec) -> int:
    return spec.volume // max(1, spec.shape[-1] * (1, *spec.shape)[-2])
