"""Reading and writing by index: values of any rank and dtype, indices known and unknown while compiling."""

import hypothesis.strategies as st
import torch
from hypothesis import assume, given

from tests.compiler.lowering.moving import FLOATS_AND_INTEGERS, dims_of, moves, numbers, precisions, values

aten = torch.ops.aten


def places(shape, size, seed=0, least=None):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-size if least is None else least, size, tuple(shape), generator=generator)


def distinct(shape, size, seed=0):
    """Indices without duplicates along the last dimension."""
    generator = torch.Generator().manual_seed(seed)
    rows = [torch.randperm(size, generator=generator)[: shape[-1]] for _ in range(torch.Size(shape[:-1]).numel())]
    return torch.stack(rows).reshape(tuple(shape))


@st.composite
def index_lists(draw, x):
    """For each dimension None or an index; all of them broadcast against each other."""
    whole = draw(st.lists(st.sampled_from([1, 2, 3, 5]), max_size=2))
    indices = []
    for number, size in enumerate(x.shape):
        if draw(st.booleans()):
            indices.append(None)
            continue
        kept = whole[draw(st.integers(0, len(whole))) :]
        shape = [each if draw(st.booleans()) else 1 for each in kept]
        indices.append(places(shape, size, seed=number))
    # torch's own shape rules are wrong for scalar indices combined with others
    ranks = [each.dim() for each in indices if each is not None]
    assume(all(ranks) or not any(ranks))
    return indices


@given(values(least=1), st.data(), precisions)
def test_index_by_inputs(value, data, precision):
    x, order = value
    indices = data.draw(index_lists(x.permute(order)))
    given_ones = [each for each in indices if each is not None]
    assume(1 <= len(given_ones) <= 4)

    def read(x, *found):
        rest = iter(found)
        return aten.index.Tensor(x.permute(order), [None if each is None else next(rest) for each in indices])

    moves(read, x, *given_ones, precision=precision)


@given(values(least=1), st.data(), precisions)
def test_index_by_constants(value, data, precision):
    x, order = value
    indices = data.draw(index_lists(x.permute(order)))
    assume(1 <= sum(each is not None for each in indices) <= 4)
    numbers_of = [None if each is None else each.tolist() for each in indices]

    def read(x):
        return aten.index.Tensor(
            x.permute(order), [None if each is None else torch.tensor(each, dtype=torch.int64) for each in numbers_of]
        )

    moves(read, x, precision=precision)


@given(values(least=1), st.integers(1, 40), st.booleans(), st.data())
def test_index_select(value, count, is_known, data):
    x, order = value
    dim = data.draw(dims_of(x))
    index = places([count], x.permute(order).shape[dim], least=0)
    listed = index.tolist()
    if is_known:
        moves(lambda x: x.permute(order).index_select(dim, torch.tensor(listed)), x)
    else:
        moves(lambda x, i: x.permute(order).index_select(dim, i), x, index)


@given(values(), st.data(), precisions)
def test_gather_and_take(value, data, precision):
    x, order = value
    seen = x.permute(order)
    dim = data.draw(dims_of(x))
    shape = [data.draw(st.integers(1, size)) for size in seen.shape]
    if shape:
        shape[dim] = data.draw(st.integers(1, 40))
    index = places(shape, seen.shape[dim] if shape else 1, least=0)
    moves(lambda x, i: x.permute(order).gather(dim, i), x, index, precision=precision)
    flat = places([3, 2], x.numel())
    moves(lambda x, i: x.permute(order).take(i), x, flat, precision=precision)


@given(values(least=2), st.data(), precisions)
def test_diagonals_and_triangles(value, data, precision):
    x, order = value
    seen = x.permute(order)
    first, second = data.draw(st.permutations(range(x.dim())))[:2]
    offset = data.draw(st.integers(1 - seen.shape[first], seen.shape[second] - 1))
    moves(lambda x: x.permute(order).diagonal(offset, first, second), x, precision=precision)
    source = numbers(seen.diagonal(offset, first, second).shape, x.dtype, seed=1)
    moves(lambda x, y: x.permute(order).diagonal_scatter(y, offset, first, second), x, source, precision=precision)
    moves(lambda x: x.permute(order).tril(offset), x, precision=precision)
    moves(lambda x: x.permute(order).triu(offset), x, precision=precision)


