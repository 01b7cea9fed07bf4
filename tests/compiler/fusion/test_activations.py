"""Activations written out by hand become one call."""

from __future__ import annotations

import math

import pytest
import torch

from tests.compiler.fusion.captured import fused

X = torch.linspace(-5, 5, 96).reshape(4, 24)

FORMS = {
    "gelu (erf)": [
        lambda x: 0.5 * x * (1 + torch.erf(x / math.sqrt(2))),
        lambda x: x * 0.5 * (1.0 + torch.erf(x / 1.4142135623730951)),
        lambda x: x * (1 + torch.erf(x * 0.7071067811865475)) / 2,
        lambda x: 0.5 * (x * (torch.erf(x / math.sqrt(2)) + 1)),
    ],
    "gelu (tanh)": [
        lambda x: 0.5 * x * (1.0 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0)))),
        lambda x: x * 0.5 * (1.0 + torch.tanh(0.79788456 * x * (1 + 0.044715 * x * x))),
        lambda x: x * (0.5 * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))),
    ],
    "quick gelu": [lambda x: x * torch.sigmoid(1.702 * x)],
    "silu": [lambda x: x * torch.sigmoid(x), lambda x: torch.sigmoid(x) * x],
    "mish": [lambda x: x * torch.tanh(torch.nn.functional.softplus(x))],
    "hardswish": [
        lambda x: x * torch.nn.functional.relu6(x + 3) / 6,
        lambda x: x * (torch.nn.functional.relu6(x + 3) / 6),
        lambda x: x * torch.clamp(x + 3, 0, 6) * (1 / 6),
        lambda x: x * torch.nn.functional.hardsigmoid(x),
    ],
    "hardsigmoid": [lambda x: torch.nn.functional.relu6(x + 3) / 6, lambda x: torch.clamp(x + 3, 0, 6) / 6],
}


CASES = [pytest.param(name, form, id=f"{name} {k}") for name, forms in FORMS.items() for k, form in enumerate(forms)]


@pytest.mark.parametrize(("name", "function"), CASES)
def test_forms(name, function):
    result = fused(function, X)
    assert result.names == {name: 1}
    assert len(result.calls) == 1


@pytest.mark.parametrize("name", ["silu", "hardswish", "hardsigmoid"])
def test_decomposed_activations_are_fused_again(name):
    function = getattr(torch.nn.functional, name)
    result = fused(lambda x: function(x), X, decompose=True)
    assert result.names == {name: 1}
    assert result.calls == [name]


LOOK_ALIKES = [
    lambda x: 0.4 * x * (1 + torch.erf(x / math.sqrt(2))),
    lambda x: 0.5 * x * (1 + torch.erf(x / 1.4)),
    lambda x: 0.5 * x * (2 + torch.erf(x / math.sqrt(2))),
    lambda x: 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.0447 * x**3))),
    lambda x: 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x**2))),
    lambda x: x * torch.sigmoid(1.7 * x),
    lambda x: x * torch.sigmoid(x + 1),
    lambda x: x * torch.nn.functional.relu6(x + 2) / 6,
    lambda x: (x + 1) * torch.sigmoid(x),
]


@pytest.mark.parametrize("function", LOOK_ALIKES)
def test_other_constants_are_left(function):
    assert fused(function, X).names == {}


def test_a_part_that_is_used_elsewhere_is_left():
    def function(x):
        gate = torch.sigmoid(x)
        return x * gate, gate

    assert fused(function, X).names == {}
