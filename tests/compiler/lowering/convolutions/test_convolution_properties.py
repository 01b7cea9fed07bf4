"""Convolutions of all sizes that torch accepts."""

import hypothesis.strategies as st
import torch
from hypothesis import assume, given

from tests.compiler.against_torch import check

CHANNELS = st.sampled_from([1, 2, 3, 5, 8, 16, 31, 32, 33])
BOUNDS = {"bfloat16": {}, "float32": {"relative": 6e-3, "absolute": 4e-3}}


@st.composite
def convolutions(draw, rank=None, transposed=None):
    """Shapes of input and weight, and the rest of the arguments."""
    rank = draw(st.sampled_from([1, 2, 2, 2, 3])) if rank is None else rank
    transposed = draw(st.booleans()) if transposed is None else transposed
    groups = draw(st.sampled_from([1, 1, 1, 2, 3]))
    inner, outer = draw(CHANNELS), draw(CHANNELS)

    def each(least, most):
        return [draw(st.integers(least, most)) for _ in range(rank)]

    sizes, kernel = each(1, 12 if rank < 3 else 5), each(1, 4 if rank < 3 else 3)
    stride, padding, dilation = each(1, 3), each(0, 2), each(1, 2)
    more = (
        [draw(st.integers(0, max(step, apart) - 1)) for step, apart in zip(stride, dilation)]
        if transposed
        else [0] * rank
    )
    reach = [apart * (taps - 1) + 1 for apart, taps in zip(dilation, kernel)]
    if transposed:
        rows = zip(sizes, stride, padding, reach, more)
        assume(all((size - 1) * step - 2 * pad + span + extra > 0 for size, step, pad, span, extra in rows))
    else:
        assume(all(size + 2 * pad >= span for size, pad, span in zip(sizes, padding, reach)))
    image = [draw(st.integers(1, 3)), inner * groups, *sizes]
    weight = [inner * groups, outer, *kernel] if transposed else [outer * groups, inner, *kernel]
    return image, weight, stride, padding, dilation, transposed, more, groups


def compare(case, has_bias, statics, precision):
    image, weight, *settings = case
    transposed, groups = settings[3], settings[5]
    channels = weight[1] * groups if transposed else weight[0]
    operands = [torch.randn(image), torch.randn(weight)] + [torch.randn(channels)] * has_bias

    def run(x, weight):
        return torch.ops.aten.convolution.default(x, weight, None, *settings)

    def run_with_bias(x, weight, bias):
        return torch.ops.aten.convolution.default(x, weight, bias, *settings)

    function = run_with_bias if has_bias else run
    return check(function, *operands, statics=statics[: 1 + has_bias], precision=precision, **BOUNDS[precision])


PRECISIONS = st.sampled_from(["bfloat16", "bfloat16", "float32"])


@given(convolutions(transposed=False), st.booleans(), PRECISIONS)
def test_static_weights(case, has_bias, precision):
    compare(case, has_bias, (1, 2), precision)


@given(convolutions(transposed=True), st.booleans(), PRECISIONS)
def test_transposed_with_static_weights(case, has_bias, precision):
    compare(case, has_bias, (1, 2), precision)


@given(convolutions(), st.booleans(), PRECISIONS)
def test_weights_that_are_inputs(case, has_bias, precision):
    compare(case, has_bias, (), precision)


@given(convolutions(), st.sampled_from([[True] * 3, [True, False, False], [False, True, False], [False, True, True]]))
def test_gradients(case, wanted):
    image, weight, *settings = case
    x, weights = torch.randn(image).bfloat16().float(), torch.randn(weight).bfloat16().float()
    result = torch.ops.aten.convolution.default(x, weights, None, *settings)

    def run(gradient, x, weights):
        made = torch.ops.aten.convolution_backward.default(gradient, x, weights, [result.shape[1]], *settings, wanted)
        return [each for each, is_wanted in zip(made, wanted) if is_wanted]

    check(run, torch.randn_like(result).bfloat16().float(), x, weights, relative=0.03, absolute=0.02)
