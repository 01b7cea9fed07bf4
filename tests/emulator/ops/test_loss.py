"""Losses and optimizer steps, compared with torch."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import pcc, stored, upload, values


def test_loss_into_an_output_tensor(device):
    a, b = (upload(values((5, 33), -4, 4, "bfloat16", seed), "bfloat16", "TILE", device) for seed in (1, 2))
    target = upload(torch.zeros(5, 33), "bfloat16", "TILE", device)
    result = ttnn.l1_loss(a, b, output_tensor=target)
    assert result.buffer_address() == target.buffer_address()
    assert torch.allclose(stored(target), (stored(a) - stored(b)).abs(), rtol=0.01)


# -- negative log likelihood ------------------------------------------------------------------------------------------

LIKELIHOOD_SHAPES = (((40, 10), (40,)), ((3, 10, 7), (3, 7)), ((3, 10, 7, 9), (3, 7, 9)))


class Likelihood:
    """Log probabilities, targets and weights, on the device and in torch."""

    def __init__(self, shape, target, device):
        self.x = upload(values(shape, -4, 0, "bfloat16", 1), "bfloat16", "TILE", device)
        self.classes = values(target, 0, 9, "int32", 2)
        self.target = upload(self.classes, "int32", "TILE", device)
        self.weight = upload(values((1, 10), 0.5, 1.5, "bfloat16", 3), "bfloat16", "TILE", device)

    def reference(self, x, reduction, ignored=-100):
        weight = stored(self.weight).flatten()
        return functional.nll_loss(x, self.classes, weight, reduction=reduction, ignore_index=ignored)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("shape", LIKELIHOOD_SHAPES, ids=str)
def test_likelihood(shape, reduction, device):
    case = Likelihood(*shape, device)
    divisor = upload(torch.zeros(1, 1), "bfloat16", "TILE", device) if reduction == "mean" else None
    result = ttnn.moreh_nll_loss(
        case.x, case.target, reduction, weight_tensor=case.weight, divisor_tensor=divisor, ignore_index=3
    )
    reference = case.reference(stored(case.x), reduction, 3)
    assert torch.allclose(stored(result).reshape(reference.shape), reference, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("shape", LIKELIHOOD_SHAPES, ids=str)
def test_gradient_of_likelihood(shape, device):
    case = Likelihood(*shape, device)
    one = upload(torch.ones(1, 1), "bfloat16", "TILE", device)
    out = upload(torch.zeros(shape[0]), "bfloat16", "TILE", device)
    ttnn.moreh_nll_loss_backward(case.target, one, False, weight_tensor=case.weight, input_grad_tensor=out)
    leaf = stored(case.x).requires_grad_()
    case.reference(leaf, "sum").backward()
    assert torch.allclose(stored(out), leaf.grad, rtol=0.01)


@pytest.mark.parametrize("shape", LIKELIHOOD_SHAPES, ids=str)
def test_gradient_of_unreduced_likelihood(shape, device):
    case = Likelihood(*shape, device)
    gradient = upload(values(shape[1], 0.5, 1.5, "bfloat16", 4), "bfloat16", "TILE", device)
    out = upload(torch.zeros(shape[0]), "bfloat16", "TILE", device)
    ttnn.moreh_nll_loss_unreduced_backward(case.target, gradient, weight_tensor=case.weight, input_grad_tensor=out)
    leaf = stored(case.x).requires_grad_()
    case.reference(leaf, "none").backward(stored(gradient))
    assert torch.allclose(stored(out), leaf.grad, rtol=0.02)


# -- optimizers -------------------------------------------------------------------------------------------------------

SHAPE = (5, 33)


def state(seed: int, device, low: float = -1.0) -> ttnn.Tensor:
    return upload(values(SHAPE, low, 1, "bfloat16", seed), "bfloat16", "TILE", device)


@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_adam(name, amsgrad, device):
    param, gradient, average = (state(seed, device) for seed in (1, 2, 3))
    square = state(4, device, low=0.1)
    largest = state(5, device, low=0.5) if amsgrad else None
    step, lr, beta1, beta2, epsilon, decay = 3, 0.1, 0.9, 0.99, 1e-6, 0.1
    result = getattr(ttnn, f"moreh_{name}")(
        *(param, gradient, average, square),
        lr=lr,
        beta1=beta1,
        beta2=beta2,
        eps=epsilon,
        weight_decay=decay,
        step=step,
        amsgrad=amsgrad,
        max_exp_avg_sq_in=largest,
    )
    p, g, m, v = map(stored, (param, gradient, average, square))
    if name == "adam":
        g = g + decay * p
    else:
        p = p * (1 - lr * decay)
    m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
    measure = torch.maximum(stored(largest), v) if largest is not None else v
    root = (measure / (1 - beta2**step)).sqrt() + epsilon
    expected = [p - lr / (1 - beta1**step) * m / root, m, v, *([measure] if amsgrad else [])]
    assert (result[3] is not None) == amsgrad
    for ours, reference in zip(result, expected):
        assert pcc(stored(ours), reference) >= 0.999
        assert torch.allclose(stored(ours), reference, atol=0.02)


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_sgd(momentum, nesterov, device):
    param, gradient, buffer = (state(seed, device) for seed in (1, 2, 3))
    result = ttnn.moreh_sgd(
        param,
        gradient,
        buffer,
        lr=0.1,
        momentum=momentum,
        dampening=0.5,
        weight_decay=0.1,
        nesterov=nesterov,
        momentum_initialized=True,
    )
    p, g, b = map(stored, (param, gradient, buffer))
    g = g + 0.1 * p
    if momentum:
        b = momentum * b + 0.5 * g
        g = g + momentum * b if nesterov else b
        assert torch.allclose(stored(result[1]), b, atol=0.02)
    assert torch.allclose(stored(result[0]), p - 0.1 * g, atol=0.02)


@pytest.mark.parametrize("norm_type", [1.0, 2.0, 2.5])
def test_clipping_of_gradients(norm_type, device):
    gradients = [
        upload(values(shape, -1, 1, "bfloat16", seed), "bfloat16", "TILE", device)
        for seed, shape in enumerate(((1, 2, 17, 40), (1, 1, 5, 33)))
    ]
    before = [stored(each) for each in gradients]
    norm = torch.cat([each.flatten() for each in before]).norm(norm_type)
    result = ttnn.moreh_clip_grad_norm(gradients, 1.0, norm_type)
    assert stored(result).item() == pytest.approx(norm.item(), rel=0.03)
    for ours, old in zip(gradients, before):
        assert torch.allclose(stored(ours), old / norm, rtol=0.05, atol=1e-4)


def test_clipping_rejects_a_norm_that_is_not_finite(device):
    gradient = upload(torch.full((1, 1, 5, 33), math.inf), "bfloat16", "TILE", device)
    with pytest.raises(RuntimeError, match="not finite"):
        ttnn.moreh_clip_grad_norm([gradient], 1.0, 2.0, True)
