"""The memory view: its database has the documented schema, and says what the emulated device says."""

from __future__ import annotations

import itertools
import json
import os
import pathlib
import re
import runpy
import sqlite3
import subprocess
import sys
import threading
from collections import defaultdict

import pytest
import torch

import ttnn_emulator as ttnn
from tests.patience import HANG_SECONDS
from ttnn_emulator.enums import BufferType
from ttnn_emulator.execution import listeners
from ttnn_emulator.profiling.memory_report import MemoryReport
from ttnn_emulator.tensors.shapes import round_up

SCRIPT = pathlib.Path(__file__).with_name("recorded_script.py")

# ttnn-visualizer 0.108.0: ttnn_visualizer/queries.py, models.py: the columns that it reads
READ = {
    "devices": "device_id num_y_cores num_x_cores num_y_compute_cores num_x_compute_cores worker_l1_size l1_num_banks "
    "l1_bank_size address_at_first_l1_bank address_at_first_l1_cb_buffer num_banks_per_storage_core num_compute_cores "
    "num_storage_cores total_l1_memory total_l1_for_tensors total_l1_for_interleaved_buffers "
    "total_l1_for_sharded_buffers cb_limit rank",
    "operations": "operation_id name duration rank",
    "operation_arguments": "operation_id name value rank",
    "tensors": "tensor_id shape dtype layout memory_config device_id address buffer_type rank storage_type",
    "device_tensors": "tensor_id device_id address rank",
    "buffers": "operation_id device_id address max_size_per_bank buffer_type buffer_layout rank",
    "captured_graph": "operation_id captured_graph rank",
    "nodes": "operation_id unique_id node_operation_id name rank",
    "edges": "operation_id source_unique_id sink_unique_id source_output_index sink_input_index key rank",
    "report_metadata": "key value",
    "errors": "operation_id operation_name error_type error_message stack_trace timestamp rank",
    "source_files": "id path contents",
    "stack_traces": "operation_id stack_trace source_file_id rank",
    "input_tensors": "operation_id input_index tensor_id rank",
    "output_tensors": "operation_id output_index tensor_id rank",
    "tensor_lifetime": "tensor_id producer_operation_id last_use_operation_id deallocate_operation_id "
    "producer_source_file producer_source_line last_use_source_file last_use_source_line rank",
    "tensor_consumers": "tensor_id operation_id input_index rank",
    "tensor_producers": "tensor_id operation_id output_index rank",
    "local_tensor_comparison_records": "tensor_id golden_tensor_id matches desired_pcc actual_pcc rank",
    "global_tensor_comparison_records": "tensor_id golden_tensor_id matches desired_pcc actual_pcc rank",
    "buffer_chunks": "operation_id device_id address bank_id core_x core_y chunk_address chunk_size page_size "
    "num_pages buffer_type rank",
}
# Column → the column that it refers to.
KEYS = {
    ("operation_arguments", "operation_id"): ("operations", "operation_id"),
    ("buffers", "operation_id"): ("operations", "operation_id"),
    ("buffers", "device_id"): ("devices", "device_id"),
    ("buffer_chunks", "operation_id"): ("operations", "operation_id"),
    ("buffer_chunks", "device_id"): ("devices", "device_id"),
    ("captured_graph", "operation_id"): ("operations", "operation_id"),
    ("nodes", "operation_id"): ("operations", "operation_id"),
    ("edges", "operation_id"): ("operations", "operation_id"),
    ("errors", "operation_id"): ("operations", "operation_id"),
    ("stack_traces", "operation_id"): ("operations", "operation_id"),
    ("stack_traces", "source_file_id"): ("source_files", "id"),
    ("input_tensors", "operation_id"): ("operations", "operation_id"),
    ("input_tensors", "tensor_id"): ("tensors", "tensor_id"),
    ("output_tensors", "operation_id"): ("operations", "operation_id"),
    ("output_tensors", "tensor_id"): ("tensors", "tensor_id"),
    ("device_tensors", "tensor_id"): ("tensors", "tensor_id"),
    ("device_tensors", "device_id"): ("devices", "device_id"),
    ("tensors", "device_id"): ("devices", "device_id"),
    ("tensor_lifetime", "tensor_id"): ("tensors", "tensor_id"),
    ("tensor_lifetime", "producer_operation_id"): ("operations", "operation_id"),
    ("tensor_lifetime", "last_use_operation_id"): ("operations", "operation_id"),
    ("tensor_consumers", "tensor_id"): ("tensors", "tensor_id"),
    ("tensor_consumers", "operation_id"): ("operations", "operation_id"),
    ("tensor_producers", "tensor_id"): ("tensors", "tensor_id"),
    ("tensor_producers", "operation_id"): ("operations", "operation_id"),
}
# ttnn-visualizer 0.108.0: ttnn_visualizer/utils.py, MEMORY_CONFIG_PATTERN and those after it
CONFIG = re.compile(
    r"MemoryConfig\(memory_layout=TensorMemoryLayout::[A-Z_]+,buffer_type=BufferType::[A-Z0-9_]+,shard_spec="
    r"(std::nullopt|ShardSpec\(grid=\{(\[.*?\])\},shape=\{(\d+),\s*(\d+)\},orientation=ShardOrientation::[A-Z_]+,halo=\d+\))"
    r".*\)$"
)
MEMORIES = {kind.value: kind for kind in (BufferType.DRAM, BufferType.L1, BufferType.L1_SMALL, BufferType.TRACE)}


