"""Softmax and norms of values of any rank and order of storage."""

import hypothesis.strategies as st
import torch
import torch.nn.functional as F
from hypothesis import given

from tests.compiler.against_torch import check
from tests.compiler.lowering.moving import dims_of, precisions, shapes

DTYPES = st.sampled_from([torch.float32, torch.bfloat16])


@given(shapes(), DTYPES, st.data(), precisions)
def test_softmax(shape, dtype, data, precision):
    torch.manual_seed(data.draw(st.integers(0, 1 << 20)))
    x = (torch.randn(shape) * 3).to(dtype)
    order = data.draw(st.permutations(range(x.dim())))
    dim = data.draw(dims_of(x))
    bounds = {"relative": 0.03, "absolute": 0.01} if dtype is torch.bfloat16 else {"relative": 0.02, "absolute": 0.005}
    check(lambda x: x.permute(order).softmax(dim), x, precision=precision, **bounds)
    check(lambda x: x.permute(order).log_softmax(dim), x, precision=precision, **bounds)


@given(shapes(least=1), st.data())
def test_safe_softmax(shape, data):
    torch.manual_seed(data.draw(st.integers(0, 1 << 20)))
    hidden = torch.rand(shape) < data.draw(st.sampled_from([0.2, 0.9]))
    x = torch.randn(shape).masked_fill(hidden, -torch.inf)
    dim = data.draw(dims_of(x))
    check(lambda x: torch.ops.aten._safe_softmax(x, dim), x)


@given(shapes(least=1), st.data(), st.booleans(), st.booleans(), st.booleans())
def test_layer_norm(shape, data, has_weight, has_bias, is_static):
    torch.manual_seed(data.draw(st.integers(0, 1 << 20)))
    count = data.draw(st.integers(1, len(shape)))
    normal = shape[len(shape) - count :]
    # Integers: rounding of inputs would be amplified where values are nearly equal.
    x = (torch.randn(shape) * 8).round() + torch.arange(shape[-1]) % 3
    given = {"weight": torch.randn(normal)} if has_weight else {}
    given |= {"bias": torch.randn(normal)} if has_bias else {}
    names = list(given)

    def function(x, *rest):
        return F.layer_norm(x, normal, **dict(zip(names, rest)))

    statics = tuple(range(1, len(names) + 1)) if is_static else ()
    check(function, x, *given.values(), statics=statics, relative=0.03, absolute=0.02)
    positive = x.abs() + 1  # a mean near 0 has no digits to compare
    check(lambda x: torch.ops.aten.native_layer_norm(x, normal, None, None, 1e-3)[1:], positive, relative=0.03)


@given(shapes(least=1, most=4), st.data())
def test_gradients(shape, data):
    torch.manual_seed(data.draw(st.integers(0, 1 << 20)))
    x, grad = torch.randn(shape), torch.randn(shape)
    dim = data.draw(dims_of(x))
    aten, float32 = torch.ops.aten, torch.float32
    for backward, y in (
        (aten._softmax_backward_data, x.softmax(dim)),
        (aten._log_softmax_backward_data, x.log_softmax(dim)),
    ):
        # Terms cancel: the error is relative to the incoming gradient.
        want = backward(grad, y, dim, float32).abs().max().clamp_min(1e-30)
        size = 0.02 * float(y.exp().max() if y.min() < 0 else y.max()) * float(grad.abs().sum(dim).max())
        check(lambda g, y: backward(g, y, dim, float32), grad, y, absolute=size / float(want))  # noqa: B023
