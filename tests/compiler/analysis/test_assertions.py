"""Assertions fail in a compiled call as they do in torch, and cost nothing where they cannot fail."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch
from torch.nn import functional

from torch_ttnn.compiler.analysis.index_bounds import of_inputs
from torch_ttnn.compiler.ir.metadata import MOVE, REASON, Move
from torch_ttnn.compiler.runtime.program import Program
from torch_ttnn.options import TorchTtnnOption


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()


def asserted(x: torch.Tensor) -> torch.Tensor:
    torch._assert_async((x * 2 > -1).all(), "all above")  # Dynamo makes it of `assert`
    return x + 1


# A function, an argument that it accepts, and one that it rejects.
CASES: dict[str, tuple[Callable, torch.Tensor, torch.Tensor]] = {
    "one_hot of an input": (lambda x: functional.one_hot(x, 3), torch.tensor([0, 2]), torch.tensor([0, 3])),
    "one_hot of a view": (lambda x: functional.one_hot(x[1:], 3), torch.tensor([9, 2]), torch.tensor([0, 3])),
    "one_hot of a negative number": (lambda x: functional.one_hot(x, 3), torch.tensor([0]), torch.tensor([-1])),
    "one_hot of a sum": (lambda x: functional.one_hot(x - 7, 3), torch.tensor([8]), torch.tensor([5])),
    "one_hot of floats": (lambda x: functional.one_hot((x * 2).long(), 3), torch.tensor([0.9]), torch.tensor([2.0])),
    "one_hot without classes": (lambda x: functional.one_hot(x), torch.tensor([4, 0]), torch.tensor([4, -1])),
    "binary_cross_entropy of an input": (
        lambda x: functional.binary_cross_entropy(x, torch.ones(2)),
        torch.tensor([0.25, 0.5]),
        torch.tensor([0.25, 1.5]),
    ),
    "binary_cross_entropy of a product": (
        lambda x: functional.binary_cross_entropy(x * 2, torch.ones(2)),
        torch.tensor([0.25, 0.5]),
        torch.tensor([-0.25, 0.5]),
    ),
    "bernoulli": (lambda x: torch.bernoulli(x * 2) * 0, torch.tensor([0.25, 0.5]), torch.tensor([0.75, 0.5])),
    "max_unpool2d": (
        lambda i: functional.max_unpool2d(torch.ones(1, 1, 1, 1), i, 2),
        torch.tensor([[[[3]]]]),
        torch.tensor([[[[4]]]]),
    ),
    "index_fill": (lambda i: torch.ones(3).index_fill(0, i, 5.0), torch.tensor([-3, 2]), torch.tensor([3])),
    "index_fill of a sum": (lambda i: torch.ones(3).index_fill(0, i + 1, 5.0), torch.tensor([1]), torch.tensor([-5])),
    "take": (lambda i: torch.arange(6.0).view(2, 3).take(i), torch.tensor([-6, 5]), torch.tensor([6])),
    "assert": (asserted, torch.tensor([1.0, 0.0]), torch.tensor([1.0, -1.0])),
}


@pytest.mark.parametrize("name", CASES)
@torch.no_grad()
def test_assertions_fail_as_in_torch(name: str) -> None:
    function, accepted, rejected = CASES[name]
    compiled = torch.compile(function, backend="ttnn", options={"warn": False})
    for _ in range(3):  # as calls, as a trace, by direct replay
        torch.testing.assert_close(compiled(accepted), function(accepted), rtol=0.01, atol=0.01)
    with pytest.raises((RuntimeError, IndexError)) as expected:
        function(rejected)
    with pytest.raises((RuntimeError, IndexError)) as found:
        compiled(rejected)
    assert _words(expected.value) in _words(found.value)
    torch.testing.assert_close(compiled(accepted), function(accepted), rtol=0.01, atol=0.01)


def _words(error: BaseException) -> str:
    """A message without the offending value, which an assertion does not know."""
    return re.sub(r": \d+ ", " ", str(error))


def test_assertions_in_training() -> None:
    weight = torch.nn.Parameter(torch.randn(3, 4))

    def function(x: torch.Tensor) -> torch.Tensor:
        return (functional.one_hot(x - 1, 3).float() @ weight).sum()

    compiled = torch.compile(function, backend="ttnn", options={"warn": False})
    compiled(torch.tensor([1, 3])).backward()
    with pytest.raises(RuntimeError, match="smaller than num_classes"):
        compiled(torch.tensor([1, 4]))


def program_of(function: Callable, x: torch.Tensor) -> Program:
    options = TorchTtnnOption(warn=False)
    with torch.no_grad():
        torch.compile(function, backend="ttnn", options=options)(x)
    (program,) = options.programs
    return program


def checks(program: Program) -> int:
    assert not any(REASON.on(node) for node in program.graph.nodes)
    return len([node for node in program.graph.nodes if MOVE.get(node) is Move.CHECK])


def test_an_assertion_that_cannot_fail_is_dropped() -> None:
    assert not checks(program_of(lambda x: functional.one_hot(x.argmax(-1), 8) * 2, torch.randn(4, 8)))


def test_probabilities_and_pixels_of_the_same_graph_are_not_checked() -> None:
    def losses(x: torch.Tensor) -> torch.Tensor:
        return functional.binary_cross_entropy(torch.sigmoid(x), torch.ones(1, 2, 4, 4))

    def unpooled(x: torch.Tensor) -> torch.Tensor:
        pooled, indices = functional.max_pool2d(x, 2, return_indices=True)
        return functional.max_unpool2d(pooled, indices, 2)

    for function in (losses, unpooled):
        torch._dynamo.reset()
        assert not checks(program_of(function, torch.randn(1, 2, 4, 4)))


def test_inputs_are_checked_instead_of_the_device() -> None:
    program = program_of(lambda x: functional.one_hot(x, 8) * 2, torch.tensor([7, 0]))
    assert of_inputs(program.captured) == {0: (0, 7)}
    assert not checks(program)


def test_other_assertions_are_downloaded_with_the_results() -> None:
    assert checks(program_of(lambda x: functional.one_hot((x * 2).long(), 8) * 2, torch.rand(4))) == 1