class Memories(listeners.Listener):
    """What the allocators say after every outermost call."""

    def __init__(self) -> None:
        self.used: list[dict[BufferType, int]] = []
        self.device = None

    def ended(self, event: listeners.OperationEvent) -> None:
        tensors = [value for value in (event.result, *event.arguments.values()) if isinstance(value, ttnn.Tensor)]
        found = [tensor.device() for tensor in tensors if tensor.device() is not None]
        self.device = found[0] if found else self.device
        if event.depth == 0:
            used = {kind: self.device.memory(kind).allocated for kind in MEMORIES.values()}
            self.used.append(used)


class Report:
    def __init__(self, database: pathlib.Path) -> None:
        self.connection = sqlite3.connect(database)

    def rows(self, table: str, columns: str = "*") -> list[tuple]:
        return self.connection.execute(f"SELECT {columns} FROM {table}").fetchall()

    def column(self, table: str, column: str) -> list:
        return [value for (value,) in self.rows(table, column)]

    def graphs(self) -> dict[int, list[dict]]:
        return {number: json.loads(text) for number, text, _ in self.rows("captured_graph")}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> tuple[Report, Memories]:
    """The script's report, with what the allocators said while it ran."""
    folder = tmp_path_factory.mktemp("report")
    report, memories = MemoryReport("mine"), Memories()
    loaded = sys.modules.get("ttnn")
    ttnn.install_as_ttnn()
    try:
        with listeners.listening(memories), report.recording():
            runpy.run_path(str(SCRIPT), run_name="__main__")
    finally:
        if loaded is None:
            sys.modules.pop("ttnn", None)
    assert json.loads((report.write(folder).parent / "config.json").read_text())["report_name"] == "mine"
    return Report(folder / "db.sqlite"), memories


def test_tables_have_the_columns_that_are_read(recorded) -> None:
    report, _ = recorded
    for table, columns in READ.items():
        described = [name for _, name, *_ in report.connection.execute(f"PRAGMA table_info({table})")]
        assert described == columns.split(), table
    assert ("schema_version", ttnn.graph_report.DATABASE_SCHEMA_VERSION) in report.rows("report_metadata")


def test_references_are_consistent(recorded) -> None:
    report, _ = recorded
    for (table, column), (other, key) in KEYS.items():
        missing = set(report.column(table, column)) - set(report.column(other, key)) - {None}
        assert not missing, f"{table}.{column} is not in {other}.{key}: {missing}"
    for number, graph in report.graphs().items():
        known = {node["id"] for node in graph}
        assert {other for node in graph for other in (*node["connections"], *node["input_tensors"])} <= known, number


def test_operations_are_the_calls_of_the_script(recorded) -> None:
    report, _ = recorded
    names = report.column("operations", "name")
    assert names[:7] == [
        f"ttnn.{name}" for name in "from_torch from_torch linear to_memory_config deallocate exp to_torch".split()
    ]
    assert names[-2:] == ["ttnn.conv2d", "ttnn.matmul"]
    arguments = {name: value for number, name, value, _ in report.rows("operation_arguments") if number == 3}
    assert arguments["activation"] == "relu"
    assert arguments["input_tensor_a"] == "Tensor([1, 1, 256, 256] bfloat16 TILE DRAM) tensor_id=" + str(
        report.rows("input_tensors")[0][2]
    )


