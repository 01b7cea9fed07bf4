"""Functions of one tensor over all of bfloat16 and wide float32: each is correct, if necessary on the host."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional

from tests.compiler.against_torch import run
from torch_ttnn.compiler.analysis import angles
from torch_ttnn.compiler.lowering.elementwise import functions

RELATIVE = 0.02
# The chip has no denormal numbers: they are zeros.
SMALLEST = torch.finfo(torch.bfloat16).tiny
LARGEST = torch.finfo(torch.bfloat16).max
# Relative errors grow where a function is near zero; these are the allowed absolute errors there.
ABSOLUTE = {
    "erfc": 1e-4, "sin": 0.01, "cos": 0.01, "tan": 0.01, "gelu": 1e-6, "gelu, tanh": 1e-6, "mish": 1e-36, "silu": 1e-36,
}  # fmt: skip

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
    "x ** 1.5": lambda x: x**1.5,
    "x ** 4": lambda x: x**4,
    "x ** 5": lambda x: x**5,
    "x ** 10": lambda x: x**10,
    "x ** 17": lambda x: x**17,
    "x ** 100": lambda x: x**100,
    "x ** -1": lambda x: x**-1,
    "x ** -2": lambda x: x**-2,
    "x ** -3": lambda x: x**-3,
    "x ** -7": lambda x: x**-7,
    "x ** 0.001": lambda x: x**0.001,
    "2 ** x": lambda x: torch.pow(2.0, x),
    "3 ** x": lambda x: 3.0**x,
    "0.5 ** x": lambda x: 0.5**x,
    "10 ** x": lambda x: 10.0**x,
    "1 ** x": lambda x: torch.pow(1.0, x),
    "gelu": lambda x: functional.gelu(x),
    "gelu, tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "mish": lambda x: functional.mish(x),
    "silu": lambda x: functional.silu(x),
    "selu": lambda x: functional.selu(x),
    "celu": lambda x: functional.celu(x, 0.7),
    "elu, alpha 2": lambda x: functional.elu(x, alpha=2.0),
    "hardsigmoid": lambda x: functional.hardsigmoid(x),
    "hardswish": lambda x: functional.hardswish(x),
    "hardtanh": lambda x: functional.hardtanh(x),
    "relu6": lambda x: functional.relu6(x),
    "softshrink": lambda x: functional.softshrink(x),
    "hardshrink": lambda x: functional.hardshrink(x),
    "softsign": lambda x: functional.softsign(x),
    "threshold": lambda x: functional.threshold(x, 0.1, 20.0),
    "logit": torch.logit,
    "logit, eps": lambda x: torch.logit(x, 1e-3),
    "frac": torch.frac,
    "sinc": torch.sinc,
    "round, decimals": lambda x: torch.round(x, decimals=2),
    "deg2rad": torch.deg2rad,
    "rad2deg": torch.rad2deg,
    "x / 1e30": lambda x: x / 1e30,
    "x * 1e30": lambda x: x * 1e30,
    "sign": torch.sign,
    "entr": torch.special.entr,
    "i1": torch.special.i1,
    "lgamma": torch.lgamma,
    "polygamma": lambda x: torch.polygamma(1, x),
    "to int32": lambda x: x.clamp(-2e9, 2e9).to(torch.int32).float(),
    "to int16": lambda x: x.clamp(-30000, 30000).to(torch.int16).float(),
    "to uint8": lambda x: x.clamp(0, 255).to(torch.uint8).float(),
    "to bool": lambda x: x.to(torch.bool).float(),
    "x % 3": lambda x: x % 3,
    "x % -0.7": lambda x: x % -0.7,
    "fmod": lambda x: torch.fmod(x, 1e-3),
    "x // 3": lambda x: x // 3,
    "x // -0.7": lambda x: x // -0.7,
    "trunc(x / 3)": lambda x: torch.div(x, 3, rounding_mode="trunc"),
    **{str(overload).split(".")[1]: overload for overload in angles.LARGEST},
}
# Of two tensors: each number with another one.
PAIRS = {
    "atan2": torch.atan2,
    "hypot": torch.hypot,
    "logaddexp": torch.logaddexp,
    "logaddexp2": torch.logaddexp2,
    "xlogy": torch.xlogy,
    "xlog1py": torch.special.xlog1py,
    "copysign": torch.copysign,
    "pow": torch.pow,
    "div": torch.div,
    "mul": torch.mul,
    "fmod": torch.fmod,
    "remainder": torch.remainder,
    "floor_divide": torch.floor_divide,
    "ldexp": lambda x, y: torch.ldexp(x, y.clamp(-20, 20).to(torch.int32)),
    "maximum": torch.maximum,
    "minimum": torch.minimum,
}
# A call with larger ones runs with torch; these run on the device.
ON_DEVICE: dict[str, float] = {
    **{str(overload).split(".")[1]: largest for overload, largest in angles.LARGEST.items()},
    "x % 3": 3 * 2.0**16,
    "x % -0.7": 0.7 * 2.0**16,
    "fmod": 1e-3 * 2.0**15.9,
}


ZERO_AT_MINUS_INFINITY = {"gelu", "hardswish"}  # the limit, where torch multiplies infinity by 0: NaN


def all_of_bfloat16() -> torch.Tensor:
    x = torch.arange(2**16, dtype=torch.int32).to(torch.int16).view(torch.bfloat16).float()
    return x[~x.isnan() & ((x == 0) | (x.abs() >= SMALLEST))]


def compare_in_bfloat16(function: Callable[..., torch.Tensor], *given: torch.Tensor, absolute: float = 0.0) -> None:
    (got,), wanted = run(function, *given).outputs, function(*given)
    near = (got - wanted).abs() <= RELATIVE * wanted.abs() + 2 * SMALLEST + absolute
    near |= (got == wanted) | (got.isnan() & wanted.isnan())
    near |= (wanted.abs() >= LARGEST) & (got.abs() >= LARGEST) & (got.sign() == wanted.sign())
    near |= wanted.isnan() & got.isinf()  # NaN is infinity in bfloat16 on the device
    wrong = (~near).nonzero().flatten()
    assert not len(wrong), [(*[x[i].item() for x in given], got[i].item(), wanted[i].item()) for i in wrong[:3]]


def paired(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x, x[torch.randperm(len(x), generator=torch.Generator().manual_seed(1))]


@pytest.mark.parametrize("name", CASES)
@torch.no_grad()
def test_every_number_of_bfloat16(name: str) -> None:
    x = all_of_bfloat16()
    x = x[x > -torch.inf] if name in ZERO_AT_MINUS_INFINITY else x
    compare_in_bfloat16(CASES[name], x, absolute=ABSOLUTE.get(name, 0.0))


@pytest.mark.parametrize("name", ON_DEVICE)
@torch.no_grad()
def test_what_the_device_computes_of_bfloat16(name: str) -> None:
    x = all_of_bfloat16()
    compare_in_bfloat16(CASES[name], x[x.abs() <= ON_DEVICE[name]], absolute=ABSOLUTE.get(name, 0.0))


@pytest.mark.parametrize("name", PAIRS)
@torch.no_grad()
def test_pairs_of_bfloat16(name: str) -> None:
    compare_in_bfloat16(PAIRS[name], *paired(all_of_bfloat16()))


WIDE_RELATIVE = 1e-3
WIDE_SMALLEST = torch.finfo(torch.float32).tiny
WIDE_LARGEST = torch.finfo(torch.float32).max
# The library's polynomial for erfc has an absolute error.
WIDE_ABSOLUTE = {"erfc": 1e-4}


def wide_float32() -> torch.Tensor:
    """Any bits, typical numbers, and the limits."""
    generator = torch.Generator().manual_seed(0)
    bits = torch.randint(-(2**31), 2**31, (2**14,), generator=generator).to(torch.int32).view(torch.float32)
    common = torch.randn(2**13, generator=generator) * 3
    ends = torch.tensor([0.0, -0.0, 1.0, -1.0, torch.inf, -torch.inf, WIDE_SMALLEST, WIDE_LARGEST, -WIDE_LARGEST])
    x = torch.cat([bits, common, torch.linspace(-20, 20, 4001), ends])
    return x[~x.isnan() & ((x == 0) | (x.abs() >= WIDE_SMALLEST))]


def compare_in_float32(function: Callable[..., torch.Tensor], *given: torch.Tensor, absolute: float = 0.0) -> None:
    (got,), wanted = run(function, *given, precision="float32").outputs, function(*given)
    near = (got - wanted).abs() <= WIDE_RELATIVE * wanted.abs() + 2 * WIDE_SMALLEST + absolute
    near |= (got == wanted) | (got.isnan() & wanted.isnan())
    near |= wanted.isnan() & got.isinf()
    near |= (wanted.abs() >= WIDE_LARGEST * 0.999) & (got.abs() >= WIDE_LARGEST * 0.999) & (got.sign() == wanted.sign())
    wrong = (~near).nonzero().flatten()
    assert not len(wrong), [(*[x[i].item() for x in given], got[i].item(), wanted[i].item()) for i in wrong[:3]]


@pytest.mark.parametrize("name", CASES)
@torch.no_grad()
def test_wide_float32(name: str) -> None:
    compare_in_float32(CASES[name], wide_float32(), absolute=WIDE_ABSOLUTE.get(name, 0.0))


@pytest.mark.parametrize("name", ON_DEVICE)
@torch.no_grad()
def test_what_the_device_computes_of_float32(name: str) -> None:
    x = wide_float32()
    compare_in_float32(CASES[name], x[x.abs() <= ON_DEVICE[name]], absolute=WIDE_ABSOLUTE.get(name, 0.0))


@pytest.mark.parametrize("name", PAIRS)
@torch.no_grad()
def test_pairs_of_float32(name: str) -> None:
    compare_in_float32(PAIRS[name], *paired(wide_float32()))


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


# -- angles -----------------------------------------------------------------------------------------------------------

WAYS = {
    "an input": (lambda function: lambda x, y: function(x)),
    "computed": (lambda function: lambda x, y: function(x + y)),
    "computed twice": (lambda function: lambda x, y: function(x + y) + function(x * y)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("function", [torch.sin, torch.cos, torch.tan])
@torch.no_grad()
def test_angles_that_are_too_large_run_with_torch(
    function: Callable[..., torch.Tensor], way: str, caplog: pytest.LogCaptureFixture
) -> None:
    given = torch.randn(5, 33), torch.ones(5, 33)
    made = WAYS[way](function)
    outcome = run(made, *given)
    assert not outcome.host_ops
    for _ in range(3):  # as calls, as a trace, by direct replay
        outcome.program(given)

    def logged() -> list[str]:
        return [each.message for each in caplog.records if each.name == "torch_ttnn"]

    assert not logged()
    for scale in (1e6, 1e20, 3e37):
        large = given[0] * scale, given[1]
        assert torch.equal(outcome.program(large)[0], made(*large))
    assert len(logged()) == 3
    (again,) = outcome.program(given)
    torch.testing.assert_close(again, outcome.outputs[0])


@torch.no_grad()
def test_a_call_that_torch_repeats_draws_its_random_numbers_once() -> None:
    def noisy(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x * 1e4) + torch.rand(5, 33)

    x = torch.randn(5, 33) * 1e4
    torch.manual_seed(3)
    expected, following = noisy(x), torch.rand(2)
    torch.manual_seed(3)
    compiled = torch.compile(noisy, backend="ttnn", options={"device": "emulator", "warn": False})
    assert torch.equal(compiled(x), expected)
    assert torch.equal(torch.rand(2), following)


@torch.no_grad()
def test_angles_that_are_known_to_be_small_are_not_checked() -> None:
    """Positions of a cache times frequencies, as in rotary embeddings, and time steps of a diffusion model."""

    def rotary(positions: torch.Tensor, frequencies: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        angle = frequencies[None, :, None].float() @ positions[None, None, :].float()
        return angle.transpose(1, 2).cos() + table[positions]

    outcome = run(rotary, torch.arange(8), torch.rand(16), torch.randn(128, 16), statics=(1, 2))
    assert "ttnn.cos" in outcome.device_ops and "ttnn.max" not in outcome.device_ops

    def embedded(time: torch.Tensor) -> torch.Tensor:
        return torch.sin(time[:, None].float() * torch.exp(-torch.arange(16) * 0.5))

    outcome = run(embedded, torch.tensor([999, 3]))
    assert "ttnn.sin" in outcome.device_ops and "ttnn.max" not in outcome.device_ops


@torch.no_grad()
def test_frequencies_that_are_too_large_run_with_torch() -> None:
    def rotary(positions: torch.Tensor, frequencies: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        return (positions[:, None].float() * frequencies).cos() + table[positions]

    given = torch.arange(8), torch.rand(16) * 1e9, torch.randn(128, 16)
    assert torch.equal(run(rotary, *given, statics=(1, 2)).outputs[0], rotary(*given))


@torch.no_grad()
def test_sines_of_weights_are_torchs() -> None:
    given = torch.randn(4, 8), torch.randn(8) * 1e9
    outcome = run(lambda x, w: x * torch.sin(w), *given, statics=(1,))
    torch.testing.assert_close(outcome.outputs[0], given[0] * given[1].sin(), rtol=RELATIVE, atol=0.01)


# -- remainders -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("divisor", [3.0, 0.7, 1e-3, -3.3e5, 1e30, 1e-37, 6.2831855])
@pytest.mark.parametrize("function", [torch.fmod, torch.remainder, torch.floor_divide])
@torch.no_grad()
def test_remainders_are_exact(function: Callable[..., torch.Tensor], divisor: float) -> None:
    """Also of multiples, where a quotient is rounded to a whole number."""
    x = torch.cat([torch.linspace(-60000, 60000, 5001), torch.arange(-2000.0, 2000.0)]) * divisor
    x = x[(x.abs() < WIDE_LARGEST) & (x.abs() > WIDE_SMALLEST)]
    by_tensor = divisor != 1e-37 or function is not torch.floor_divide  # the quotients are within one of torch's
    for y in (divisor, torch.full_like(x, divisor)) if by_tensor else (divisor,):
        given = (x,) if y is divisor else (x, y)
        (got,) = run(
            (lambda x: function(x, divisor)) if y is divisor else function, *given, precision="float32"
        ).outputs
        torch.testing.assert_close(got, function(x, y), rtol=0, atol=2 * WIDE_SMALLEST)
