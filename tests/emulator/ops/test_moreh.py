"""moreh reductions, norms and their gradients, compared with torch. (Losses and optimizers: test_loss.)"""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import Row, check, pcc, stored, upload, values

EPSILON = 1e-5
ULPS = {"bfloat16": 4.0}
PRECISE = ttnn.WormholeComputeKernelConfig(
    math_fidelity=ttnn.MathFidelity.HiFi4, math_approx_mode=False, fp32_dest_acc_en=True
)
DEEP = ((32, 64), (5, 33), (3, 45, 70), (2, 3, 17, 40))

ROWS = (
    *(
        Row(
            f"moreh_{name} over {dim}",
            lambda x, name=name, dim=dim: getattr(ttnn, f"moreh_{name}")(x, dim=dim % len(x.shape), keepdim=True),
            lambda x, name=name, dim=dim: getattr(torch, name)(x, dim, keepdim=True),
            ulps=ULPS,
            floor=1.0,
            shapes=DEEP,
        )
        for name in ("sum", "mean")
        for dim in (-1, -2, 0)
    ),
    Row(
        "moreh_abs_pow", lambda x: ttnn.moreh_abs_pow(x, 2.5), lambda x: x.abs() ** 2.5, ulps={"bfloat16": 8.0}, low=0.2
    ),
    Row(
        "moreh_layer_norm",
        lambda x: ttnn.moreh_layer_norm(x, 1, EPSILON)[0],
        lambda x: functional.layer_norm(x, x.shape[-1:], eps=EPSILON),
        ulps=ULPS,
        floor=0.5,
        shapes=DEEP,
    ),
    Row(
        "moreh_layer_norm over two dimensions",
        lambda x: ttnn.moreh_layer_norm(x, 2, EPSILON)[0],
        lambda x: functional.layer_norm(x, x.shape[-2:], eps=EPSILON),
        ulps=ULPS,
        floor=0.5,
        shapes=DEEP,
    ),
    Row(
        "moreh_group_norm",
        lambda x: ttnn.moreh_group_norm(x, 2, EPSILON)[0],
        lambda x: functional.group_norm(x, 2, eps=EPSILON),
        ulps=ULPS,
        floor=0.5,
        shapes=((2, 4, 17, 40), (1, 6, 32, 64)),
    ),
)
ANY_SHAPE = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 45), st.integers(2, 70))


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_against_torch(row, device):
    for number, shape in enumerate(row.shapes):
        check(row, "bfloat16", shape, 10 * number, device)


@given(row=st.sampled_from(ROWS[:6]), shape=ANY_SHAPE, seed=st.integers(0, 1000))
def test_any_shape_and_values(row, shape, seed):
    with ttnn.open_device(device_id=0) as device:
        check(row, "bfloat16", shape, seed, device)


@pytest.mark.parametrize("dim", [0, 2, 3])
@pytest.mark.parametrize("p", [1.0, 2.0, 2.5, 3.0, math.inf, -math.inf])
def test_norm(p, dim, device):
    x = upload(values((2, 3, 17, 40), 0.5, 4, "bfloat16", 1), "bfloat16", "TILE", device)
    result = ttnn.moreh_norm(x, p=p, dim=dim, keepdim=True)
    assert torch.allclose(stored(result), stored(x).norm(p, dim, keepdim=True), rtol=0.04)


def test_sum_of_integers(device):
    x = upload(values((2, 3, 17, 40), -1000, 1000, "int32", 1), "int32", "TILE", device)
    for dim in (0, 1, 2, 3):
        assert torch.equal(stored(ttnn.moreh_sum(x, dim, keepdim=True)), stored(x).sum(dim, keepdim=True))


def test_several_dimensions_into_an_output_tensor(device):
    x = upload(values((2, 3, 17, 40), -4, 4, "bfloat16", 1), "bfloat16", "TILE", device)
    target = upload(torch.zeros(2, 1, 17, 1), "bfloat16", "TILE", device)
    ttnn.moreh_sum(x, [1, 3], keepdim=True, output=target)
    assert torch.allclose(stored(target), stored(x).sum((1, 3), keepdim=True), rtol=0.02, atol=0.2)


def test_norm_of_order_zero_counts(device):
    x = upload((values((5, 33), 0, 1, "float32", 1) > 0.5).float(), "bfloat16", "TILE", device)
    assert torch.equal(stored(ttnn.moreh_norm(x, p=0.0, dim=1, keepdim=True)), stored(x).sum(1, keepdim=True))


def gradients(shape, device):
    """x and dy on the device, and x as a torch leaf."""
    x = upload(values(shape, 0.5, 3, "bfloat16", 1), "bfloat16", "TILE", device)
    dy = upload(values(shape, -2, 2, "bfloat16", 2), "bfloat16", "TILE", device)
    return x, dy, stored(x).requires_grad_()


