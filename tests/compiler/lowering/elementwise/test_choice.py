"""where, masks, limits and extremes."""

import math

import pytest
import torch

from tests.compiler.against_torch import check, run

MASK = torch.tensor([[True, False, True], [False, False, True]])
X = torch.tensor([[1.5, -2.0, 3.0], [0.0, 0.25, -7.0]])


def test_masked_fill_with_infinity_is_infinity():
    out = check(lambda x, mask: x.masked_fill(mask, -math.inf), X, MASK)
    assert out.device_ops == ["ttnn.where"]
    check(lambda x, mask: x.masked_fill(mask, -math.inf), X, MASK, precision="float32")
    check(lambda x, mask: torch.where(mask, x, -math.inf), X, MASK)
    check(lambda x, mask, value: x.masked_fill(mask, value), X, MASK, torch.tensor(-math.inf))


def test_the_lowest_float_stays_finite():
    least = torch.finfo(torch.float32).min
    for function in (
        lambda x, mask: x.masked_fill(mask, least),
        lambda x, mask: torch.where(mask, least, x),
        lambda x, mask: torch.where(mask, 0.0, least),
        lambda x, mask: torch.where(mask, x, torch.full((), least)),
    ):
        out = check(function, X, MASK)
        assert out.outputs[0].isfinite().all()


def test_where_between_numbers():
    check(lambda mask: torch.where(mask, 0.1, -2.7), MASK, relative=0.004, absolute=0)
    check(lambda mask: torch.where(mask, 3, -5), MASK)
    check(lambda mask: torch.where(mask, 1.5, -2), MASK)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.int8, torch.bool])
def test_where_of_every_dtype(dtype):
    x, y = X.to(dtype), X.flip(0).to(dtype)
    check(lambda mask, x, y: torch.where(mask, x, y), MASK, x, y)
    check(lambda mask, x, y: torch.where(mask, x, y), MASK[0], x[:, :1], y)


def test_where_promotes():
    check(lambda mask, x, y: torch.where(mask, x, y), MASK, X, torch.arange(3))
    check(lambda mask, x: torch.where(mask, x, 0.5), MASK, torch.arange(3))
    check(lambda x: torch.where(x > 1, x, 0), torch.arange(5))


def test_selected_constants_are_numbers():
    out = check(lambda x, mask: torch.where(mask, torch.full_like(x, -math.inf), x), X, MASK)
    assert "from_torch" not in out.program.code.split("where")[1] and out.device_ops == ["ttnn.where"]


LIMITS = [(None, 2.0), (-1.0, None), (-1, 2), (-1.0, 2.0), (2.0, -1.0), (-math.inf, 1.0), (0.1, math.inf), (-0.5, 2)]


@pytest.mark.parametrize("limits", LIMITS)
def test_clamp(limits):
    low, high = limits
    x = torch.tensor([-math.inf, -3.0, -0.75, 0.0, 0.5, 2.5, 100.0, math.inf])
    check(lambda x: torch.clamp(x, low, high), x)
    check(lambda x: torch.clamp(x, low, high), x, precision="float32")


@pytest.mark.parametrize(
    "limits", [(-2, 3), (None, 2**30 + 1), (-(2**30) - 1, None), (-(2**30), 2**30 + 1), (-0.5, 1.5)]
)
def test_clamp_of_integers(limits):
    low, high = limits
    x = torch.tensor([-(2**31) + 1, -(2**30) - 7, -5, 0, 1, 7, 2**30 + 7, 2**31 - 1])
    check(lambda x: torch.clamp(x, low, high), x, precision="float32")


def test_clamp_to_tensors():
    low, high = torch.tensor([-1.0, 0.0, 2.0]), torch.tensor([1.0, 0.5, 1.0])  # the last pair is reversed
    check(lambda x, low, high: torch.clamp(x, low, high), X, low, high)
    check(lambda x, low: torch.clamp_min(x, low), X, low)
    check(lambda x, high: torch.clamp_max(x, high), X, high)
    check(lambda x: (torch.clamp_min(x, 0.5), torch.clamp_max(x, 0.5)), X)


def test_extremes():
    check(lambda x, y: (torch.maximum(x, y), torch.minimum(x, y)), X, X.flip(0))
    check(lambda x, y: (torch.maximum(x, y), torch.minimum(x, y)), MASK, MASK[:1])
    check(lambda x, y: (torch.maximum(x, y), torch.minimum(x, y)), torch.arange(5), torch.tensor(2.5))


def test_operations_about_nan_stay_on_the_host():
    x = torch.tensor([1.0, math.nan, -math.inf])
    out = check(lambda x, y: (torch.nan_to_num(x), torch.fmax(x, y)), x, torch.ones(3), on_device=False)
    assert len(out.host_ops) == 2 and all("NaN" in reason for reason in out.host_ops.values())
    accepted = run(lambda x: (torch.nan_to_num(x, 0.5, 2.0, -3.0), torch.fmax(x, x - 1)), X, accept=("nan",))
    assert accepted.host_ops == {} and torch.equal(accepted.outputs[0], X)
