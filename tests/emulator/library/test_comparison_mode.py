"""Comparison mode: calls of the slow runtime mode compared with their golden functions."""

from __future__ import annotations

import json

import pytest
import torch

import ttnn_emulator as ttnn


@pytest.fixture
def device():
    with ttnn.open_device(device_id=0) as opened:
        yield opened


@pytest.fixture(autouse=True)
def comparing():
    with (
        ttnn.manage_config("enable_fast_runtime_mode", False),
        ttnn.manage_config("enable_comparison_mode", True),
        ttnn.manage_config("comparison_mode_pcc", 0.99),
        ttnn.manage_config("comparison_mode_should_raise_exception", True),
    ):
        yield
    ttnn.graph.reset_comparison_records_data()


def tiles(device, *shape):
    return ttnn.from_torch(torch.rand(*shape), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)


def test_correct_results_pass_and_are_recorded(device, tmp_path):
    x = tiles(device, 64, 64)
    ttnn.graph.begin_graph_capture(ttnn.graph.RunMode.NORMAL)
    y = ttnn.exp(ttnn.add(x, x))
    ttnn.graph.end_graph_capture_to_file(tmp_path / "report.json")
    records = json.loads((tmp_path / "report.comparison_records.json").read_text())
    for kind in ("local", "global"):
        found = records[f"{kind}_tensor_comparison_records"]
        assert found[-1]["tensor_id"] == y.tensor_id and all(record["matches"] for record in found)
    assert len(records["tensors"]) == 4


def test_wrong_results_raise_or_are_logged(device, monkeypatch, caplog):
    x = tiles(device, 64, 64)
    monkeypatch.setattr(ttnn.exp, "golden_function", lambda x, **_: -x)
    with pytest.raises(RuntimeError, match="PCC"):
        ttnn.exp(x)
    with ttnn.manage_config("comparison_mode_should_raise_exception", False):
        ttnn.exp(x)
    assert "local comparison" in caplog.text


def test_the_fast_mode_compares_nothing(device):
    with ttnn.manage_config("enable_fast_runtime_mode", True):
        ttnn.exp(tiles(device, 32, 32))
    assert not ttnn.graph.has_comparison_records()