def test_memory_configs_are_parsed(recorded) -> None:
    report, _ = recorded
    texts = [text for text in report.column("tensors", "memory_config") if text is not None]
    found = [CONFIG.match(text) for text in texts]
    assert all(found), [text for text, match in zip(texts, found) if not match]
    assert ("[(x=0,y=0) - (x=0,y=7)]", "32", "256") in {match.groups()[1:] for match in found}
    assert "ShardSpec{" not in "".join(report.column("captured_graph", "captured_graph"))


def test_buffers_are_where_the_allocators_put_them(recorded) -> None:
    """Addresses are inside of the banks, no two buffers overlap, and their sum is what the emulator says."""
    report, memories = recorded
    live = defaultdict(list)
    for operation, device, address, size, kind, *_ in report.rows("buffers"):
        live[operation, device, kind].append((address, round_up(size, 64)))
    device = memories.device
    for number, used in enumerate(memories.used, 1):
        for kind, buffer_type in MEMORIES.items():
            buffers = sorted(live[number, 0, kind])
            memory = device.memory(buffer_type)
            assert sum(size for _, size in buffers) == used[buffer_type], (number, buffer_type)
            assert all(memory.base <= at and at + size <= memory.base + memory.bank_bytes for at, size in buffers)
            assert all(at + size <= after for (at, size), (after, _) in itertools.pairwise(buffers)), (number, buffers)


def test_cores_hold_what_their_bank_holds(recorded) -> None:
    report, memories = recorded
    cores: dict[tuple, int] = defaultdict(int)
    for operation, device, address, _, x, y, begin, size, page, pages, kind, _ in report.rows("buffer_chunks"):
        assert kind == BufferType.L1.value and begin == address and size == page * pages
        cores[operation, device, x, y] += size
    for number, used in enumerate(memories.used, 1):
        fullest = max((size for (operation, *_), size in cores.items() if operation == number), default=0)
        assert fullest == used[BufferType.L1]
    sharded = {(x, y) for (number, _, x, y) in cores if number == 6}
    assert sharded == {(0, y) for y in range(8)}


def test_programs_are_inside_of_their_calls(recorded) -> None:
    report, _ = recorded
    graph = report.graphs()[3]
    names = [node["params"]["name"] for node in graph if node["node_type"] == "function_start"]
    assert names[0] == "ttnn.linear" and "MatmulDeviceOperation" in names
    (first, *_) = [node["params"] for node in graph if node["node_type"] == "circular_buffer_allocate"]
    assert first["address"] == report.column("devices", "address_at_first_l1_cb_buffer")[0] and first["size"] > 0
    assert first["core_range_set"] == "{[0-0 - 7-7]}"
    assert first["device_id"] == 0
    conv = report.graphs()[report.column("operations", "name").index("ttnn.conv2d") + 1]
    programs = [node["params"]["name"] for node in conv if node["node_type"] == "function_start"][1:]
    assert len([name for name in programs if name.endswith("DeviceOperation")]) >= 2


def test_functions_end_inside_of_themselves(recorded) -> None:
    report, _ = recorded
    for graph in report.graphs().values():
        by_id = {node["id"]: node for node in graph}
        for node in graph:
            if node["node_type"] == "function_start":
                ends = [by_id[other] for other in node["connections"] if by_id[other]["node_type"] == "function_end"]
                assert [end["params"]["name"] for end in ends] == [node["params"]["name"]]


def test_stack_traces_name_the_script(recorded) -> None:
    report, _ = recorded
    lines = SCRIPT.read_text().splitlines()
    traces = dict(report.rows("stack_traces", "operation_id, stack_trace"))
    path, line, function, text = re.search(r'File "(.+)", line (\d+), in (\w+)\n\s+(.+)', traces[3]).groups()
    assert (path, function, text) == (str(SCRIPT), "block", lines[int(line) - 1].strip()) and "ttnn.linear" in text
    files = dict(report.rows("source_files", "id, path"))
    (script_file,) = [number for number, path in files.items() if path == str(SCRIPT)]
    assert set(report.column("stack_traces", "source_file_id")) == {script_file}
    contents = dict(report.rows("source_files", "path, contents"))
    assert contents[str(SCRIPT)] == SCRIPT.read_text()
    assert not any("ttnn_emulator" in frame for trace in traces.values() for frame in trace.splitlines()[::2])


