"""Composite operations that are lowered whole: attention and recurrent layers.

torch decomposes them before `__torch_dispatch__`. Their kernels are registered for autograd's key, where torch calls
them instead of decomposing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torch_ttnn.compiler.frontend import recurrent_layers
from torch_ttnn.eager.handlers import HANDLERS, run
from torch_ttnn.eager.tensor import TtnnTensor

aten = torch.ops.aten
Tensor = torch.Tensor


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """`F.scaled_dot_product_attention`: one operation, except where torch itself computes gradients step by step."""
    operands = (query, key, value, *(() if attn_mask is None else (attn_mask,)))
    if query.__class__ is not TtnnTensor:
        return _captured_attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    if not (torch.is_grad_enabled() and any(each.requires_grad for each in operands)):
        options = {"scale": scale, "enable_gqa": enable_gqa}
        return run(
            aten.scaled_dot_product_attention.default, (query, key, value, attn_mask, dropout_p, is_causal), options
        )
    if _is_fused(query, key, value, attn_mask, dropout_p):
        fused = aten._scaled_dot_product_flash_attention_for_cpu.default
        return fused(query, key, value, dropout_p, is_causal, attn_mask=attn_mask, scale=scale)[0]
    steps = aten._scaled_dot_product_attention_math.default
    return steps(
        query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa
    )[0]  # fmt: skip


def _captured_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> Tensor:
    """The same while a model is captured, as operations that the compiler knows from models on the CPU."""
    if mask is not None and mask.dtype is torch.bool:
        mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill(mask.logical_not(), float("-inf"))
    if enable_gqa and query.dim() > 2:
        key, value = (each.repeat_interleave(query.size(-3) // each.size(-3), dim=-3) for each in (key, value))
    if _is_fused(query, key, value, mask, dropout):
        fused = aten._scaled_dot_product_flash_attention_for_cpu.default
        return fused(query, key, value, dropout, is_causal, attn_mask=mask, scale=scale)[0]
    steps = aten._scaled_dot_product_attention_math.default
    return steps(query, key, value, mask, dropout, is_causal, None, scale=scale)[0]


def _is_fused(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float) -> bool:
    """Whether torch's fused attention has a gradient for these operands, by the conditions of its CPU kernel."""
    shapes = {(each.dim(), *each.shape[:2], each.shape[-1]) for each in (query, key, value)}
    is_alike = len(shapes) == 1 and query.dim() == 4 and key.shape == value.shape and query.dtype is key.dtype
    has_plain_mask = mask is None or (not mask.requires_grad and mask.dim() in (2, 4) and mask.dtype is not torch.bool)
    return is_alike and has_plain_mask and dropout == 0.0 and 0 not in query.shape and 0 not in key.shape


def _layer(name: str) -> Callable[..., Any]:
    """The kernel of a recurrent layer: padded sequences are ours, packed ones have another overload."""
    function = getattr(recurrent_layers, name)

    def layer(*args: Any) -> Any:
        return function(*args)

    return layer


LAYERS = ("lstm", "gru", "rnn_tanh", "rnn_relu")
COMPOSITES: dict[str, Callable[..., Any]] = {
    "scaled_dot_product_attention": attention,
    **{f"{name}.input": _layer(name) for name in LAYERS},
}


def _handled(name: str) -> Callable[..., Any]:
    """In inference mode, composites reach `__torch_dispatch__`."""

    def handler(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        return COMPOSITES[name](*args, **kwargs)

    return handler


for _name in LAYERS:
    HANDLERS[getattr(aten, _name).input] = _handled(f"{_name}.input")
