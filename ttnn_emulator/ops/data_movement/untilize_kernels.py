"""`untilize` by one or the other of its two kernels, as the library's own tests force them.

`ttnn.untilize` uses the generated kernel wherever it supports the call, else the older native one; they are
separate programs in the program cache.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ttnn_emulator.enums import DataType
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, internal
from ttnn_emulator.hardware.core_grid import CoreRangeSet
from ttnn_emulator.ops.flows.layout import WHOLE, Run, squeezed_to_4d, untilize_flow
from ttnn_emulator.ops.flows.reshape import last
from ttnn_emulator.ops.flows.value_flow import Flow
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import Spec

# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/data_movement/untilize/codegen/untilize_codegen_supported.cpp, kTileSize
# and kWideChunkThreshold
TILE_BYTES = 2048
WIDEST_ROW_BYTES = 800_000

TENSOR, CONFIG = ("input_tensor", "p", "Tensor"), ("memory_config", "k", "MemoryConfig | None", None)
MULTICORE, CORES = ("use_multicore", "k", "bool", True), ("sub_core_grids", "k", "CoreRangeSet | None", None)


def takes_generated_kernel(spec: Spec, config: MemoryConfig) -> bool:
    """Whether the generated kernel can untilize this tensor into that memory."""
    if spec.rank > 4:
        spec = squeezed_to_4d(Flow(spec)).spec
    if not spec.is_tile or spec.dtype not in (DataType.BFLOAT16, DataType.BFLOAT8_B):
        return False
    if spec.is_sharded or config.is_sharded():
        return False
    height, width = last(spec.shape, 2), last(spec.shape)
    if height % TILE_SIZE or width % TILE_SIZE:
        row = 2 * div_up(width, TILE_SIZE) * TILE_BYTES
        return spec.dtype is DataType.BFLOAT16 and row <= WIDEST_ROW_BYTES
    tiles = last(spec.padded_shape) // TILE_SIZE
    rows = math.prod(spec.padded_shape[:-2]) * (last(spec.padded_shape, 2) // TILE_SIZE)
    if rows > 1:
        return 2 * tiles * TILE_BYTES <= WIDEST_ROW_BYTES
    board = current_board()
    a_core = div_up(tiles, min(tiles, board.cores) or 1)
    return tiles <= 1 or 2 * a_core * TILE_BYTES <= board.l1_bank_bytes


def as_program(plan: Plan, kernel: str, spec: Spec, config: MemoryConfig, run: Run = WHOLE) -> Plan:
    """The plan with the name under which the cache keeps it: calls that take the same kernel share it."""
    return plan if plan.program is not None else replace(plan, program=("untilize", kernel, spec, config, run))


def routed(plan: Plan, spec: Spec, memory_config: MemoryConfig | None, run: Run) -> Plan:
    """`ttnn.untilize` with the kernel that it chooses by itself."""
    config = memory_config or spec.memory_config
    if run == WHOLE and takes_generated_kernel(spec, config):
        return as_program(plan, "generated", spec, config)
    return as_program(plan, "native", spec, config, run)


@internal("ttnn._ttnn.operations.data_movement.untilize_force_codegen", (TENSOR, CONFIG))
def untilize_force_codegen(input_tensor: Spec, *, memory_config: MemoryConfig | None = None) -> Plan:
    """Untilize with the generated kernel; refuse if it does not support the call."""
    require(input_tensor.volume > 0, "the generated kernel does not support a tensor without values")
    config = memory_config or input_tensor.memory_config
    require(
        takes_generated_kernel(input_tensor, config),
        "the generated kernel does not support this call: it takes interleaved tiles of bfloat16, or of bfloat8_b with "
        "whole tiles, in rows that fit into L1",
    )
    plan = untilize_flow(Flow(input_tensor), memory_config).plan("input_tensor")
    return as_program(plan, "generated", input_tensor, config)


@internal("ttnn._ttnn.operations.data_movement.untilize_force_native", (TENSOR, CONFIG, MULTICORE, CORES))
def untilize_force_native(
    input_tensor: Spec,
    *,
    memory_config: MemoryConfig | None = None,
    use_multicore: bool = True,
    sub_core_grids: CoreRangeSet | None = None,
) -> Plan:
    """Untilize with the native kernel."""
    require(input_tensor.volume > 0, "the native kernel does not take a tensor without values")
    run = Run(use_multicore, sub_core_grids)
    plan = untilize_flow(Flow(input_tensor), memory_config, run=run, native=True).plan("input_tensor")
    return as_program(plan, "native", input_tensor, memory_config or input_tensor.memory_config, run)
