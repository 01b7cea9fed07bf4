"""Fused graphs on the device: the library's fused operations where they apply, and correct results where not."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.compiler.fusion.captured import fused, fused_model
from tests.compiler.fusion.test_projections import Attention
from tests.compiler.fusion.test_rotary import halves, neighbours, rotated


def test_linears_with_activations_are_one_call_each():
    model = nn.Sequential(nn.Linear(64, 96), nn.GELU(), nn.Linear(96, 32), nn.SiLU(), nn.Linear(32, 8), nn.Tanh())
    calls = fused_model(model, torch.randn(3, 64)).on_device()
    assert calls == ["ttnn.from_torch", "ttnn.linear", "ttnn.linear", "ttnn.linear", "ttnn.to_torch"]


def test_convolutions_with_norms_and_activations():
    layers = nn.Conv2d(16, 32, 3, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 32, 3), nn.SiLU()
    calls = fused_model(nn.Sequential(*layers), torch.randn(1, 16, 8, 8)).on_device()
    assert calls.count("ttnn.conv2d") == 2
    assert not [call for call in calls if call in ("ttnn.relu", "ttnn.silu", "ttnn.batch_norm", "ttnn.multiply")]


def test_quick_gelu():
    fused(lambda x: x * torch.sigmoid(1.702 * x), torch.randn(3, 40)).on_device(bound=0.02)


@pytest.mark.parametrize("length", [32, 7])
@pytest.mark.parametrize("width", [32, 64, 48])
@pytest.mark.parametrize("rotate", [halves, neighbours])
def test_rotary_embedding(rotate, width, length):
    angle = torch.randn(1, 1, length, width)
    result = fused(rotated(rotate), torch.randn(2, 3, length, width), angle.cos(), angle.sin(), statics=(1, 2))
    calls = result.on_device(bound=0.02)
    assert ("ttnn.experimental.rotary_embedding" in calls) == (rotate is halves and width != 48)
    assert "ttnn.concat" not in calls


@pytest.mark.parametrize("rotate", [halves, neighbours])
def test_rotary_embedding_in_float32(rotate):
    angle = torch.randn(1, 1, 5, 64)
    result = fused(rotated(rotate), torch.randn(2, 3, 5, 64), angle.cos(), angle.sin(), statics=(1, 2))
    result.on_device(bound=1e-5, precision="float32")


@pytest.mark.parametrize("statics", [(1, 2), ()])
def test_rotary_embedding_of_a_part_with_positions_before_heads(statics):
    def function(x, cos, sin):
        return torch.cat((rotated(neighbours)(x[..., :32], cos, sin), x[..., 32:]), dim=-1).permute(0, 2, 1, 3)

    angle = torch.randn(1, 7, 1, 32)
    result = fused(function, torch.randn(2, 7, 3, 64), angle.cos(), angle.sin(), statics=statics)
    calls = result.on_device(bound=0.02)
    assert calls.count("ttnn.permute") == 1
    assert "ttnn.concat" not in calls


@pytest.mark.parametrize("shape", [(2, 1, 1, 40), (2, 1, 6, 40), (40,), (1, 3, 6, 40)])
def test_softmax_with_scale_and_mask(shape):
    result = fused(lambda x, mask: torch.softmax(x * 0.3 + mask, -1), torch.randn(2, 3, 6, 40), torch.randn(shape))
    calls = result.on_device(bound=0.05)
    assert ("ttnn.scale_mask_softmax" in calls) == (shape == (2, 1, 1, 40))


@pytest.mark.parametrize("model", [Attention(), Attention(heads=4, kv_heads=2), Attention(form="axis")])
def test_heads(model):
    calls = fused_model(model, torch.randn(2, 40, 64)).on_device()
    assert calls.count("ttnn.transformer.split_query_key_value_and_split_heads") == 1
    assert calls.count("ttnn.linear") == 1
    assert calls.count("ttnn.transformer.concatenate_heads") == 1


def test_attention_by_hand():
    def function(q, k, v, mask):
        return torch.softmax(q @ k.mT / 8 + mask, -1) @ v

    hidden = torch.zeros(2, 1, 1, 40)
    hidden[1, ..., 20:] = torch.finfo(torch.float32).min
    given = [torch.randn(2, 3, 40, 64) for _ in range(3)]
    calls = fused(function, *given, hidden).on_device()
    assert "ttnn.transformer.scaled_dot_product_attention" in calls


def test_norms_by_hand():
    def function(x, w):
        return w * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))

    calls = fused(function, torch.randn(2, 5, 64), torch.randn(64), statics=(1,)).on_device(bound=0.03)
    assert "ttnn.rms_norm" in calls and len(calls) == 3
