"""Functions of one tensor over all of bfloat16: each is right, or another formula or the host takes over."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from tests.compiler.against_torch import run
from torch_ttnn.compiler.lowering import functions

RELATIVE = 0.02
# The chip has no denormal numbers: they are zeros.
SMALLEST = torch.finfo(torch.bfloat16).tiny
LARGEST = torch.finfo(torch.bfloat16).max
# Beyond, the library's reduction of angles loses all digits.
ANGLES = {"sin": 2.0**18, "cos": 2.0**18, "tan": 2.0**16}
# Relative errors grow where a function is next to nothing; these are the largest differences there.
ABSOLUTE = {"erfc": 1e-4, "sin": 0.01, "cos": 0.01, "tan": 0.01}

CASES = {
    **{str(overload).split(".")[1]: overload for overload in (*functions.PLAIN, *functions.WHOLE, *functions.DOMAINS)},
    "erfinv": torch.erfinv,
    "softplus": functional.softplus,
    "softplus, beta 2": lambda x: functional.softplus(x, beta=2),
    "sigmoid": torch.sigmoid,
    "elu": lambda x: functional.elu(x),
    "leaky_relu": lambda x: functional.leaky_relu(x),
    "log_sigmoid": functional.logsigmoid,
    "x ** 0.3": lambda x: x**0.3,
    "x ** 2.5": lambda x: x**2.5,
    "x ** 3": lambda x: x**3,
    "2 ** x": lambda x: torch.pow(2.0, x),
}


def all_of_bfloat16() -> torch.Tensor:
    x = torch.arange(2**16, dtype=torch.int32).to(torch.int16).view(torch.bfloat16).float()
    return x[~x.isnan() & ((x == 0) | (x.abs() >= SMALLEST))]


@pytest.mark.parametrize("name", CASES)
@torch.no_grad()
def test_every_number_of_bfloat16(name: str) -> None:
    x = all_of_bfloat16()
    x = x[x.abs() <= ANGLES.get(name, torch.inf)]
    (got,), wanted = run(CASES[name], x).outputs, CASES[name](x)
    near = (got - wanted).abs() <= RELATIVE * wanted.abs() + 2 * SMALLEST + ABSOLUTE.get(name, 0.0)
    near |= (got == wanted) | (got.isnan() & wanted.isnan())
    near |= (wanted.abs() >= LARGEST) & (got.abs() >= LARGEST) & (got.sign() == wanted.sign())
    near |= wanted.isnan() & got.isinf()  # NaN is infinity in bfloat16 on the device
    wrong = (~near).nonzero().flatten()
    assert not len(wrong), [(x[i].item(), got[i].item(), wanted[i].item()) for i in wrong[:3]]


@pytest.mark.parametrize("x, wanted", [(torch.inf, torch.inf), (4.0, 4**0.3)])
@torch.no_grad()
def test_powers_of_infinity_in_small_tensors(x: float, wanted: float) -> None:
    (got,) = run(lambda x: x**0.3, torch.full((3,), x)).outputs
    torch.testing.assert_close(got, torch.full((3,), wanted), rtol=RELATIVE, atol=0)


@torch.no_grad()
def test_digamma_of_what_is_known_to_be_positive_runs_on_the_device() -> None:
    outcome = run(lambda x: torch.digamma(torch.relu(x) + 1), torch.tensor([-3.0, 0.5, 4.0]))
    assert not outcome.host_ops
    assert run(torch.digamma, torch.tensor([-3.5, 0.5])).host_ops
