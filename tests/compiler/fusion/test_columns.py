"""Queries, keys and values interleaved in one product: their columns are reordered by head."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.compiler.fusion.captured import Fused, fused_model, target_name
from tests.compiler.fusion.test_rotary import halves, rotated
from torch_ttnn.compiler.fusion import columns

COLUMNS = "columns of queries, keys and values in order"
ONE_PRODUCT = "one product for queries, keys and values"
HEADS = "heads of queries, keys and values"
ATTENTION = "_scaled_dot_product_flash_attention_for_cpu"
ALL = {COLUMNS: 1, ONE_PRODUCT: 1, HEADS: 1}
BATCH, LENGTH, WIDTH = 2, 5, 32
FREE = ("view", "_unsafe_view", "reshape", "clone", "transpose", "permute", "getitem")


# -- layouts: how a product [B, S, columns] becomes queries, keys and values [B, heads, S, D] -------------------------


def partitions_untransposed(y, heads, width=WIDTH):
    """CodeGen: two parts of the heads, each with its queries, values and keys. The heads are transposed later."""
    q, v, k = y.view(BATCH, LENGTH, 2, -1).split(heads // 2 * width, dim=-1)
    return [each.reshape(BATCH, LENGTH, heads, width) for each in (q, k, v)]


def partitions(y, heads, width=WIDTH):
    return [each.transpose(1, 2) for each in partitions_untransposed(y, heads, width)]


def three_untransposed(y, heads, width=WIDTH):
    """BLOOM."""
    y = y.view(BATCH, LENGTH, heads, 3, width)
    return [y[..., number, :] for number in range(3)]


def three_of_a_head(y, heads, width=WIDTH):
    return [each.transpose(1, 2) for each in three_untransposed(y, heads, width)]


def wide_heads(y, heads, width=WIDTH):
    """GPT-NeoX: the same columns, transposed before they are split."""
    return y.view(BATCH, LENGTH, heads, 3 * width).transpose(1, 2).chunk(3, dim=-1)


def unbound(y, heads, width=WIDTH):
    return [each.transpose(1, 2) for each in y.view(BATCH, LENGTH, heads, 3, width).unbind(3)]


def groups(y, heads, width=WIDTH):
    """Two heads of queries per head of keys and values."""
    y = y.view(BATCH, LENGTH, heads // 2, 4, width)
    q, k, v = y[..., :-2, :].reshape(BATCH, LENGTH, heads, width), y[..., -2, :], y[..., -1, :]
    return [each.transpose(1, 2) for each in (q, k, v)]


def listed_groups(y, heads, width=WIDTH):
    """Falcon: selected by a list of indices."""
    y = y.view(BATCH, LENGTH, heads // 2, 4, width)
    pieces = y[..., :-2, :], y[:, :, :, [-2]], y[:, :, :, [-1]]
    return [each.flatten(2, 3).transpose(1, 2) for each in pieces]


def shared_head(y, heads, width=WIDTH):
    """Falcon with one head of keys and values: in order, but split by slices of heads."""
    y = y.view(BATCH, LENGTH, heads + 2, width)
    return [each.transpose(1, 2) for each in (y[..., :-2, :], y[..., [-2], :], y[..., [-1], :])]


def in_another_order(y, heads, width=WIDTH):
    v, k, q = y.split(heads * width, dim=-1)
    return [each.view(BATCH, LENGTH, heads, width).transpose(1, 2) for each in (q, k, v)]


COLUMNS_OF = {  # by layout, in heads
    partitions: 12, three_of_a_head: 12, wide_heads: 12, unbound: 12, groups: 8, listed_groups: 8, shared_head: 6,
    in_another_order: 12,
}  # fmt: skip


class Attention(nn.Module):
    """Four heads of queries; subclasses define the operations before and after the attention."""

    def __init__(self, layout=three_of_a_head, bias=True, width=WIDTH):
        super().__init__()
        torch.manual_seed(0)
        self.layout, self.width = layout, width
        self.qkv = nn.Linear(64, COLUMNS_OF[layout] * width, bias=bias)

    def heads(self, y):
        return self.layout(y, 4, self.width)

    def forward(self, x):
        return attend(*self.heads(self.qkv(x)))


def attend(q, k, v):
    return nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)


torch.manual_seed(0)
X = torch.randn(BATCH, LENGTH, 64)


def calls_per_run(result: Fused) -> list[str]:
    """The calls that depend on more than weights, without views."""
    placeholders = [node for node in result.after.graph.nodes if node.op == "placeholder"]
    changing = {node for number, node in enumerate(placeholders) if number not in result.statics}
    found = []
    for node in result.after.graph.nodes:
        if node.op == "call_function" and any(each in changing for each in node.all_input_nodes):
            changing.add(node)
            found.append(target_name(node.target))
    return [name for name in found if name not in FREE]


# -- reordered columns ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("layout", COLUMNS_OF)
def test_one_product_and_its_heads_remain(layout, bias):
    result = fused_model(Attention(layout, bias), X)
    assert result.names == ALL
    assert calls_per_run(result) == ["addmm" if bias else "mm", "qkv_heads", ATTENTION]


def test_the_columns_themselves():
    result = fused_model(Attention(three_of_a_head), X)
    chosen = [number.tolist() for name, number in result.after.named_buffers() if name.startswith("fusion_numbers")]
    assert chosen == [[96 * head + 32 * part + n for head in range(4) for n in range(32)] for part in range(3)]


def test_layers_share_indices_and_are_analysed_once(monkeypatch):
    analysed = []
    find_heads = columns._find_heads
    monkeypatch.setattr(columns, "_find_heads", lambda run: analysed.append(run) or find_heads(run))

    class Layers(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([Attention(), Attention(), Attention()])

        def forward(self, x):
            return [layer(x) for layer in self.layers]

    result = fused_model(Layers(), X)
    assert result.names == dict.fromkeys(ALL, 3)
    assert len(analysed) == 3
    assert len([name for name, _ in result.after.named_buffers() if name.startswith("fusion_numbers")]) == 3


def test_the_result_of_a_bfloat16_model():
    result = fused_model(Attention().bfloat16(), X.bfloat16())
    assert result.names == ALL


@pytest.mark.parametrize("layout", [partitions_untransposed, three_untransposed])
def test_rotary_embedding_of_heads_transposed_afterwards(layout):
    """As in CodeGen; the heads are split first, and transposed back for the embedding."""

    class Rotary(Attention):
        def forward(self, x, cos, sin):
            q, k, v = layout(self.qkv(x), 4)
            q, k = rotated(halves)(q, cos, sin), rotated(halves)(k, cos, sin)
            return attend(*[each.transpose(1, 2) for each in (q, k, v)])

    angle = torch.randn(1, LENGTH, 1, WIDTH)
    result = fused_model(Rotary(), X, angle.cos(), angle.sin())
    assert result.names == {"rotary embedding": 2, **ALL}
    assert calls_per_run(result) == ["addmm", "qkv_heads", *2 * ["rotary_embedding"], ATTENTION]


def test_rotary_embedding_of_separate_projections_transposed_afterwards():
    """As in GPT-J: nothing is interleaved, but the heads can still be split in one operation."""

    class Rotary(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v = nn.Linear(64, 128), nn.Linear(64, 128), nn.Linear(64, 128)

        def forward(self, x, cos, sin):
            q, k, v = [layer(x).view(BATCH, LENGTH, 4, WIDTH) for layer in (self.q, self.k, self.v)]
            q, k = rotated(halves)(q, cos, sin), rotated(halves)(k, cos, sin)
            return attend(*[each.transpose(1, 2) for each in (q, k, v)])

    angle = torch.randn(1, LENGTH, 1, WIDTH)
    result = fused_model(Rotary(), X, angle.cos(), angle.sin())
    assert result.names == {"rotary embedding": 2, **ALL}
    assert "index_select" not in result.calls


def test_a_factor_of_the_queries_goes_into_their_columns():
    class Scaled(Attention):
        def forward(self, x):
            q, k, v = self.heads(self.qkv(x))
            return attend(q * 0.3, k, v)

    result = fused_model(Scaled(), X)
    assert result.names == {"factor in the weights of a linear": 1, **ALL}
    assert calls_per_run(result) == ["addmm", "qkv_heads", ATTENTION]


def test_norms_of_heads_transposed_afterwards():
    """As in Persimmon; a split into heads would have to be undone for the norms."""

    class Normed(Attention):
        def forward(self, x):
            q, k, v = self.qkv(x).view(BATCH, LENGTH, 4, 3, WIDTH).unbind(3)
            q, k = nn.functional.layer_norm(q, (WIDTH,)), nn.functional.layer_norm(k, (WIDTH,))
            return attend(*[each.transpose(1, 2) for each in (q, k, v)])

    result = fused_model(Normed(), X)
    assert result.names == {COLUMNS: 1, ONE_PRODUCT: 1}
    assert "select" not in result.calls and "unbind" not in result.calls


def test_heads_not_split_by_the_library_get_columns_in_order():
    result = fused_model(Attention(width=24), X)
    assert result.names == {COLUMNS: 1, ONE_PRODUCT: 1}


class Cross(nn.Module):
    """Queries of one input; keys and values of another, concatenated or interleaved by head."""

    def __init__(self, mixed):
        super().__init__()
        self.mixed = mixed
        self.q, self.kv = nn.Linear(64, 128), nn.Linear(64, 256)

    def forward(self, x, source):
        shape = (4, 2, WIDTH) if self.mixed else (2, 4, WIDTH)
        kv = self.kv(source).view(BATCH, -1, *shape)
        k, v = kv.unbind(3 if self.mixed else 2)
        q = self.q(x).view(BATCH, LENGTH, 4, WIDTH)
        return attend(*[each.transpose(1, 2) for each in (q, k, v)])


@pytest.mark.parametrize("length", [LENGTH, 7])
def test_keys_and_values_of_another_input(length):
    source = torch.randn(BATCH, length, 64)
    assert fused_model(Cross(mixed=True), X, source).names == {COLUMNS: 1, ONE_PRODUCT: 1}
    assert fused_model(Cross(mixed=False), X, source).names == {}


@pytest.mark.parametrize("mixed", [True, False])
def test_keys_and_values_in_a_separate_product(mixed):
    class Two(Cross):
        def forward(self, x):
            return super().forward(x, x)

    result = fused_model(Two(mixed), X)
    assert result.names == ALL
    assert calls_per_run(result) == ["addmm", "qkv_heads", ATTENTION]


def test_heads_may_be_used_elsewhere():
    """Keys and values are also stored in a cache."""

    class Caching(Attention):
        def forward(self, x):
            q, k, v = self.heads(self.qkv(x))
            return attend(q, k, v), k, v

    assert fused_model(Caching(), X).names == ALL


# -- left unchanged ---------------------------------------------------------------------------------------------------


def test_a_product_that_is_used_elsewhere():
    class Kept(Attention):
        def forward(self, x):
            y = self.qkv(x)
            return attend(*self.heads(y)), y

    assert fused_model(Kept(), X).names == {}


def test_a_piece_that_is_used_elsewhere():
    class Kept(Attention):
        def forward(self, x):
            q, k, v = self.qkv(x).view(BATCH, LENGTH, 4, 3, WIDTH).unbind(3)
            return attend(*[each.transpose(1, 2) for each in (q, k, v)]), k.sum()

    assert fused_model(Kept(), X).names == {}


def test_weights_that_are_not_static():
    class Given(nn.Module):
        def forward(self, x, weight):
            return attend(*three_of_a_head(x @ weight, 4))

    assert fused_model(Given(), X, torch.randn(64, 12 * WIDTH)).names == {}


def test_rows_that_are_mixed():
    class Mixed(Attention):
        def forward(self, x):
            return attend(*self.qkv(x).view(BATCH, 4, LENGTH, 3 * WIDTH).chunk(3, dim=-1))

    assert fused_model(Mixed(), X).names == {}


def test_rows_in_another_order():
    """The sequence before the batch."""

    class Permuted(Attention):
        def forward(self, x):
            y = self.qkv(x).view(LENGTH, BATCH, 4, 3, WIDTH).permute(3, 1, 2, 0, 4)
            return attend(*y.unbind(0))

    assert fused_model(Permuted(), X.transpose(0, 1).contiguous()).names == {}


def test_heads_that_are_not_a_selection_of_columns():
    """The heads of the keys in another order for each batch."""

    class Permuted(Attention):
        def forward(self, x):
            q, k, v = self.heads(self.qkv(x))
            return attend(q, k[[[0], [1]], [[3, 2, 1, 0], [0, 1, 2, 3]]], v)

    assert fused_model(Permuted(), X).names == {}


def test_keys_that_are_the_values():
    class Same(nn.Module):
        def __init__(self):
            super().__init__()
            self.qk = nn.Linear(64, 8 * WIDTH)

        def forward(self, x):
            y = self.qk(x).view(BATCH, LENGTH, 4, 2, WIDTH)
            q, k, v = y[..., 0, :], y[..., 1, :], y.flatten(2, 3)[..., 1::2, :]
            return attend(*[each.transpose(1, 2) for each in (q, k, v)])

    assert fused_model(Same(), X).names == {}


def test_columns_that_are_in_order():
    class InOrder(Attention):
        def forward(self, x):
            pieces = self.qkv(x).split(4 * self.width, dim=-1)
            return attend(*[each.view(BATCH, LENGTH, 4, self.width).transpose(1, 2) for each in pieces])

    assert fused_model(InOrder(), X).names == {HEADS: 1}
    assert fused_model(InOrder(width=24), X).names == {}


@pytest.mark.parametrize(
    "detour", [torch.Tensor.contiguous, lambda x: x.reshape(8, LENGTH, WIDTH).view(2, 4, -1, WIDTH)]
)
def test_separate_projections_with_redundant_moves(detour):
    class Three(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v = nn.Linear(64, 128), nn.Linear(64, 128), nn.Linear(64, 128)

        def forward(self, x):
            heads = [layer(x).view(BATCH, LENGTH, 4, WIDTH).transpose(1, 2) for layer in (self.q, self.k, self.v)]
            return attend(*[detour(each) for each in heads])

    assert fused_model(Three(), X).names == {ONE_PRODUCT: 1, HEADS: 1}


# -- on the device ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [partitions, three_of_a_head, wide_heads, groups, shared_head])
def test_nothing_is_moved_between_projection_and_attention(layout):
    calls = fused_model(Attention(layout), X).on_device()
    assert calls.count("ttnn.linear") == calls.count("ttnn.transformer.split_query_key_value_and_split_heads") == 1
    assert not set(calls) & {"ttnn.to_layout", "ttnn.slice", "ttnn.permute", "ttnn.concat"}
