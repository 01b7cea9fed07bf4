"""Batch and group norms of all shapes."""

import hypothesis.strategies as st
import torch
from hypothesis import given

from tests.compiler.against_torch import check

aten = torch.ops.aten

PRECISIONS = st.sampled_from(["bfloat16", "bfloat16", "float32"])
BOUNDS = {"bfloat16": {}, "float32": {"relative": 6e-3, "absolute": 3e-3}}
SIZES = st.lists(st.sampled_from([1, 2, 3, 7, 8, 15]), min_size=0, max_size=3)
CHANNELS = st.sampled_from([1, 2, 5, 16, 31, 32, 33])


def parameters(channels):
    return *(torch.randn(channels) for _ in range(3)), torch.rand(channels) + 0.5


@given(SIZES, st.integers(1, 3), CHANNELS, st.booleans(), PRECISIONS, st.sampled_from([1e-5, 1e-3, 0.1]))
def test_inference(sizes, batch, channels, known, precision, eps):
    def norm(x, weight, bias, mean, variance):
        return aten._native_batch_norm_legit_no_training(x, weight, bias, mean, variance, 0.1, eps)[0]

    statics = (1, 2, 3, 4) if known else ()
    x = torch.randn(batch, channels, *sizes)
    check(norm, x, *parameters(channels), statics=statics, precision=precision, terms=1.0)


@given(SIZES, st.integers(8, 10), CHANNELS, PRECISIONS, st.sampled_from([0.0, 0.1, 0.5, 1.0]))
def test_training(sizes, batch, channels, precision, momentum):
    def norm(x, weight, bias, mean, variance):
        return aten._native_batch_norm_legit_functional(x, weight, bias, mean, variance, True, momentum, 1e-3)

    x = torch.randn(batch, channels, *sizes) + 0.5
    check(norm, x, *parameters(channels), precision=precision, terms=1.0, **BOUNDS[precision])


@given(SIZES.filter(len), st.integers(1, 3), st.sampled_from([1, 2, 4]), st.sampled_from([4, 5, 8]), PRECISIONS)
def test_groups(sizes, batch, groups, width, precision):
    channels = groups * width
    x = torch.randn(batch, channels, *sizes) + 0.5
    weight, bias, *_ = parameters(channels)
    check(
        lambda x, w, b: torch.nn.functional.group_norm(x, groups, w, b, eps=1e-3),
        x,
        weight,
        bias,
        statics=(1, 2),
        precision=precision,
        terms=1.0,
        **BOUNDS[precision],
    )
