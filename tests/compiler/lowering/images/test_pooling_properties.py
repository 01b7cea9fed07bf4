"""Pools of all windows that torch accepts."""

import hypothesis.strategies as st
import torch
from hypothesis import assume, given

from tests.compiler.against_torch import check

F = torch.nn.functional

PRECISIONS = st.sampled_from(["bfloat16", "bfloat16", "float32"])
CHANNELS = st.sampled_from([1, 2, 3, 8, 16, 31, 32, 33, 64])


@st.composite
def pools(draw, rank=None):
    """A shape, and a valid kernel, stride and padding."""
    rank = draw(st.sampled_from([2, 2, 2, 1, 3])) if rank is None else rank
    kernel = [draw(st.integers(1, 4)) for _ in range(rank)]
    stride = [draw(st.integers(1, 3)) for _ in range(rank)]
    padding = [draw(st.integers(0, size // 2)) for size in kernel]
    sizes = [draw(st.integers(1, 14 if rank < 3 else 6)) for _ in range(rank)]
    around = padding if rank < 3 else [0, 0, 0]  # torch checks volumes without padding
    assume(all(size + 2 * pad >= reach for size, pad, reach in zip(sizes, around, kernel)))
    outer = draw(st.sampled_from([(), (1,), (2,)])) if rank > 1 else (2,)
    return [*outer, draw(CHANNELS), *sizes], kernel, stride, padding


def exact(shape):
    return torch.randn(shape).bfloat16().float()


@given(pools(), st.booleans(), PRECISIONS)
def test_largest(pool, ceil_mode, precision):
    shape, *window = pool
    function = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[len(window[0]) - 1]
    check(lambda x: function(x, *window, ceil_mode=ceil_mode), exact(shape), precision=precision)


@given(pools(rank=2), st.integers(1, 2), PRECISIONS)
def test_largest_with_indices(pool, dilation, precision):
    shape, kernel, stride, padding = pool
    rows = zip(shape[-2:], padding, kernel)
    assume(all(size + 2 * pad > dilation * (reach - 1) for size, pad, reach in rows))
    options = {"dilation": dilation, "return_indices": True}

    def pool(x):
        return F.max_pool2d(x, kernel, stride, padding, **options)

    x = exact(shape).round()
    seen = precision == "bfloat16" or bool(pool(x)[0].isfinite().all())
    check(pool, x, precision=precision, on_device=seen)


@given(pools(), st.booleans(), st.booleans(), st.sampled_from([None, 1, 3, 7]), PRECISIONS)
def test_mean(pool, ceil_mode, count_include_pad, divisor, precision):
    shape, *window = pool
    options = {"ceil_mode": ceil_mode, "count_include_pad": count_include_pad}
    rank = len(window[0])
    if rank > 1:
        options["divisor_override"] = divisor
    function = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[rank - 1]
    check(lambda x: function(x, *window, **options), exact(shape), precision=precision)


@given(st.lists(st.integers(1, 12), min_size=4, max_size=4), st.integers(1, 2), CHANNELS)
def test_adaptive(sizes, batch, channels):
    high, wide, *output = sizes
    x = exact([batch, channels, high, wide])
    check(lambda x: F.adaptive_avg_pool2d(x, output) * 1, x)
    divides = high % output[0] == 0 and wide % output[1] == 0
    check(lambda x: F.adaptive_max_pool2d(x, output), x, on_device=divides)


@given(pools(rank=2), st.booleans(), st.booleans(), st.sampled_from([None, 3]))
def test_gradients(pool, ceil_mode, count_include_pad, divisor):
    shape, *window = pool
    x = exact(shape)
    values, indices = F.max_pool2d(x, *window, ceil_mode=ceil_mode, return_indices=True)
    gradient = exact(values.shape)

    def of_largest(gradient, x, indices):
        return torch.ops.aten.max_pool2d_with_indices_backward(gradient, x, *window, [1, 1], ceil_mode, indices)

    def of_mean(gradient, x):
        options = ceil_mode, count_include_pad, divisor
        return torch.ops.aten.avg_pool2d_backward(gradient, x, *window, *options)

    check(of_largest, gradient, x, indices)
    check(of_mean, gradient, x)
