"""Torch counterparts of data movement, reductions and normalizations."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional

from ttnn_emulator.enums import DataType
from ttnn_emulator.golden_functions.calling import golden, stored_as
from ttnn_emulator.golden_functions.unsigned import is_unsigned

Dim = int | Sequence[int] | None


def concat(tensors: Sequence[torch.Tensor], dim: int = 0, groups: int = 1) -> torch.Tensor:
    """With `groups`, the channel groups of two tensors alternate."""
    if groups == 1:
        return torch.concat(list(tensors), dim)
    return torch.cat([tensor.unflatten(-1, (groups, -1)) for tensor in tensors[:2]], dim=-1).flatten(-2)


def squeeze(input_tensor: torch.Tensor, dim: Dim = None) -> torch.Tensor:
    if dim is None:
        return torch.squeeze(input_tensor)
    return torch.squeeze(input_tensor, dim if isinstance(dim, int) else tuple(dim))


def slice_(input_tensor: torch.Tensor, slice_start: Any, slice_end: Any, slice_step: Any = None) -> torch.Tensor:
    steps = slice_step if slice_step is not None else [1] * len(slice_start)
    return input_tensor[tuple(slice(*each) for each in zip(slice_start, slice_end, steps))]


def pad(input_tensor: torch.Tensor, padding: Sequence[Any], value: float = 0.0) -> torch.Tensor:
    return functional.pad(input_tensor, [amount for pair in reversed(padding) for amount in pair], value=value)


def roll(input_tensor: torch.Tensor, shifts: Any, dim: Any = None) -> torch.Tensor:
    return torch.roll(input_tensor, shifts, dims=dim)


def _reduction(name: str, scaled: Callable[[torch.Tensor, float], torch.Tensor]) -> Callable:
    """A reduction of the input multiplied by `scalar`."""

    def run(
        input_tensor: torch.Tensor,
        dim: Dim = None,
        keepdim: bool = False,
        *,
        correction: bool | None = None,
        scalar: float = 1.0,
    ) -> torch.Tensor:
        if input_tensor.dim() == 0:
            return input_tensor.clone()
        over = tuple(range(input_tensor.dim())) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
        more = {"correction": int(correction)} if correction is not None and name in ("var", "std") else {}
        result = getattr(torch, name)(input_tensor, dim=over, keepdim=keepdim, **more)
        return result if scalar == 1.0 else scaled(result, scalar)

    return golden(run)


def _times(values: torch.Tensor, scalar: float) -> torch.Tensor:
    return (values.float() * scalar).to(torch.int32) if values.dtype is torch.int32 else values * scalar


def argmax(input_tensor: torch.Tensor, dim: int | None = None, keepdim: bool = False) -> torch.Tensor:
    values = input_tensor.to(torch.int64) if is_unsigned(input_tensor) else input_tensor
    return torch.argmax(values, dim=dim, keepdim=keepdim)


def prod(
    input_tensor: torch.Tensor, dim: int | None = None, keepdim: bool = False, *, dims: Any = None
) -> torch.Tensor:
    if dims is not None:
        for each in dims:
            input_tensor = torch.prod(input_tensor, dim=each, keepdim=True)
        return input_tensor
    return torch.prod(input_tensor) if dim is None else torch.prod(input_tensor, dim=dim, keepdim=keepdim)


def topk(
    input_tensor: torch.Tensor, k: int = 32, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[torch.Tensor, torch.Tensor]:
    values, indices = torch.topk(input_tensor, k, dim=dim, largest=largest, sorted=sorted)
    return values, indices


def _running(function: Callable[..., torch.Tensor]) -> Callable:
    def run(
        input_tensor: torch.Tensor, dim: int, *, dtype: DataType | None = None, reverse_order: bool = False
    ) -> torch.Tensor:
        turned = torch.flip(input_tensor, [dim]) if reverse_order else input_tensor
        result = function(turned, dim)
        return stored_as(torch.flip(result, [dim]) if reverse_order else result, dtype)

    return golden(run)


def _affine(values: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None) -> torch.Tensor:
    for parameter, apply in ((weight, torch.mul), (bias, torch.add)):
        if parameter is not None:
            values = apply(values, (parameter.squeeze() if parameter.dim() > 1 else parameter).to(values.dtype))
    return values


def layer_norm(
    input_tensor: torch.Tensor,
    *,
    epsilon: float = 1e-12,
    residual_input_tensor: torch.Tensor | None = None,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
) -> torch.Tensor:
    x = input_tensor if residual_input_tensor is None else input_tensor + residual_input_tensor
    return _affine(functional.layer_norm(x, x.shape[-1:], eps=epsilon), weight, bias)


def rms_norm(
    input_tensor: torch.Tensor,
    weight: torch.Tensor | None = None,
    *,
    epsilon: float = 1e-12,
    residual_input_tensor: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
) -> torch.Tensor:
    x = input_tensor if residual_input_tensor is None else input_tensor + residual_input_tensor
    scaled = x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + epsilon)
    if weight is not None and weight.dtype in (torch.float16, torch.bfloat16):
        scaled = scaled.to(weight.dtype)
    return _affine(scaled, weight, bias)


def softmax(input_tensor: torch.Tensor, dim: int | None = None) -> torch.Tensor:
    return torch.softmax(input_tensor, -1 if dim is None else dim)


def scale_mask_softmax(input_tensor: torch.Tensor, scale: Any = None, mask: Any = None) -> torch.Tensor:
    x = input_tensor.float() * (1.0 if scale is None else scale)
    return torch.softmax(x if mask is None else x + mask, -1)


def attention_softmax(
    input_tensor: torch.Tensor, *, head_size: int | None = None, attention_mask: Any = None
) -> torch.Tensor:
    x = input_tensor if head_size is None else input_tensor / math.sqrt(head_size)
    return torch.softmax(x if attention_mask is None else x + attention_mask, -1)


def split_heads(
    input_tensor: torch.Tensor,
    kv_input_tensor: torch.Tensor | None = None,
    *,
    num_heads: int,
    num_kv_heads: int | None = None,
    transpose_key: bool = True,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Query, key and value of a projection, heads before positions."""
    whole = input_tensor if kv_input_tensor is None else torch.cat([input_tensor, kv_input_tensor], dim=-1)
    pairs = num_heads if num_kv_heads is None else num_kv_heads
    heads = whole.unflatten(-1, (num_heads + 2 * pairs, -1)).transpose(1, 2)
    query, key, value = (part.contiguous() for part in heads.split([num_heads, pairs, pairs], dim=1))
    return query, key.transpose(-2, -1).contiguous() if transpose_key else key, value


