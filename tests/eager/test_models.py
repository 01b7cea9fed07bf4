"""Models on `ttnn` in eager mode: nothing on the host, and results as torch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import torch_ttnn
from torch_ttnn.workloads.agreement import pcc
from torch_ttnn.zoo.torchvision_ops import ensure_operators

OPERATORS = ensure_operators()  # before torchvision is imported, and as long as it is used
Made = tuple[nn.Module, tuple, dict[str, Any]]


def resnet18() -> Made:
    torchvision = pytest.importorskip("torchvision")
    return torchvision.models.resnet18(), (torch.randn(1, 3, 64, 64),), {}


def bert() -> Made:
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(hidden_size=64, num_attention_heads=4, num_hidden_layers=2, intermediate_size=128)
    inputs = {"input_ids": torch.randint(0, 1000, (2, 32)), "attention_mask": torch.ones(2, 32, dtype=torch.long)}
    inputs["attention_mask"][1, 20:] = 0
    return transformers.BertModel(config), (), inputs


def gpt2() -> Made:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(n_embd=64, n_head=4, n_layer=2, vocab_size=1000)
    return transformers.GPT2LMHeadModel(config), (), {"input_ids": torch.randint(0, 1000, (2, 24))}


def unet() -> Made:
    diffusers = pytest.importorskip("diffusers")
    model = diffusers.UNet2DConditionModel(
        sample_size=8,
        block_out_channels=(32, 64),
        layers_per_block=1,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        cross_attention_dim=32,
        attention_head_dim=8,
        norm_num_groups=8,
    )
    return model, (torch.randn(1, 4, 8, 8), torch.tensor([5]), torch.randn(1, 7, 32)), {}


def moved(item: Any) -> Any:
    return item.to("ttnn") if isinstance(item, torch.Tensor) else item


@pytest.mark.parametrize("make", [resnet18, bert, gpt2, unet])
def test_models(make: Callable[[], Made]) -> None:
    model, args, kwargs = make()
    model.eval()
    with torch.no_grad():
        want = first(model(*args, **kwargs))
        model.to("ttnn")
        with torch_ttnn.eager(strict=True):
            got = first(model(*map(moved, args), **{name: moved(each) for name, each in kwargs.items()}))
    assert pcc(got.cpu(), want) >= 0.999


def first(made: Any) -> torch.Tensor:
    return made if isinstance(made, torch.Tensor) else made[0]
