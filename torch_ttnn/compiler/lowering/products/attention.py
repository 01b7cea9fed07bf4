"""Attention: the library's fused kernel where it applies, else two products and a softmax."""

from __future__ import annotations

import math
import weakref
from dataclasses import dataclass
from typing import Any

import torch

from torch_ttnn.compiler.errors import refuse
from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.value import TILE, Handle, Value
from torch_ttnn.compiler.lowering.registry import lowers
from torch_ttnn.compiler.lowering.support.preparation import prepares
from torch_ttnn.compiler.lowering.support.softmax_gradient import softmax_gradient
from ttnn_emulator import TILE_SIZE, DataType

aten = torch.ops.aten

BFLOAT16, FLOAT32 = DataType.BFLOAT16, DataType.FLOAT32
# Replaces -inf in a mask. The kernel fills tile padding with the lowest float, which must be lower. A query that sees
# no key weighs all keys equally, as torch does for a row of lowest floats.
HIDDEN = -1e30
# The kernel keeps rows of queries, keys, values and results in L1, 520 bytes per core and element of their width:
# beyond this they do not fit (attention over channels has rows as wide as an image has pixels).
WIDEST = 2560
LOWEST_BIAS = -1e9  # at or below this an entry of an additive mask hides its key


@dataclass(frozen=True)
class Mask:
    """The additive mask, and which queries see any key at all (None: all of them)."""

    added: Handle | None = None
    seeing: Handle | None = None
    is_causal: bool = False


_masks: weakref.WeakKeyDictionary[Value, dict[tuple[int, int], Mask]] = weakref.WeakKeyDictionary()


def mask_of(ttnn: Any, builder: ProgramBuilder, mask: Value | None, queries: int, keys: int, is_causal: bool) -> Mask:
    """A mask as the kernel takes it. Layers that share a mask share the converted one."""
    if mask is None and not is_causal:
        return Mask()
    if mask is None:
        if queries == keys:
            return Mask(is_causal=True)
        mask = builder.static(torch.ones(queries, keys, dtype=torch.bool).tril())
    elif is_causal:
        refuse("a mask and is_causal at once")
    known = _masks.setdefault(mask, {})
    if (queries, keys) not in known:
        known[queries, keys] = _made(ttnn, builder, mask.with_rank(4), queries, keys)
    return known[queries, keys]


