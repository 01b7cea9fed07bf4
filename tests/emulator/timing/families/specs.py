"""Specs and calls for tests of the timing model."""

from __future__ import annotations

from typing import Any

from ttnn_emulator.enums import BufferType, DataType, Layout, TensorMemoryLayout
from ttnn_emulator.hardware.boards import find_board
from ttnn_emulator.hardware.core_grid import CoreCoord, num_cores_to_corerangeset
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, MemoryConfig, ShardSpec
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.calls import Call
from ttnn_emulator.timing.evaluation.profiler_rows import board_of, run_of
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.pricing import launches_of, load_families
from ttnn_emulator.timing.programs import PROGRAMS

BF16, BFP8, FP32, INT32 = DataType.BFLOAT16, DataType.BFLOAT8_B, DataType.FLOAT32, DataType.INT32
DRAM, L1 = DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG


def tensor(*shape: int, dtype: DataType = BF16, memory: MemoryConfig = DRAM, layout: Layout = Layout.TILE) -> Spec:
    return Spec.of(shape, dtype, layout, memory)


def height_sharded(*shape: int, cores: int, dtype: DataType = BF16, board: str = "n150") -> Spec:
    height = 1
    for size in shape[:-1]:
        height *= size
    grid = num_cores_to_corerangeset(cores, CoreCoord(*find_board(board).grid), True)
    shards = ShardSpec(grid, (height // cores, shape[-1]))
    return tensor(*shape, dtype=dtype, memory=MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, shards))


def priced(
    name: str, *inputs: Spec, out: Spec | None = None, outputs: tuple[Spec, ...] = (), board: str = "n150", **given: Any
) -> tuple[Launch, ...]:
    """The programs of a call; the output is like the first input by default."""
    named = tuple([(f"input_{number}", spec) for number, spec in enumerate(inputs)])
    call = Call(name, named, outputs or (out or inputs[0],), given, find_board(board))
    return launches_of(call)


def nanoseconds(name: str, *inputs: Spec, **given: Any) -> float:
    return sum(launch.kernel_ns for launch in priced(name, *inputs, **given))


def row_error(row: dict[str, str], measured: float) -> float:
    """predicted ÷ measured − 1 of a row of a performance sheet."""
    load_families()
    board = board_of(row)
    return PROGRAMS[row["op_code"]].timer(run_of(row, board)).kernel_ns / measured - 1


def row(code: str, cores: int, inputs: str, outputs: str, *, arch: str = "blackhole", grid: int = 20) -> dict[str, str]:
    return {
        "op_code": code,
        "core_count": str(cores),
        "inputs": inputs,
        "outputs": outputs,
        "arch": arch,
        "grid_cores": str(grid),
    }
