"""The performance sheet: columns, values, and what a script leaves in its folder."""

from __future__ import annotations

import csv
import pathlib
import subprocess
import sys

import pytest
import torch

import ttnn_emulator as ttnn
from tests.patience import HANG_SECONDS
from ttnn_emulator.execution import listeners
from ttnn_emulator.library import tracy
from ttnn_emulator.profiling import device_log, sheet
from ttnn_emulator.profiling.recorder import Recorder
from ttnn_emulator.profiling.report_folder import PerformanceWriter, profiling
from ttnn_emulator.profiling.timeline import ProgramRow, Row, timeline
from ttnn_emulator.timing.dispatch import DISPATCH

# The profiler's columns in order; INPUTS and OUTPUTS stand for the columns of tensors.
COLUMNS = (pathlib.Path(__file__).parent / "columns.txt").read_text(encoding="utf-8").split("\n")[:-1]
TENSOR = ("W_PAD[LOGICAL]", "Z_PAD[LOGICAL]", "Y_PAD[LOGICAL]", "X_PAD[LOGICAL]", "LAYOUT", "DATATYPE", "MEMORY")


def model(x: ttnn.Tensor, weight: ttnn.Tensor) -> ttnn.Tensor:
    return ttnn.add(ttnn.linear(x, weight), x)


