"""Logical and bitwise operations."""

import pytest
import torch

from tests.compiler.against_torch import check, run

BITS = torch.tensor([-(2**31) + 1, -70000, -1, 0, 1, 255, 70000, 2**31 - 1])
TRUE_FALSE = torch.tensor([True, True, False, False]), torch.tensor([True, False, True, False])


@pytest.mark.parametrize("name", ["and", "or", "xor"])
def test_logic_of_anything(name):
    function = getattr(torch, f"logical_{name}")
    check(lambda x, y: function(x, y), *TRUE_FALSE)
    check(lambda x, y: function(x, y), torch.tensor([0.0, -0.0, 0.25, -3.0]), torch.tensor([0, 5, 0, -(2**31)]))


def test_minus_zero_is_false():
    x = torch.tensor([0.0, -0.0, 0.25, -3.0])
    check(lambda x: (torch.logical_not(x), x.bool(), torch.logical_or(x, x)), x)


@pytest.mark.parametrize("name", ["and", "or", "xor"])
def test_bits(name):
    function = getattr(torch, f"bitwise_{name}")
    check(lambda x, y: function(x, y), *TRUE_FALSE)
    check(lambda x, y: function(x, y), BITS[:, None], BITS)
    check(lambda x: function(x, 12345), BITS)
    check(lambda x, y: function(x, y), BITS[:4], TRUE_FALSE[0])


def test_not():
    check(lambda x: ~x, BITS)
    check(lambda x: ~x, TRUE_FALSE[0])
    check(lambda x: ~x, torch.arange(256).to(torch.uint8))


def test_shifts():
    x = torch.tensor([-70000, -1, 0, 1, 255, 7000])
    check(lambda x: (x << 3, x >> 3, x >> 31), x)
    check(lambda x, y: x >> y, x, torch.arange(6))
    check(lambda x, y: x << y, x.int(), torch.arange(6).int())
    check(lambda x: x << 5, torch.arange(256).to(torch.uint8))


def test_shifts_beyond_32_bits_stay_on_the_host():
    out = check(lambda x: x << 40, torch.arange(5), on_device=False)
    assert list(out.host_ops) == ["aten.__lshift__.Scalar"] or list(out.host_ops) == [
        "aten.bitwise_left_shift.Tensor_Scalar"
    ]
    check(lambda x, y: x << y, torch.arange(5), torch.tensor([40, 1, 2, 3, 4]), on_device=False)


def test_booleans_stay_booleans_over_many_steps():
    out = check(lambda x, y: ~(x & y) | (x ^ y) & ~x, *TRUE_FALSE)
    assert "typecast" not in out.program.code


def test_every_result_is_a_boolean_of_the_same_kind():
    out = run(lambda x, y: (x > 2) & (y > 0.5), torch.arange(4), torch.rand(4))
    assert "typecast" not in out.program.code
