"""Functions of one tensor, in both precisions, and of integers."""

import pytest
import torch

from tests.compiler.against_torch import check, run
from tests.compiler.lowering.operands import tensor

# Function: the range in which it is tested.
FUNCTIONS = {
    torch.exp: (-8, 8),
    torch.exp2: (-8, 8),
    torch.expm1: (-4, 4),
    torch.log: (0.01, 50),
    torch.log2: (0.01, 50),
    torch.log10: (0.01, 50),
    torch.log1p: (-0.9, 9),
    torch.sqrt: (0, 50),
    torch.rsqrt: (0.01, 50),
    torch.reciprocal: (0.1, 9),
    torch.sin: (-100, 100),
    torch.cos: (-100, 100),
    torch.tan: (-1.4, 1.4),
    torch.asin: (-1, 1),
    torch.acos: (-1, 1),
    torch.atan: (-9, 9),
    torch.sinh: (-5, 5),
    torch.cosh: (-5, 5),
    torch.asinh: (-9, 9),
    torch.acosh: (1, 9),
    torch.atanh: (-0.95, 0.95),
    torch.tanh: (-5, 5),
    torch.erf: (-4, 4),
    torch.erfc: (-4, 4),
    torch.erfinv: (-0.99, 0.99),
    torch.digamma: (0.5, 9),
    torch.i0: (-5, 5),
    torch.logit: (0.05, 0.95),
    torch.square: (-9, 9),
    torch.deg2rad: (-180, 180),
    torch.sinc: (-5, 5),
}


@pytest.mark.parametrize("precision", ["bfloat16", "float32"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_against_torch(function, precision):
    low, high = FUNCTIONS[function]
    x = torch.linspace(low, high, 33 * 65).reshape(33, 65)
    x = x.bfloat16().clamp(low, high).float() if precision == "bfloat16" else x
    known = function in (torch.digamma, torch.i0)  # elsewhere they are left to the host
    check((lambda x: function(x.clamp(low, high))) if known else function, x, precision=precision)


@pytest.mark.parametrize("function", [torch.floor, torch.ceil, torch.trunc, torch.round, torch.frac, torch.sign])
def test_rounding_is_exact(function):
    x = tensor((17, 33), torch.float32, 3)
    check(function, x, relative=0, absolute=0)
    check(function, x, precision="float32", relative=0, absolute=0)


def test_rounding_to_decimals():
    x = torch.tensor([0.125, 0.375, 1.25, -2.5, 17.0, 144.0])
    check(lambda x: torch.round(x, decimals=1), x, precision="float32")
    check(lambda x: torch.round(x, decimals=-1), x)


def test_integers_need_no_rounding():
    x = torch.arange(-5, 5)
    out = check(lambda x: (x.floor(), x.ceil(), x.trunc(), x.round()), x)
    assert out.device_ops == []


def test_integers_keep_their_dtype_or_become_floats():
    x = torch.tensor([-(2**31) + 1, -70000, -1, 0, 1, 300, 16777217])
    check(lambda x: (x.abs(), -x, x.sign(), torch.sgn(x)), x)
    check(lambda x: (x.abs().sqrt(), (x % 7).exp()), x)


def test_booleans():
    x = torch.tensor([True, False, True])
    check(lambda x: (x.sign(), x.exp(), torch.isfinite(x)), x)


def test_one_operation_each():
    x = torch.rand(4, 4)
    assert run(lambda x: x.exp().log().sqrt(), x).device_ops == ["ttnn.exp", "ttnn.log", "ttnn.sqrt"]
