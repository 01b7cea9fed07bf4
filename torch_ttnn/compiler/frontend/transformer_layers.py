"""Decompositions of the fused operators of `nn.TransformerEncoderLayer` and `nn.MultiheadAttention`.

In eval mode these modules call one ATen operator for a whole layer, for which torch has no decomposition. Decomposed,
it is lowered and fused as in any other transformer. The formulas follow torch's kernels
(aten/src/ATen/native/transformers/transformer.cpp and attention.cpp): a mask is true where attention is masked out, a
numeric mask counts as true wherever it is not zero, and a fully masked row is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

Tensor = torch.Tensor
aten = torch.ops.aten

OF_ROWS_AND_COLUMNS, OF_KEYS = 0, 1  # `mask_type`: [L, S] and [B, S]; any other mask is [B, H, L, S]


def native_multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """`aten._native_multi_head_attention`."""
    q, k, v = [_split(each, num_head) for each in _projected(query, key, value, qkv_weight, qkv_bias)]
    if mask is None and not need_weights:
        return F.linear(_joined(F.scaled_dot_product_attention(q, k, v)), proj_weight, proj_bias), None
    scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(_broadcast(mask.to(torch.bool), mask_type), -math.inf)
    weights = torch.softmax(scores, -1)
    out = F.linear(_joined(weights @ v), proj_weight, proj_bias)
    if not need_weights:
        return out, None
    return out, weights.mean(1) if average_attn_weights else weights


def _projected(query: Tensor, key: Tensor, value: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
    if query is key and key is value:
        return F.linear(query, weight, bias).chunk(3, -1)
    parts = zip((query, key, value), weight.chunk(3), bias.chunk(3))
    return tuple([F.linear(each, its_weight, its_bias) for each, its_weight, its_bias in parts])


def _split(x: Tensor, heads: int) -> Tensor:
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def _joined(x: Tensor) -> Tensor:
    return x.transpose(1, 2).flatten(2)


def _broadcast(mask: Tensor, mask_type: int | None) -> Tensor:
    """A mask that broadcasts against the scores, [B, H, L, S]."""
    if mask_type == OF_KEYS:
        return mask[:, None, None, :]
    return mask[None, None] if mask_type == OF_ROWS_AND_COLUMNS else mask


def transformer_encoder_layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    """`aten._transformer_encoder_layer_fwd`."""

    def attended(x: Tensor) -> Tensor:
        weights = qkv_weight, qkv_bias, proj_weight, proj_bias
        return native_multi_head_attention(x, x, x, embed_dim, num_heads, *weights, mask, False, True, mask_type)[0]

    def fed_forward(x: Tensor) -> Tensor:
        made = F.linear(x, ffn_weight_1, ffn_bias_1)
        return F.linear(F.gelu(made) if use_gelu else F.relu(made), ffn_weight_2, ffn_bias_2)

    def norm_1(x: Tensor) -> Tensor:
        return F.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def norm_2(x: Tensor) -> Tensor:
        return F.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    if norm_first:
        x = src + attended(norm_1(src))
        return x + fed_forward(norm_2(x))
    x = norm_1(src + attended(src))
    return norm_2(x + fed_forward(x))


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten._native_multi_head_attention.default: native_multi_head_attention,
    aten._transformer_encoder_layer_fwd.default: transformer_encoder_layer,
}
