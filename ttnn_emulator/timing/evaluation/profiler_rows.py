"""Rows of performance sheets: `measured_ops`, one row per program of a real model."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ttnn_emulator.enums import BufferType, DataType, Layout, MathFidelity, TensorMemoryLayout
from ttnn_emulator.errors import EmulatorError
from ttnn_emulator.hardware.boards import Board, find_board
from ttnn_emulator.hardware.core_grid import CoreCoord, CoreRange, CoreRangeSet, num_cores_to_corerangeset
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up, round_up
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.evaluation.measurements import (
    Measure,
    Measurement,
    Row,
    Unpredictable,
    integers_in,
    measured_in,
)
from ttnn_emulator.timing.pricing import load_families
from ttnn_emulator.timing.programs import PROGRAMS, ProgramRun, family_of

COLUMNS = frozenset({"op_code", "core_count", "inputs", "outputs", "kernel_ns_median"})
BOARD_OF_ARCH = {"wormhole_b0": "n150", "blackhole": "p150"}


def profiler_measurements(file: str, rows: Sequence[Row]) -> Measure:
    load_families()
    most: dict[str, int] = {}  # cores by sheet, for sheets that do not name their grid
    for row in rows:
        cores = row.get("core_count") or ""
        most[row.get("file", "")] = max(most.get(row.get("file", ""), 0), int(cores) if cores.isdigit() else 0)

    def measure(number: int, row: Row) -> Measurement:
        board = board_of(row, most[row.get("file", "")])
        ideal = row.get("pm_ideal_ns") or ""
        return Measurement(
            file,
            number,
            family_of(row["op_code"]),
            board.name,
            measured_in(row, "kernel_ns_median"),
            functools.partial(_predicted_ns, dict(row), board),
            float(ideal) if ideal.replace(".", "", 1).isdigit() and float(ideal) else None,
        )

    return measure


def board_of(row: Mapping[str, str], most_cores: int = 0) -> Board:
    """The board of a row. Rows without an architecture were recorded on a Blackhole.

    most_cores  the most cores of any row of the same sheet: the grid, if the row does not name it
    """
    arch = row.get("arch") or "blackhole"
    if arch not in BOARD_OF_ARCH:
        raise Unpredictable(f"no board is known for arch {arch!r}; known: {', '.join(BOARD_OF_ARCH)}")
    board = find_board(BOARD_OF_ARCH[arch])
    (cores,) = integers_in(row, "grid_cores") if row.get("grid_cores") else (most_cores,)
    if not cores or cores == board.cores:
        return board
    return replace(board, grid=_grid(cores))


def _grid(cores: int) -> tuple[int, int]:
    """The most nearly square grid of this number of cores."""
    rows = max(size for size in range(1, math.isqrt(cores) + 1) if cores % size == 0)
    return cores // rows, rows


def _predicted_ns(row: Mapping[str, str], board: Board) -> float:
    timed = PROGRAMS.get(row["op_code"])
    if timed is None:
        raise Unpredictable(f"no program is called {row['op_code']}")
    return timed.timer(run_of(row, board)).kernel_ns


def run_of(row: Mapping[str, str], board: Board) -> ProgramRun:
    """The program of a row."""
    (cores,) = integers_in(row, "core_count")
    inputs, outputs = (
        tuple([spec_of(text, cores, board) for text in row[name].split("|") if text.strip()])
        for name in ("inputs", "outputs")
    )
    fidelity = MathFidelity[row["math_fidelity"]] if row.get("math_fidelity") else None
    return ProgramRun(row["op_code"], inputs, outputs, cores, board, fidelity, attributes=row.get("attrs", ""))


_TENSOR = re.compile(r"\s*(?P<dims>[\dx\[\]]+):(?P<layout>\w+):(?P<dtype>\w+):(?P<buffer>[A-Z0-9]+)_(?P<kind>\w+)\s*")

_SIZE = re.compile(r"(\d+)(?:\[(\d+)\])?")  # older sheets have one size per dimension


def spec_of(text: str, cores: int, board: Board) -> Spec:
    """A tensor of a sheet: padded[logical] sizes, layout, dtype and memory. Shards are spread over the row's cores.

    >>> spec_of("1[1]x1[1]x64[50]x32[32]:TILE:BFLOAT16:DRAM_INTERLEAVED", 8, find_board("n150")).shape
    (1, 1, 50, 32)
    """
    found = _TENSOR.fullmatch(text)
    if found is None:
        raise Unpredictable(f"no tensor can be read from {text!r}")
    sizes = [(int(padded), int(logical or padded)) for padded, logical in _SIZE.findall(found["dims"])]
    shape = tuple([logical for _, logical in sizes])
    layout = Layout.TILE if found["layout"] == "TILE" else Layout.ROW_MAJOR
    buffer = BufferType.L1 if found["buffer"] == "L1" else BufferType.DRAM
    padded = [size for size, _ in sizes]
    memory = L1_MEMORY_CONFIG if buffer is BufferType.L1 else DRAM_MEMORY_CONFIG
    alignment: tuple[int, ...] = ()
    if found["kind"] != "INTERLEAVED":
        memory = _sharded(TensorMemoryLayout[found["kind"]], buffer, padded, layout, cores, board)
        alignment = tuple([1, *memory.shard_spec.shape][-2:]) if layout is Layout.TILE else ()  # type: ignore[union-attr]
    elif layout is Layout.TILE and len(padded) > 1 and padded[-2] > round_up(shape[-2], TILE_SIZE):
        alignment = tuple(padded[-2:])  # weights of convolutions are padded by more than tiles
    try:
        return Spec.of(shape, DataType[found["dtype"]], layout, memory, alignment=alignment)
    except EmulatorError as error:
        raise Unpredictable(f"{text.strip()}: {error}") from error


def _sharded(
    kind: TensorMemoryLayout, buffer: BufferType, padded: list[int], layout: Layout, cores: int, board: Board
) -> MemoryConfig:
    height, width = math.prod(padded[:-1]), padded[-1]
    step = TILE_SIZE if layout is Layout.TILE else 1
    grid: CoreRangeSet = num_cores_to_corerangeset(min(cores, board.cores), CoreCoord(*board.grid), True)
    if kind is TensorMemoryLayout.HEIGHT_SHARDED:
        shard = round_up(div_up(height, cores), step), width
    elif kind is TensorMemoryLayout.WIDTH_SHARDED:
        shard = height, round_up(div_up(width, cores), step)
    else:
        across, down = _rectangle(cores, board.grid, width // step)
        shard = round_up(div_up(height, down), step), round_up(div_up(width, across), step)
        grid = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(across - 1, down - 1))])
    return MemoryConfig(kind, buffer, ShardSpec(grid, shard))


def _rectangle(cores: int, grid: tuple[int, int], columns: int) -> tuple[int, int]:
    """Columns and rows of a rectangle of cores: within the grid, and such that it divides `columns` if possible."""
    sizes = [(across, cores // across) for across in range(1, cores + 1) if cores % across == 0]
    # Shards in column-major order have their rows along the columns of cores.
    within = [(across, down) for across, down in sizes if max(across, down) <= max(grid)] or sizes
    return max(within, key=lambda size: (columns % size[0] == 0, -abs(size[0] - size[1])))
