"""Traces on fake tensors equal traces on real ones."""

from __future__ import annotations

import pathlib

import pytest

from tests.zoo.installed import need
from torch_ttnn.tracer.records import read
from torch_ttnn.workloads.trace import files, forget, trace_model

SMALL = [
    ("resnet18-32px", {}),
    ("resnet18-32px", {"batch": 2, "backward": True}),
    ("torchvision:shufflenet_v2_x0_5", {"shape": [1, 3, 64, 64]}),
    ("torchvision:lraspp_mobilenet_v3_large", {"shape": [1, 3, 64, 64]}),
    ("timm:regnety_002", {"shape": [2, 3, 64, 64], "backward": True}),
    ("DistilBertModel", {"length": 16}),
    ("GPT2LMHeadModel", {"length": 16, "backward": True}),
    ("mamba-2L", {}),
]
LARGE = [
    ("torchvision:vit_b_16", {}),
    ("torchvision:swin_t", {"backward": True}),
    ("torchvision:googlenet", {"backward": True}),
    ("torchvision:deeplabv3_resnet50", {"shape": [1, 3, 224, 224]}),
    ("timm:maxvit_pico_rw_256", {}),
    ("T5ForConditionalGeneration", {"backward": True}),
    ("WhisperForConditionalGeneration", {}),
    ("CLIPModel", {}),
    ("LlamaForCausalLM", {"length": 32}),
]


def traced(folder: pathlib.Path, model: str, values: str, **choice: object) -> list:
    """All records of all graphs, without the source lines of torch's own bookkeeping."""
    row = trace_model(model=model, out=str(folder / values), values=values, lowering=False, **choice)
    assert row["values"] == values
    raw = [read(folder / values / name) for name in row["files"]]
    return [(trace.phase, trace.graph, record) for trace in raw for record in trace.records]


@pytest.mark.parametrize(("model", "choice"), SMALL)
def test_fake_tensors_have_the_same_records(model: str, choice: dict, tmp_path: pathlib.Path) -> None:
    need("torchvision", "timm", "transformers")
    assert traced(tmp_path, model, "fake", **choice) == traced(tmp_path, model, "real", **choice)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "choice"), LARGE)
def test_fake_tensors_have_the_same_records_in_large_models(model: str, choice: dict, tmp_path: pathlib.Path) -> None:
    need("torchvision", "timm", "transformers")
    assert traced(tmp_path, model, "fake", **choice) == traced(tmp_path, model, "real", **choice)


def test_one_image_is_too_few_for_some_batch_norms_in_training(tmp_path: pathlib.Path) -> None:
    need("torchvision")
    with pytest.raises(ValueError, match=r"resnet18-32px cannot be trained on one image.* --batch 2"):
        trace_model(model="resnet18-32px", out=str(tmp_path), backward=True)


def test_files_of_models_are_distinguished(tmp_path: pathlib.Path) -> None:
    mine = ["raw/fw_net_0.json", "raw/bw_net_12.json", "graphviz/fw_net_0.svg", "profile/net.json"]
    others = ["raw/fw_net_2_0.json", "raw/fw_net2_0.json", "raw/notes.txt", "raw/fw_net_x.json", "profile/net_2.json"]
    for name in (*mine, *others):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    assert {str(path.relative_to(tmp_path)) for path in files("net", tmp_path)} == set(mine)
    forget("net", tmp_path)
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()} == set(others)
    assert files("net", tmp_path / "nowhere") == []
