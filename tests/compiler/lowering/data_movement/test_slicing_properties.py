"""Slices, splits, concatenations and pads of values of any rank, dtype and order of storage."""

import hypothesis.strategies as st
import torch
from hypothesis import assume, given

from tests.compiler.lowering.moving import DTYPES, dims_of, moves, numbers, precisions, values

BOUNDS = st.none() | st.integers(-40, 40)


@given(values(least=1), st.data(), precisions)
def test_slice(value, data, precision):
    x, order = value
    dim, step = data.draw(dims_of(x)), data.draw(st.sampled_from([1, 1, 2, 3, 40]))
    start, end = data.draw(BOUNDS), data.draw(BOUNDS)
    size = x.permute(order).shape[dim]
    assume(len(range(*slice(start, end, step).indices(size))) > 0)
    moves(lambda x: torch.ops.aten.slice.Tensor(x.permute(order), dim, start, end, step), x, precision=precision)


@given(values(least=1), st.data())
def test_select_and_narrow(value, data):
    x, order = value
    dim = data.draw(dims_of(x))
    size = x.permute(order).shape[dim]
    index = data.draw(st.integers(-size, size - 1))
    moves(lambda x: x.permute(order).select(dim, index), x)
    start = data.draw(st.integers(0, size - 1))
    length = data.draw(st.integers(1, size - start))
    moves(lambda x: x.permute(order).narrow(dim, start, length), x)


@given(values(least=1), st.data())
def test_split_and_unbind(value, data):
    x, order = value
    dim, size = data.draw(dims_of(x)), data.draw(st.integers(1, 9))
    assume(x.permute(order).shape[dim] <= 8 * size)
    moves(lambda x: x.permute(order).split(size, dim), x)
    moves(lambda x: x.permute(order).chunk(3, dim), x)
    if x.permute(order).shape[dim] <= 8:
        moves(lambda x: x.permute(order).unbind(dim), x)


@given(values(least=2, most=4), st.data())
def test_parts_of_a_merged_view(value, data):
    """A dimension that is a part of a stored one, as heads are of a projection."""
    x, order = value
    seen = x.permute(order)
    last = seen.shape[-1]
    pieces = {4: (2, 2), 8: (2, 4), 32: (2, 16), 33: (3, 11)}.get(last, (1, last))
    dim = data.draw(st.integers(0, seen.dim()))
    rank = seen.dim() + 1
    turned = data.draw(st.permutations(range(rank)))

    def parts(x):
        return x.permute(order).reshape(*seen.shape[:-1], *pieces).permute(turned).split(2, dim)

    moves(parts, x)


@given(values(least=1, most=4), st.lists(st.sampled_from([1, 2, 3, 32, 33]), max_size=3), st.data(), precisions)
def test_cat(value, sizes, data, precision):
    x, order = value
    dim = data.draw(dims_of(x))
    shape = list(x.permute(order).shape)
    kinds = st.just(x.dtype) if data.draw(st.booleans()) else st.sampled_from(DTYPES[:5])
    others = []
    for number, size in enumerate(sizes):
        shape[dim] = size
        others.append(numbers(shape, data.draw(kinds), seed=number + 1))
    moves(lambda x, *others: torch.cat([x.permute(order), *others], dim), x, *others, precision=precision)


@given(values(least=2, most=4), st.data())
def test_cat_of_values_in_one_order(value, data):
    x, order = value
    dim = data.draw(dims_of(x))
    moves(lambda x, y: torch.cat([x.permute(order), y.permute(order), x.permute(order)], dim), x, x.flip(0))


@given(values(most=4), st.integers(1, 3), st.data())
def test_stack(value, count, data):
    x, order = value
    dim = data.draw(st.integers(-x.dim() - 1, x.dim()))
    moves(lambda x: torch.stack([x.permute(order)] * count, dim), x)


@given(values(least=1, most=4), st.data(), precisions)
def test_slice_scatter_and_select_scatter(value, data, precision):
    x, order = value
    seen = x.permute(order)
    dim, step = data.draw(dims_of(x)), data.draw(st.sampled_from([1, 1, 2, 3]))
    start, end = data.draw(BOUNDS), data.draw(BOUNDS)
    count = len(range(*slice(start, end, step).indices(seen.shape[dim])))
    assume(count > 0)
    shape = list(seen.shape)
    shape[dim] = count
    moves(
        lambda x, y: torch.slice_scatter(x.permute(order), y, dim, start, end, step),
        x,
        numbers(shape, x.dtype, seed=1),
        precision=precision,
    )
    index = data.draw(st.integers(-seen.shape[dim], seen.shape[dim] - 1))
    moves(
        lambda x, y: torch.select_scatter(x.permute(order), y, dim, index),
        x,
        numbers(seen.select(dim, 0).shape, x.dtype, seed=2),
    )


@given(values(least=1), st.data(), st.sampled_from([0, 0, 1.5, -3, float("-inf")]), precisions)
def test_constant_pad(value, data, fill, precision):
    x, order = value
    seen = x.permute(order)
    count = data.draw(st.integers(1, min(3, seen.dim())))
    pads = []
    for dim in range(count):
        size = seen.shape[-1 - dim]
        before = data.draw(st.integers(-min(2, (size - 1) // 2), 3))
        after = data.draw(st.integers(-min(2, (size - 1) // 2), 3))
        pads += [before, after]
    if not x.dtype.is_floating_point:
        fill = 1 if x.dtype is torch.bool else 7
    moves(lambda x: torch.nn.functional.pad(x.permute(order), pads, value=fill), x, precision=precision)


@given(values(least=3, most=4, dtypes=[torch.float32, torch.bfloat16]), st.data(), precisions)
def test_reflected_and_replicated_borders(value, data, precision):
    x, order = value
    seen = x.permute(order)
    pads = []
    for dim in range(seen.dim() - 2 if seen.dim() == 4 else 1):
        size = seen.shape[-1 - dim]
        pads += [data.draw(st.integers(0, min(6, size - 1))), data.draw(st.integers(0, min(6, size - 1)))]
    pad = torch.nn.functional.pad
    moves(lambda x: pad(x.permute(order), pads, mode="reflect"), x, precision=precision)
    moves(lambda x: pad(x.permute(order), pads, mode="replicate"), x, precision=precision)
