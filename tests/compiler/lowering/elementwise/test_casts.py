"""Casts between all pairs of dtypes, and the values that they preserve."""

import itertools
import math

import pytest
import torch

from tests.compiler.against_torch import check, run
from tests.compiler.lowering.operands import DTYPES, tensor

PAIRS = list(itertools.product(DTYPES, DTYPES))


@pytest.mark.parametrize("precision", ["bfloat16", "float32"])
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: "-".join(str(d)[6:] for d in pair))
def test_every_pair_of_dtypes(pair, precision):
    source, target = pair
    low = 0 if target is torch.uint8 and source.is_floating_point else -8  # otherwise undefined in C
    x = tensor((3, 17), source, 5, low)
    check(lambda x: x.to(target), x, precision=precision)
    check(lambda x: torch.ops.prims.convert_element_type(x, target), x, precision=precision)


def test_floats_are_truncated_towards_zero():
    check(lambda x: x.long(), torch.tensor([1.5, -1.5, 2.875, -2.875, -0.5, 200.0]))


def test_everything_but_zero_is_true():
    check(lambda x: x.bool(), torch.tensor([0.0, -0.0, 0.5, -1e-3, math.inf]))
    check(lambda x: x.bool(), torch.tensor([0, 256, -(2**31), 7]))


def test_integers_wrap_around_when_narrowed():
    x = torch.tensor([0, 127, 128, 255, 256, 300, -1, -129, 70000])
    check(lambda x: (x.to(torch.uint8), x.to(torch.int8), x.to(torch.int16)), x)


def test_floats_from_integers_keep_their_digits():
    x = torch.tensor([257, 1001, -65537, 16777215])
    check(lambda x: x.float(), x, relative=0, absolute=0)
    check(lambda x: (x.float() + 1).long(), x[:3])


def test_a_cast_to_the_same_dtype_costs_nothing():
    out = run(lambda x: x.to(torch.float32).to(torch.bfloat16).float() + 1, torch.randn(4))
    assert out.device_ops == ["ttnn.add"] and "typecast" not in out.program.code


def test_casts_keep_the_order_of_storage():
    out = check(lambda x: x.exp().permute(1, 0).to(torch.int32).float().permute(1, 0) + 1, torch.randn(8, 4))
    assert "permute" not in out.program.code


def test_copies_and_aliases_cost_nothing():
    out = check(lambda x: x.clone().detach().contiguous() + 1, torch.randn(3, 3))
    assert out.device_ops == ["ttnn.add"]


def test_copy_takes_dtype_and_shape_of_its_target():
    check(lambda x, y: torch.ops.aten.copy(x, y), torch.zeros(3, 5), torch.arange(5))
    check(lambda x, y: torch.ops.aten.copy(x, y), torch.zeros(3, 5, dtype=torch.int64), torch.randn(3, 5) * 9)
