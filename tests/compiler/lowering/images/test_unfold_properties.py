"""Sliding windows, and their adjoint."""

import hypothesis.strategies as st
import torch
from hypothesis import assume, given

from tests.compiler.lowering.moving import moves, numbers, precisions, values

F = torch.nn.functional


@given(values(most=4), st.integers(1, 9), st.integers(1, 9), st.data())
def test_unfold(value, size, step, data):
    x, order = value
    dim = data.draw(st.integers(-x.dim(), x.dim() - 1)) if x.dim() else 0
    assume(size <= (x.permute(order).shape[dim] if x.dim() else 1))
    moves(lambda x: x.permute(order).unfold(dim, size, step).clone(), x)


PAIRS = st.tuples(st.integers(1, 3), st.integers(1, 3))


@given(
    st.sampled_from([[2, 3], [4], [1, 1]]),
    st.tuples(st.integers(3, 9), st.integers(3, 9)),
    PAIRS,
    PAIRS,
    st.tuples(st.integers(0, 2), st.integers(0, 2)),
    PAIRS,
    precisions,
)
def test_im2col_and_col2im(outer, size, kernel, dilation, padding, stride, precision):
    for along in range(2):
        assume(size[along] + 2 * padding[along] >= (kernel[along] - 1) * dilation[along] + 1)
    x = numbers([*outer, *size]).clamp(-9, 9)
    options = {"dilation": dilation, "padding": padding, "stride": stride}
    moves(lambda x: F.unfold(x, kernel, **options), x, precision=precision)
    columns = F.unfold(x, kernel, **options)
    moves(lambda x: F.fold(x, size, kernel, **options), columns, precision=precision)
