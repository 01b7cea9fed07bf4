"""Integers that change from call to call are inputs of one program, unless sizes depend on them."""

from __future__ import annotations

import pytest
import torch

import torch_ttnn

X = torch.linspace(-3, 3, 32).reshape(4, 8)


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def programs_for(function, values, *, dynamic=True):
    """The number of programs for these values; all results must equal torch's."""
    options = torch_ttnn.TorchTtnnOption(warn=False)
    compiled = torch.compile(function, backend="ttnn", options=options, dynamic=dynamic)
    for number in values:
        torch.testing.assert_close(compiled(X, number), function(X, number), rtol=0.02, atol=0.02)
    return len(options.programs)


def sliding_mask(x, n):
    offset = max(n - 5 + 1, 0)
    return (torch.arange(8) + offset)[:, None] <= torch.arange(8) + n


OPERANDS = {
    "added": lambda x, n: x * 2 + n,
    "subtracted from": lambda x, n: n - x,
    "a factor": lambda x, n: x * n,
    "a divisor": lambda x, n: x / (n + 1),
    "compared": lambda x, n: (x > n, x.long() == n),
    "a mask of a sliding window": sliding_mask,
    "a mask's value": lambda x, n: x.masked_fill(x > 1, n),
    "chosen": lambda x, n: torch.where(x > 0, x, n),
    "a tensor of it": lambda x, n: (torch.full((3,), n), torch.tensor(n) + 1),
    "with booleans": lambda x, n: (x > 0) * n,
    "with bfloat16": lambda x, n: x.bfloat16() + n,
    "a fraction of it": lambda x, n: x * (n / 4),
    "also returned": lambda x, n: (x + n, n + 1),
    "only returned": lambda x, n: (x + 1, n * 2),
    "a limit": lambda x, n: x.clamp(-1, n - 3) + x.clamp(n - 4, n - 3) + x.clamp(max=n),
    "positions": lambda x, n: torch.arange(n, n + 4)[:, None] + x.long(),
    "a remainder": lambda x, n: x.long() + n % 3 + n // 2,
}


@pytest.mark.parametrize("name", OPERANDS)
@torch.no_grad()
def test_operands_need_one_program(name):
    assert programs_for(OPERANDS[name], [3, 4, 7, 9, 12, 40]) == 1


@torch.no_grad()
def test_numbers_that_change_later_need_two_programs():
    """Dynamo treats the first value as a constant."""
    assert programs_for(sliding_mask, range(3, 12), dynamic=None) == 2


@torch.no_grad()
def test_numbers_beyond_32_bits_are_exact():
    assert programs_for(lambda x, n: x.long() + n, [3, 2**40, 7]) == 1


SIZES = {
    "a size": lambda x, n: x.repeat(n, 1),
    "a slice": lambda x, n: x[:, : n - 1] * 2,
    "a size and an operand": lambda x, n: torch.ones(n) * n,
    "a dimension to roll by": lambda x, n: x.roll(n, 0),
    "narrow integers without dimensions": lambda x, n: x.sum().int() + n,
}


@pytest.mark.parametrize("name", SIZES)
@torch.no_grad()
def test_numbers_that_determine_sizes_are_specialised(name):
    assert programs_for(SIZES[name], [3, 4, 5]) <= 3


def test_gradients():
    options = torch_ttnn.TorchTtnnOption(warn=False)
    compiled = torch.compile(lambda x, n: (x * n).square().sum(), backend="ttnn", options=options, dynamic=True)
    for number in (2, 3, 5):
        x = X.clone().requires_grad_()
        compiled(x, number).backward()
        torch.testing.assert_close(x.grad, 2 * X * number**2, rtol=0.03, atol=0.05)
    assert len(options.programs) <= 4


@torch.no_grad()
def test_a_cache_that_counts():
    class Cache:
        length = 0

    class Model(torch.nn.Module):
        def forward(self, x, cache):
            cache.length += 1
            return torch.where(torch.arange(8) + cache.length > 9, x, 0.0)

    cache, reference, model = Cache(), Cache(), Model()
    options = torch_ttnn.TorchTtnnOption(warn=False)
    compiled = torch.compile(model, backend="ttnn", options=options)
    for _ in range(12):
        torch.testing.assert_close(compiled(X, cache), model(X, reference), rtol=0.02, atol=0.02)
    assert cache.length == reference.length == 12
    assert len(options.programs) <= 3  # Dynamo specialises on 1


@torch.no_grad()
def test_explain_and_check_support_such_numbers():
    model = OPERANDS["also returned"]
    torch._dynamo.reset()
    assert torch_ttnn.explain(model, X, 3).to_json()["programs"]
