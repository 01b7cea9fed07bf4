"""torch's type promotion: operands are cast to the dtype of the result before the computation."""

import itertools

import pytest
import torch

from tests.compiler.against_torch import check, run
from tests.compiler.lowering.operands import DTYPES, tensor
from torch_ttnn.compiler.ir.metadata import PATH, SPEC

PAIRS = list(itertools.product(DTYPES, DTYPES))


@pytest.mark.parametrize("dtypes", PAIRS, ids=lambda pair: "-".join(str(dtype)[6:] for dtype in pair))
def test_every_pair_of_dtypes(dtypes):
    x, y = tensor((3, 5), dtypes[0], 1), tensor((5,), dtypes[1], 2)
    check(lambda x, y: (x + y, x * y, x < y, x == y, torch.maximum(x, y)), x, y)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_numbers_promote_by_kind_only(dtype):
    x = tensor((3, 5), dtype, 1)
    check(lambda x: (x + 2, x * 0.5, x + True, x < 1.5, x >= 1), x)


def test_tensors_without_dimensions_do_not_promote():
    x, y = torch.arange(6).to(torch.int32), torch.tensor(3)
    out = check(lambda x, y: (x + y, x * y, x > y), x, y)
    assert out.outputs[0].dtype is torch.int32
    check(lambda x, y: x + y, torch.randn(4).bfloat16(), torch.tensor(0.5))


def test_integers_compare_exactly():
    """16777216 and 16777217 are one number in float32, 256 and 257 one in bfloat16."""
    x, y = torch.tensor([16777216, 256, -5]), torch.tensor([16777217, 257, -5])
    check(lambda x, y: (x == y, x < y, x >= y, x != y), x, y)
    check(lambda x: (x == 16777217, x < 257, x > -6), x)


def test_floats_from_integers_are_exact():
    """Rotary embeddings multiply positions, converted to floats, by constants."""
    positions, frequencies = torch.arange(900, 1000)[:, None], 10000.0 ** (-torch.arange(0, 8) / 8)
    check(lambda p, f: torch.cos(p.float() * f), positions, frequencies, statics=(1,), relative=1e-4, absolute=1e-4)


def test_bfloat16_and_float32_are_computed_in_bfloat16():
    """A wider result would not be more precise."""
    out = run(lambda x, p: x * p.float(), torch.randn(4, 8), torch.arange(8))
    made = [node for node in out.program.graph.nodes if PATH.get(node) == "ttnn.multiply"]
    assert "BFLOAT16" in str(SPEC[made[0]].dtype)


def test_a_constant_that_determines_the_shape_stays_a_tensor():
    check(lambda x: x + torch.full((4, 3), 2.0), torch.randn(3))
    check(lambda x: torch.where(x > 0, torch.zeros(2, 4, 3), x), torch.randn(4, 1))
    check(lambda x: x * torch.ones(1, 1, 3), torch.randn(3))


def test_operands_follow_the_order_of_storage():
    """A permuted operand determines the order; broadcast ones are converted to it."""
    x, y = torch.randn(2, 5, 7, 3), torch.randn(5, 1, 1)
    check(lambda x, y: (x.relu().permute(0, 3, 1, 2).permute(0, 2, 3, 1) + y).tanh() * x, x, y)
    check(lambda x, y: x.relu().permute(0, 2, 3, 1) * y, x, torch.randn(3, 5))


def test_numbers_wrap_around_in_narrow_integers():
    """torch converts -1 to uint8 before it compares: everything is less than 255."""
    x = torch.tensor([0, 3, 200], dtype=torch.uint8)
    check(lambda x: (x < -1, x == 300, x * -1, torch.clamp(x, max=-3), torch.bitwise_and(x, -1), x % -3), x)
    check(lambda x, y: (torch.maximum(x, y), x > y), x, torch.tensor(-1))
