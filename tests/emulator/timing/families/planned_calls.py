"""Planned calls and rows of performance sheets, for tests of data movement."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from ttnn_emulator.enums import BufferType, DataType, Layout, TensorMemoryLayout
from ttnn_emulator.execution.call_context import planning_for
from ttnn_emulator.execution.operation_table import OPERATIONS, Plan
from ttnn_emulator.hardware.boards import Board, find_board
from ttnn_emulator.hardware.core_grid import CoreCoord, num_cores_to_corerangeset
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, MemoryConfig, ShardSpec
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.calls import Call
from ttnn_emulator.timing.evaluation.profiler_rows import board_of, run_of
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.pricing import launches_of, load_families
from ttnn_emulator.timing.programs import PROGRAMS

N150, P150 = find_board("n150"), find_board("p150")
BF16, BF8, F32 = DataType.BFLOAT16, DataType.BFLOAT8_B, DataType.FLOAT32


def tiles(*shape: int, dtype: DataType = BF16, l1: bool = False) -> Spec:
    return Spec.of(shape, dtype, Layout.TILE, L1_MEMORY_CONFIG if l1 else DRAM_MEMORY_CONFIG)


def rows(*shape: int, dtype: DataType = BF16, l1: bool = False) -> Spec:
    return Spec.of(shape, dtype, Layout.ROW_MAJOR, L1_MEMORY_CONFIG if l1 else DRAM_MEMORY_CONFIG)


def by_height(spec: Spec, cores: int) -> Spec:
    """The tensor in shards of its height."""
    grid = num_cores_to_corerangeset(cores, CoreCoord(8, 8), True)
    height, width = spec.physical_shape
    config = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, ShardSpec(grid, (height // cores, width)))
    return spec.with_(memory_config=config)


def of_cores(board: Board, columns: int, lines: int) -> Board:
    return dataclasses.replace(board, grid=(columns, lines))


def planned(name: str, *tensors: tuple[str, Spec], board: Board = N150, **arguments: Any) -> Call:
    """A call as its operation plans it."""
    with planning_for(board):
        plan: Plan = OPERATIONS[name].function(**dict(tensors), **arguments)
    outputs = (plan.outputs,) if isinstance(plan.outputs, Spec) else tuple(plan.outputs or ())
    return Call(name, tensors, outputs, arguments, board, plan.work)


def kernel(
    name: str, sources: Sequence[tuple[str, Spec]], *outputs: Spec, board: Board = N150, **arguments: Any
) -> Launch:
    """The only launch of an operation that only composites call."""
    (launch,) = launches_of(Call(name, tuple(sources), outputs, arguments, board))
    return launch


def programs(call: Call) -> list[str]:
    return [launch.program for launch in launches_of(call)]


def ns(call: Call) -> float:
    return sum(launch.kernel_ns for launch in launches_of(call))


def sheet_ns(code: str, cores: int, inputs: str, outputs: str, *, grid: int, arch: str = "blackhole") -> float:
    """The predicted time of a row of a performance sheet."""
    load_families()
    row = {
        "op_code": code,
        "core_count": str(cores),
        "grid_cores": str(grid),
        "arch": arch,
        "inputs": inputs,
        "outputs": outputs,
        "math_fidelity": "",
    }
    return PROGRAMS[code].timer(run_of(row, board_of(row))).kernel_ns
