"""`ttnn.operation_tracer`: calls of the slow runtime mode as files."""

from __future__ import annotations

import json

import pytest
import torch

import ttnn_emulator as ttnn

TRACER = ttnn.operation_tracer


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TTNN_OPERATION_TRACE_DIR", str(tmp_path))
    TRACER.enable_tracing()
    yield tmp_path
    TRACER.enable_tracing(False)
    TRACER.enable_tensor_value_serialization(False)
    TRACER.set_sweep_source_hash(None)


@pytest.fixture
def device():
    with ttnn.open_device(device_id=0) as opened:
        yield opened


def written(folder) -> list[dict]:
    files = sorted(folder.glob("*.json"), key=lambda path: int(path.name.split("_")[0]))
    return [json.loads(path.read_text(encoding="utf-8")) for path in files]


def test_calls_are_written_in_slow_mode_only(folder, device):
    x = ttnn.ones([32, 32], layout=ttnn.TILE_LAYOUT, device=device)
    assert written(folder) == []
    with ttnn.manage_config("enable_fast_runtime_mode", False):
        ttnn.mish(ttnn.add(x, x, memory_config=ttnn.L1_MEMORY_CONFIG))
    add, mish = written(folder)
    assert (add["operation_name"], mish["operation_name"]) == ("ttnn.add", "ttnn.mish")
    assert [arg["position"] for arg in add["args"]] == [0, 1]
    assert add["kwargs"]["memory_config"]["buffer_type"] == "BufferType.L1"
    assert add["return_value"]["mesh_device"]["shape"] == [1, 1]
    assert "values" not in add["return_value"]


def test_values_and_hashes_are_written_on_request(folder, device):
    TRACER.enable_tensor_value_serialization()
    TRACER.set_sweep_source_hash("abc")
    with ttnn.manage_config("enable_fast_runtime_mode", False):
        ttnn.from_torch(torch.arange(4).reshape(2, 2), device=device)
    (call,) = written(folder)
    assert call["args"][0]["value"]["values"] == call["return_value"]["values"] == [[0, 1], [2, 3]]
    assert call["sweep_source_hash"] == "abc"
    assert call["kwargs"]["device"]["type"] == "MeshDevice"


def test_flags_can_be_set_by_name(device, tmp_path, monkeypatch):
    monkeypatch.setenv("TTNN_OPERATION_TRACE_DIR", str(tmp_path))
    monkeypatch.setattr(TRACER, "_ENABLE_TRACE", True)
    assert TRACER.is_tracing_enabled()
    with ttnn.manage_config("enable_fast_runtime_mode", False):
        ttnn.ones([2, 2])
    assert len(written(tmp_path)) == 1


def test_custom_functions_are_written(folder):
    double = TRACER.wrap_function_for_tracing(lambda x, *, by: x * by, "mine.times")
    assert double(3, by=2) == 6
    (call,) = written(folder)
    assert (call["operation_name"], call["kwargs"], call["return_value"]) == ("mine.times", {"by": 2}, 6)
