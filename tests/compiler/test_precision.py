"""Intermediate values are not rounded to bfloat16 where that would make the result wrong."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tests.compiler.against_torch import run
from torch_ttnn.compiler.ir.metadata import PATH, SPEC
from ttnn_emulator import DataType


def gradient(function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    x = x.clone().requires_grad_()
    made = function(x)
    made.backward(torch.linspace(-1, 1, made.numel()).reshape(made.shape))
    assert x.grad is not None
    return x.grad


def require_same_gradient(function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> None:
    torch._dynamo.reset()
    ours = gradient(torch.compile(function, backend="ttnn", options={"warn": False}), x)
    wanted = gradient(function, x)
    assert (ours - wanted).abs().max() <= 0.03 * wanted.abs().max() + 2**-8  # terms of magnitude 1 may cancel


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


LOGARITHMS = {
    "logsumexp": lambda x: x.logsumexp(-1),
    "logcumsumexp": lambda x: x.logcumsumexp(0),
    "log_ndtr": torch.special.log_ndtr,
    "by hand": lambda x: (x - x.logsumexp(-1, keepdim=True)).exp(),
    "of products": lambda x: ((x.exp() + 1).log() + (x.exp() + 2).log() - x).exp(),
}


@pytest.mark.parametrize("shift", [0.0, 20.0, 60.0])
@pytest.mark.parametrize("name", ["logsumexp", "logcumsumexp", "by hand"])
def test_gradients_with_exponentials_of_large_logarithms(name: str, shift: float) -> None:
    require_same_gradient(LOGARITHMS[name], numbers(8, 16).bfloat16().float() + shift)


@pytest.mark.parametrize("name", LOGARITHMS)
def test_exponentials_of_sums_of_logarithms(name: str) -> None:
    require_same_gradient(LOGARITHMS[name], (numbers(8, 16) * 5).bfloat16().float())


def test_no_other_exponent_is_widened() -> None:
    outcome = run(lambda x, y: (x * 2 - y).exp(), numbers(32, 32), numbers(32, 32, seed=1))
    specs = [SPEC[node].spec for node in outcome.program.graph.nodes if PATH.on(node) and SPEC.on(node)]
    assert specs and all(spec.dtype is DataType.BFLOAT16 for spec in specs)


def test_a_quotient_by_logarithms() -> None:
    x = numbers(8, 16).abs() * 20 + 10
    (ours,) = run(lambda x: (torch.lgamma(x + 1) - torch.lgamma(x)).exp(), x).outputs
    torch.testing.assert_close(ours, x, rtol=0.01, atol=0.0)


COMPLEMENTS = {
    "1 - sigmoid": lambda x: 1 - torch.sigmoid(x),
    "ones - sigmoid": lambda x: torch.ones_like(x) - torch.sigmoid(x),
    "a tensor - sigmoid": lambda x: torch.tensor(1.0) - torch.sigmoid(x).reshape(4, -1).t(),
    "its logarithm": lambda x: torch.log(1 - torch.sigmoid(x)),
    "1 - tanh ** 2": lambda x: 1 - torch.tanh(x) ** 2,
    "tanh + 1": lambda x: torch.tanh(x) + 1,
    "1 - erf": lambda x: 1 - torch.erf(x / 3),
    "ndtr": lambda x: torch.special.ndtr(x / 2),
    "1 - softmax": lambda x: (1 - torch.softmax(x, 0)) ** 2,
}


@pytest.mark.parametrize("name", COMPLEMENTS)
def test_complements_of_functions_that_saturate(name: str) -> None:
    x = torch.linspace(-7, 7, 32).bfloat16().float()
    outcome = run(COMPLEMENTS[name], x)
    assert not outcome.host_ops
    torch.testing.assert_close(outcome.outputs[0], COMPLEMENTS[name](x.double()).float(), rtol=0.04, atol=1e-6)


def test_other_sums_with_numbers_are_not_widened() -> None:
    outcome = run(lambda x: 1 - torch.relu(torch.sigmoid(x) * 3), numbers(32, 32))
    specs = [SPEC[node].spec for node in outcome.program.graph.nodes if PATH.on(node) and SPEC.on(node)]
    assert specs and all(spec.dtype is DataType.BFLOAT16 for spec in specs)


LARGEST = {
    "renorm": lambda x: x.renorm(float("inf"), 0, 0.5),
    "double": lambda x: (x.abs() == x.double().abs().amax(-1, keepdim=True)).float() * x,
    "norm": lambda x: torch.linalg.vector_norm(x, float("inf"), dtype=torch.float64).float(),
}


@pytest.mark.parametrize("name", LARGEST)
def test_the_host_finds_the_maximum_among_rounded_numbers(name: str) -> None:
    require_same_gradient(LARGEST[name], numbers(5, 7))


@pytest.mark.parametrize("view", [lambda x: x, torch.t], ids=["plain", "transposed"])
@pytest.mark.parametrize("compare", [torch.eq, torch.ge, torch.le])
def test_host_comparison_with_a_value_rounded_by_the_device(compare: Callable, view: Callable) -> None:
    """A transposed value is permuted on the host after the download."""
    x = numbers(6, 9)
    (ours,) = run(lambda x: compare(view(x.abs()), view(x.double().abs().amax(-1, keepdim=True))), x).outputs
    assert torch.equal(view(ours).any(-1), torch.ones(6, dtype=torch.bool))


THIN = {
    "pinv": lambda x: torch.linalg.pinv(x @ x.mT),
    "cholesky": lambda x: torch.linalg.cholesky(x.mT @ x + 1e-4 * torch.eye(2)),
    "inv": lambda x: torch.linalg.inv(x.mT @ x),
    "slogdet": lambda x: torch.linalg.slogdet(x @ x.mT + 1e-3 * torch.eye(9))[1],
    "matrix_rank": lambda x: torch.linalg.matrix_rank(x @ x.mT),
    "solve": lambda x: torch.linalg.solve(x.mT @ x + 1e-3 * torch.eye(2), x.mT),
}


@pytest.mark.parametrize("name", THIN)
def test_matrices_keep_their_rank(name: str) -> None:
    x = numbers(9, 2)
    ours, wanted = run(THIN[name], x).outputs[0], THIN[name](x)
    torch.testing.assert_close(ours, wanted, rtol=1e-3, atol=1e-3 * float(wanted.abs().max()))


def test_other_inputs_of_factorisations_stay_on_the_device() -> None:
    outcome = run(lambda x: torch.linalg.pinv(torch.relu(x @ x)), numbers(8, 8))
    assert outcome.device_ops == ["ttnn.matmul"]  # with its activation


@pytest.mark.parametrize("weight", [0.25, 0.75, 1.0, 2.0])
def test_lerp_starts_from_the_nearer_end(weight: float) -> None:
    x, end = torch.full((4, 4), 1000.0), torch.full((4, 4), 0.001)
    wanted = torch.lerp(x, end, weight)
    by_number = run(lambda x, end: torch.lerp(x, end, weight), x, end)
    by_tensor = run(torch.lerp, x, end, torch.full((4, 4), weight))
    for outcome in (by_number, by_tensor):
        torch.testing.assert_close(outcome.outputs[0], wanted, rtol=1e-2, atol=0.0)
