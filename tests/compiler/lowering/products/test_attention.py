"""Attention with every kind of mask, head and length."""

import math

import pytest
import torch
import torch.nn.functional as F

from tests.compiler.against_torch import check
from torch_ttnn.compiler.errors import StaysOnHost
from torch_ttnn.compiler.lowering.products.attention import flash_attention

aten = torch.ops.aten
attention = F.scaled_dot_product_attention
r = torch.randn
BOUND = 0.02  # of the largest
KERNEL = "ttnn.transformer.scaled_dot_product_attention"


def qkv(batch=2, heads=4, queries=7, width=32, keys=None, shared=None):
    keys, shared = keys or queries, shared or heads
    return r(batch, heads, queries, width), r(batch, shared, keys, width), r(batch, shared, keys, width)


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("scale", [None, 0.3])
@pytest.mark.parametrize("width", [32, 16, 80])
@pytest.mark.parametrize("lengths", [(7, 7), (70, 70), (7, 40), (33, 5), (1, 64)], ids=str)
def test_lengths_widths_and_scales(is_causal, scale, width, lengths):
    queries, keys = lengths
    arguments = qkv(1, 2, queries, width, keys)
    outcome = check(lambda q, k, v: attention(q, k, v, is_causal=is_causal, scale=scale), *arguments, absolute=BOUND)
    assert KERNEL in outcome.device_ops


@pytest.mark.parametrize(("width", "by_kernel"), [(2560, True), (3136, False)])
def test_rows_too_wide_for_the_memory_of_a_core(width, by_kernel):
    """Attention over the channels of an image, whose rows are its pixels."""
    outcome = check(lambda q, k, v: attention(q, k, v), *qkv(1, 1, 33, width), absolute=BOUND)
    assert (KERNEL in outcome.device_ops) == by_kernel


def test_keys_and_values_of_another_source():
    """Cross-attention is not self-attention."""

    def cross(x, y, wq, wk, wv):
        q, k, v = [(z @ w).view(1, z.shape[1], 2, 32).transpose(1, 2) for z, w in ((x, wq), (y, wk), (y, wv))]
        return attention(q, k, v).transpose(1, 2).reshape(1, x.shape[1], 64)

    weights = [r(64, 64) / 8 for _ in range(3)]
    check(cross, r(1, 10, 64), r(1, 17, 64), *weights, statics=(2, 3, 4), absolute=BOUND)
    check(cross, r(1, 10, 64), r(1, 10, 64), *weights, statics=(2, 3, 4), absolute=BOUND)


@pytest.mark.parametrize("is_causal", [False, True])
def test_shared_heads_of_keys(is_causal):
    arguments = qkv(heads=6, shared=2)
    check(lambda q, k, v: attention(q, k, v, is_causal=is_causal, enable_gqa=True), *arguments, absolute=BOUND)


def random_mask(*shape):
    mask = torch.rand(shape) < 0.5
    mask[..., 0] = True
    return mask


def as_bias(mask, hidden=-math.inf):
    return torch.zeros(mask.shape).masked_fill(~mask, hidden)


MASKS = {
    "of all": (2, 4, 7, 9),
    "of a batch": (2, 1, 7, 9),
    "of heads": (1, 4, 7, 9),
    "of two dimensions": (7, 9),
    "of keys": (2, 1, 1, 9),
    "of queries": (1, 1, 7, 1),
}


@pytest.mark.parametrize("name", MASKS)
def test_masks(name):
    mask = random_mask(*MASKS[name])
    for given in (mask, as_bias(mask), as_bias(mask, torch.finfo(torch.float32).min), r(MASKS[name])):
        check(lambda q, k, v, m: attention(q, k, v, m), *qkv(keys=9), given, absolute=BOUND)
        check(lambda q, k, v, m: attention(q, k, v, m), *qkv(keys=9), given, statics=(3,), absolute=BOUND)


