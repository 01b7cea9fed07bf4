"""Results that share storage in torch share it in compiled programs."""

from __future__ import annotations

import pytest
import torch

X = torch.randn(4, 6)


def run(function, *tensors):
    torch._dynamo.reset()
    return torch.compile(function, backend="ttnn", options={"device": "emulator", "warn": False})(*tensors)


FUNCTIONS = {
    "slice": lambda x: (lambda y: (y, y[1:]))(x * 2),
    "slice first": lambda x: (lambda y: (y[1:], y))(x * 2),
    "select": lambda x: (lambda y: (y, y[2], y[:, 3]))(x * 2),
    "expand": lambda x: (lambda y: (y, y[:, :1].expand(4, 6)))(x * 2),
    "detach": lambda x: (lambda y: (y, y.detach()))(x * 2),
    "transposed": lambda x: (lambda y: (y, y.t()))(x * 2),
    "viewed": lambda x: (lambda y: (y, y.view(2, 12), y.reshape(-1)[3:9]))(x * 2),
    "chunk": lambda x: (x * 2).chunk(2),
    "unbind": lambda x: (x * 2).unbind(1),
    "overlapping parts": lambda x: (lambda y: (y[:3], y[1:]))(x * 2),
    "part and its expansion": lambda x: (lambda y: (y[1:, :2], y[0, :1].expand(6)))(x * 2),
    "unfold": lambda x: (lambda y: (y, y.unfold(1, 3, 1)))(x * 2),
    "two of them": lambda x: (lambda y, z: (y, z, y[1:], z[:, 2]))(x * 2, x + 1),
    "separate": lambda x: (x * 2, (x * 2)[1:].clone()),
    "a convolution": lambda x: (lambda y: (y, y[:, 1:]))(
        torch.nn.functional.conv2d(x[None, None], torch.ones(3, 1, 1, 1))
    ),
}


def shared(results):
    return [[a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr() for b in results] for a in results]


@pytest.mark.parametrize("grad", [False, True], ids=["without gradients", "with gradients"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_storage_is_shared_as_in_torch(name, grad):
    function = FUNCTIONS[name]
    with torch.set_grad_enabled(grad):
        given = X.clone().requires_grad_(grad)
        want, got = function(given), run(function, given)
    assert shared(got) == shared(want)
    for ours, theirs in zip(got, want, strict=True):
        assert (ours.shape, ours.stride()) == (theirs.shape, theirs.stride())
        torch.testing.assert_close(ours, theirs, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "unfold"])
def test_a_write_shows_in_the_others(name):
    function = FUNCTIONS[name]
    with torch.no_grad():
        want, got = function(X), run(function, X)
        for results in (want, got):
            results[0].zero_()
        for ours, theirs in zip(got, want, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=0.02, atol=0.02)


def test_calls_do_not_share_storage():
    torch._dynamo.reset()
    compiled = torch.compile(FUNCTIONS["slice"], backend="ttnn", options={"device": "emulator", "warn": False})
    with torch.no_grad():
        calls = [compiled(X) for _ in range(3)]
    assert len({whole.data_ptr() for whole, _ in calls}) == 3
