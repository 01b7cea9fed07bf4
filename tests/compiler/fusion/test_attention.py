"""Attention written out by hand becomes one call, with any scale and masks between its two products."""

from __future__ import annotations

import math

import pytest
import torch

from tests.compiler.fusion.captured import Fused, fused

B, H, S, D = 2, 4, 6, 16
Q, K, V = [torch.randn(B, H, S, D) for _ in range(3)]
HIDDEN = torch.zeros(B, 1, 1, S, dtype=torch.bool)
HIDDEN[0, ..., 4:] = True
LOWEST = torch.finfo(torch.float32).min
CAUSAL = torch.full((S, S), LOWEST).triu(1)


def attend(scores, v):
    return torch.softmax(scores, dim=-1) @ v


def arguments(result: Fused):
    (node,) = [node for node in result.after.graph.nodes if "scaled_dot_product_attention" in str(node.target)]
    return node


FORMS = {
    "scores divided": lambda q, k, v: attend(q @ k.transpose(-1, -2) / math.sqrt(D), v),
    "scores multiplied": lambda q, k, v: attend(q @ k.transpose(2, 3) * 0.25, v),
    "queries scaled": lambda q, k, v: attend((q * 0.25) @ k.transpose(-1, -2), v),
    "keys scaled": lambda q, k, v: attend(q @ (k / 4).transpose(-1, -2), v),
    "both scaled": lambda q, k, v: attend((q * 0.5) @ (k.transpose(-1, -2) * 0.5), v),
    "with dropout": lambda q, k, v: torch.dropout(torch.softmax(q @ k.mT * 0.25, -1), 0.1, train=False) @ v,
    "of three dimensions": lambda q, k, v: attend(q.flatten(0, 1) @ k.flatten(0, 1).mT * 0.25, v.flatten(0, 1)),
}


@pytest.mark.parametrize("decompose", [False, True], ids=["whole", "decomposed"])
@pytest.mark.parametrize("function", FORMS.values(), ids=FORMS)
def test_forms(function, decompose):
    result = fused(function, Q, K, V, decompose=decompose)
    assert result.names == {"attention": 1}
    assert result.calls == ["scaled_dot_product_attention"]
    assert arguments(result).kwargs == {"scale": 0.25}


def test_without_a_scale():
    assert arguments(fused(lambda q, k, v: attend(q @ k.mT, v), Q, K, V)).kwargs == {"scale": 1.0}


MASKS = {
    "added": lambda s, mask: s / 4 + mask,
    "added before the scale": lambda s, mask: (s + mask) / 4,
    "filled": lambda s, mask: (s / 4).masked_fill(mask < 0, LOWEST),
    "filled with -inf": lambda s, mask: (s / 4).masked_fill(mask < 0, -math.inf),
    "chosen": lambda s, mask: torch.where(mask == 0, s / 4, torch.full((), LOWEST)),
    "chosen the other way round": lambda s, mask: torch.where(mask < 0, torch.full((), LOWEST), s / 4),
    "twice": lambda s, mask: torch.where(mask == 0, s / 4, torch.full((), LOWEST)) + mask,
}


# Every query sees at least its own key.
RANDOM = torch.randn(1, H, S, S).clamp(max=0) * (1 - torch.eye(S))


@pytest.mark.parametrize("mask", [HIDDEN * LOWEST, CAUSAL, CAUSAL[None, None], RANDOM])
@pytest.mark.parametrize("form", MASKS.values(), ids=MASKS)
def test_masks(form, mask):
    result = fused(lambda q, k, v, mask: attend(form(q @ k.mT, mask), v), Q, K, V, mask)
    assert result.names == {"attention": 1}
    assert arguments(result).args[3] is not None


def test_a_fully_masked_query_is_zero():
    """As in torch's own attention. Written out it is 0 ÷ 0, which the device does not yield either."""
    hidden = torch.zeros(S, S, dtype=torch.bool)
    hidden[2] = True

    def function(q, k, v, hidden):
        return torch.nan_to_num(attend((q @ k.mT / 4).masked_fill(hidden, -math.inf), v), nan=0.0)

    assert fused(function, Q, K, V, hidden).names == {"attention": 1}


def test_layers_share_their_mask():
    def function(q, k, v, hidden):
        once = attend((q @ k.mT / 4).masked_fill(hidden, LOWEST), v)
        return attend((once @ k.mT / 4).masked_fill(hidden, LOWEST), v)

    result = fused(function, Q, K, V, HIDDEN)
    assert result.names == {"attention": 2}
    assert result.calls.count("where") == 1


