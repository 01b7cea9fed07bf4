"""The performance sheet: `ops_perf_results.csv` in the format of the library's profiler, with predicted times.

Every program on every chip has a row, and so has every host operation and every signpost. Columns that the timing model
knows nothing of are empty; docs/perf.md lists them. Columns of our own come last: they say by what part of the timing
model a time was predicted, and how far it may be off.
"""

from __future__ import annotations

import csv
import io
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any

from ttnn_emulator.atomic_files import replacing
from ttnn_emulator.profiling.attributes import attributes, fidelity_of, program_hash, tensor_cells, tensors_of
from ttnn_emulator.profiling.performance_models import PEAK_DRAM_GB, Ideal, Modelled, ideal_of
from ttnn_emulator.profiling.timeline import HostRow, Program, ProgramRow, Row, SignpostRow

FILE = "ops_perf_results.csv"

# The columns of tensors stand between the two lists.
# tt-metal v0.77.0: tools/tracy/process_ops_logs.py, OPS_CSV_HEADER
BEFORE_TENSORS = (
    "OP CODE",
    "OP TYPE",
    "GLOBAL CALL COUNT",
    "DEVICE ID",
    "DEVICE ARCH",
    "ATTRIBUTES",
    "MATH FIDELITY",
    "CORE COUNT",
    "AVAILABLE WORKER CORE COUNT",
    "SUB DEVICE ID",
    "PARALLELIZATION STRATEGY",
    "HOST START TS",
    "HOST END TS",
    "HOST DURATION [ns]",
    "DEVICE FW START CYCLE",
    "DEVICE FW END CYCLE",
    "OP TO OP LATENCY [ns]",
    "OP TO OP LATENCY BR/NRISC START [ns]",
    "DEVICE FW DURATION [ns]",
    "DEVICE KERNEL DURATION [ns]",
    "DEVICE KERNEL DURATION DM START [ns]",
    "DEVICE KERNEL DURATION PER CORE MIN [ns]",
    "DEVICE KERNEL DURATION PER CORE MAX [ns]",
    "DEVICE KERNEL DURATION PER CORE AVG [ns]",
    "DEVICE KERNEL FIRST TO LAST START [ns]",
    "DEVICE BRISC KERNEL DURATION [ns]",
    "DEVICE NCRISC KERNEL DURATION [ns]",
    "DEVICE TRISC0 KERNEL DURATION [ns]",
    "DEVICE TRISC1 KERNEL DURATION [ns]",
    "DEVICE TRISC2 KERNEL DURATION [ns]",
    "DEVICE ERISC KERNEL DURATION [ns]",
    "DEVICE COMPUTE CB WAIT FRONT [ns]",
    "DEVICE COMPUTE CB RESERVE BACK [ns]",
    "DISPATCH TOTAL CQ CMD OP TIME [ns]",
    "DISPATCH GO SEND WAIT TIME [ns]",
)
AFTER_TENSORS = (
    "METAL TRACE ID",
    "METAL TRACE REPLAY SESSION ID",
    "COMPUTE KERNEL SOURCE",
    "COMPUTE KERNEL HASH",
    "DATA MOVEMENT KERNEL SOURCE",
    "DATA MOVEMENT KERNEL HASH",
    "PROGRAM HASH",
    "PROGRAM CACHE HIT",
    "PM IDEAL [ns]",
    "PM COMPUTE [ns]",
    "PM BANDWIDTH [ns]",
    "PM REQ I BW",
    "PM REQ O BW",
    "PM FPU UTIL (%)",
    "NOC UTIL (%)",
    "MULTICAST NOC UTIL (%)",
    "DRAM BW UTIL (%)",
    "DRAM BW UTIL PER CTRL (%)",
    "ETH BW UTIL (%)",
    "NPE CONG IMPACT (%)",
)
# Ours. UTILIZATION: PM IDEAL ÷ kernel duration × cores of the board ÷ cores of the program.
OWN = (
    "UTILIZATION (%)",
    "PREDICTED BY",
    "PREDICTED ERROR (%)",
    "BOUND",
    "OPERATION",
    "MODULE",
    "SOURCE",
)
TENSOR_FIELDS = (
    *(f"{axis}_PAD[LOGICAL]" for axis in "WZYX"),
    "LAYOUT",
    "DATATYPE",
    "MEMORY",
)
DEVICE, HOST, SIGNPOST = "tt_dnn_device", "python_fallback", "signpost"

Cells = dict[str, Any]


def sheet(rows: Iterable[Row]) -> list[Cells]:
    """The rows of the sheet by column; cells without a value are missing."""
    return [_cells(row) for row in rows]


def columns_of(cells: Sequence[Cells]) -> list[str]:
    """The header: all fixed columns, and as many tensors as the widest row has."""
    most = {"INPUT": 0, "OUTPUT": 0}
    for row in cells:
        for kind, count in most.items():
            while f"{kind}_{count}_LAYOUT" in row:
                count = most[kind] = count + 1
    tensors = [f"{kind}_{number}_{field}" for kind in most for number in range(most[kind]) for field in TENSOR_FIELDS]
    return [*BEFORE_TENSORS, *tensors, *AFTER_TENSORS, *OWN]


