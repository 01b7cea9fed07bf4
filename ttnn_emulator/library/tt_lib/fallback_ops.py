"""`tt_lib.fallback_ops`: operations computed by torch on the host, for TT-NN tensors."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from ttnn_emulator.enums import Layout
from ttnn_emulator.library.tt_lib.conversion import convert_tt_tensors_wrapper

fallback = convert_tt_tensors_wrapper


@fallback
def full(size: Any, fill_value: float) -> Any:
    return torch.full(size, fill_value, dtype=torch.float32)


@fallback
def tensor_slice(input: Any, slices: Any) -> Any:
    return input[tuple(slices) if isinstance(slices, list) else slices]


@fallback
def reshape(
    input: Any,
    N: int,
    C: int,
    H: int,
    W: int,
    output_layout: Any = Layout.TILE,
    output_on_device: bool = True,
) -> Any:
    return torch.reshape(input, (N, C, H, W))


@fallback
def permute(input: Any, dims: Any, output_layout: Any = Layout.TILE, output_on_device: bool = True) -> Any:
    return torch.permute(input, dims)


@fallback
def chunk(input: Any, chunks: int, dim: int = 0) -> Any:
    return torch.chunk(input, chunks, dim)


@fallback
def conv2d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    return F.conv2d(input, weight, _flat(bias), stride, padding, dilation, groups)


def _flat(values: Any) -> Any:
    """One value per channel; None stays None."""
    return None if values is None else values.reshape(values.shape[-1])


@fallback
def group_norm(input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-05) -> Any:
    weight, bias = (None if each is None else each.reshape(input.shape[1]) for each in (weight, bias))
    return F.group_norm(input, num_groups, weight, bias, eps)


def _normalized(values: Any, shape: list[int]) -> Any:
    if values is None:
        return None
    assert list(values.shape[-len(shape) :]) == shape
    return values.reshape(shape)


@fallback
def layer_norm(input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-05) -> Any:
    shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    return F.layer_norm(input, shape, _normalized(weight, shape), _normalized(bias, shape), eps)


@fallback
def pad(
    input: Any,
    pad: Any,
    mode: str = "constant",
    value: Any = None,
    output_layout: Any = Layout.TILE,
    output_on_device: bool = True,
) -> Any:
    return F.pad(input, tuple(pad), mode, value)


@fallback
def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Any:
    return F.interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias)


@fallback
def repeat(input: Any, sizes: Any) -> Any:
    return input.repeat(sizes)


@fallback
def repeat_interleave(input: Any, repeats: Any, dim: int | None = None, *, output_size: int | None = None) -> Any:
    return torch.repeat_interleave(input, repeats, dim, output_size=output_size)


@fallback
def concat(tensors: Any, dim: int = 0) -> Any:
    return torch.concat(tensors, dim)


@fallback
def silu(input: Any) -> Any:
    return F.silu(input)


@fallback
def softmax(input: Any, dim: int | None = None) -> Any:
    return F.softmax(input, dim)


@fallback
def ceil(input: Any) -> Any:
    return torch.ceil(input)


@fallback
def floor(input: Any) -> Any:
    return torch.floor(input)


@fallback
def trunc(input: Any) -> Any:
    return torch.trunc(input)


@fallback
def bitwise_not(input: Any) -> Any:
    return torch.bitwise_not(input)


@fallback
def torch_argmax(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    return torch.argmax(input, dim=dim, keepdim=keepdim)


@fallback
def torch_argmin(input: Any, dim: int, keepdim: bool) -> Any:
    return torch.argmin(input, dim=dim, keepdim=keepdim)


@fallback
def unary_fmod(input: Any, other: float) -> Any:
    return torch.fmod(input, other)


@fallback
def unary_bitwise_and(input: Any, other: int) -> Any:
    return torch.bitwise_and(input, other)


@fallback
def unary_bitwise_or(input: Any, other: int) -> Any:
    return torch.bitwise_or(input, other)


@fallback
def unary_bitwise_xor(input: Any, other: int) -> Any:
    return torch.bitwise_xor(input, other)


@fallback
def unary_bitwise_left_shift(input: Any, other: int) -> Any:
    return torch.bitwise_left_shift(input, other)


@fallback
def unary_bitwise_right_shift(input: Any, other: int) -> Any:
    return torch.bitwise_right_shift(input, other)


# These also take a tensor.
binary_fmod = unary_fmod
binary_bitwise_and = unary_bitwise_and
binary_bitwise_or = unary_bitwise_or
binary_bitwise_xor = unary_bitwise_xor
binary_bitwise_left_shift = unary_bitwise_left_shift
binary_bitwise_right_shift = unary_bitwise_right_shift