def concatenate_heads(input_tensor: torch.Tensor) -> torch.Tensor:
    return input_tensor.transpose(1, 2).flatten(2).contiguous()


def embedding(input_tensor: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return functional.embedding(input_tensor.to(torch.int64), weight)


def _indexed(function: Callable[..., torch.Tensor]) -> Callable:
    """torch's indices are int64, those of the library are not."""
    return golden(lambda input, dim, index, src: function(input, dim, index.to(torch.int64), src))


STRUCTURE: dict[str, Callable] = {
    "concat": golden(concat),
    "permute": golden(lambda input_tensor, dims: torch.permute(input_tensor, tuple(dims))),
    "transpose": golden(lambda input_tensor, dim1, dim2: torch.transpose(input_tensor, dim1, dim2)),
    "reshape": golden(lambda input_tensor, shape: input_tensor.reshape(tuple(shape))),
    "view": golden(lambda input_tensor, shape: input_tensor.reshape(tuple(shape))),
    "squeeze": golden(squeeze),
    "unsqueeze": golden(lambda input_tensor, dim: torch.unsqueeze(input_tensor, dim)),
    "slice": golden(slice_),
    "pad": golden(pad),
    "roll": golden(roll),
    "clone": golden(lambda input_tensor: input_tensor.clone(), typed=True),
    "expand": golden(lambda input_tensor, output_shape: input_tensor.expand(tuple(output_shape))),
    "repeat": golden(lambda input_tensor, repeats: input_tensor.repeat(*repeats)),
    "repeat_interleave": golden(
        lambda input_tensor, repeats, dim=0: torch.repeat_interleave(input_tensor, repeats, dim=dim)
    ),
    "stack": golden(lambda input_tensors, dim: torch.stack(list(input_tensors), dim)),
    "split": golden(lambda input_tensor, split_size, dim=0: list(torch.split(input_tensor, split_size, dim))),
    "chunk": golden(lambda input_tensor, chunks, dim: list(torch.chunk(input_tensor, chunks, dim))),
    "narrow": golden(lambda input_tensor, dim, start, length: torch.narrow(input_tensor, dim, start, length)),
    "gather": golden(lambda input, dim, index: torch.gather(input, dim, index.to(torch.int64))),
    "scatter": _indexed(torch.scatter),
    "scatter_add": _indexed(torch.scatter_add),
    "sum": _reduction("sum", _times),
    "mean": _reduction("mean", _times),
    "max": _reduction("amax", _times),
    "min": _reduction("amin", _times),
    "var": _reduction("var", lambda values, scalar: values * scalar**2),
    "std": _reduction("std", lambda values, scalar: values * abs(scalar)),
    "argmax": golden(argmax),
    "prod": golden(prod),
    "topk": golden(topk),
    "cumsum": _running(torch.cumsum),
    "cumprod": _running(torch.cumprod),
    "layer_norm": golden(layer_norm),
    "rms_norm": golden(rms_norm),
    "softmax": golden(softmax),
    "softmax_in_place": golden(softmax),
    "scale_mask_softmax": golden(scale_mask_softmax),
    "scale_mask_softmax_in_place": golden(scale_mask_softmax),
    "transformer.attention_softmax": golden(attention_softmax),
    "transformer.attention_softmax_": golden(attention_softmax),
    "transformer.split_query_key_value_and_split_heads": golden(split_heads),
    "transformer.concatenate_heads": golden(concatenate_heads),
    "embedding": golden(embedding),
    "matmul": golden(
        lambda a, b, *, transpose_a=False, transpose_b=False: torch.matmul(
            a.mT if transpose_a else a, b.mT if transpose_b else b
        ),
        typed=True,
    ),
}