def written(cells: Sequence[Cells]) -> str:
    """The sheet as text. As in the profiler's files, `;` replaces every comma."""
    target = io.StringIO()
    writer = csv.DictWriter(target, columns_of(cells), lineterminator="\n")
    writer.writeheader()
    for row in cells:
        writer.writerow({name: _text(value) for name, value in row.items()})
    return target.getvalue()


def write(cells: Sequence[Cells], path: pathlib.Path) -> None:
    """Write the sheet to a file."""
    with replacing(path) as temporary:
        temporary.write_text(written(cells), encoding="utf-8")


def _text(value: Any) -> str:
    said = "" if value is None else str(value)
    return " ".join(said.split("\n")).replace(",", ";")


# -- rows -------------------------------------------------------------------------------------------------------------


def _cells(row: Row) -> Cells:
    if isinstance(row, ProgramRow):
        return _of_program(row)
    if isinstance(row, HostRow):
        return _of_host(row)
    return _of_signpost(row)


def _of_program(row: ProgramRow) -> Cells:
    program = row.program
    launch, board, origin = program.launch, program.device.board, program.origin
    inputs, outputs = tensors_of(program)
    fidelity = fidelity_of(program)
    ideal = ideal_of(Modelled(inputs, outputs, launch, board, fidelity, program.record.arguments))
    kernel = max(round(launch.kernel_ns), 1)
    cells: Cells = {
        "OP CODE": launch.program,
        "OP TYPE": DEVICE,
        "GLOBAL CALL COUNT": row.number,
        "DEVICE ID": row.chip,
        "DEVICE ARCH": board.arch.name.lower(),
        "ATTRIBUTES": attributes(program),
        "MATH FIDELITY": fidelity.name if fidelity is not None else "",
        "CORE COUNT": launch.cores,
        "AVAILABLE WORKER CORE COUNT": board.cores,
        "HOST START TS": round(row.host_ns),
        "HOST END TS": round(row.host_ns + row.host_time_ns),
        "HOST DURATION [ns]": round(row.host_time_ns),
        "OP TO OP LATENCY [ns]": round(row.gap_ns),
        "DEVICE KERNEL DURATION [ns]": kernel,
        "METAL TRACE ID": program.trace,
        "METAL TRACE REPLAY SESSION ID": program.replay,
        "PROGRAM HASH": program_hash(program),
        "PROGRAM CACHE HIT": program.cached,
        **_ideal_cells(ideal, kernel),
        "DRAM BW UTIL (%)": round(100 * launch.dram_bytes / kernel / PEAK_DRAM_GB[board.arch], 1),
        "UTILIZATION (%)": utilization(ideal, program),
        "PREDICTED BY": launch.family if launch.calibrated else f"{launch.family} (uncalibrated)",
        "PREDICTED ERROR (%)": round(100 * launch.error),
        "BOUND": launch.bound.value,
        "OPERATION": origin.operation,
        "MODULE": origin.module,
        "SOURCE": origin.source,
    }
    return cells | _tensors(inputs, outputs, row.chip)


def _ideal_cells(ideal: Ideal, kernel: int) -> Cells:
    return {
        "PM IDEAL [ns]": ideal.ideal_ns,
        "PM COMPUTE [ns]": ideal.compute_ns,
        "PM BANDWIDTH [ns]": ideal.bandwidth_ns,
        "PM REQ I BW": [round(each, 3) for each in ideal.input_bandwidths],
        "PM REQ O BW": [round(each, 3) for each in ideal.output_bandwidths],
        "PM FPU UTIL (%)": round(100 * ideal.compute_ns / kernel, 3),
    }


def utilization(ideal: Ideal, program: Program) -> float | None:
    """PM IDEAL ÷ kernel duration × cores of the board ÷ cores of the program, in percent; None without a formula."""
    launch = program.launch
    if ideal.ideal_ns <= 1 or not launch.kernel_ns or not launch.cores:
        return None
    share = ideal.ideal_ns / launch.kernel_ns * program.device.board.cores / launch.cores
    return round(100 * share, 1)


def _of_host(row: HostRow) -> Cells:
    device = row.device
    cells: Cells = {
        "OP CODE": row.operation.name,
        "OP TYPE": HOST,
        "GLOBAL CALL COUNT": row.number,
        "DEVICE ID": device.get_device_id() if device is not None else 0,
        "HOST START TS": round(row.host_ns),
        "OPERATION": row.origin.operation,
        "MODULE": row.origin.module,
        "SOURCE": row.origin.source,
    }
    if device is not None:
        cells |= {"DEVICE ARCH": device.board.arch.name.lower(), "AVAILABLE WORKER CORE COUNT": device.board.cores}
    return cells | _tensors(row.operation.inputs, row.operation.outputs, cells["DEVICE ID"])


def _of_signpost(row: SignpostRow) -> Cells:
    return {
        "OP CODE": row.header,
        "OP TYPE": SIGNPOST,
        "ATTRIBUTES": row.message,
        "HOST START TS": round(row.host_ns),
    }


def _tensors(inputs: Sequence[Any], outputs: Sequence[Any], chip: int) -> Cells:
    cells: Cells = {}
    for kind, specs in (("INPUT", inputs), ("OUTPUT", outputs)):
        for number, spec in enumerate(specs):
            cells |= tensor_cells(f"{kind}_{number}", spec, chip)
    return cells
