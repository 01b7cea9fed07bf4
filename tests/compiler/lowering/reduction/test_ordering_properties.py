"""argmax, sorting and cumulative sums of any rank, dtype and storage order."""

import hypothesis.strategies as st
import torch
from hypothesis import given

from tests.compiler.against_torch import check
from tests.compiler.lowering.moving import dims_of, values

FLOATS = [torch.float32, torch.bfloat16]
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.uint8]


@given(values(dtypes=FLOATS + INTEGERS), st.booleans(), st.data())
def test_places_of_extremes(value, keepdim, data):
    x, order = value
    dim = data.draw(st.none() | dims_of(x))
    check(lambda x: (x.permute(order).argmax(dim, keepdim), x.permute(order).argmin(dim, keepdim)), x)


@given(values(dtypes=FLOATS + INTEGERS), st.booleans(), st.data())
def test_extremes_with_their_places(value, keepdim, data):
    x, order = value
    dim = data.draw(dims_of(x))
    check(lambda x: (*x.permute(order).max(dim, keepdim), *x.permute(order).min(dim, keepdim)), x)


@given(values(dtypes=FLOATS), st.booleans(), st.data())
def test_orders(value, descending, data):
    x, order = value
    dim = data.draw(dims_of(x))
    check(lambda x: torch.sort(x.permute(order), stable=True, dim=dim, descending=descending), x)
    size = x.permute(order).shape[dim] if x.dim() else 1
    k = data.draw(st.integers(1, size))
    check(lambda x: torch.topk(x.permute(order), k, dim, largest=descending)[0], x)


@given(values(dtypes=FLOATS + INTEGERS + [torch.bool]), st.data())
def test_running_sums(value, data):
    x, order = value
    dim = data.draw(dims_of(x))
    check(lambda x: x.permute(order).cumsum(dim), x)


@given(values(dtypes=FLOATS), st.data())
def test_running_products(value, data):
    x, order = value
    dim = data.draw(dims_of(x))
    check(lambda x: x.permute(order).cumprod(dim), torch.rand(x.shape) + 0.5, relative=0.05)
