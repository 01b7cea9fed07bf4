"""Functions of one tensor over all of bfloat16 and wide float32: each is right, or another formula or the host is."""

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
    "x ** -0.7": lambda x: x**-0.7,
    "x ** -2.5": lambda x: x**-2.5,
    "2 ** x": lambda x: torch.pow(2.0, x),
}


def all_of_bfloat16() -> torch.Tensor:
    x = torch.arange(2**16, dtype=torch.int32).to(torch.int16).view(torch.bfloat16).float()
    return x[~x.isnan() & ((x == 0) | (x.abs() >= SMALLEST))]


@pytest.mark.parametrize("name", CASES)
@torch.no_grad()
def test_every_number_of_bfloat16(name: str) -> None:
    x = all_of_bfloat16()
    (got,), wanted = run(CASES[name], x).outputs, CASES[name](x)
    near = (got - wanted).abs() <= RELATIVE * wanted.abs() + 2 * SMALLEST + ABSOLUTE.get(name, 0.0)
    near |= (got == wanted) | (got.isnan() & wanted.isnan())
    near |= (wanted.abs() >= LARGEST) & (got.abs() >= LARGEST) & (got.sign() == wanted.sign())
    near |= wanted.isnan() & got.isinf()  # NaN is infinity in bfloat16 on the device
    wrong = (~near).nonzero().flatten()
    assert not len(wrong), [(x[i].item(), got[i].item(), wanted[i].item()) for i in wrong[:3]]


WIDE_RELATIVE = 1e-3
WIDE_SMALLEST = torch.finfo(torch.float32).tiny
WIDE_LARGEST = torch.finfo(torch.float32).max
# The library's polynomial for erfc has an error of its own, whatever the result is.
WIDE_ABSOLUTE = {"erfc": 1e-4}


def wide_float32() -> torch.Tensor:
    """Any bits, numbers as models have them, and the ends."""
    generator = torch.Generator().manual_seed(0)
    bits = torch.randint(-(2**31), 2**31, (2**14,), generator=generator).to(torch.int32).view(torch.float32)
    common = torch.randn(2**13, generator=generator) * 3
    ends = torch.tensor([0.0, -0.0, 1.0, -1.0, torch.inf, -torch.inf, WIDE_SMALLEST, WIDE_LARGEST, -WIDE_LARGEST])
    x = torch.cat([bits, common, torch.linspace(-20, 20, 4001), ends])
    return x[~x.isnan() & ((x == 0) | (x.abs() >= WIDE_SMALLEST))]


@pytest.mark.parametrize("name", CASES)
@torch.no_grad()
def test_wide_float32(name: str) -> None:
    x = wide_float32()
    (got,), wanted = run(CASES[name], x, precision="float32").outputs, CASES[name](x)
    near = (got - wanted).abs() <= WIDE_RELATIVE * wanted.abs() + 2 * WIDE_SMALLEST + WIDE_ABSOLUTE.get(name, 0.0)
    near |= (got == wanted) | (got.isnan() & wanted.isnan())
    near |= wanted.isnan() & got.isinf()
    near |= (wanted.abs() >= WIDE_LARGEST * 0.999) & (got.abs() >= WIDE_LARGEST * 0.999) & (got.sign() == wanted.sign())
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