@pytest.mark.parametrize("statics", [(), (3,)], ids=["an input", "static"])
@pytest.mark.parametrize("precision", ["bfloat16", "float32"])
def test_fully_masked_queries_are_zero(statics, precision):
    mask = random_mask(2, 1, 7, 9)
    mask[0, 0, 3] = False
    for given in (mask, as_bias(mask)):
        outcome = check(
            lambda q, k, v, m: attention(q, k, v, m), *qkv(keys=9), given,
            statics=statics, precision=precision, absolute=BOUND, relative=0.02,
        )  # fmt: skip
        assert outcome.outputs[0][0, :, 3].abs().max() == 0


def test_queries_masked_by_the_lowest_float_weigh_all_keys_equally():
    mask = random_mask(2, 1, 7, 9)
    mask[0, 0, 3] = False
    given = as_bias(mask, torch.finfo(torch.float32).min)
    check(lambda q, k, v, m: attention(q, k, v, m), *qkv(keys=9), given, absolute=BOUND)


def triangle(length):
    return torch.ones(length, length, dtype=torch.bool).tril()


@pytest.mark.parametrize("kind", ["bool", "-inf", "lowest"])
def test_a_constant_causal_mask_costs_nothing(kind):
    def function(q, k, v):
        mask = triangle(7)
        bias = torch.zeros(7, 7).masked_fill(~mask, -math.inf if kind == "-inf" else torch.finfo(torch.float32).min)
        return attention(q, k, v, mask if kind == "bool" else bias)

    outcome = check(function, *qkv(), absolute=BOUND)
    assert outcome.device_ops == [KERNEL]
    assert "is_causal=True" in outcome.program.code


def test_a_constant_mask_without_effect_is_omitted():
    outcome = check(lambda q, k, v: attention(q, k, v, torch.ones(7, 7).bool()), *qkv(), absolute=BOUND)
    assert "attn_mask" not in outcome.program.code


def test_a_window_is_not_treated_as_causal():
    outcome = check(lambda q, k, v: attention(q, k, v, triangle(7).triu(-2)), *qkv(), absolute=BOUND)
    assert "is_causal=True" not in outcome.program.code


def test_layers_that_share_a_mask_prepare_it_once():
    def two_layers(q, k, v, mask):
        return attention(attention(q, k, v, mask), k, v, mask)

    outcome = check(two_layers, *qkv(), as_bias(random_mask(2, 1, 7, 7)), absolute=BOUND)
    assert outcome.device_ops.count("ttnn.maximum") == 1


def test_float32_takes_two_products():
    outcome = check(
        lambda q, k, v: attention(q, k, v, is_causal=True, enable_gqa=True),
        *qkv(shared=2), precision="float32", relative=0.005, absolute=0.005,
    )  # fmt: skip
    assert KERNEL not in outcome.device_ops


def test_other_ranks_and_widths_of_values():
    check(lambda q, k, v: attention(q, k, v), r(4, 7, 32), r(4, 9, 32), r(4, 9, 32), absolute=BOUND)
    check(lambda q, k, v: attention(q, k, v), r(2, 4, 7, 32), r(2, 4, 9, 32), r(2, 4, 9, 16), absolute=BOUND)


def test_dropout_is_rejected():
    with pytest.raises(StaysOnHost, match="dropout"):
        flash_attention(None, None, None, None, None, 0.5)


MASKED = {"plain": (False, False), "causal": (True, False), "masked": (False, True)}


@pytest.mark.parametrize("kind", MASKED)
def test_training(kind):
    is_causal, is_masked = MASKED[kind]
    q, k, v = qkv()
    mask = random_mask(2, 1, 7, 7)
    mask[0, 0, 3] = False
    given = [as_bias(mask)] if is_masked else []

    def forward(q, k, v, *mask):
        options = {"attn_mask": mask[0]} if mask else {}
        return aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, is_causal, **options)

    def backward(grad, q, k, v, out, sums, *mask):
        options = {"attn_mask": mask[0]} if mask else {}
        return aten._scaled_dot_product_flash_attention_for_cpu_backward(
            grad, q, k, v, out, sums, 0.0, is_causal, **options
        )

    check(forward, q, k, v, *given)
    check(backward, r(q.shape), q, k, v, *forward(q, k, v, *given), *given, absolute=BOUND)
