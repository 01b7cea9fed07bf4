"""Activation functions, with all their parameters, and their derivatives."""

import pytest
import torch
import torch.nn.functional as functional

from tests.compiler.against_torch import check, run

aten = torch.ops.aten

ACTIVATIONS = {
    "relu": torch.relu,
    "relu6": lambda x: functional.relu6(x),
    "leaky_relu": lambda x: functional.leaky_relu(x, 0.2),
    "elu": lambda x: functional.elu(x, 1.3),
    "elu, scaled": lambda x: aten.elu(x, 1.3, 0.7, 1.0),
    "elu, scaled within": lambda x: aten.elu(x, 1.3, 0.7, 2.0),
    "celu": lambda x: functional.celu(x, 0.6),
    "selu": lambda x: functional.selu(x),
    "gelu": lambda x: functional.gelu(x),
    "gelu, tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "silu": lambda x: functional.silu(x),
    "mish": lambda x: functional.mish(x),
    "sigmoid": torch.sigmoid,
    "logsigmoid": lambda x: functional.logsigmoid(x),
    "hardtanh": lambda x: functional.hardtanh(x, -0.5, 2.0),
    "hardswish": lambda x: functional.hardswish(x),
    "hardsigmoid": lambda x: functional.hardsigmoid(x),
    "hardshrink": lambda x: functional.hardshrink(x, 0.75),
    "softshrink": lambda x: functional.softshrink(x, 0.75),
    "softplus": lambda x: functional.softplus(x, 2.0, 10.0),
    "threshold": lambda x: functional.threshold(x, 0.5, -3.0),
    "softsign": lambda x: functional.softsign(x),
    "tanhshrink": lambda x: functional.tanhshrink(x),
}
GRADIENTS = {
    "threshold": lambda g, x: aten.threshold_backward(g, x, 0.5),
    "gelu": lambda g, x: aten.gelu_backward(g, x),
    "gelu, tanh": lambda g, x: aten.gelu_backward(g, x, approximate="tanh"),
    "silu": aten.silu_backward.default,
    "mish": aten.mish_backward.default,
    "hardswish": aten.hardswish_backward.default,
    "hardsigmoid": aten.hardsigmoid_backward.default,
    "hardtanh": lambda g, x: aten.hardtanh_backward(g, x, -1.0, 1.0),
    "hardshrink": lambda g, x: aten.hardshrink_backward(g, x, 0.5),
    "softshrink": lambda g, x: aten.softshrink_backward(g, x, 0.5),
    "softplus": lambda g, x: aten.softplus_backward(g, x, 1.0, 20.0),
    "elu": lambda g, x: aten.elu_backward(g, 1.3, 1.0, 1.0, False, x),
    "leaky_relu": lambda g, x: aten.leaky_relu_backward(g, x, 0.1, False),
    "sigmoid": lambda g, x: aten.sigmoid_backward(g, x.sigmoid()),
    "tanh": lambda g, x: aten.tanh_backward(g, x.tanh()),
    "prelu": lambda g, x: aten._prelu_kernel_backward(g, x, x.abs()),
}


def spread(count: int) -> torch.Tensor:
    """Numbers from -6 to 6 that are exact in bfloat16, none at a kink."""
    x = torch.linspace(-6, 6, count).bfloat16().float()
    return torch.where((x * 4).frac() == 0, x * 1.0625 + 0.03125, x).bfloat16().float().reshape(-1, 15)


@pytest.mark.parametrize("precision", ["bfloat16", "float32"])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_against_torch(name, precision):
    check(ACTIVATIONS[name], spread(990), precision=precision)


@pytest.mark.parametrize("precision", ["bfloat16", "float32"])
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_against_torch(name, precision):
    x = spread(990)
    check(lambda g, x: GRADIENTS[name](g, x), torch.randn_like(x), x, precision=precision)


def test_the_gradient_of_log_sigmoid():
    x = spread(990)
    check(lambda x: aten.log_sigmoid_forward(x), x)
    check(lambda g, x: aten.log_sigmoid_backward(g, x, aten.log_sigmoid_forward(x)[1]), torch.randn_like(x), x)


def test_a_slope_per_channel():
    check(lambda x, w: functional.prelu(x, w), torch.randn(2, 5, 3, 7), torch.rand(5), statics=(1,))
    check(lambda x, w: functional.prelu(x, w), torch.randn(2, 5), torch.rand(1))


def test_the_two_kinds_of_gelu_are_distinguished():
    x = torch.linspace(-3, 3, 99)
    exact, tanh = (functional.gelu(x, approximate=kind) for kind in ("none", "tanh"))
    assert (exact - tanh).abs().max() > 4e-4
    for kind, wanted in (("none", exact), ("tanh", tanh)):
        made = run(lambda x: functional.gelu(x, approximate=kind), x, precision="float32").outputs[0]  # noqa: B023
        assert (made - wanted).abs().max() < 1e-5


def test_a_gradient_through_a_network():
    """Gradients of common activations run on the device."""

    def gradient(x, w):
        def loss(x):
            hidden = functional.gelu(functional.silu(x * w))
            return (functional.hardswish(hidden) + functional.softplus(x) * torch.tanh(x)).sigmoid().sum(-1)

        return torch.func.vjp(loss, x)[1](torch.ones(4))[0]

    out = check(gradient, torch.randn(4, 33), torch.rand(33), on_device=False, absolute=0.03)
    assert set(out.host_ops) <= {"aten.sum.dim_IntList", "aten.expand.default", "aten.unsqueeze.default"}
