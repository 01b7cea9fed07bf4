"""A file of one elementwise operation at many sizes: `exp_n150`."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from ttnn_emulator.enums import DataType, Layout
from ttnn_emulator.hardware.boards import Board, find_board
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, MemoryConfig
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.calls import Call
from ttnn_emulator.timing.evaluation.measurements import Measure, Measurement, Row, Unpredictable, measured_in
from ttnn_emulator.timing.pricing import launches_of
from ttnn_emulator.timing.releases import Release

COLUMNS = frozenset({"op", "shape", "dtype", "input_memory", "kernel_ns_median"})


def unary_measurements(file: str, rows: Sequence[Row]) -> Measure:
    def measure(number: int, row: Row) -> Measurement:
        return Measurement(
            file,
            number,
            row["op"].removeprefix("ttnn."),
            "n150",
            measured_in(row, "kernel_ns_median"),
            functools.partial(_predicted_ns, dict(row)),
        )

    return measure


def _predicted_ns(row: Mapping[str, str]) -> float:
    """The file calls some dtypes "other", where runs of several dtypes were merged: they are assumed to be bfloat16.

    It does not name the output's memory either: runs with both kinds were merged, as far as they fit into L1.
    """
    name = "bfloat16" if row["dtype"] == "other" else row["dtype"]
    if name.upper() not in DataType.__members__:
        raise Unpredictable(f"no dtype is called {name}")
    memory = L1_MEMORY_CONFIG if row["input_memory"] == "L1" else DRAM_MEMORY_CONFIG
    shape = tuple([int(size) for size in row["shape"].split("x")])
    board = find_board("n150")
    source = Spec.of(shape, DataType[name.upper()], Layout.TILE, memory)
    used = source.num_pages * source.page_bytes if memory is L1_MEMORY_CONFIG else 0
    fits = used + source.num_pages * source.page_bytes <= board.cores * board.l1_bank_bytes
    times = [
        sum(launch.kernel_ns for launch in launches_of(_call(row["op"], source, output, board)))
        for output in ((DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG) if fits else (DRAM_MEMORY_CONFIG,))
    ]
    return sum(times) / len(times)


def _call(name: str, source: Spec, memory: MemoryConfig, board: Board) -> Call:
    out = source.with_(memory_config=memory)
    return Call(name, (("input_tensor", source),), (out,), {"release": Release.AUTUMN_2025}, board)
