"""Captures to files with the Python calls, and graphs as JSON and diagrams."""

from __future__ import annotations

import json

import pytest
import torch

import ttnn_emulator as ttnn

GRAPH = ttnn.graph
NORMAL = ttnn.graph.RunMode.NORMAL


@pytest.fixture
def device():
    with ttnn.open_device(device_id=0) as opened:
        yield opened


def captured(device, path):
    GRAPH.begin_graph_capture(NORMAL)
    x = ttnn.ones([64, 64], layout=ttnn.TILE_LAYOUT, device=device)
    kept = ttnn.add(x, 2.0, memory_config=ttnn.L1_MEMORY_CONFIG)
    nodes = GRAPH.end_graph_capture_to_file(path)
    return nodes, json.loads(path.read_text()), json.loads(path.with_suffix(".python_io.json").read_text()), kept


def test_files_contain_devices_and_buffers(device, tmp_path):
    nodes, report, _, kept = captured(device, tmp_path / "report.json")
    assert report["version"] == GRAPH.REPORT_VERSION and report["graph"] == nodes
    assert {entry["arch"] for entry in report["devices"]} == {"WORMHOLE_B0"}
    held = list(report["per_operation_buffers"].values())[-1]
    assert kept.buffer_address() in [buffer["address"] for buffer in held]
    tensor = [node["params"] for node in nodes if node["node_type"] == "tensor"][-1]
    assert json.loads(tensor["device_tensors"])[0]["address"] == kept.buffer_address() == tensor["address"]


def test_calls_are_written_beside_the_graph(device, tmp_path):
    _, _, calls, kept = captured(device, tmp_path / "report.json")
    assert [call["name"] for call in calls] == ["ttnn.ones", "ttnn.add"]
    assert calls[1]["input_tensor_ids"] == calls[0]["output_tensor_ids"]
    assert calls[1]["output_tensor_ids"] == [kept.tensor_id]
    assert "python_stack_trace" not in calls[0]


def test_full_captures_have_stack_traces_and_pages(device, tmp_path):
    path = tmp_path / "report.json"
    with GRAPH.full_graph_capture(str(path)):
        kept = ttnn.ones([64, 64], layout=ttnn.TILE_LAYOUT, device=device, memory_config=ttnn.L1_MEMORY_CONFIG)
    assert (
        "test_graph_records.py"
        in json.loads(path.with_suffix(".python_io.json").read_text())[0]["python_stack_trace"][0]
    )
    assert {page["address"] for page in json.loads(path.read_text())["buffer_pages"]} == {kept.buffer_address()}
    assert not GRAPH.is_python_stack_trace_enabled() and not GRAPH.is_detailed_buffer_tracing_enabled()


@pytest.mark.parametrize("setting", ["enable_graph_python_stack_traces", "enable_detailed_tensor_report"])
def test_settings_enable_stack_traces(setting):
    with ttnn.manage_config(setting, True):
        GRAPH.begin_graph_capture(NORMAL)
        assert GRAPH.is_python_stack_trace_enabled()
        GRAPH.end_graph_capture()
    assert not GRAPH.is_python_stack_trace_enabled()


def test_failed_calls_keep_their_error(device):
    GRAPH.begin_graph_capture(NORMAL)
    x = ttnn.ones([64, 64], device=device, layout=ttnn.TILE_LAYOUT)
    with pytest.raises(RuntimeError):
        ttnn.matmul(x, ttnn.ones([32, 32], device=device, layout=ttnn.TILE_LAYOUT))
    records = GRAPH._python_io_data
    GRAPH.end_graph_capture()
    assert "error" in records[-1] and "error" not in records[0]


def test_records_can_be_written_manually():
    GRAPH.begin_graph_capture(NORMAL)
    GRAPH.record_python_operation("ttnn.mine", (torch.zeros(2, 3), [1, 2]), {"dim": None})
    GRAPH.store_captured_graph("a graph")
    assert GRAPH._python_io_data == [
        {
            "name": "ttnn.mine",
            "arguments": {"dim": "None", "0": "torch.Tensor(shape=[2, 3], dtype=torch.float32)", "1": "[1, 2]"},
            "input_tensor_ids": [],
            "captured_graph": "a graph",
        }
    ]
    GRAPH.end_graph_capture()


def test_arguments_become_json():
    text = "Tensor(shape=Shape([2, 3]), dtype=DataType::BFLOAT16, tile=Tile(tile_shape={32, 32}), on=0)"
    calls = [{"arguments": [text, "1.5", "[1, 2]", "Tensor("], "params": {"name": "ttnn.mine"}}]
    found = ttnn.graph_tracer_utils.GraphTracerUtils.serialize_graph(calls)["content"][0]
    tensor = {"shape": [2, 3], "dtype": "DataType::BFLOAT16", "tile": {"tile_shape": "{32, 32}"}, "on": 0}
    assert found["operation"] == "ttnn.mine"
    assert found["arguments"][:3] == [{"arg0": {"Tensor": tensor}}, {"arg1": "1.5"}, {"arg2": [1, 2]}]
    assert "UnparsedElement" in found["arguments"][3]


def test_graphs_are_drawn(device):
    pytest.importorskip("graphviz", reason="diagrams need the optional package graphviz")
    GRAPH.begin_graph_capture(NORMAL)
    ttnn.ones([64, 64], layout=ttnn.TILE_LAYOUT, device=device)
    drawn = GRAPH.visualize(GRAPH.end_graph_capture())
    assert "ttnn.ones" in drawn.source
    with pytest.raises(ValueError):
        GRAPH.visualize([], file_name="graph.txt")


def test_user_defined_functions_are_in_the_graph(device):
    GRAPH.begin_graph_capture(NORMAL)
    GRAPH.track_function_start("mine")
    ttnn.ones([32, 32], layout=ttnn.TILE_LAYOUT, device=device)
    GRAPH.track_function_end()
    GRAPH.track_function_start("unfinished")
    ttnn._ttnn.graph.unwind_open_functions("tired")
    nodes = GRAPH.end_graph_capture()
    assert GRAPH.extract_calltrace(nodes) == ["mine", "ttnn.ones", "unfinished"]
    ends = [node["params"] for node in nodes if node["node_type"] == "function_end"]
    assert [params["name"] for params in ends] == ["ttnn.ones", "mine", "unfinished"]
    assert ends[-1]["aborted"] == "tired"
