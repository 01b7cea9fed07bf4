"""Sums, products, quotients, remainders and powers of two operands."""

import pytest
import torch

from tests.compiler.against_torch import check, run

aten = torch.ops.aten
INTEGERS = torch.tensor([-7, -3, -1, 0, 1, 2, 5, 100, 70000])


def test_alpha_is_not_dropped():
    x, y = torch.randn(5, 7), torch.randn(5, 7)
    check(lambda x, y: torch.add(x, y, alpha=2.5), x, y)
    check(lambda x, y: torch.sub(x, y, alpha=2.5), x, y)
    check(lambda x, y: torch.rsub(x, y, alpha=2), x, y)
    check(lambda x, y: torch.sub(x, y, alpha=3), INTEGERS, INTEGERS.flip(0))
    check(lambda x: torch.add(x, 2, alpha=3), INTEGERS)


def test_negative_integers_stay_negative():
    check(lambda x: x - 8, INTEGERS)
    check(lambda x, y: x * y, INTEGERS, torch.tensor(-3))
    check(torch.neg, INTEGERS)


def test_integers_are_exact_beyond_float_precision():
    x = torch.tensor([16777217, 2**30 + 1, -(2**30) - 3, 2**31 - 1])
    check(lambda x: x - 1, x)
    check(torch.minimum, x, x.flip(0))


def test_float32_is_not_always_bfloat16():
    x = 1 + torch.rand(33, 65) / 1000
    check(lambda x: (x - 1) * 1000, x, precision="float32", relative=1e-3)
    assert run(lambda x: x + 1, x, precision="float32").program.code.count("float32") >= 1


def test_large_numbers_stay_finite():
    """The lowest float32 exceeds bfloat16; rounded to minus infinity it would make softmax rows NaN."""
    out = run(lambda x: x + torch.finfo(torch.float32).min, torch.zeros(3, 3))
    assert out.outputs[0].isfinite().all()


def test_division_of_integers_is_true_division():
    check(lambda x, y: x / y, INTEGERS, torch.full((9,), 3), precision="float32")
    check(lambda x: x / 4, INTEGERS)


@pytest.mark.parametrize("mode", ["floor", "trunc"])
@pytest.mark.parametrize("divisor", [1, 2, 3, 8, 7, -1, -2, -5])
def test_rounded_division_of_integers(mode, divisor):
    x = torch.cat([torch.arange(-40, 40), torch.tensor([2**31 - 1, -(2**31) + 1, 16777217, -16777219])])
    check(lambda x: torch.div(x, divisor, rounding_mode=mode), x)
    check(lambda x, y: torch.div(x, y, rounding_mode=mode), x, torch.tensor(divisor))
    check(lambda x: (x % divisor, torch.fmod(x, divisor)), x)


def test_division_by_a_power_of_two_is_one_shift():
    assert check(lambda x: x // 8, INTEGERS).device_ops == ["ttnn.bitwise_right_shift"]
    assert check(lambda x: x % 8, INTEGERS).device_ops == ["ttnn.bitwise_and"]


def test_rounded_division_of_floats():
    """2.999 in bfloat16 would be 3 before it is truncated."""
    x = torch.arange(1.0, 200.0)
    check(lambda x: torch.div(x, -7.0, rounding_mode="floor"), x, relative=0, absolute=0.003)
    check(lambda x: torch.div(x, -7.0, rounding_mode="trunc"), x, relative=0, absolute=0.003)
    check(lambda x: torch.floor_divide(x, 0.5), x)


def test_remainders_of_multiples_are_zero():
    """The chip's own operation returns 1.875 for -7.5 % 1.875."""
    x, y = torch.arange(-60.0, 60.0)[:, None] * 1.875, torch.tensor([1.875, -1.875, 0.625, 3.75])
    for precision in ("bfloat16", "float32"):
        check(lambda x, y: (x % y, torch.fmod(x, y)), x.bfloat16().float(), y, precision=precision)
        check(lambda x: (x % 1.875, torch.fmod(x, 1.875)), x.bfloat16().float(), precision=precision)


@pytest.mark.parametrize("exponent", [-2, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4])
def test_powers(exponent):
    check(lambda x: x**exponent, torch.rand(5, 33) * 3 + 0.25)
    check(lambda x: x**exponent, torch.rand(5, 33) * 3 + 0.25, precision="float32")


def test_powers_of_integers():
    check(lambda x: (x**2, x**3), torch.arange(-9, 9))
    check(lambda x: x**2.0, torch.arange(-9, 9))
    check(lambda x: 2.0**x, torch.arange(-9, 9))


def test_named_powers_are_one_operation():
    x = torch.rand(4, 4) + 0.5
    assert run(lambda x: x**2, x).device_ops == ["ttnn.square"]
    assert run(lambda x: x**-0.5, x).device_ops == ["ttnn.rsqrt"]


def test_a_constant_tensor_is_a_number():
    out = check(lambda x: x * torch.full((4, 4), 3.0), torch.randn(4, 4))
    assert out.device_ops == ["ttnn.multiply"] and "3.0" in out.program.code


# Operations that stay on the host, and a part of the reason.
REFUSED = {
    "a product beyond 32 bits": (lambda x: x * 2**33, INTEGERS, "32 bits"),
    "a sum beyond 32 bits": (lambda x: x + 2**31, INTEGERS, "32 bits"),
    "a power beyond 32 bits": (lambda x: x**5, INTEGERS, "32 bits"),
    "powers by tensor": (lambda x: x**x, torch.arange(5), "integers"),
    "an infinite divisor": (lambda x: torch.fmod(x, torch.inf), torch.randn(3), "infinite"),
    "float64": (lambda x: x + 1, torch.randn(3).double(), "float64"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_stays_on_the_host_with_a_reason(case):
    function, x, word = REFUSED[case]
    out = check(function, x, on_device=False)
    assert [word in reason for reason in out.host_ops.values()] == [True]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16])
def test_narrow_integers_wrap_around(dtype):
    info = torch.iinfo(dtype)
    x = torch.tensor([info.min, info.min + 1, 0, 1, info.max - 1, info.max], dtype=dtype)
    check(lambda x: (x + 3, x - 5, x * 7, -x, torch.abs(x) if dtype.is_signed else x, x + x), x)


EXTREMES = torch.tensor([float("inf"), -float("inf"), 0.0, 2.0**100, -(2.0**100), 2.0**-100, -(2.0**-100), 1.5, -7.0])


@pytest.mark.parametrize("function", [torch.floor_divide, torch.remainder, torch.hypot, torch.atan2, torch.fmod])
def test_pairs_of_extremes(function):
    one, other = (each.flatten() for each in torch.meshgrid(EXTREMES, EXTREMES, indexing="ij"))
    wanted = function(one, other)
    judged = ~wanted.isnan()
    if function in (torch.remainder, torch.fmod):  # a quotient beyond 2^24 has no fraction in float32
        judged &= (one / other).abs() < 2**24
    check(lambda x, y: function(x, y), one[judged], other[judged], absolute=0.0)
