"""Comparisons and numeric predicates."""

import math

import pytest
import torch

from tests.compiler.against_torch import check, run

VALUES = torch.tensor([-math.inf, -2.5, -0.0, 0.0, 0.1, 2.5, math.inf])
COMPARISONS = (torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge)


@pytest.mark.parametrize("precision", ["bfloat16", "float32"])
@pytest.mark.parametrize("compare", COMPARISONS, ids=lambda function: function.__name__)
def test_all_pairs_of_special_numbers(compare, precision):
    check(lambda x, y: compare(x, y), VALUES[:, None], VALUES, precision=precision)
    check(lambda x: compare(x, 0.1), VALUES, precision=precision)
    check(lambda x: compare(x, -math.inf), VALUES, precision=precision, accept=("nan",))


@pytest.mark.parametrize("compare", COMPARISONS, ids=lambda function: function.__name__)
def test_integers_at_the_ends_of_their_range(compare):
    x = torch.tensor([-(2**31), -(2**31) + 1, -1, 0, 1, 2**31 - 1], dtype=torch.int32)
    check(lambda x, y: compare(x, y), x[:, None], x)
    check(lambda x: compare(x, 0), x)


def test_integers_against_fractions():
    check(lambda x: (x < 2.5, x == 2.0, x > -0.5), torch.arange(-3, 5))
    check(lambda x, y: x < y, torch.arange(-3, 5), torch.tensor(0.5))


def test_numeric_predicates():
    check(lambda x: (torch.isfinite(x), torch.isinf(x), torch.isposinf(x), torch.isneginf(x)), VALUES, accept=("nan",))
    check(torch.isfinite, VALUES)
    check(lambda x: (torch.isfinite(x), torch.isinf(x), torch.isnan(x)), torch.arange(5))


def test_tests_for_nan_stay_on_the_host():
    """A computed NaN is infinity on the device."""
    x = torch.tensor([1.0, math.nan, math.inf])
    out = check(torch.isnan, x, on_device=False)
    assert "NaN" in out.host_ops["aten.isnan.default"]
    assert "NaN" in check(lambda x: x != x, x, on_device=False).host_ops["aten.ne.Tensor"]
    assert run(torch.isnan, torch.ones(3), accept=("nan",)).host_ops == {}


def test_a_number_beyond_32_bits_stays_on_the_host():
    out = check(lambda x: x < 2**40, torch.arange(5), on_device=False)
    assert "32 bits" in out.host_ops["aten.lt.Scalar"]


def test_results_are_used_as_booleans():
    x = torch.arange(-4, 4)
    check(lambda x: ((x > 0) & (x < 3), (x > 0).float() * 2, (x > 0).long() + 1), x)
