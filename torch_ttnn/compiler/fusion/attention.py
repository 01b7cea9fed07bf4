"""Attention written out by hand: a product, scale and masks in any order, a softmax, a product."""

from __future__ import annotations

import math
from typing import Any

import torch

from torch_ttnn.compiler.fusion.attention_operands import all_heads, resolve, shared_pair
from torch_ttnn.compiler.fusion.masks import mask_node, masks_of
from torch_ttnn.compiler.fusion.matcher import BEFORE, Anything, Chain, Either, Match, Number, Op, Tensor, Through
from torch_ttnn.compiler.fusion.nodes import (
    ADD,
    CASTS,
    DIV,
    MUL,
    SOFTMAXES,
    SQUEEZES,
    VIEWS,
    Node,
    dtype_of,
    is_float,
    shape_of,
    skip_no_ops,
)
from torch_ttnn.compiler.fusion.rewriting import Rewriter
from torch_ttnn.compiler.fusion.rule import Fusion
from torch_ttnn.compiler.ir.storage_order import matched_groups

aten = torch.ops.aten

ATTENTION = aten.scaled_dot_product_attention.default
FLASH = aten._scaled_dot_product_flash_attention_for_cpu.default
PRODUCT = Either(
    Op(aten.bmm.default, Tensor("q"), Tensor("k")),
    Op(aten.baddbmm.default, Tensor("added"), Tensor("q"), Tensor("k"), optional=("beta", "alpha")),
)
SCORES = Chain(
    PRODUCT,
    times=Op(MUL, BEFORE, Number("factor"), commutative=True),
    over=Op(DIV, BEFORE, Number("divisor")),
    plus=Op(ADD, BEFORE, Tensor("mask"), commutative=True),
    where=Op(aten.where.self, Tensor("shown"), BEFORE, Number("fill")),
    where_not=Op(aten.where.self, Tensor("hidden"), Number("fill"), BEFORE),
    filled=Op((aten.masked_fill.Scalar, aten.masked_fill.Tensor), BEFORE, Tensor("hidden"), Number("fill")),
    seen=Op((*VIEWS, *CASTS), BEFORE, rest="shape", optional=("dtype", "device", "layout", "memory_format")),
)
WEIGHTS = Op(SOFTMAXES, SCORES, Anything("dim"), rest="softmax_dtype", optional=("dtype",))
SEEN_WEIGHTS = Through((*VIEWS, *SQUEEZES, *CASTS, aten.expand.default, aten.clone.default), WEIGHTS)
PATTERN = Op(aten.bmm.default, SEEN_WEIGHTS, Tensor("v"))


def _four(shape: tuple[int, ...]) -> tuple[int, int, int, int] | None:
    if len(shape) == 3:
        return (1, *shape)  # type: ignore[return-value]
    return shape if len(shape) == 4 else None  # type: ignore[return-value]


def _softmax_node(match: Match) -> Node:
    return next(node for node in match.nodes if node.target in SOFTMAXES)


def _is_attention(rewriter: Rewriter, match: Match) -> bool:
    softmax, root = _softmax_node(match), match.root
    weights, scores = skip_no_ops(root.args[0]), match.nodes[-1]
    shape = shape_of(softmax)
    if not (is_float(match["q"]) and dtype_of(match["q"]) is dtype_of(match["v"]) is dtype_of(root)):
        return False
    if _four(shape) is None or match["dim"] % len(shape) != len(shape) - 1:
        return False
    seen = [shape_of(scores), *[shape_of(node) for _, node, _ in match.steps], shape, shape_of(weights)]
    if any(each[-2:] != shape[-2:] or math.prod(each) != math.prod(shape) for each in seen):
        return False
    return masks_of(match) is not None and _are_groups(seen, shape)


def _are_groups(seen: list[tuple[int, ...]], shape: tuple[int, ...]) -> bool:
    return all(matched_groups(each, shape) is not None for each in seen)


def _attention(rewriter: Rewriter, match: Match) -> Node | None:
    root = match.root
    masks = masks_of(match)
    scores = _four(shape_of(_softmax_node(match)))
    assert masks is not None and scores is not None
    batch, heads, queries, keys = scores
    width, value_width = shape_of(match["q"])[-1], shape_of(match["v"])[-1]
    q = resolve(rewriter, match["q"], (batch, heads, queries, width), transposed=False)
    k = resolve(rewriter, match["k"], (batch, heads, keys, width), transposed=True)
    v = resolve(rewriter, match["v"], (batch, heads, keys, value_width), transposed=False)
    dtype = dtype_of(root)
    mask = mask_node(rewriter, masks, scores, dtype)
    shape = (batch, heads, queries, value_width)
    result = attention_call(rewriter, q.node, k.node, v.node, mask, masks.scale * q.factor * k.factor, (shape, dtype))
    if v.factor != 1:
        result = rewriter.scaled(result, v.factor)
    rewriter.replace_reshaped(root, result, shape_of(root))
    return result


def attention_call(rewriter: Rewriter, q: Node, k: Node, v: Node, mask: Node | None, scale: float, val: Any) -> Node:
    heads = shape_of(q)[1]
    k, v = shared_pair(k, v)
    if shape_of(k)[1] != shape_of(v)[1]:
        k, v = all_heads(rewriter, k, heads), all_heads(rewriter, v, heads)
    options: dict[str, Any] = {"scale": scale}
    if shape_of(k)[1] != heads:
        options["enable_gqa"] = True
    return rewriter.call(ATTENTION, q, k, v, mask, 0.0, False, **options, val=val)


FLASH_PATTERN = Op(FLASH, Tensor("q"), Tensor("k"), Tensor("v"), rest="settings", optional=("attn_mask", "scale"))


def _is_repeated(rewriter: Rewriter, match: Match) -> bool:
    """Whether keys and values are repeated heads, and only the output is used, not the logsumexp kept for training."""
    used = [user.args[1] for user in match.root.users]
    return used == [0] and shared_pair(match["k"], match["v"])[0] is not match["k"]


def _grouped(rewriter: Rewriter, match: Match) -> Node:
    """The same call with fewer heads of keys and values."""
    root = match.root
    k, v = shared_pair(match["k"], match["v"])
    return rewriter.call(FLASH, match["q"], k, v, *match["settings"], val=root, **dict(root.kwargs))


FUSIONS = (
    Fusion("attention", PATTERN, _attention, when=_is_attention),
    Fusion("attention of shared heads", FLASH_PATTERN, _grouped, when=_is_repeated),
)
