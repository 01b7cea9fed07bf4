"""Every listed model runs on the device as a whole: no host operation, no crossings within, correct for three seeds."""

from __future__ import annotations

import pytest
import torch

zoo = pytest.importorskip("torch_ttnn.zoo")
pytest.importorskip("transformers", reason="the models are built by transformers and torchvision")

from torch_ttnn.workloads.measure import measure  # noqa: E402

DEMO = ("bert-large-qa", "gpt2", "codegen-350M", "resnet18", "resnet18-32px", "mnist-cnn")
REAL_SIZE = (
    "distilbert roberta albert vit-base deit-base swin-tiny convnext-tiny mobilenetv2 resnet50 vgg16 densenet121 "
    "efficientnet-b0 segformer-b0 clip t5-small t5-small-encoder whisper-tiny"
).split()
REDUCED = (
    "llama-2L mistral-2L qwen2-2L falcon-2L phi-2L bloom-2L opt-2L gptneo-2L mamba-2L perceiver-mlm-2L detr-2L yolos-2L"
).split()
# One model of each kind that takes a second or two; `make sweep` runs the rest.
QUICK = ("mnist-cnn", "resnet18-32px", "llama-2L", "bloom-2L", "opt-2L", "yolos-2L", "bert-large-qa-2L")
LEAST_PCC = dict.fromkeys(DEMO, 0.999)
SEEDS = (0, 1, 2)


def marked(names: list[str]) -> list:
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in names]


@pytest.mark.parametrize("name", marked([*DEMO, *REAL_SIZE, *REDUCED, "bert-large-qa-2L"]))
def test_compiles_whole(name: str) -> None:
    torch._dynamo.reset()
    entry = zoo.find(name)
    measured = measure(entry.build(), [entry.inputs(seed) for seed in SEEDS])
    assert not measured.host_ops
    assert measured.uploads <= measured.inputs and measured.downloads <= measured.outputs
    assert measured.pcc >= LEAST_PCC.get(name, 0.99)
    assert measured.relative_error <= 0.2
