"""Softmax over any dimension, layer norm and RMS norm in all their forms, and gradients."""

import dataclasses
import math

import pytest
import torch
import torch.nn.functional as F

from tests.compiler.against_torch import assert_like, check, run
from torch_ttnn.compiler.lowering.normalization.softmax_and_layer_norm import rms_norm
from torch_ttnn.compiler.lowering.registry import LOWERINGS

aten = torch.ops.aten
r = torch.randn
SHAPES = [(), (7,), (3, 34), (2, 3, 4), (2, 3, 35, 4), (2, 3, 4, 5, 6)]


@pytest.mark.parametrize("function", [torch.softmax, torch.log_softmax])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_softmax_over_every_dimension(function, shape):
    for dim in range(-len(shape), len(shape)) if shape else (0, -1):
        check(lambda x: function(x, dim), r(shape) * 3)  # noqa: B023


def test_the_logarithm_of_small_shares_keeps_its_digits():
    check(lambda x: x.log_softmax(-1), r(3, 5000) * 4, relative=0.005, absolute=0.001)


def masked(*shape):
    x = r(*shape)
    x[0, 1], x[1, 0, 2:] = -math.inf, -math.inf
    return x


def test_masked_entries_have_no_weight():
    x = masked(3, 4, 5)
    x[0, 1, 0] = 0
    for dim in (0, 1, 2):
        check(lambda x: x.softmax(dim), x)  # noqa: B023


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_safe_softmax_is_zero_where_all_is_masked(dim):
    x = r(3, 4, 5)
    x.select(dim, 0)[...] = -math.inf
    x.movedim(dim, -1)[0, 1] = -math.inf
    outcome = check(lambda x: aten._safe_softmax(x, dim), x)
    assert outcome.outputs[0].movedim(dim, -1)[0, 1].abs().max() == 0


@pytest.mark.parametrize("shape", [(5,), (4, 5), (3, 4, 5)], ids=str)
@pytest.mark.parametrize("statics", [(), (1, 2)], ids=["inputs", "weights"])
def test_layer_norm(shape, statics):
    x, weight, bias = r(2, 3, 4, 5) * 2 + 1, r(shape), r(shape)
    check(lambda x, w, b: F.layer_norm(x, shape, w, b), x, weight, bias, statics=statics)
    check(lambda x, w: F.layer_norm(x, shape, w, eps=0.1), x, weight, statics=statics[:1])
    check(lambda x: F.layer_norm(x, shape), x)
    check(lambda x, w, b: aten.native_layer_norm(x, shape, w, b, 1e-5), x, weight, bias)


def test_layer_norm_of_a_vector_and_of_wide_rows():
    check(lambda x: F.layer_norm(x, (7,)), r(7))
    check(lambda x, w, b: F.layer_norm(x, (4096,), w, b), r(3, 4096), r(4096), r(4096), statics=(1, 2))


@pytest.mark.parametrize("shape", [(5,), (4, 5)], ids=str)
@pytest.mark.parametrize("eps", [0.1, None])
def test_rms_norm(shape, eps, monkeypatch):
    """torch decomposes this operation while tracing, so it replaces a layer norm here."""

    def instead(ttnn, builder, x, shape, weight, bias, given):
        return *rms_norm(ttnn, builder, x, shape, weight, eps), None

    stand_in = dataclasses.replace(LOWERINGS[aten.native_layer_norm.default], function=instead)
    monkeypatch.setitem(LOWERINGS, aten.native_layer_norm.default, stand_in)
    x, weight = r(2, 3, 4, 5) + 1, r(shape)
    made = run(lambda x, w: aten.native_layer_norm(x, shape, w, None, 1e-5)[:2], x, weight).outputs
    for got, want in zip(made, aten._fused_rms_norm(x, shape, weight, eps)):
        assert_like(got, want, 0.02, 0.01)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_gradients_of_softmax(dim):
    grad, x = r(3, 4, 5), r(3, 4, 5)
    check(lambda g, y: aten._softmax_backward_data(g, y, dim, torch.float32), grad, x.softmax(dim))
    check(lambda g, y: aten._log_softmax_backward_data(g, y, dim, torch.float32), grad, x.log_softmax(dim))


@pytest.mark.parametrize("shape", [(5,), (4, 5)], ids=str)
def test_gradients_of_layer_norm(shape):
    x, weight, bias = r(3, 4, 5) + 1, r(shape), r(shape)
    _, mean, rstd = aten.native_layer_norm(x, shape, weight, bias, 1e-5)

    def function(g, x, m, s, w, b):
        return aten.native_layer_norm_backward(g, x, shape, m, s, w, b, [True, True, True])

    check(function, r(3, 4, 5), x, mean, rstd, weight, bias, absolute=0.02)


def test_unused_gradients():
    x = r(3, 5)
    _, mean, rstd = aten.native_layer_norm(x, (5,), None, None, 1e-5)
    check(
        lambda g, x, m, s: aten.native_layer_norm_backward(g, x, (5,), m, s, None, None, [True, False, False])[0],
        r(3, 5), x, mean, rstd, absolute=0.02,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradient_of_a_softmax_that_is_nearly_one(dtype):
    """Rounded to bfloat16, the weights are 0.0003 and 1: they add up to more than 1."""
    torch._dynamo.reset()
    scores = torch.tensor([[0.0, 8.1], [0.0, 8.1]], dtype=dtype)
    grad = torch.tensor([[-38.0, -32.0], [5.0, 700.0]], dtype=dtype)
    x, reference = scores.clone().requires_grad_(), scores.double().requires_grad_()
    torch.compile(lambda x: x.softmax(-1), backend="ttnn")(x).backward(grad)
    reference.softmax(-1).backward(grad.double())
    torch.testing.assert_close(x.grad.double(), reference.grad, rtol=0.04, atol=1e-6)
    assert x.grad.double().sum(-1).abs().max() < 2e-3