def test_tensors_have_producers_consumers_and_lifetimes(recorded) -> None:
    report, _ = recorded
    hidden = next(tensor for operation, _, tensor, _ in report.rows("output_tensors") if operation == 3)
    assert [row for row in report.rows("tensor_consumers") if row[0] == hidden] == [
        (hidden, 4, 0, 0),
        (hidden, 5, 0, 0),
    ]
    (life,) = [row for row in report.rows("tensor_lifetime") if row[0] == hidden]
    lines = SCRIPT.read_text().splitlines()
    made, used = (next(n for n, line in enumerate(lines, 1) if name in line) for name in ("ttnn.linear", "ttnn.to_mem"))
    assert life[1:] == (3, 4, 5, str(SCRIPT), made, str(SCRIPT), used, 0)


def test_refused_calls_are_errors(recorded) -> None:
    report, _ = recorded
    (error,) = report.rows("errors")
    assert error[:3] == (11, "ttnn.matmul", "InvalidArgument") and "32 and 256" in error[3]
    assert "recorded_script.py" in error[4] and error[5]
    ends = [node["params"] for node in report.graphs()[11] if node["node_type"] == "function_end"]
    assert ends[-1]["aborted"] == "true" and "32 and 256" in ends[-1]["abort_reason"]


# -- other runs -------------------------------------------------------------------------------------------------------


def ones(device, **more):
    return ttnn.ones([32, 64], layout=ttnn.TILE_LAYOUT, device=device, **more)


def written(report: MemoryReport, folder: pathlib.Path) -> Report:
    return Report(report.write(folder))


def test_buffers_before_the_recording_are_included(tmp_path) -> None:
    report = MemoryReport()
    with ttnn.open_device(device_id=0) as device:
        before = ones(device, memory_config=ttnn.L1_MEMORY_CONFIG)
        unused = ones(device)
        with report.recording():
            after = ttnn.relu(before)
        addresses = {tensor.buffer_address() for tensor in (before, unused, after)}
    assert set(written(report, tmp_path).column("buffers", "address")) == addresses


def test_tensors_of_closed_devices_are_not_included(tmp_path) -> None:
    with ttnn.open_device(device_id=0) as closed:
        kept = ones(closed)
    report = MemoryReport()
    with ttnn.open_device(device_id=0) as device, report.recording():
        ttnn.deallocate(ones(device))
    found = written(report, tmp_path)
    assert kept.device() is closed and found.column("devices", "device_id") == [0]
    assert found.rows("buffers", "operation_id, device_id") == [(1, 0)]


@pytest.mark.parametrize(
    ("error", "kept"), [(ValueError("mine"), True), (KeyboardInterrupt(), True), (SystemExit(0), False)]
)
def test_the_error_that_ends_a_program_is_kept(tmp_path, error, kept) -> None:
    report = MemoryReport()
    with pytest.raises(type(error)), ttnn.open_device(device_id=0) as device, report.recording():
        ones(device)
        raise error
    found = written(report, tmp_path)
    assert found.column("operations", "name") == ["ttnn.ones"]
    rows = found.rows("errors", "operation_id, operation_name, error_type, error_message")
    assert rows == ([(0, "", type(error).__name__, str(error))] if kept else [])


def test_the_error_of_a_call_is_kept_once(tmp_path) -> None:
    report = MemoryReport()
    with pytest.raises(ttnn.EmulatorError) as raised, ttnn.open_device(device_id=0) as device, report.recording():
        ttnn.matmul(ones(device), ones(device))
    rows = written(report, tmp_path).rows("errors", "operation_id, operation_name, error_message")
    assert rows == [(3, "ttnn.matmul", str(raised.value))]


def test_chips_of_a_mesh_are_devices(tmp_path) -> None:
    report = MemoryReport()
    with ttnn.create_mesh_device(ttnn.MeshShape(1, 2), board="n300") as mesh, report.recording():
        address = ones(mesh).buffer_address()
    found = written(report, tmp_path)
    assert found.column("devices", "device_id") == [0, 1]
    assert found.rows("buffers", "device_id, address") == [(chip, address) for chip in (0, 1)]
    assert found.rows("device_tensors", "device_id, address") == [(chip, address) for chip in (0, 1)]
    assert "board_type: n300" in (tmp_path / "cluster_descriptor.yaml").read_text()


