"""The memory view of compiled programs: calls, memory and the lines of the model, with and without running it."""

from __future__ import annotations

import csv
import json
import pathlib
import re
import sqlite3

import pytest
import torch
from torch import nn

import torch_ttnn  # noqa: F401  (registers the backend)
import ttnn_emulator as ttnn
from torch_ttnn.capture.programs import capture
from torch_ttnn.perf.memory_view import write_report
from torch_ttnn.perf.profile import profile
from torch_ttnn.perf.script import profile_script
from ttnn_emulator.profiling import sheet
from ttnn_emulator.profiling.memory_report import MemoryReport

HERE = str(pathlib.Path(__file__))


class Gate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(64, 64)

    def forward(self, x):
        return x * torch.sigmoid(self.inner(x))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = Gate()
        self.outer = nn.Linear(64, 32)

    def forward(self, x):
        return self.outer(self.gate(x))


def line_of(text: str) -> int:
    lines = pathlib.Path(HERE).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def rows(folder: pathlib.Path, query: str) -> list[tuple]:
    return sqlite3.connect(folder / "db.sqlite").execute(query).fetchall()


def frames(folder: pathlib.Path) -> dict[str, list[tuple[str, int, str]]]:
    """The stack of every operation, by its name."""
    found = rows(folder, "SELECT name, stack_trace FROM operations JOIN stack_traces USING (operation_id)")
    frame = re.compile(r'File "(.+)", line (\d+), in \S+\n\s+(.*)')
    return {name: [(path, int(line), text) for path, line, text in frame.findall(trace)] for name, trace in found}


def programs_of(model: nn.Module, x: torch.Tensor, **options) -> list:
    return [program for _, program in capture(model, (x,), options=options or None).found]


def test_calls_have_the_lines_and_modules_of_the_model(tmp_path) -> None:
    model = Model().eval()
    with torch.no_grad():
        write_report(tmp_path, programs_of(model, torch.ones(4, 64)), "mine")
    names = [name for (name,) in rows(tmp_path, "SELECT name FROM operations ORDER BY operation_id")]
    assert names[0] == "ttnn.from_torch" and names[-1] == "ttnn.to_torch" and names.count("ttnn.linear") == 2
    inner, outer = line_of("* torch.sigmoid"), line_of("self.outer(self.gate")
    (product,) = [stack for name, stack in frames(tmp_path).items() if "multiply" in name]
    assert [frame[:2] for frame in product] == [(HERE, inner), (HERE, outer)]
    assert product[0][2] == "return x * torch.sigmoid(self.inner(x))  # gate: aten.mul.Tensor"
    assert product[1][2] == "return self.outer(self.gate(x))"
    assert rows(tmp_path, "SELECT path FROM source_files") == [(HERE,)]
    assert json.loads((tmp_path / "config.json").read_text())["report_name"] == "mine"


def test_weights_are_there_from_the_beginning(tmp_path) -> None:
    model = Model().eval()
    with torch.no_grad():
        (program,) = programs_of(model, torch.ones(4, 64))
        write_report(tmp_path, [program])
    after_upload = rows(tmp_path, "SELECT count(*) FROM buffers WHERE operation_id = 1")
    assert after_upload == [(len(program.lowered.weights) + 1,)]
    read = "producer_operation_id IS NULL AND last_use_operation_id IS NOT NULL"
    assert rows(tmp_path, f"SELECT count(*) FROM tensor_lifetime WHERE {read}") == [(len(program.lowered.weights),)]


