"""Linears with bias, factor and activation; batch norms folded; convolutions with activations."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.compiler.fusion.captured import fused, fused_model

X, W, B = torch.randn(6, 16), torch.randn(16, 24), torch.randn(24)
ACTIVATIONS = {
    "relu": nn.ReLU(),
    "relu6": nn.ReLU6(),
    "gelu": nn.GELU(),
    "gelu_tanh": nn.GELU(approximate="tanh"),
    "silu": nn.SiLU(),
    "sigmoid": nn.Sigmoid(),
    "tanh": nn.Tanh(),
    "hardsigmoid": nn.Hardsigmoid(),
}


def batch_norm(norm: nn.Module) -> nn.Module:
    """With statistics as they are after training."""
    torch.manual_seed(1)
    for name, tensor in norm.state_dict().items():
        if tensor.is_floating_point():
            tensor.copy_(torch.rand_like(tensor) + 0.5 if name != "running_mean" else torch.randn_like(tensor))
    return norm


# -- linears ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_linear_with_an_activation(name):
    result = fused_model(nn.Sequential(nn.Linear(16, 24), ACTIVATIONS[name]), torch.randn(2, 3, 16))
    assert result.names == {f"linear + {name}": 1}
    assert result.calls == ["linear"]


def test_linear_without_a_bias():
    result = fused_model(nn.Sequential(nn.Linear(16, 24, bias=False), nn.ReLU()), torch.randn(2, 3, 16))
    assert result.calls == ["linear"]


def test_a_gelu_by_hand_after_a_linear():
    result = fused(lambda x, w, b: 0.5 * (y := torch.addmm(b, x, w)) * (1 + torch.erf(y / 2**0.5)), X, W, B)
    assert result.names == {"gelu (erf)": 1, "linear + gelu": 1}


def test_a_bias_added_afterwards():
    result = fused(lambda x, w, b: ((x @ w).view(2, 3, 24) + b).relu(), X, W, B, statics=(1, 2))
    assert result.names == {"linear + bias": 1, "linear + relu": 1}
    assert result.calls == ["linear"]


def test_an_added_activation_is_not_a_bias():
    assert fused(lambda x, w, b: x @ w + b, X, W, B, statics=(1,)).names == {}
    assert fused(lambda x, w, b: x @ w + b, X, W, torch.randn(6, 24), statics=(1, 2)).names == {}
    assert fused(lambda x, w, b: torch.add(x @ w, b, alpha=2), X, W, B, statics=(1, 2)).names == {}


def test_a_product_that_is_used_elsewhere_is_left():
    def function(x, w, b):
        result = torch.addmm(b, x, w)
        return result.relu(), result

    assert fused(function, X, W, B, statics=(1, 2)).names == {}


def test_an_addmm_with_factors_is_left():
    assert fused(lambda x, w, b: torch.addmm(b, x, w, alpha=0.5).relu(), X, W, B, statics=(1, 2)).names == {}


def test_a_factor_goes_into_the_weights():
    result = fused(lambda x, w, b: torch.addmm(b, x, w).view(2, 3, 4, 6).transpose(1, 2) / 8, X, W, B, statics=(1, 2))
    assert result.names == {"factor in the weights of a linear": 1}
    assert result.calls == ["mul", "mul", "addmm"]


@pytest.mark.parametrize("statics", [(), (1,), (2,)])
def test_a_factor_stays_if_weights_are_not_static(statics):
    assert fused(lambda x, w, b: torch.addmm(b, x, w) * 0.5, X, W, B, statics=statics).names == {}


# -- batch norms ------------------------------------------------------------------------------------------------------

FOLDED = {
    "linear": (nn.Linear(8, 12), nn.BatchNorm1d(12), (5, 8)),
    "linear without bias": (nn.Linear(8, 12, bias=False), nn.BatchNorm1d(12), (5, 8)),
    "1D": (nn.Conv1d(8, 12, 3), nn.BatchNorm1d(12), (2, 8, 10)),
    "2D": (nn.Conv2d(8, 12, 3, bias=False), nn.BatchNorm2d(12), (2, 8, 6, 6)),
    "2D grouped": (nn.Conv2d(8, 12, 3, groups=4), nn.BatchNorm2d(12), (2, 8, 6, 6)),
    "2D without weights": (nn.Conv2d(8, 12, 3), nn.BatchNorm2d(12, affine=False), (2, 8, 6, 6)),
    "3D": (nn.Conv3d(4, 6, 2), nn.BatchNorm3d(6), (1, 4, 3, 4, 4)),
    "transposed": (nn.ConvTranspose2d(8, 12, 2, stride=2), nn.BatchNorm2d(12), (1, 8, 4, 4)),
}


@pytest.mark.parametrize("name", FOLDED)
def test_a_batch_norm_is_folded(name):
    layer, norm, shape = FOLDED[name]
    result = fused_model(nn.Sequential(layer, batch_norm(norm), nn.ReLU()), torch.randn(shape))
    kind = "linear" if "linear" in name else "convolution"
    assert result.names == {f"{kind} + batch norm": 1, f"{kind} + relu": 1}
    changing = [node for node in result.after.graph.nodes if node.name.startswith(("linear", "convolution", "_native"))]
    assert len(changing) == 1


def test_grouped_transposed_convolutions_keep_their_norm():
    layers = nn.ConvTranspose2d(8, 12, 2, stride=2, groups=2), batch_norm(nn.BatchNorm2d(12))
    assert fused_model(nn.Sequential(*layers), torch.randn(1, 8, 4, 4)).names == {}


def test_weights_in_bfloat16_are_folded_in_float32():
    layers = nn.Conv2d(8, 12, 3), batch_norm(nn.BatchNorm2d(12))
    result = fused_model(nn.Sequential(*layers).bfloat16(), torch.randn(1, 8, 6, 6).bfloat16())
    assert result.names == {"convolution + batch norm": 1}


def test_a_norm_stays_if_the_weights_are_not_static():
    norm = batch_norm(nn.BatchNorm2d(4)).eval()

    def function(x, w, scale, shift, mean, variance):
        return nn.functional.batch_norm(torch.conv2d(x, w), mean, variance, scale, shift)

    given = (norm.weight.detach(), norm.bias.detach(), norm.running_mean, norm.running_var)
    x, w = torch.randn(1, 3, 6, 6), torch.randn(4, 3, 3, 3)
    assert fused(function, x, w, *given, statics=(1, 2, 3, 4, 5)).names == {"convolution + batch norm": 1}
    assert fused(function, x, w, *given, statics=(2, 3, 4, 5)).names == {}
    assert fused(function, x, w, *given, statics=(1, 2, 3, 4)).names == {}


def test_a_norm_stays_if_the_convolution_is_used_elsewhere():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, 4, 3), batch_norm(nn.BatchNorm2d(4))

        def forward(self, x):
            y = self.conv(x)
            return self.norm(y) + y

    assert fused_model(Twice(), torch.randn(1, 3, 6, 6)).names == {}


def test_a_norm_before_a_convolution_stays():
    layers = batch_norm(nn.BatchNorm2d(3)), nn.ReLU(), nn.Conv2d(3, 4, 3)
    assert fused_model(nn.Sequential(*layers), torch.randn(1, 3, 6, 6)).names == {}


# -- convolutions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "module"),
    [(name, module) for name, module in ACTIVATIONS.items() if name != "gelu_tanh"] + [("hardswish", nn.Hardswish())],
)
def test_convolution_with_an_activation(name, module):
    result = fused_model(nn.Sequential(nn.Conv2d(3, 4, 3), module), torch.randn(1, 3, 6, 6))
    assert result.names == {f"convolution + {name}": 1}
    assert result.calls == ["convolution"]


def test_a_clamp_to_other_bounds_is_not_relu6():
    assert fused_model(nn.Sequential(nn.Conv2d(3, 4, 3), nn.Hardtanh(0, 5)), torch.randn(1, 3, 6, 6)).names == {}
