"""Views, permutations and repetitions of values of any rank, dtype and order of storage."""

import itertools

import hypothesis.strategies as st
import torch
from hypothesis import assume, given

from tests.compiler.lowering.moving import dims_of, moves, numbers, precisions, shapes, values


def factors(size):
    return {4: [2, 2], 8: [4, 2], 32: [4, 8], 33: [3, 11]}.get(size, [size])


@given(values(), st.randoms(use_true_random=False), precisions)
def test_view(value, random, precision):
    x, order = value
    pieces = list(itertools.chain.from_iterable(factors(each) for each in x.permute(order).shape))
    shape = []
    for size in pieces:
        if shape and random.random() < 0.4:
            shape[-1] *= size
        else:
            shape.append(size)
    if shape and random.random() < 0.3:
        shape[random.randrange(len(shape))] = -1
    moves(lambda x: x.permute(order).reshape(shape), x, precision=precision)


@given(values(), st.randoms(use_true_random=False))
def test_permute_and_transpose(value, random):
    x, order = value
    dims = random.sample(range(x.dim()), x.dim())
    moves(lambda x: x.permute(order).permute(dims), x)
    if x.dim():
        first, second = random.randrange(-x.dim(), x.dim()), random.randrange(-x.dim(), x.dim())
        moves(lambda x: x.permute(order).transpose(first, second), x)
    if x.dim() <= 2:
        moves(lambda x: x.t(), x)


@given(values(), st.data())
def test_squeeze_and_unsqueeze(value, data):
    x, order = value
    dim = data.draw(st.integers(-x.dim() - 1, x.dim()))
    moves(lambda x: x.permute(order).unsqueeze(dim), x)
    moves(lambda x: x.permute(order).squeeze(), x)
    some = data.draw(dims_of(x))
    moves(lambda x: x.permute(order).squeeze(some), x)
    if x.dim() > 1:
        moves(lambda x: x.permute(order).squeeze((0, -1)), x)


@given(values(), st.data(), precisions)
def test_expand(value, data, precision):
    x, order = value
    shape = [data.draw(st.sampled_from([-1, size] if size > 1 else [-1, 2, 3])) for size in x.permute(order).shape]
    extra = data.draw(st.lists(st.sampled_from([1, 2]), max_size=5 - x.dim()))
    # expanded tensors share memory in torch, but not as outputs of a program: hence the clone
    moves(lambda x: x.permute(order).expand([*extra, *shape]).clone(), x, precision=precision)


@given(values(most=4), st.data())
def test_repeat(value, data):
    x, order = value
    times = data.draw(st.lists(st.sampled_from([1, 1, 2, 3]), min_size=x.dim(), max_size=x.dim() + 1))
    moves(lambda x: x.permute(order).repeat(times), x)


@given(values(least=1, most=4), st.data())
def test_repeat_interleave(value, data):
    x, order = value
    dim, times = data.draw(st.none() | dims_of(x)), data.draw(st.integers(1, 4))
    moves(lambda x: x.permute(order).repeat_interleave(times, dim), x)


@given(values(least=1), st.data(), precisions)
def test_roll(value, data, precision):
    x, order = value
    dims = data.draw(st.lists(dims_of(x), max_size=3))
    shifts = [data.draw(st.integers(-40, 40)) for _ in dims] or [data.draw(st.integers(-40, 40))]
    moves(lambda x: torch.roll(x.permute(order), shifts, dims), x, precision=precision)


@given(values(least=1), st.data(), precisions)
def test_flip(value, data, precision):
    x, order = value
    dims = data.draw(st.lists(st.integers(0, x.dim() - 1), unique=True, max_size=2))
    moves(lambda x: x.permute(order).flip(dims), x, precision=precision)


@given(shapes(3, 4), st.sampled_from([2, 3]), st.booleans())
def test_pixel_shuffle_and_back(shape, factor, is_channels_last):
    *outer, channels, height, width = shape
    assume(channels * factor * factor * height * width * (outer or [1])[0] < 20000)
    sizes = [*outer, height, width, channels * factor * factor]
    order = [*range(len(outer)), len(outer) + 2, len(outer), len(outer) + 1]
    x = numbers(sizes) if is_channels_last else numbers([sizes[each] for each in order])

    def shuffled(x):
        return torch.pixel_shuffle(x.permute(order) if is_channels_last else x, factor)

    moves(shuffled, x)
    moves(lambda x: torch.pixel_unshuffle(shuffled(x), factor), x)
    if len(outer) == 1:
        moves(lambda x: torch.channel_shuffle(x.permute(order) if is_channels_last else x, factor), x)
