"""One product for queries, keys and values of one attention, and their heads split in one operation."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.compiler.fusion.captured import Fused, fused_model

ONE_PRODUCT = "one product for queries, keys and values"
HEADS = "heads of queries, keys and values"
WIDTH = 32


class Attention(nn.Module):
    """Heads of 32; `fused` computes queries, keys and values in one linear, as GPT-2 and vision transformers do."""

    def __init__(self, heads=2, kv_heads=2, bias=True, key_bias=True, form="three"):
        super().__init__()
        self.heads, self.kv_heads, self.form = heads, kv_heads, form
        total = (heads + 2 * kv_heads) * WIDTH
        self.q = nn.Linear(64, heads * WIDTH, bias=bias)
        self.k = nn.Linear(64, kv_heads * WIDTH, bias=bias and key_bias)
        self.v = nn.Linear(64, kv_heads * WIDTH, bias=bias)
        self.qkv = nn.Linear(64, total, bias=bias)

    def forward(self, x, source=None):
        batch, length, _ = x.shape
        source = x if source is None else source
        if self.form == "axis":
            q, k, v = self.qkv(x).view(batch, length, 3, self.heads, WIDTH).permute(2, 0, 3, 1, 4).unbind(0)
        else:
            if self.form == "three":
                pieces = [self.q(x), self.k(source), self.v(source)]
            else:
                pieces = self.qkv(x).split([self.heads * WIDTH] + 2 * [self.kv_heads * WIDTH], dim=-1)
            q, k, v = [each.view(batch, each.shape[1], -1, WIDTH).transpose(1, 2) for each in pieces]
        result = nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
        return result.transpose(1, 2).reshape(batch, length, -1)


X = torch.randn(2, 5, 64)


def products(result: Fused) -> int:
    return sum(name in ("mm", "addmm", "linear") for name in result.calls)


@pytest.mark.parametrize(
    "model",
    [Attention(), Attention(bias=False), Attention(key_bias=False), Attention(heads=4, kv_heads=2)],
    ids=["bias", "no bias", "keys without bias", "shared heads"],
)
def test_three_projections_of_one_input(model):
    result = fused_model(model, X)
    assert result.names == {ONE_PRODUCT: 1, HEADS: 1}
    assert products(result) == 1
    assert "qkv_heads" in result.calls


def test_weights_are_concatenated_once_and_not_per_call():
    result = fused_model(Attention(), X)
    placeholders = [node for node in result.after.graph.nodes if node.op == "placeholder"]
    given = placeholders[next(iter(set(range(len(placeholders))) - set(result.statics)))]
    changing = {given}
    for node in result.after.graph.nodes:
        if any(each in changing for each in node.all_input_nodes):
            changing.add(node)
    assert not [node for node in changing if node.target is torch.ops.aten.cat.default]


@pytest.mark.parametrize("form", ["split", "axis"])
def test_a_projection_that_is_one_already(form):
    result = fused_model(Attention(form=form), X)
    assert result.names == {HEADS: 1}
    assert result.calls == ["addmm", "qkv_heads", "_scaled_dot_product_flash_attention_for_cpu"]


def test_cross_attention_shares_only_keys_and_values():
    result = fused_model(Attention(), X, torch.randn(2, 7, 64))
    assert result.names == {ONE_PRODUCT: 1}
    assert products(result) == 2


def test_queries_keys_and_values_of_three_inputs():
    class Three(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v = nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 64)

        def forward(self, q, k, v):
            given = ((self.q, q), (self.k, k), (self.v, v))
            q, k, v = [layer(x).view(2, -1, 2, WIDTH).transpose(1, 2) for layer, x in given]
            return nn.functional.scaled_dot_product_attention(q, k, v)

    result = fused_model(Three(), X, torch.randn(2, 7, 64), torch.randn(2, 7, 64))
    assert result.names == {}


def test_weights_that_are_not_static_are_left():
    class Given(nn.Module):
        def forward(self, x, w, u):
            q, k, v = [(x @ each).view(2, 5, 2, WIDTH).transpose(1, 2) for each in (w, u, w + u)]
            return nn.functional.scaled_dot_product_attention(q, k, v)

    assert fused_model(Given(), X, torch.randn(64, 64), torch.randn(64, 64)).names == {}


def test_pieces_that_are_used_elsewhere_are_not_split_into_heads():
    class Kept(Attention):
        def forward(self, x):
            q, k, v = self.qkv(x).split(64, dim=-1)
            heads = [each.view(2, 5, 2, WIDTH).transpose(1, 2) for each in (q, k, v)]
            return nn.functional.scaled_dot_product_attention(*heads), k

    assert fused_model(Kept(), X).names == {}


def test_pieces_in_another_order_are_not_split_into_heads():
    class Reordered(nn.Module):
        def forward(self, x, weight):  # its columns cannot be reordered in advance
            v, k, q = (x @ weight).split(64, dim=-1)
            heads = [each.view(2, 5, 2, WIDTH).transpose(1, 2) for each in (q, k, v)]
            return nn.functional.scaled_dot_product_attention(*heads)

    assert fused_model(Reordered(), X, torch.randn(64, 192)).names == {}


def test_heads_that_the_library_does_not_split_are_left():
    class Narrow(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v = nn.Linear(64, 48), nn.Linear(64, 48), nn.Linear(64, 48)

        def forward(self, x):
            heads = [layer(x).view(2, 5, 2, 24).transpose(1, 2) for layer in (self.q, self.k, self.v)]
            return nn.functional.scaled_dot_product_attention(*heads)

    assert fused_model(Narrow(), X).names == {ONE_PRODUCT: 1}