def test_all_programs_of_a_model_are_in_one_report(tmp_path) -> None:
    class Broken(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = Gate(), Gate()

        def forward(self, x):
            x = self.first(x)
            torch._dynamo.graph_break()
            return self.second(x)

    with torch.no_grad():
        found = programs_of(Broken().eval(), torch.ones(4, 64))
        write_report(tmp_path, found)
    assert len(found) == 2
    names = [name for (name,) in rows(tmp_path, "SELECT name FROM operations")]
    assert names.count("ttnn.from_torch") == names.count("ttnn.to_torch") == names.count("ttnn.linear") == 2
    notes = " ".join(trace for (trace,) in rows(tmp_path, "SELECT stack_trace FROM stack_traces"))
    assert "# first: aten.mul.Tensor" in notes and "# second: aten.mul.Tensor" in notes


def test_operations_on_the_host_are_calls(tmp_path) -> None:
    class Sorted(nn.Module):
        def forward(self, x):
            return torch.linalg.qr(x * 2)[0] + 1

    with torch.no_grad():
        write_report(tmp_path, programs_of(Sorted(), torch.eye(32)))
    stacks = frames(tmp_path)
    (stack,) = [stack for name, stack in stacks.items() if name.startswith("(torch) aten.linalg_qr")]
    assert stack[0][:2] == (HERE, line_of("torch.linalg.qr(x"))
    assert rows(tmp_path, "SELECT value FROM operation_arguments WHERE name = 'reason'")


def test_a_model_that_does_not_fit_ends_with_its_error(tmp_path) -> None:
    with torch.device("meta"):
        model = nn.Sequential(*[nn.Linear(32768, 32768, bias=False) for _ in range(8)]).eval()
        x = torch.ones(32, 32768)
    with torch.no_grad():
        write_report(tmp_path, programs_of(model, x))
    ((kind, message),) = rows(tmp_path, "SELECT error_type, error_message FROM errors")
    assert kind == "OutOfMemory" and "Not enough space" in message


def programs_in(folder: pathlib.Path) -> list[str]:
    """The programs of all calls as ttnn-visualizer finds them, which links them to the rows of the sheet."""
    graphs = [json.loads(text) for (text,) in rows(folder, "SELECT captured_graph FROM captured_graph")]
    names = [node["params"]["name"] for graph in graphs for node in graph if node["node_type"] == "function_start"]
    return [name for name in names if "ttnn." not in name and "(torch)" not in name]


def codes_in(folder: pathlib.Path) -> list[str]:
    with (folder / sheet.FILE).open(encoding="utf-8") as file:
        return [row["OP CODE"] for row in csv.DictReader(file) if row["OP TYPE"] == "tt_dnn_device"]


def test_programs_of_a_model_are_those_of_its_sheet(tmp_path) -> None:
    convolutions = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()).eval()
    with torch.no_grad():
        profile(convolutions, torch.ones(1, 3, 32, 32)).write(tmp_path)
    assert programs_in(tmp_path) == codes_in(tmp_path) and len(codes_in(tmp_path)) > 4


SCRIPT = """
import torch, ttnn
with ttnn.open_device(device_id=0, trace_region_size=1 << 20) as device:
    x = ttnn.from_torch(torch.ones(64, 64), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    ttnn.matmul(x, ttnn.softmax(x, dim=-1))
    ttnn.exp(ttnn.relu(x))
    trace = ttnn.begin_trace_capture(device)
    y = ttnn.exp(ttnn.relu(x))
    ttnn.end_trace_capture(device, trace)
    for _ in range(2):
        ttnn.execute_trace(device, trace)
    raise SystemExit(0)
"""


def test_programs_of_a_script_are_those_of_its_sheet(tmp_path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(SCRIPT)
    run = profile_script(script)
    assert isinstance(run.error, SystemExit)
    run.profile.write(tmp_path / "out")
    assert programs_in(tmp_path / "out") == codes_in(tmp_path / "out") and len(codes_in(tmp_path / "out")) == 8
    assert rows(tmp_path / "out", "SELECT count(*) FROM operations WHERE name = 'ttnn.execute_trace'") == [(2,)]


@pytest.mark.parametrize("trace", [False, True])
def test_a_run_of_a_compiled_model_shows_the_lines_of_the_model(tmp_path, trace) -> None:
    torch._dynamo.reset()
    with ttnn.open_device(device_id=0, l1_small_size=32768, trace_region_size=1 << 20) as device, torch.no_grad():
        model = torch.compile(Model().eval(), backend="ttnn", options={"device": device, "trace": trace})
        report = MemoryReport()
        with report.recording():
            for _ in range(3):
                model(torch.ones(4, 64))  # called here
        report.write(tmp_path)
    stacks = frames(tmp_path)
    called = line_of("# called here")
    inner = line_of("* torch.sigmoid")
    (product,) = [stack for name, stack in stacks.items() if "multiply" in name]
    assert product[0][:2] == (HERE, inner)
    assert (HERE, called) in [frame[:2] for frame in product[1:]]
    assert "# gate: aten.mul.Tensor" in product[0][2]
    for stack in stacks.values():
        assert HERE in {path for path, *_ in stack}
    names = [name for (name,) in rows(tmp_path, "SELECT name FROM operations")]
    assert ("ttnn.execute_trace" in names) is trace