def tensors(device: ttnn.MeshDevice) -> tuple[ttnn.Tensor, ttnn.Tensor]:
    x = ttnn.from_torch(torch.ones(1, 1, 96, 256), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    weight = ttnn.from_torch(torch.ones(256, 256), dtype=ttnn.bfloat8_b, layout=ttnn.TILE_LAYOUT, device=device)
    return x, weight


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A profile of calls, two replays of a trace, a signpost and a host operation."""
    target = tmp_path_factory.mktemp("profile")
    with ttnn.open_device(device_id=0, trace_region_size=1 << 20) as device, profiling(target):
        x, weight = tensors(device)
        model(x, weight)
        tracy.signpost("traced, twice", "after, warm-up")
        trace = ttnn.begin_trace_capture(device, cq_id=0)
        model(x, weight)
        ttnn.end_trace_capture(device, trace, cq_id=0)
        for _ in range(2):
            ttnn.execute_trace(device, trace, cq_id=0, blocking=True)
        listeners.ran_on_host("(torch) argmax", [x.spec], [])
    return target


@pytest.fixture(scope="module")
def rows(folder: pathlib.Path) -> list[dict[str, str]]:
    return list(csv.DictReader((folder / sheet.FILE).open(encoding="utf-8")))


def programs(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    return [row for row in rows if row["OP TYPE"] == "tt_dnn_device"]


def test_the_columns_are_those_of_the_profiler(rows) -> None:
    inputs = [f"INPUT_{number}_{field}" for number in range(2) for field in TENSOR]
    outputs = [f"OUTPUT_0_{field}" for field in TENSOR]
    start, end = COLUMNS.index("INPUTS"), COLUMNS.index("OUTPUTS")
    expected = [*COLUMNS[:start], *inputs, *outputs, *COLUMNS[end + 1 :]]
    assert list(rows[0])[: len(expected)] == expected
    assert tuple(list(rows[0])[len(expected) :]) == sheet.OWN


def test_every_row_has_as_many_cells_as_the_header(folder) -> None:
    lines = list(csv.reader((folder / sheet.FILE).open(encoding="utf-8")))
    assert {len(line) for line in lines} == {len(lines[0])}


def test_semicolons_replace_commas(folder, rows) -> None:
    text = (folder / sheet.FILE).read_text(encoding="utf-8")
    assert '"' not in text
    signpost = next(row for row in rows if row["OP TYPE"] == "signpost")
    assert (signpost["OP CODE"], signpost["ATTRIBUTES"]) == ("traced; twice", "after; warm-up")
    assert "out_subblock_h=1; out_subblock_w=" in rows[0]["ATTRIBUTES"]


def test_rows_are_programs_in_order(rows) -> None:
    found = [(row["OP CODE"], row["METAL TRACE ID"] != "", row["METAL TRACE REPLAY SESSION ID"]) for row in rows]
    matmul, add = "MatmulDeviceOperation", "BinaryNgDeviceOperation"
    assert found == [
        (matmul, False, ""),
        (add, False, ""),
        ("traced; twice", False, ""),
        (matmul, True, "1"),
        (add, True, "1"),
        (matmul, True, "2"),
        (add, True, "2"),
        ("(torch) argmax", False, ""),
    ]
    assert [row["OP TYPE"] for row in rows][-1] == "python_fallback"
    starts = [int(row["HOST START TS"]) for row in rows]
    assert starts == sorted(starts) and len(set(starts)) == len(starts)
    counts = [int(row["GLOBAL CALL COUNT"]) for row in rows if row["GLOBAL CALL COUNT"]]
    assert counts == list(range(1, 8))


def test_cells_of_a_matmul(rows) -> None:
    row = rows[0]
    expected = {
        "DEVICE ID": "0",
        "DEVICE ARCH": "wormhole_b0",
        "MATH FIDELITY": "HiFi2",
        "AVAILABLE WORKER CORE COUNT": "64",
        "INPUT_0_Y_PAD[LOGICAL]": "96[96]",
        "INPUT_0_X_PAD[LOGICAL]": "256[256]",
        "INPUT_1_W_PAD[LOGICAL]": "1[1]",
        "INPUT_1_DATATYPE": "BFLOAT8_B",
        "INPUT_1_MEMORY": "DEV_0_DRAM_INTERLEAVED",
        "OUTPUT_0_LAYOUT": "TILE",
        "PROGRAM CACHE HIT": "False",
        "OPERATION": "ttnn.linear",
        "OP TO OP LATENCY [ns]": "0",
    }
    assert {name: row[name] for name in expected} == expected
    assert row["SOURCE"].startswith(f"{__file__}:")
    # 2 * 256 operations per value, and twice the cycles for HiFi2: 2 * 256 * 96 * 256 / (64 * 4096) * 2
    assert row["PM COMPUTE [ns]"] == "96"
    kernel, cores = int(row["DEVICE KERNEL DURATION [ns]"]), int(row["CORE COUNT"])
    assert float(row["PM FPU UTIL (%)"]) == pytest.approx(100 * 96 / kernel, abs=1e-3)
    utilization = 100 * int(row["PM IDEAL [ns]"]) / kernel * 64 / cores
    assert float(row["UTILIZATION (%)"]) == pytest.approx(utilization, rel=0.01)


def test_programs_of_a_trace_follow_each_other_more_closely(rows) -> None:
    called, replayed = programs(rows)[1], programs(rows)[3]
    assert int(replayed["OP TO OP LATENCY [ns]"]) == DISPATCH[ttnn.Arch.WORMHOLE_B0].gap_ns
    assert int(called["OP TO OP LATENCY [ns]"]) > int(replayed["OP TO OP LATENCY [ns]"])
    assert called["PROGRAM CACHE HIT"] == "False" and replayed["PROGRAM CACHE HIT"] == "True"
    assert called["PROGRAM HASH"] == replayed["PROGRAM HASH"] != programs(rows)[0]["PROGRAM HASH"]


def test_the_device_log_has_every_program(folder, rows) -> None:
    lines = (folder / device_log.LOG).read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("ARCH: wormhole_b0, CHIP_FREQ[MHz]: 1000")
    assert len(lines) == 2 + 2 * len(programs(rows))
    ends = [line.split(",") for line in lines[2:]]
    assert all(int(one[5]) < int(other[5]) for one, other in zip(ends[::2], ends[1::2]))
    assert (folder / device_log.TRACY).exists()


def recorded(device: ttnn.MeshDevice, run) -> list[Row]:
    with Recorder().recording() as recorder:
        run(device)
    return timeline(recorder.entries)


def test_every_chip_of_a_mesh_has_a_row() -> None:
    with ttnn.open_mesh_device(ttnn.MeshShape(1, 2), board="n300") as device:
        found = recorded(device, lambda device: model(*tensors(device)))
    assert [(row.chip, row.program.launch.program[:6]) for row in found if isinstance(row, ProgramRow)] == [
        (0, "Matmul"),
        (1, "Matmul"),
        (0, "Binary"),
        (1, "Binary"),
    ]


def test_a_device_without_values_has_the_same_times() -> None:
    found = []
    for holds_values in (True, False):
        with ttnn.open_device(device_id=0, holds_values=holds_values) as device:
            found.append([row.end_ns for row in recorded(device, lambda device: model(*tensors(device)))])
    assert found[0] == found[1]


def test_a_call_of_several_programs_has_a_row_for_each() -> None:
    def convolve(device: ttnn.MeshDevice) -> None:
        x = ttnn.from_torch(torch.ones(1, 1, 256, 16), dtype=ttnn.bfloat16, device=device)
        weight = ttnn.from_torch(torch.ones(32, 16, 3, 3), dtype=ttnn.bfloat16)
        ttnn.conv2d(
            input_tensor=x, weight_tensor=weight, in_channels=16, out_channels=32, device=device, kernel_size=(3, 3),
            stride=(1, 1), padding=(1, 1), batch_size=1, input_height=16, input_width=16,
        )  # fmt: skip

    with ttnn.open_device(device_id=0, l1_small_size=32768) as device:
        cells = sheet.sheet(recorded(device, convolve))
    by_code = {row["OP CODE"]: row for row in cells}
    convolution, halo = by_code["Conv2dDeviceOperation"], by_code["HaloDeviceOperation"]
    assert halo["OUTPUT_0_Y_PAD[LOGICAL]"] == convolution["INPUT_0_Y_PAD[LOGICAL]"]
    assert convolution["OUTPUT_0_Y_PAD[LOGICAL]"].startswith("256") and convolution["INPUT_1_LAYOUT"] == "TILE"
    assert "window_hw=(3,3), stride_hw=(1,1)" in convolution["ATTRIBUTES"]
    # 2 * 16 * 9 operations per value, HiFi4: 2 * 16 * 9 * 256 * 32 / (64 * 4096) * 4
    assert convolution["PM COMPUTE [ns]"] == 36


# -- scripts ----------------------------------------------------------------------------------------------------------

SCRIPT = """
import sys
import torch
import ttnn

with ttnn.open_device(device_id=0) as device:
    x = ttnn.from_torch(torch.ones(64, 64), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    ttnn.relu(x)
    if sys.argv[1] == "raise":
        raise KeyError("mine")
    sys.exit(7)
"""


@pytest.mark.parametrize(("how", "code"), [("raise", 1), ("exit", 7)])
def test_a_script_that_ends_early_leaves_what_ran(how: str, code: int, tmp_path: pathlib.Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "ttnn_emulator", "--profile", str(tmp_path / "out"), str(script), how]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_SECONDS)
    assert done.returncode == code, done.stderr
    assert ("KeyError: 'mine'" in done.stderr) == (how == "raise")
    rows = list(csv.DictReader((tmp_path / "out" / sheet.FILE).open(encoding="utf-8")))
    assert [(row["OP CODE"], row["SOURCE"]) for row in rows] == [("UnaryDeviceOperation", f"{script}:8")]
    written = {sheet.FILE, device_log.LOG, device_log.TRACY, "db.sqlite", "config.json", "cluster_descriptor.yaml"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == written


def test_a_folder_that_cannot_be_written_fails_before_the_script_runs(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text("print('ran')")
    command = [sys.executable, "-m", "ttnn_emulator", "--profile", str(script / "out"), str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_SECONDS)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith("python -m ttnn_emulator: the profile cannot be written to")


class _Failing:
    def recording(self):
        return listeners.listening(listeners.Listener())

    def write(self, folder: pathlib.Path) -> None:
        raise OSError("disk is full")


def test_a_writer_that_fails_hides_neither_the_other_files_nor_the_script(tmp_path: pathlib.Path) -> None:
    with pytest.raises(KeyError, match="mine"), profiling(tmp_path, [_Failing, PerformanceWriter]):
        raise KeyError("mine")
    assert (tmp_path / sheet.FILE).exists()
    with pytest.raises(OSError, match="disk is full"), profiling(tmp_path, [_Failing]):
        pass
    assert not listeners.active
