"""Binary arithmetic by lines equals torch's with denormals as zero, for any shapes."""

from __future__ import annotations

import operator

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ttnn_emulator.numerics.formats.carriers import round_bf16_half_away
from ttnn_emulator.numerics.kernels import broadcast_lines
from ttnn_emulator.numerics.kernels.elementwise import ADD, MULTIPLY, SUBTRACT, SUBTRACT_REVERSED
from ttnn_emulator.numerics.programs.elementwise.binary_by_torch import without_denormals

KINDS = {
    ADD: operator.add,
    SUBTRACT: operator.sub,
    SUBTRACT_REVERSED: lambda a, b: b - a,
    MULTIPLY: operator.mul,
}
SPECIAL = torch.tensor([0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1e-40, -1e-40, 3e38, 1e-30, -1.0])


@st.composite
def pairs_of_shapes(draw):
    """Two shapes that broadcast."""
    whole = draw(st.lists(st.integers(1, 7), max_size=4))
    result = []
    for _ in range(2):
        kept = [size if draw(st.booleans()) else 1 for size in whole]
        result.append(tuple(kept[draw(st.integers(0, len(kept))) :]))
    return result


def _expected(kind, a, b):
    return without_denormals(KINDS[kind](without_denormals(a), without_denormals(b)))


@given(pairs_of_shapes(), st.sampled_from(list(KINDS)), st.integers(0, 1000))
def test_any_shapes(shapes, kind, seed):
    torch.manual_seed(seed)
    a, b = (torch.randn(shape) * 10.0 ** torch.randint(-30, 8, shape) for shape in shapes)
    result = broadcast_lines.join_closely(kind, a, b)
    assert result.shape == torch.broadcast_shapes(*shapes)
    assert torch.equal(result, _expected(kind, a, b))


SHAPES = [
    ((20003,), (20003,)),
    ((3, 20003), (1,)),
    ((300, 257), (300, 1)),
    ((), (5,)),
    ((3, 1, 1), (1, 4, 1)),
    ((2, 16, 30, 8), (30, 8)),
    ((2, 1, 30, 1), (1, 16, 1, 8)),
]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_lines_are_shared_among_threads(shapes, kind):
    a, b = (torch.randn(shape) for shape in shapes)
    assert torch.equal(broadcast_lines.join_closely(kind, a, b), _expected(kind, a, b))


def test_operands_with_any_strides():
    a, b = torch.randn(40, 30).t(), torch.randn(40, 1).t()
    assert torch.equal(broadcast_lines.join_closely(ADD, a, b), a + b)


def test_empty():
    assert broadcast_lines.join_closely(ADD, torch.randn(0, 3), torch.randn(1, 3)).shape == (0, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_special_values(kind):
    a, b = torch.meshgrid(SPECIAL, SPECIAL, indexing="ij")
    torch.testing.assert_close(
        broadcast_lines.join_closely(kind, a, b), _expected(kind, a, b), rtol=0, atol=0, equal_nan=True
    )


def test_a_product_for_16_bits_is_rounded_half_away_from_zero():
    a, b = torch.randn(50, 60), torch.randn(50, 1)
    expected = round_bf16_half_away(_expected(MULTIPLY, a, b))
    assert torch.equal(broadcast_lines.multiply_closely(a, b, fp32=False), expected)
