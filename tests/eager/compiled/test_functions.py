"""Compiled functions of tensors on `ttnn` against torch: results, written inputs, and what shares memory.

Each is called several times, and all results are compared at the end: a replay must not change an earlier result.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

import torch_ttnn

CALLS = 4
Make = Callable[[str], Any]


def normal(*shape: int) -> Make:
    return lambda device: torch.randn(*shape).to(device)


def on_device(tensor: torch.Tensor) -> Make:
    return lambda device: tensor.clone().to(device)


def with_view(device: str) -> tuple[torch.Tensor, torch.Tensor]:
    base = torch.randn(4, 4).to(device)
    return base, base[:2]


def overlapping(device: str) -> tuple[torch.Tensor, torch.Tensor]:
    base = torch.randn(4, 4).to(device)
    return base[:3], base[1:]


def twice(device: str) -> tuple[torch.Tensor, torch.Tensor]:
    tensor = torch.randn(4, 4).to(device)
    return tensor, tensor


def written(x: torch.Tensor, y: torch.Tensor) -> Any:
    x.add_(y)
    return x * 2


def swapped(x: torch.Tensor, y: torch.Tensor) -> Any:
    old = x.clone()
    x.copy_(y)
    y.copy_(old)
    return x + 1


def read_after_write(x: torch.Tensor, y: torch.Tensor) -> Any:
    x.add_(1)
    return y * 2


def average(mean: torch.Tensor, x: torch.Tensor) -> Any:
    mean.mul_(0.999).add_(x.mean(0), alpha=0.001)
    return mean + 0


def slot(cache: torch.Tensor, x: torch.Tensor) -> Any:
    cache[:, 1:2] = x
    return cache + 1


def copied_into(cache: torch.Tensor, at: torch.Tensor, x: torch.Tensor) -> Any:
    cache.index_copy_(1, at, x)
    return cache + 1


def counted(count: torch.Tensor, table: torch.Tensor) -> Any:
    count.add_(1)
    return table[count]


def several(x: torch.Tensor) -> Any:
    y = x * 2
    return y, y[0], y.t()


def changed(x: torch.Tensor) -> Any:
    x.add_(1)
    return x, x[:2]


def convolved(x: torch.Tensor) -> Any:
    return torch.nn.functional.conv2d(x, torch.ones(3, 2, 3, 3, device=x.device)).relu()


def selected(x: torch.Tensor) -> Any:
    return x[x > 0] * 2


def far_angles(x: torch.Tensor) -> Any:
    x.copy_(torch.sin(x) * 1e5)
    return x + 1


CASES: dict[str, tuple[Callable[..., Any], list[Make]]] = {
    "an input is written": (written, [normal(4, 4), normal(4, 4)]),
    "two inputs are swapped": (swapped, [normal(4, 4), normal(4, 4)]),
    "a written input is returned, and a view of it": (changed, [normal(4, 4)]),
    "an input is returned beside a view and a result": (lambda x: (x, x * 2, x.t()), [normal(4, 4)]),
    "results share memory": (several, [normal(4, 4)]),
    "an input and a view of it": (read_after_write, [with_view]),
    "overlapping views": (read_after_write, [overlapping]),
    "the same tensor twice": (read_after_write, [twice]),
    "a view is written": (changed, [lambda device: torch.randn(6, 4).to(device)[1:4]]),
    "a transposed input": (lambda x: x @ x, [lambda device: torch.randn(4, 4).to(device).t()]),
    "a running average": (average, [normal(8), normal(4, 8)]),
    "a slot of a cache": (slot, [normal(4, 4), normal(4, 1)]),
    "a cache at a position": (copied_into, [normal(2, 8, 4), on_device(torch.tensor([3])), normal(2, 1, 4)]),
    "a counter is an index": (counted, [on_device(torch.tensor([0])), normal(6, 3)]),
    "a mask is inverted": (lambda x: (x.logical_not_(), x)[1], [on_device(torch.arange(4) > 1)]),
    "integers beyond 32 bits": (lambda x: x * 2, [on_device(torch.tensor([2**40]))]),
    "float64": (lambda x: x * 2 + 1, [on_device(torch.randn(3).double())]),
    "NaN": (lambda x: x.nan_to_num(3.0), [on_device(torch.tensor([1.0, float("nan")]))]),
    "a tensor of the CPU": (lambda x, scale: x * scale, [normal(3, 3), lambda device: torch.tensor(2.5)]),
    "a result on the CPU": (lambda x: (x * 2).cpu(), [normal(3, 3)]),
    "an empty part": (lambda x: torch.cat([x[:0], x]), [normal(3, 3)]),
    "a convolution": (convolved, [normal(1, 2, 8, 8)]),
    "angles beyond the device's domain": (far_angles, [lambda device: (torch.randn(8) * 1e5).to(device)]),
    "a result whose shape depends on values": (selected, [normal(4, 4)]),
}


def _arguments(makers: list[Make], device: str) -> list[torch.Tensor]:
    torch.manual_seed(1)
    made: list[torch.Tensor] = []
    for make in makers:
        one = make(device)
        made += one if isinstance(one, tuple) else (one,)
    return made


def _assert_equal(ours: Any, torchs: Any) -> None:
    assert ours.shape == torchs.shape
    assert ours.dtype is torchs.dtype
    ours, torchs = ours.cpu().float(), torchs.float()
    assert torch.allclose(ours, torchs, atol=2e-2, rtol=2e-2, equal_nan=True), (ours, torchs)


@pytest.mark.parametrize(("function", "makers"), CASES.values(), ids=CASES.keys())
def test_functions(function: Callable[..., Any], makers: list[Make]) -> None:
    torch._dynamo.reset()
    torchs, ours = _arguments(makers, "cpu"), _arguments(makers, "ttnn")
    compiled = torch.compile(function, backend="ttnn")
    seen = []
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(CALLS):
            expected, made = function(*torchs), compiled(*ours)
            pairs = [(expected, made)] if isinstance(expected, torch.Tensor) else list(zip(expected, made))
            # A result that is an input changes with it, so only others keep their values.
            seen += [(one if any(one._is_view() or one is each for each in torchs) else one.clone(), other)
                     for one, other in pairs]  # fmt: skip
    for one, other in seen:
        _assert_equal(other, one)
    for one, other in zip(torchs, ours):
        _assert_equal(other, one)


def test_new_values_are_stored_as_old_ones() -> None:
    """The device checks the angle, so the cache is not written in place; a next call finds the same program."""
    options = torch_ttnn.TorchTtnnOption()
    weight, cache = torch.randn(16, 64) / 8, torch.zeros(1, 4, 32, 16)

    def step(x: torch.Tensor, weight: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
        heads = (x @ weight).view(1, 32, 4, 16).transpose(1, 2)
        cache[:, :, :32].copy_(heads.cos())
        return cache.sum()

    compiled = torch.compile(step, backend="ttnn", options=options)
    x, held = torch.randn(32, 16), cache.to("ttnn")
    for _ in range(3):
        compiled(x.to("ttnn"), weight.to("ttnn"), held)
    step(x, weight, cache)
    assert len(options.programs) == 1
    _assert_equal(held, cache)