def test_open_devices_of_one_chip_are_separate(tmp_path) -> None:
    report = MemoryReport()
    with report.recording():
        with ttnn.open_device(device_id=0) as one, ttnn.open_device(device_id=0) as other:
            kept = [ones(one), ones(other)]
            assert kept[0].buffer_address() == kept[1].buffer_address()
        with ttnn.open_device(device_id=0) as again:
            kept += [ones(again)]
    found = written(report, tmp_path)
    assert found.rows("buffers", "operation_id, device_id") == [(1, 0), (2, 0), (2, 1), (3, 0)]


def test_calls_of_threads_are_whole(tmp_path) -> None:
    report = MemoryReport()
    with ttnn.open_device(device_id=0) as device, report.recording():

        def work() -> None:
            for _ in range(20):
                ttnn.softmax(ttnn.relu(ones(device)), dim=-1)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANG_SECONDS)
    found = written(report, tmp_path)
    names = found.column("operations", "name")
    assert {name: names.count(name) for name in names} == {"ttnn.ones": 60, "ttnn.relu": 60, "ttnn.softmax": 60}
    assert len(found.rows("input_tensors")) == 120


@pytest.mark.parametrize("board", ["e150", "p150-13x10"])
def test_boards_whose_banks_are_not_recorded(tmp_path, board) -> None:
    report = MemoryReport()
    with ttnn.open_device(device_id=0, board=board) as device, report.recording():
        kept = ones(device, memory_config=ttnn.L1_MEMORY_CONFIG)
    assert written(report, tmp_path).rows("buffer_chunks", "core_x, core_y, num_pages") == [(0, 0, 1), (1, 0, 1)]
    kept.deallocate()


def test_a_failed_write_leaves_the_old_report(tmp_path, monkeypatch) -> None:
    report = MemoryReport()
    before = report.write(tmp_path).read_bytes()
    monkeypatch.setattr("ttnn_emulator.profiling.memory_report.import_metadata", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        report.write(tmp_path)
    assert (tmp_path / "db.sqlite").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cluster_descriptor.yaml", "config.json", "db.sqlite"]


def test_long_arguments_are_cut(tmp_path) -> None:
    report = MemoryReport()
    with ttnn.open_device(device_id=0) as device, report.recording():
        ttnn.from_torch(torch.ones(4, 4), device=device)
        ttnn.from_buffer(list(range(4096)), [64, 64], ttnn.int32, device, layout=ttnn.ROW_MAJOR_LAYOUT)
    longest = max(map(len, written(report, tmp_path).column("operation_arguments", "value")))
    assert 2_000 < longest < 2_100


@pytest.mark.parametrize("detailed", [True, False])
def test_settings_of_the_library_request_a_report(tmp_path, detailed) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import ttnn\nwith ttnn.open_device(device_id=0) as device:\n"
        "    x = ttnn.ones([32, 64], layout=ttnn.TILE_LAYOUT, device=device, memory_config=ttnn.L1_MEMORY_CONFIG)\n"
        "    raise ValueError('mine')\n"
    )
    settings = {
        "enable_fast_runtime_mode": False,
        "enable_logging": True,
        "enable_detailed_buffer_report": detailed,
        "report_name": "A report",
        "root_report_path": str(tmp_path / "reports"),
    }
    done = subprocess.run(
        [sys.executable, "-m", "ttnn_emulator", str(script)],
        env={**os.environ, "TTNN_CONFIG_OVERRIDES": json.dumps(settings)},
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
    )
    assert done.returncode == 1 and "ValueError: mine" in done.stderr
    (folder,) = (tmp_path / "reports").iterdir()
    assert folder.name.startswith("a_report_")
    found = Report(folder / "db.sqlite")
    assert found.column("operations", "name") == ["ttnn.ones"]
    assert found.rows("errors", "error_type, error_message") == [("ValueError", "mine")]
    assert bool(found.rows("buffer_chunks")) is detailed
    assert found.rows("source_files", "path, contents") == [(str(script), script.read_text())]