@given(values(), st.data(), precisions)
def test_scatter(value, data, precision):
    x, order = value
    seen = x.permute(order)
    dim = data.draw(dims_of(x))
    shape = [data.draw(st.integers(1, size)) for size in seen.shape]
    index = torch.zeros((), dtype=torch.int64)
    if shape:
        turned = [*shape]
        turned[dim], turned[-1] = turned[-1], turned[dim]
        index = distinct(turned, seen.shape[dim]).transpose(dim, -1) if turned[-1] <= seen.shape[dim] else None
    assume(index is not None)
    source = numbers(index.shape, x.dtype, seed=1)
    moves(lambda x, i, y: x.permute(order).scatter(dim, i, y), x, index, source, precision=precision)
    moves(lambda x, i: x.permute(order).scatter(dim, i, 1), x, index, precision=precision)


@given(values(least=1, dtypes=FLOATS_AND_INTEGERS), st.data(), st.sampled_from([torch.scatter_add, "sum", "prod"]))
def test_scatter_with_a_reduction(value, data, kind):
    x, order = value
    seen = x.permute(order)
    dim = data.draw(dims_of(x))
    shape = [data.draw(st.integers(1, size)) for size in seen.shape]
    shape[dim] = data.draw(st.integers(1, 3))
    index = places(shape, seen.shape[dim], least=0)
    source = torch.randint(-2, 3, tuple(shape)).to(x.dtype)
    x = x.clamp(-20, 20)
    if kind is torch.scatter_add:
        moves(lambda x, i, y: x.permute(order).scatter_add(dim, i, y), x, index, source)
        return
    own = data.draw(st.booleans())
    exact = x.dtype is not torch.int64 or kind != "prod"  # a product may exceed 32 bits: it stays on the host
    moves(
        lambda x, i, y: x.permute(order).scatter_reduce(dim, i, y, kind, include_self=own),
        x,
        index,
        source,
        on_device=exact,
    )


@given(values(least=1, most=4), st.booleans(), st.data(), precisions)
def test_index_put(value, accumulate, data, precision):
    x, order = value
    seen = x.permute(order)
    indices = data.draw(index_lists(seen))
    given_ones = [each for each in indices if each is not None]
    assume(given_ones)
    shape = torch.broadcast_shapes(*[each.shape for each in given_ones])
    assume(torch.Size(shape).numel() <= 6)
    first = indices.index(next(each for each in indices if each is not None))
    if accumulate:
        assume(x.dtype not in (torch.uint8, torch.bool))
        x = x.clamp(-20, 20)
    else:  # torch does not define which of two values for one index is written: one dimension has no duplicates
        size = seen.shape[first]
        assume(torch.Size(shape).numel() <= size)
        indices[first] = distinct([max(1, torch.Size(shape).numel())], size).reshape(shape)
        given_ones = [each for each in indices if each is not None]
    result = seen[tuple(slice(None) if each is None else each for each in indices)]
    source = numbers(result.shape, x.dtype, seed=1)
    if data.draw(st.booleans()) and source.dim():
        source = source[..., :1]

    def put(x, y, *found):
        rest = iter(found)
        given = [None if each is None else next(rest) for each in indices]
        return aten.index_put.default(x.permute(order), given, y, accumulate)

    moves(put, x, source.clamp(-9, 9) if accumulate else source, *given_ones, precision=precision)


@given(values(least=1, most=4, dtypes=FLOATS_AND_INTEGERS), st.data(), precisions)
def test_index_add_copy_and_fill(value, data, precision):
    x, order = value
    seen = x.permute(order)
    dim = data.draw(dims_of(x))
    count = data.draw(st.integers(1, seen.shape[dim]))
    index = distinct([count], seen.shape[dim])
    shape = list(seen.shape)
    shape[dim] = count
    source = numbers(shape, x.dtype, seed=1)
    moves(lambda x, i, y: x.permute(order).index_copy(dim, i, y), x, index, source, precision=precision)
    moves(lambda x, i, y: x.permute(order).index_add(dim, i, y), x, index, source, precision=precision)
    moves(lambda x, i: x.permute(order).index_fill(dim, i, 3), x, index, precision=precision)


@given(st.integers(1, 40), st.integers(1, 70), st.lists(st.integers(1, 5), max_size=3), st.booleans(), precisions)
def test_embedding(rows, width, shape, is_weight, precision):
    tokens = places(shape, rows, least=0)
    statics = (0,) if is_weight else ()
    moves(
        lambda w, i: torch.nn.functional.embedding(i, w),
        numbers([rows, width]),
        tokens,
        statics=statics,
        precision=precision,
    )


@given(st.integers(1, 40), st.integers(1, 40), st.lists(st.integers(1, 5), max_size=3), st.booleans(), precisions)
def test_embedding_backward(rows, width, shape, is_padded, precision):
    tokens = places(shape, rows, least=0)
    grad = numbers([*shape, width]).clamp(-3, 3)
    padding = rows // 2 if is_padded else -1
    moves(lambda g, i: aten.embedding_dense_backward(g, i, rows, padding, False), grad, tokens, precision=precision)
