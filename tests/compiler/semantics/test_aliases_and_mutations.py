"""Aliases of inputs and outputs, and inputs changed in place, are as in torch."""

from __future__ import annotations

import pytest
import torch

import torch_ttnn
from tests.compiler.semantics.compiled_models import WIDTH, assert_near, compiled


@torch.no_grad()
def test_an_input_changed_in_place_is_changed_for_the_caller():
    def function(x):
        x.add_(1)
        return x * 2

    x = torch.zeros(4, WIDTH)
    y = compiled(function)(x)
    assert torch.equal(x, torch.ones(4, WIDTH))
    assert torch.equal(y, torch.full((4, WIDTH), 2.0))


@torch.no_grad()
def test_a_view_of_a_copy_does_not_alias_the_input():
    x = torch.ones(4, WIDTH)
    copied, more = compiled(lambda x: (x.clone().view(WIDTH, 4), x + 1))(x)
    copied.zero_()
    assert torch.equal(x, torch.ones(4, WIDTH))
    assert torch.equal(more, torch.full((4, WIDTH), 2.0))


@torch.no_grad()
def test_a_view_of_an_input_beside_device_operations_in_warm_calls():
    run = compiled(lambda x, n: (x.flatten(2).transpose(1, 2), n.flatten(), n * 2))
    for start in range(3):
        x, n = torch.randn(1, 8, 3, 4), torch.arange(start, start + 12).reshape(3, 4)
        seen, flat, twice = run(x, n)
        assert torch.equal(seen, x.flatten(2).transpose(1, 2))
        assert torch.equal(flat, n.flatten())
        assert torch.equal(twice, n * 2)


@torch.no_grad()
def test_rearranged_inputs_keep_their_bits_and_are_not_uploaded():
    """Flattened tokens, masks and images that a graph returns with computed values."""

    def function(x, tokens, mask, y):
        return x.reshape(2, -1).t(), tokens.reshape(-1), mask.t().contiguous(), y * 2

    options = torch_ttnn.TorchTtnnOption()
    given = (torch.randn(6, 4).t(), torch.randint(99, (5, 3)).t(), torch.rand(3, 4) > 0.5, torch.randn(4, WIDTH))
    for _ in range(3):  # captured, traced, replayed
        got = torch_ttnn.compile(function, options=options)(*given)
        want = function(*given)
        assert all(torch.equal(mine, theirs) for mine, theirs in zip(got[:3], want))
        assert_near(got[3], want[3])
    (program,) = options.programs
    assert program.code.count("ttnn.from_torch(") == program.code.count("ttnn.to_torch(") == 1


@torch.no_grad()
def test_a_view_of_an_input_changed_in_place():
    def function(x):
        x[1:3].mul_(2)
        return x.sum()

    x = torch.ones(4, WIDTH)
    y = compiled(function)(x)
    assert x[:, 0].tolist() == [1, 2, 2, 1]
    assert y.item() == 6 * WIDTH


@torch.no_grad()
def test_two_inputs_that_are_one_tensor():
    def function(x, y):
        x.add_(1)
        return x + y

    x = torch.zeros(WIDTH)
    assert torch.equal(compiled(function)(x, x), torch.full((WIDTH,), 2.0))


@torch.no_grad()
def test_an_output_that_is_an_input_is_the_same_tensor():
    x = torch.ones(3)
    y, z = compiled(lambda x: (x, x + 1))(x)
    assert y.data_ptr() == x.data_ptr()
    assert z.tolist() == [2, 2, 2]


@torch.no_grad()
def test_an_output_that_is_a_view_of_an_input_shares_its_memory():
    x = torch.ones(4, 3)
    y = compiled(lambda x: (x.t(), x.sum()))(x)[0]
    y[0, 0] = 7
    assert x[0, 0] == 7


@torch.no_grad()
def test_constant_outputs_are_fresh_on_every_call():
    function = compiled(lambda x: (torch.arange(4), x + 1))
    first, _ = function(torch.ones(2))
    first.zero_()
    second, _ = function(torch.ones(2))
    assert second.tolist() == [0, 1, 2, 3]


@torch.no_grad()
def test_outputs_of_two_calls_do_not_share_memory():
    function = compiled(lambda x: x * 2)
    first = function(torch.ones(WIDTH))
    function(torch.full((WIDTH,), 5.0))
    assert torch.equal(first, torch.full((WIDTH,), 2.0))


@torch.no_grad()
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.clone(),
        lambda x: torch.cat([x, x[:0]]),
        lambda x: x.clone().t(),
        lambda x: (x.clone(), x.clone()),
        lambda x: (x * 2, x * 2),
        lambda x: (x * 2, (x * 2).clone()),
    ],
)
def test_results_are_distinct_tensors(function):
    """They alias neither the input nor each other, even if nothing is computed or two of them are equal."""
    x = torch.randn(3, 4)
    before = x.clone()
    results = torch.compile(function, backend="ttnn")(x)
    results = results if isinstance(results, tuple) else (results,)
    results[0].zero_()
    assert torch.equal(x, before)
    assert all(each.all() for each in results[1:])
