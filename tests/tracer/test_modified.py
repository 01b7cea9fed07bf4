"""`tracer_option` of the compiler: the captured graph and its program."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest
import torch
from torch import nn

import torch_ttnn
from tests.compiler.small_models import cnn
from tests.tracer.traced import counts, traces
from torch_ttnn.tracer import TracerOption


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()


def compiled(
    model: Any, folder: pathlib.Path, *, dynamic: bool | None = None, cache_dir: str = "", **fields: Any
) -> Any:
    options = {"tracer_option": {"out_folder": folder, "model_name": "m", **fields}, "cache_dir": cache_dir}
    return torch.compile(model, backend="ttnn", options=options, dynamic=dynamic)


def test_the_program_is_recorded_with_its_specs(tmp_path: pathlib.Path) -> None:
    with torch.no_grad():
        compiled(nn.Linear(8, 4), tmp_path, trace_modi=True)(torch.ones(2, 8))
    (captured,), (modified,) = traces(tmp_path), traces(tmp_path, "raw_modified")
    assert "aten.addmm.default" in counts([captured], "fw")
    assert list(counts([modified], "fw")) == ["ttnn.from_torch", "ttnn.linear", "ttnn.to_torch"]
    upload, linear, _ = modified.records
    assert upload.inputs[0].dtype == "float32" and upload.outputs[0].dtype == "bfloat16"
    assert [(each.shape, each.dtype, each.name) for each in linear.inputs] == [
        ((2, 8), "bfloat16", "input_tensor_a"),
        ((8, 4), "bfloat16", "input_tensor_b"),
        ((1, 4), "bfloat16", "bias"),
    ]
    assert linear.outputs[0].shape == (2, 4)
    assert upload.arguments["layout"] == "ttnn.TILE_LAYOUT"
    assert (linear.bytes_in, linear.bytes_out) == (2 * (16 + 32 + 4), 2 * 8)
    assert {each.lowering for each in modified.records} == {"device"}


@pytest.mark.parametrize(
    "fields, folders", [({}, ["raw"]), ({"trace_orig": False, "trace_modi": True}, ["raw_modified"])]
)
def test_either_can_be_disabled(fields: dict, folders: list[str], tmp_path: pathlib.Path) -> None:
    with torch.no_grad():
        compiled(nn.Linear(8, 4), tmp_path, **fields)(torch.ones(2, 8))
    assert [each.name for each in tmp_path.iterdir()] == folders


def test_forward_and_backward_share_a_number(tmp_path: pathlib.Path) -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))
    compiled(model, tmp_path, trace_modi=True)(torch.randn(2, 8)).sum().backward()
    for folder in ("raw", "raw_modified"):
        assert [(each.phase, each.graph) for each in traces(tmp_path, folder)] == [("bw", 0), ("fw", 0)]


def test_a_program_from_disk_is_recorded_as_well(tmp_path: pathlib.Path) -> None:
    model, x = cnn(), torch.randn(1, 3, 16, 16)
    kept = tmp_path / "cache"
    for run in ("first", "second"):
        torch._dynamo.reset()
        with torch.no_grad():
            compiled(model, tmp_path / run, trace_modi=True, cache_dir=str(kept))(x)
        assert len(list(kept.glob("*.jsonl"))) == 1
    for folder in ("raw", "raw_modified"):
        (first,), (second,) = traces(tmp_path / "first", folder), traces(tmp_path / "second", folder)
        assert first.records == second.records
        assert first.records


def test_every_set_of_shapes_is_a_graph(tmp_path: pathlib.Path) -> None:
    model = compiled(lambda x: x.relu() * 2, tmp_path, trace_modi=True, dynamic=True)
    for length in (3, 5, 5, 7):
        model(torch.ones(length, 8))
    for folder in ("raw", "raw_modified"):
        found = traces(tmp_path, folder)
        assert sorted(each.records[-1].outputs[0].shape[0] for each in found) == [3, 5, 7]
        assert sorted(each.graph for each in found) == [0, 1, 2]


def test_what_stays_on_the_host_is_recorded_with_its_reason(tmp_path: pathlib.Path) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.svd(x.relu()).S + 1

    compiled(model, tmp_path, trace_modi=True)(torch.randn(4, 4))
    (modified,) = traces(tmp_path, "raw_modified")
    host = next(each for each in modified.records if each.op_type == "aten._linalg_svd.default")
    assert (host.lowering, host.reason) == ("host", "no lowering is registered for this operation")
    assert [each.shape for each in host.outputs][1] == (4,)
    assert "linalg.svd" in host.source


def test_results_do_not_change(tmp_path: pathlib.Path) -> None:
    model, x = cnn(), torch.randn(1, 3, 16, 16)
    with torch.no_grad():
        plain = torch.compile(model, backend="ttnn", options={"cache_dir": ""})(x)
        torch._dynamo.reset()
        assert torch.equal(compiled(model, tmp_path, trace_modi=True)(x), plain)


def test_the_option_is_checked_when_it_is_passed() -> None:
    with pytest.raises(TypeError, match="unknown tracer option 'nosuch'; known are model_name"):
        torch_ttnn.TorchTtnnOption(tracer_option={"nosuch": 1})
    option = TracerOption(model_name="m")
    assert torch_ttnn.TorchTtnnOption(tracer_option=option).tracer_option is option