def test_alibi_in_a_product_that_adds():
    def function(alibi, q, k, v, mask):
        q, k, v = q.reshape(B * H, S, D), k.reshape(B * H, S, D), v.reshape(B * H, S, D)
        scores = alibi.baddbmm(q, k.transpose(-1, -2), beta=1.0, alpha=0.25).view(B, H, S, S)
        return (torch.softmax(scores + mask, -1).view(B * H, S, S) @ v).view(B, H, S, D)

    result = fused(function, torch.randn(B * H, 1, S), Q, K, V, CAUSAL)
    assert result.names == {"attention": 1}


def test_windows_with_a_mask_for_each():
    """Swin: a bias per head, then a mask per window; batch and windows were one dimension before."""
    windows = 3

    def function(q, k, v, bias, mask):
        scores = q @ k.mT * 0.25 + bias
        scores = (scores.view(B, windows, H, S, S) + mask[None, :, None]).view(B * windows, H, S, S)
        return attend(scores, v)

    given = [torch.randn(B * windows, H, S, D) for _ in range(3)]
    result = fused(function, *given, torch.randn(1, H, S, S), torch.randn(windows, S, S))
    assert result.names == {"attention": 1}


# -- shared heads -----------------------------------------------------------------------------------------------------


def repeated(x, times):
    batch, heads, length, width = x.shape
    return x[:, :, None].expand(batch, heads, times, length, width).reshape(batch, heads * times, length, width)


@pytest.mark.parametrize("kv_heads", [1, 2])
def test_repeated_keys_and_values_are_not_repeated(kv_heads):
    def function(q, k, v):
        k, v = repeated(k, H // kv_heads), repeated(v, H // kv_heads)
        return attend(q @ k.mT / 4, v)

    result = fused(function, Q, K[:, :kv_heads].clone(), V[:, :kv_heads].clone())
    node = arguments(result)
    assert node.kwargs["enable_gqa"] and node.args[1].meta["val"].shape[1] == kv_heads
    assert result.calls == ["scaled_dot_product_attention"]


def test_one_head_broadcast_to_all():
    result = fused(lambda q, k, v: attend(q @ k.mT / 4, v), Q, K[:, :1].clone(), V[:, :1].clone())
    assert arguments(result).kwargs["enable_gqa"]


def test_repeated_heads_of_the_library_function():
    def function(q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q, repeated(k, 2), repeated(v, 2))

    result = fused(function, Q, K[:, :2].clone(), V[:, :2].clone())
    assert result.names == {"attention of shared heads": 1}


def test_heads_that_are_tiled_are_not_shared():
    """0 1 0 1 is not 0 0 1 1."""

    def function(q, k, v):
        return attend(q @ k.repeat(1, 2, 1, 1).mT / 4, v.repeat(1, 2, 1, 1))

    result = fused(function, Q, K[:, :2].clone(), V[:, :2].clone())
    assert "enable_gqa" not in arguments(result).kwargs


# -- what must stay ---------------------------------------------------------------------------------------------------


def test_keys_and_values_of_another_source():
    result = fused(lambda q, k, v: attend(q @ k.mT / 4, v), Q, torch.randn(B, H, 9, D), torch.randn(B, H, 9, D))
    q, k, v = arguments(result).args[:3]
    assert [node.name for node in (q, k, v)] == ["q_1", "k_1", "v_1"]


def test_keys_that_are_not_values():
    result = fused(lambda q, k: attend(q @ k.mT / 4, k + 1), Q, K)
    assert arguments(result).args[1] is not arguments(result).args[2]


OTHERS = {
    "softmax over queries": lambda q, k, v: torch.softmax(q @ k.mT / 4, dim=-2) @ v,
    "softmax over heads": lambda q, k, v: torch.softmax(q @ k.mT / 4, dim=1) @ v,
    "something between": lambda q, k, v: torch.softmax((q @ k.mT).relu(), -1) @ v,
    "weights changed": lambda q, k, v: (torch.softmax(q @ k.mT, -1) * 2 - 1) @ v,
    "a fill that does not hide": lambda q, k, v: attend((q @ k.mT).masked_fill(q @ k.mT < 0, -5.0), v),
    "weights transposed": lambda q, k, v: torch.softmax(q @ k.mT, -1).mT @ v,
    "no product before": lambda q, k, v: torch.softmax((q - k)[..., :S], -1) @ v,
}


@pytest.mark.parametrize("function", OTHERS.values(), ids=OTHERS)
def test_others_are_left(function):
    assert "attention" not in fused(function, Q, K, V).names


def test_weights_that_are_used_elsewhere_are_left():
    def function(q, k, v):
        weights = torch.softmax(q @ k.mT / 4, -1)
        return weights @ v, weights

    result = fused(function, Q, K, V)
    assert result.names == {"softmax with scale": 1}
