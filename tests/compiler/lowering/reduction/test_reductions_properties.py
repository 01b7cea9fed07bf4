"""Reductions of values of any rank, dtype and order of storage, over any dimensions."""

import hypothesis.strategies as st
import torch
from hypothesis import assume, given

from tests.compiler.against_torch import check
from tests.compiler.lowering.moving import dims_of, numbers, precisions, shapes, values

FLOATS = [torch.float32, torch.bfloat16, torch.float16]
EXACT = [torch.int64, torch.int32, torch.int16, torch.int8, torch.bool]


@st.composite
def floats(draw, least=0, most=5):
    """A stored tensor, and a permutation."""
    shape = draw(shapes(least, most))
    torch.manual_seed(draw(st.integers(0, 1 << 20)))
    return torch.randn(shape).to(draw(st.sampled_from(FLOATS))), list(draw(st.permutations(range(len(shape)))))


@st.composite
def dims(draw, rank):
    """One dimension, several, negative ones, none."""
    if not rank or draw(st.booleans()):
        return draw(st.sampled_from([(), 0, -1] if not rank else [(), *range(-rank, rank)]))
    chosen = draw(st.sets(st.integers(0, rank - 1), min_size=1))
    return tuple(each - rank if draw(st.booleans()) else each for each in chosen)


REDUCTIONS = {
    "sum": torch.sum,
    "mean": torch.mean,
    "amax": torch.amax,
    "amin": torch.amin,
    "norm": lambda x, dim, keepdim: torch.linalg.vector_norm(x, 2, dim, keepdim),
    "norm 1": lambda x, dim, keepdim: torch.linalg.vector_norm(x, 1, dim, keepdim),
}


@given(floats(), st.sampled_from(list(REDUCTIONS)), st.booleans(), st.data(), precisions)
def test_floats(value, name, keepdim, data, precision):
    x, order = value
    dim = data.draw(dims(x.dim()))

    def function(x):
        return REDUCTIONS[name](x.permute(order), dim, keepdim)

    # Sums may cancel: the error is relative to the sum of magnitudes.
    size = float(function(x.abs()).abs().max() / function(x).abs().max().clamp_min(1e-30))
    check(function, x, precision=precision, absolute=0.01 * max(size, 1))


@given(floats(), st.booleans(), st.sampled_from([0, 1, 2, None]), st.data())
def test_spreads(value, keepdim, correction, data):
    x, order = value
    dim = data.draw(dims(x.dim()))
    count = x.permute(order).sum(dim).numel()
    assume(x.numel() // max(count, 1) > 3)
    options = {"correction": correction, "keepdim": keepdim}
    x = x + 1  # so that means do not cancel
    check(lambda x: torch.var_mean(x.permute(order), dim, **options), x, relative=0.03, absolute=0.02)
    check(lambda x: torch.std(x.permute(order), dim, **options), x, relative=0.03, absolute=0.02)


@given(floats(), st.booleans(), st.data())
def test_logarithms_of_sums(value, keepdim, data):
    x, order = value
    dim = data.draw(dims(x.dim()).filter(lambda dim: dim != ()))
    check(lambda x: torch.logsumexp(x.permute(order), dim, keepdim), x + 3)  # not near log 1


@given(values(dtypes=EXACT), st.booleans(), st.data())
def test_integers_and_booleans_are_exact(value, keepdim, data):
    x, order = value
    dim = data.draw(dims(x.dim()))
    check(lambda x: x.permute(order).sum(dim, keepdim), x)
    check(lambda x: torch.count_nonzero(x.permute(order), dim), x)
    check(lambda x: (x.permute(order).any(), x.permute(order).all()), x)
    if dim != ():
        check(lambda x: (torch.any(x.permute(order), dim, keepdim), torch.all(x.permute(order), dim, keepdim)), x)
    if x.dtype is not torch.bool:
        check(lambda x: (x.permute(order).amax(dim, keepdim), x.permute(order).amin(dim, keepdim)), x)


@given(shapes(0, 4), st.data())
def test_products(shape, data):
    torch.manual_seed(data.draw(st.integers(0, 1 << 20)))
    x = torch.randn([min(size, 8) for size in shape])
    dim, keepdim = data.draw(dims_of(x)), data.draw(st.booleans())
    check(lambda x: x.prod(dim, keepdim), x, relative=0.05)


@given(shapes(1, 4), st.data())
def test_what_is_computed_is_reduced(shape, data):
    x = numbers(shape)
    dim = data.draw(dims_of(x))
    check(lambda x: torch.relu(x).mT.sum(dim) if x.dim() > 1 else torch.relu(x).sum(dim), x)
