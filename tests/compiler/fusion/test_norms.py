"""Layer norm and RMS norm written out by hand become one call."""

from __future__ import annotations

import pytest
import torch

from tests.compiler.fusion.captured import fused, fused_model

X, W, B = torch.randn(2, 5, 48), torch.randn(48), torch.randn(48)


def llama(x, w):
    variance = x.pow(2).mean(-1, keepdim=True)
    return w * (x * torch.rsqrt(variance + 1e-6))


RMS = {
    "llama": llama,
    "by division": lambda x, w: x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w,
    "by power": lambda x, w: x * (x.pow(2).mean(2, keepdim=True) + 1e-6) ** -0.5 * w,
}


@pytest.mark.parametrize("function", RMS.values(), ids=RMS)
def test_rms_norm(function):
    result = fused(function, X, W)
    assert result.names == {"rms norm": 1}
    assert result.calls == ["_fused_rms_norm"]


def test_rms_norm_without_a_weight():
    result = fused(lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5), X)
    assert result.calls == ["_fused_rms_norm"]


def test_two_weights_of_one_norm_share_it():
    def function(x, w, v):
        normal = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return normal * w, normal * v

    assert fused(function, X, W, B).calls == ["_fused_rms_norm", "mul", "mul"]


def test_rms_norm_computed_in_float32_between_conversions():
    def function(x, w):
        wide = x.to(torch.float32)
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return w * wide.to(x.dtype)

    result = fused(function, X.bfloat16(), W.bfloat16())
    assert result.calls == ["_fused_rms_norm"]


def test_a_weight_of_another_dtype_keeps_its_conversions():
    """Gemma applies the weight in float32 and converts afterwards."""

    def function(x, w):
        wide = x.to(torch.float32)
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6) * (1 + w.float())).to(x.dtype)

    result = fused(function, X.bfloat16(), W.bfloat16())
    assert result.names == {"rms norm": 1}
    assert result.calls.count("_to_copy") == 3


def by_hand(x, w, b):
    mean = x.mean(-1, keepdim=True)
    variance = (x - mean).pow(2).mean(-1, keepdim=True)
    return (x - mean) / torch.sqrt(variance + 1e-5) * w + b


def by_both(x, w, b):
    variance, mean = torch.var_mean(x, -1, keepdim=True, correction=0)
    return (x - mean) * torch.rsqrt(variance + 1e-5) * w + b


@pytest.mark.parametrize("function", [by_hand, by_both])
def test_layer_norm(function):
    result = fused(function, X, W, B)
    assert result.names == {"layer norm": 1}
    assert result.calls == ["native_layer_norm"]


def test_layer_norm_without_weights():
    assert fused(lambda x: by_hand(x, 1.0, 0.0), X).names == {"layer norm": 1}
    result = fused(lambda x: (x - x.mean(-1, True)) / (x.var(-1, keepdim=True, correction=0) + 1e-5).sqrt(), X)
    assert result.calls == ["native_layer_norm"]


def test_the_modules_of_torch_stay_whole():
    assert fused_model(torch.nn.LayerNorm(48), X).calls == ["native_layer_norm"]
    assert fused_model(torch.nn.RMSNorm(48), X).calls == ["_fused_rms_norm"]


OTHERS = {
    "eps after the root": lambda x, w: x / (torch.sqrt(x.pow(2).mean(-1, keepdim=True)) + 1e-6) * w,
    "eps outside": lambda x, w: w * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True)) + 1e-6),
    "another dimension": lambda x, w: x * torch.rsqrt(x.pow(2).mean(1, keepdim=True) + 1e-6) * w,
    "two dimensions": lambda x, w: x * torch.rsqrt(x.pow(2).mean((1, 2), keepdim=True) + 1e-6) * w,
    "another power": lambda x, w: x * torch.rsqrt(x.pow(4).mean(-1, keepdim=True) + 1e-6) * w,
    "another input": lambda x, w: (x + 1) * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w,
    "a standard deviation of samples": lambda x, w: (x - x.mean(-1, True)) / (x.std(-1, keepdim=True) + 1e-6) * w,
    "a variance of samples": lambda x, w: (x - x.mean(-1, True)) / (x.var(-1, keepdim=True) + 1e-6).sqrt() * w,
}


@pytest.mark.parametrize("function", OTHERS.values(), ids=OTHERS)
def test_look_alikes_are_left(function):
    assert fused(function, X, W).names == {}


def test_a_factor_of_another_shape_is_not_a_weight():
    result = fused(llama, X, torch.randn(5, 48))
    assert result.calls == ["_fused_rms_norm", "mul"]


def test_statistics_that_are_used_elsewhere_are_left():
    def function(x):
        root = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return x * root, root

    assert fused(function, X).names == {}
