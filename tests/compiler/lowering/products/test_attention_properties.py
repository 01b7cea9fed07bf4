"""Attention of any length, width, number of heads and mask."""

import math

import hypothesis.strategies as st
import torch
import torch.nn.functional as F
from hypothesis import given

from tests.compiler.against_torch import check

LENGTHS = st.sampled_from([1, 2, 7, 31, 32, 33, 50, 64, 70])
WIDTHS = st.sampled_from([8, 16, 32, 48, 64, 80])
BOUNDS = {"relative": 0.03, "absolute": 0.05}


@given(st.integers(1, 2), st.sampled_from([(1, 1), (3, 3), (4, 2), (6, 1)]), LENGTHS, LENGTHS, WIDTHS, st.data())
def test_attention(batch, heads, queries, keys, width, data):
    torch.manual_seed(data.draw(st.integers(0, 1 << 20)))
    own, shared = heads
    q = torch.randn(batch, own, queries, width)
    k, v = torch.randn(2, batch, shared, keys, width)
    kind = data.draw(st.sampled_from(["none", "causal", "bias", "hidden"]))
    scale = data.draw(st.sampled_from([None, 0.1, 1 / width]))
    options = {"scale": scale, "enable_gqa": own != shared, "is_causal": kind == "causal"}
    if kind in ("none", "causal"):
        check(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **options), q, k, v, **BOUNDS)
        return
    shape = [data.draw(st.sampled_from(sizes)) for sizes in ((1, batch), (1, own), (1, queries), (keys,))]
    mask = torch.randn(shape)
    if kind == "hidden":  # some queries may see no key
        mask = torch.zeros(shape).masked_fill(torch.rand(shape) < data.draw(st.sampled_from([0.3, 0.97])), -math.inf)
    statics = data.draw(st.sampled_from([(), (3,)]))
    check(
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m, **options),
        q,
        k,
        v,
        mask,
        statics=statics,
        **BOUNDS,
    )