def _made(ttnn: Any, builder: ProgramBuilder, mask: Value, queries: int, keys: int) -> Mask:
    constant = mask.constant()
    if constant is not None:
        hidden = _hidden(constant)
        if not constant.is_floating_point() or bool((constant[~hidden] == 0).all()):
            if not hidden.any():
                return Mask()
            if _is_causal(hidden, queries, keys):
                return Mask(is_causal=True)
    seeing = None
    if mask.is_static:
        blind = constant is None or bool(_blind(constant).any())
        seeing = mask.prepared(_sight).tile() if blind else None
        mask = mask.prepared(_additive).prepared(torch.broadcast_to, (*mask.shape[:2], queries, keys))
        return Mask(mask.tile(BFLOAT16), seeing)
    options = {"dim": -1, "keepdim": True, "compute_kernel_config": builder.accurate}
    if mask.is_bool:
        handle = mask.tile(BFLOAT16)
        seeing = ttnn.max(handle, **options)
        added = ttnn.where(handle, 0.0, HIDDEN)
    else:
        # The lowest float32 is not -inf, but rounds to it: a mask from the host is uploaded unrounded.
        handle = mask.tile() if mask.is_on_device else builder.upload(mask, TILE, FLOAT32)
        seeing = builder.cast(ttnn.ne(ttnn.max(handle, **options), -math.inf), BFLOAT16)
        added = builder.cast(ttnn.maximum(handle, HIDDEN), BFLOAT16)
    wanted = (*mask.shape[:2], queries, keys)
    if mask.shape != wanted:
        added = ttnn.repeat(added, [want // size for want, size in zip(wanted, mask.shape)])
    return Mask(added, seeing)


def _hidden(mask: torch.Tensor) -> torch.Tensor:
    return ~mask if mask.dtype is torch.bool else mask <= LOWEST_BIAS


def _blind(mask: torch.Tensor) -> torch.Tensor:
    """The queries that see no key."""
    hidden = ~mask if mask.dtype is torch.bool else mask == -math.inf
    return hidden.all(-1, keepdim=True)


@prepares
def _sight(mask: torch.Tensor) -> torch.Tensor:
    return (~_blind(mask)).to(torch.float32)


@prepares
def _additive(mask: torch.Tensor) -> torch.Tensor:
    if mask.dtype is torch.bool:
        return torch.zeros(mask.shape, dtype=torch.float32, device=mask.device).masked_fill(~mask, HIDDEN)
    return mask.to(torch.float32).clamp_min(HIDDEN)


def _is_causal(hidden: torch.Tensor, queries: int, keys: int) -> bool:
    if queries != keys or hidden.shape[-2:] != (queries, keys):
        return False
    later = torch.ones(queries, keys, dtype=torch.bool).triu(1)
    return bool((hidden == later).all())


# -- computation --------------------------------------------------------------------------------------------------


def attend(ttnn: Any, builder: ProgramBuilder, q: Value, k: Value, v: Value, mask: Mask, scale: float) -> Value:
    """Attention of [batch, heads, length, width]; queries may share key heads (GQA)."""
    fits = q.shape[0] == k.shape[0] and k.shape[3] == v.shape[3] and q.shape[3] <= WIDEST
    if builder.float_dtype is FLOAT32 or not fits:
        result, _ = _by_products(ttnn, builder, q, k, v, mask, scale, with_sums=False)
        return result
    width = q.shape[3]
    missing = -width % TILE_SIZE
    operands = [builder.cast(each.tile(), BFLOAT16) for each in (q, k, v)]
    if missing:
        operands = [ttnn.pad(each, [(0, 0), (0, 0), (0, 0), (0, missing)], 0.0) for each in operands]
    options: dict[str, Any] = {} if mask.added is None else {"attn_mask": mask.added}
    result = ttnn.transformer.scaled_dot_product_attention(
        *operands,
        is_causal=mask.is_causal,
        scale=scale,
        program_config=builder.accurate_attention,
        compute_kernel_config=builder.accurate,
        **options,
    )
    if missing:
        result = ttnn.slice(result, [0, 0, 0, 0], list(q.shape), [1, 1, 1, 1])
    if mask.seeing is not None:
        result = ttnn.multiply(result, mask.seeing)
    return builder.value(result, q.shape, q.dtype)


def _scores(ttnn: Any, builder: ProgramBuilder, q: Handle, k: Handle, mask: Mask, scale: float) -> Handle:
    options = {"transpose_b": True, "dtype": FLOAT32, "compute_kernel_config": builder.accurate}
    scores = ttnn.multiply(ttnn.matmul(q, k, **options), scale)
    if mask.is_causal:
        length = q.shape[2]
        later = torch.full((1, 1, length, length), HIDDEN).triu(1)
        return ttnn.add(scores, builder.static(later).tile(FLOAT32))
    return scores if mask.added is None else ttnn.add(scores, builder.cast(mask.added, FLOAT32))


def _weights(ttnn: Any, builder: ProgramBuilder, scores: Handle, mask: Mask) -> Handle:
    weights = ttnn.softmax(scores, dim=-1, numeric_stable=True, compute_kernel_config=builder.accurate)
    return weights if mask.seeing is None else ttnn.multiply(weights, builder.cast(mask.seeing, FLOAT32))


def _shared_heads(ttnn: Any, x: Value, heads: int) -> Handle:
    handle = x.tile()
    return handle if x.shape[1] == heads else ttnn.repeat_interleave(handle, heads // x.shape[1], dim=1)


def _by_products(
    ttnn: Any, builder: ProgramBuilder, q: Value, k: Value, v: Value, mask: Mask, scale: float, with_sums: bool
) -> tuple[Value, Handle | None]:
    """With two products and a softmax; also the logsumexp of each row, which training saves."""
    keys, values = _shared_heads(ttnn, k, q.shape[1]), _shared_heads(ttnn, v, q.shape[1])
    scores = _scores(ttnn, builder, q.tile(), keys, mask, scale)
    weights = _weights(ttnn, builder, scores, mask)
    output = ttnn.matmul(weights, values, dtype=builder.device_dtype(q.dtype), compute_kernel_config=builder.accurate)
    result = builder.value(output, (*q.shape[:3], v.shape[3]), q.dtype)
    if not with_sums:
        return result, None
    options = {"dim": -1, "keepdim": True, "compute_kernel_config": builder.accurate}
    largest = ttnn.max(scores, **options)
    sums = ttnn.add(ttnn.log(ttnn.sum(ttnn.exp(ttnn.subtract(scores, largest)), **options)), largest)
    if mask.seeing is not None:
        sums = ttnn.multiply(sums, builder.cast(mask.seeing, FLOAT32))  # torch returns 0 for a query that sees no key
    return result, sums


# -- ATen ---------------------------------------------------------------------------------------------------------


def _scale(q: Value, scale: float | None) -> float:
    return 1 / math.sqrt(q.shape[-1]) if scale is None else scale


def _no_dropout(dropout_p: float) -> None:
    if dropout_p > 0:
        refuse("dropout within attention draws random numbers")


@lowers(aten._scaled_dot_product_flash_attention_for_cpu.default)
def flash_attention(
    ttnn: Any,
    builder: ProgramBuilder,
    q: Value,
    k: Value,
    v: Value,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Value | None = None,
    scale: float | None = None,
) -> tuple[Any, Any]:
    _no_dropout(dropout_p)
    mask = mask_of(ttnn, builder, attn_mask, q.shape[2], k.shape[2], is_causal)
    if 1 in builder.used:
        return _by_products(ttnn, builder, q, k, v, mask, _scale(q, scale), with_sums=True)
    return attend(ttnn, builder, q, k, v, mask, _scale(q, scale)), None


@lowers(aten.scaled_dot_product_attention.default)
def attention(
    ttnn: Any,
    builder: ProgramBuilder,
    q: Value,
    k: Value,
    v: Value,
    attn_mask: Value | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Value:
    _no_dropout(dropout_p)
    if not 2 <= q.ndim <= 4 or k.shape[:-3] != q.shape[:-3] or v.shape[:-1] != k.shape[:-1]:
        refuse("attention over batches of different shapes")
    q, k, v = [
        each.with_rank(4) if each.ndim != 3 else each.view((each.shape[0], 1, *each.shape[1:])) for each in (q, k, v)
    ]
    mask = mask_of(ttnn, builder, attn_mask, q.shape[2], k.shape[2], is_causal)
    return attend(ttnn, builder, q, k, v, mask, _scale(q, scale))


@lowers(aten._scaled_dot_product_flash_attention_for_cpu_backward.default)
def flash_attention_backward(
    ttnn: Any,
    builder: ProgramBuilder,
    grad: Value,
    q: Value,
    k: Value,
    v: Value,
    out: Value,
    logsumexp: Value,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Value | None = None,
    scale: float | None = None,
) -> tuple[Any, Any, Any]:
    """Recomputes the weights, then the gradients of the two products and the softmax between them."""
    _no_dropout(dropout_p)
    if k.shape[1] != q.shape[1]:
        refuse("the gradient of shared heads of keys")
    factor = _scale(q, scale)
    mask = mask_of(ttnn, builder, attn_mask, q.shape[2], k.shape[2], is_causal)
    weights = _weights(ttnn, builder, _scores(ttnn, builder, q.tile(), k.tile(), mask, factor), mask)
    exact = {"dtype": FLOAT32, "compute_kernel_config": builder.accurate}
    rounded = {"dtype": builder.device_dtype(q.dtype), "compute_kernel_config": builder.accurate}
    by_weight = ttnn.matmul(grad, v, transpose_b=True, **exact)
    by_score = ttnn.multiply(softmax_gradient(ttnn, builder, by_weight, weights, -1), factor)
    return (
        ttnn.matmul(by_score, k, **rounded),
        ttnn.matmul(by_score, q, transpose_a=True, **rounded),
        ttnn.matmul(weights, grad, transpose_a=True, **rounded),
    )