@pytest.mark.parametrize("dim", [0, 1, 2, 3])
@pytest.mark.parametrize("name", ["sum", "mean"])
def test_gradient_of_sum_and_mean(name, dim, device):
    shape = (2, 3, 17, 40)
    kept = tuple(1 if place == dim else size for place, size in enumerate(shape))
    dy = upload(values(kept, -2, 2, "bfloat16", 1), "bfloat16", "TILE", device)
    reference = stored(dy).expand(shape) / (1 if name == "sum" else shape[dim])
    if name == "sum":
        x = upload(torch.zeros(shape), "bfloat16", "TILE", device)
        result = ttnn.moreh_sum_backward(dy, input=x, dim=dim, keepdim=True)
    else:
        result = ttnn.moreh_mean_backward(dy, dim=dim, keepdim=True, input_grad_shape=list(shape))
    assert torch.allclose(stored(result), reference, rtol=0.02)


@pytest.mark.parametrize("p", [2.0, 3.0])
def test_gradient_of_norm(p, device):
    x, _, leaf = gradients((2, 3, 17, 40), device)
    y = ttnn.moreh_norm(x, p=p, dim=3, keepdim=True)
    dy = upload(values((2, 3, 17, 1), 0.5, 2, "bfloat16", 3), "bfloat16", "TILE", device)
    result = ttnn.moreh_norm_backward(x, y, dy, p, dim=3, keepdim=True)
    leaf.norm(p, 3, keepdim=True).backward(stored(dy))
    assert pcc(stored(result), leaf.grad) >= 0.999


def test_gradients_of_layer_norm(device):
    shape = (2, 3, 17, 40)
    x, dy, leaf = gradients(shape, device)
    mean, rstd, dx = (upload(torch.zeros(size), "bfloat16", "TILE", device) for size in (shape[:3], shape[:3], shape))
    gamma, dgamma, dbeta = (upload(torch.ones(1, 40), "bfloat16", "TILE", device) for _ in range(3))
    ttnn.moreh_layer_norm(x, 1, EPSILON, gamma, None, mean=mean, rstd=rstd)
    assert torch.allclose(stored(mean), stored(x).mean(-1), rtol=0.02)
    ttnn.moreh_layer_norm_backward(dy, x, mean, rstd, 1, gamma=gamma, input_grad=dx, gamma_grad=dgamma, beta_grad=dbeta)
    weight, bias = torch.ones(40, requires_grad=True), torch.zeros(40, requires_grad=True)
    functional.layer_norm(leaf, (40,), weight, bias, EPSILON).backward(stored(dy))
    assert pcc(stored(dx), leaf.grad) >= 0.999
    assert pcc(stored(dgamma), weight.grad.reshape(1, 40)) >= 0.998
    assert torch.allclose(stored(dbeta).flatten(), bias.grad, rtol=0.02, atol=0.5)


def test_gradients_of_group_norm(device):
    shape = (2, 4, 17, 40)
    x, dy, leaf = gradients(shape, device)
    gamma = upload(torch.ones(1, 1, 1, 4), "bfloat16", "TILE", device)
    _, mean, rstd = ttnn.moreh_group_norm(x, 2, EPSILON, gamma, are_required_outputs=(True, True, True))
    assert torch.allclose(stored(mean).reshape(2, 2), stored(x).reshape(2, 2, -1).mean(-1), rtol=0.01)
    dx, dgamma, dbeta = ttnn.moreh_group_norm_backward(
        dy, x, mean, rstd, 2, are_required_outputs=(True, True, True), gamma=gamma, compute_kernel_config=PRECISE
    )
    weight, bias = torch.ones(4, requires_grad=True), torch.zeros(4, requires_grad=True)
    functional.group_norm(leaf, 2, weight, bias, EPSILON).backward(stored(dy))
    assert pcc(stored(dx), leaf.grad) >= 0.999
    assert torch.allclose(stored(dgamma).flatten(), weight.grad, rtol=0.02, atol=1.0)
    assert torch.allclose(stored(dbeta).flatten(), bias.grad, rtol=0.02, atol=0.5)


def test_gradient_of_cumsum(device):
    dy = upload(values((3, 2, 17, 40), -2, 2, "bfloat16", 1), "bfloat16", "TILE", device)
    result = ttnn.moreh_cumsum_backward(dy, 0)
    assert torch.allclose(stored(result), stored(dy).flip(0).cumsum(0).flip(0), rtol=0.02, atol=0.05)


@pytest.mark.parametrize("dim", [2, 3])
def test_padding_does_not_leak(dim, device):
    x = upload(torch.full((1, 1, 5, 33), 2.0), "bfloat16", "TILE", device)
    assert torch.allclose(stored(ttnn.moreh_mean(x, dim=dim)), torch.tensor(2.0), rtol=0.01)
    low = stored(ttnn.moreh_norm(x, p=-math.inf, dim=dim, keepdim=True))
    assert (low == 2).all()
