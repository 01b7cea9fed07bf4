"""Forms: the storage order of dimensions."""

import itertools
import math

import hypothesis.strategies as st
import torch
from hypothesis import assume, given

from torch_ttnn.compiler.ir.storage_order import Form, Place

SIZES = st.sampled_from([1, 1, 2, 3, 4, 6])
SHAPES = st.lists(SIZES, min_size=0, max_size=5)


def seen(stored: torch.Tensor, form: Form) -> torch.Tensor:
    """A stored tensor in torch's order and shape."""
    return stored.reshape(form.stored_shape).permute(form.axes)


def test_pixels_of_a_channels_last_convolution_can_be_flattened():
    nhwc = Form((1, 7, 7, 64), (0, 3, 1, 2))
    assert nhwc.shape == (1, 64, 7, 7)
    assert nhwc.viewed((1, 64, 49)) == Form((1, 49, 64), (0, 2, 1))
    assert nhwc.viewed((64 * 49,)) is None


def test_dimensions_of_size_one_do_not_affect_the_order():
    assert Form((3, 1, 5), (1, 0, 2)).is_plain
    assert not Form((3, 2, 5), (1, 0, 2)).is_plain


def test_places_of_queries_keys_and_values_in_a_fused_projection():
    form = Form((2, 50, 3, 12, 64), (2, 0, 3, 1, 4))
    assert form.place(0, (2, 50, 2304)) == Place(2, 768)
    assert form.place(2, (2, 50, 2304)) is None  # heads are an inner part of each third
    assert form.place(1, (1, 1, 100, 2304)) == Place(2, 50)
    assert form.place(3, (1, 1, 100, 2304)) is None


def test_channels_are_shuffled_in_storage_order():
    shuffled = Form((1, 7, 7, 2, 29), (0, 4, 3, 1, 2))
    assert shuffled.viewed((1, 58, 7, 7)) is None
    assert shuffled.gathered((1, 58, 7, 7)) == ((0, 1, 2, 4, 3), Form((1, 7, 7, 58), (0, 3, 1, 2)))


def test_heads_are_not_kept_channels_last():
    assert Form((2, 4, 50, 32), (0, 2, 1, 3)).gathered((2, 50, 128)) is None


@given(SHAPES, st.randoms(use_true_random=False))
def test_permuted_is_torchs_permute(stored_shape, random):
    axes = random.sample(range(len(stored_shape)), len(stored_shape))
    dims = random.sample(range(len(stored_shape)), len(stored_shape))
    stored, form = torch.arange(math.prod(stored_shape)), Form(tuple(stored_shape), tuple(axes))
    expected = seen(stored, form).permute(dims)
    assert torch.equal(seen(stored, form.permuted(dims)), expected)
    assert form.permuted(dims).shape == tuple(expected.shape)
    assert [form.axes[dim] for dim in form.order] == list(range(len(stored_shape)))


@given(SHAPES, st.randoms(use_true_random=False))
def test_viewed_is_torchs_view_unless_none(stored_shape, random):
    stored = torch.arange(math.prod(stored_shape))
    form = Form(tuple(stored_shape), tuple(random.sample(range(len(stored_shape)), len(stored_shape))))
    shape = regrouped(form.shape, random)
    expected = seen(stored, form).reshape(shape)
    found = form.viewed(shape)
    if found is not None:
        assert found.shape == tuple(shape)
        assert torch.equal(seen(stored, found), expected)
    else:
        assert not form.is_plain
    moved = form.gathered(shape)
    if moved is not None:
        order, after = moved
        assert torch.equal(seen(stored.reshape(stored_shape).permute(order), after), expected)


@given(SHAPES, st.randoms(use_true_random=False))
def test_a_slice_of_a_dimension_can_be_taken_at_its_place(stored_shape, random):
    assume(stored_shape)
    form = Form(tuple(stored_shape), tuple(random.sample(range(len(stored_shape)), len(stored_shape))))
    stored = torch.arange(math.prod(stored_shape)).reshape(regrouped(stored_shape, random))
    dim = random.randrange(len(stored_shape))
    place = form.place(dim, stored.shape)
    if place is None:
        return
    size = form.shape[dim]
    start = random.randrange(size)
    part = stored.narrow(place.dim, start * place.inner, (size - start) * place.inner)
    expected = seen(stored, form).narrow(dim, start, size - start)
    assert torch.equal(seen(part, form.resized(dim, size - start)), expected)


def regrouped(shape, random):
    """The same elements with some neighbouring dimensions merged, or one split."""
    sizes = list(itertools.chain.from_iterable(_factors(size, random) for size in shape))
    made = []
    for size in sizes:
        if made and random.random() < 0.4:
            made[-1] *= size
        else:
            made.append(size)
    return made if made or not shape else [1]


def _factors(size, random):
    splits = {4: [[4], [2, 2], [1, 4]], 6: [[6], [2, 3], [3, 2]], 1: [[1], []]}
    return random.choice(splits.get(size, [[size]]))
