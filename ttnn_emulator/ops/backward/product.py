"""Gradients of products: of two tensors, over a dimension, and of a concatenation and a repetition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ttnn_emulator.enums import ALL_ENUMS, FLOAT_DTYPES, Layout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import composite, ttnn
from ttnn_emulator.ops.backward.binary import Required, pair_prepared
from ttnn_emulator.ops.backward.device_kernels import product_gradients
from ttnn_emulator.ops.backward.unary import prepared
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import TILE_SIZE, Shape, round_up
from ttnn_emulator.tensors.tensor import Tensor

MUL = ALL_ENUMS["BcastOpMath"].MUL
ALONG_HEIGHT, ALONG_WIDTH = ALL_ENUMS["BcastOpDim"].H, ALL_ENUMS["BcastOpDim"].W

# -- of two tensors ---------------------------------------------------------------------------------------------------


def product_by_number(
    grad: Tensor, source: Tensor, scalar: float, memory_config: MemoryConfig | None, input_grad: Tensor | None
) -> list:
    """g s."""
    for tensor in (grad, source):
        require(tensor.dtype in FLOAT_DTYPES, f"the gradient of a product does not support {tensor.dtype}")
    out = prepared(input_grad, source, memory_config)
    number = float(np.float32(scalar))
    return [ttnn.multiply(grad, number, dtype=source.dtype, memory_config=memory_config, output_tensor=out)]


def gradients_of_product(
    grad: Tensor,
    inputs: tuple[Tensor, Tensor],
    required: Required,
    memory_config: MemoryConfig | None,
    grads: tuple[Tensor | None, Tensor | None],
) -> list:
    """g b and g a, each summed over the dimensions along which its factor was broadcast."""
    require(len(required) >= 2, f"are_required_outputs names two outputs, not {len(required)}")
    given_any = any(given is not None for given in grads)
    require(required[0] or required[1] or not given_any, "at least one gradient must be requested")
    for tensor in (grad, *inputs, *(given for given in grads if given is not None)):
        require(tensor.device() is not None, "all tensors must be on a device, one is on the host")
        require(tensor.dtype in FLOAT_DTYPES, f"the gradient of a product does not support {tensor.dtype}")
    for factor, given in zip(inputs, grads):
        _broadcast_axes(factor.shape, grad.shape)
        if given is not None:
            require(given.dtype is factor.dtype, f"a gradient of {factor.dtype} does not fit into {given.dtype}")
            require(
                tuple(given.shape) == tuple(factor.shape) and tuple(given.padded_shape) == tuple(factor.padded_shape),
                f"a gradient of shape {list(factor.shape)} does not fit into shape {list(given.shape)}",
            )
    if _in_one_pass(grad, inputs, required, memory_config, grads):
        config = memory_config if memory_config is not None else inputs[0].memory_config()
        return product_gradients(grad, *inputs, config, *grads)
    return [
        _gradient_of_factor(grad, factor, other, memory_config, given) if wanted else None
        for wanted, factor, other, given in zip(required, inputs, reversed(inputs), grads)
    ]


def _broadcast_axes(shape: Sequence[int], target: Sequence[int]) -> list[int]:
    """The dimensions of `target` along which `shape` is broadcast."""
    while len(shape) > len(target) and shape[0] == 1:
        shape = tuple(shape)[1:]
    missing = len(target) - len(shape)
    require(missing >= 0, f"a factor of shape {list(shape)} has more dimensions than the gradient's {list(target)}")
    axes = list(range(missing))
    for dim, size in enumerate(shape):
        wide = target[missing + dim]
        require(size in (1, wide), f"shape {list(shape)} does not broadcast to the gradient's {list(target)}")
        if size != wide:
            axes.append(missing + dim)
    return axes


def _in_one_pass(
    grad: Tensor,
    inputs: tuple[Tensor, Tensor],
    required: Required,
    memory_config: MemoryConfig | None,
    grads: tuple[Tensor | None, Tensor | None],
) -> bool:
    given = [tensor for tensor in grads if tensor is not None]
    tensors = (grad, *inputs, *given)
    if not (required[0] and required[1]) or any(tensor.layout is not Layout.TILE for tensor in tensors):
        return False
    if any(tensor.is_sharded() for tensor in tensors):
        return False
    if any(tuple(tensor.shape) != tuple(inputs[0].shape) for tensor in tensors):
        return False
    if memory_config is None:
        return inputs[0].memory_config() == inputs[1].memory_config()
    return not memory_config.is_sharded() or len(given) == 2


def _gradient_of_factor(
    grad: Tensor, factor: Tensor, other: Tensor, memory_config: MemoryConfig | None, given: Tensor | None
) -> Tensor:
    axes = _broadcast_axes(factor.shape, grad.shape)
    m = {"memory_config": memory_config if memory_config is not None else factor.memory_config()}
    if not axes:
        return ttnn.multiply(grad, other, dtype=factor.dtype, output_tensor=given, **m)
    whole = ttnn.multiply(grad, other, dtype=factor.dtype)
    summed = ttnn.sum(whole, axes, True, **m)
    result = ttnn.reshape(summed, tuple(factor.shape))
    return result if given is None else ttnn.assign(result, given)


# -- of a concatenation and of a repetition ---------------------------------------------------------------------------


@composite("ttnn.concat_bw")
def concat_bw(
    grad_tensor: Tensor,
    input_tensor_a: Tensor,
    input_tensor_b: Tensor,
    dim: int = 0,
    *,
    are_required_outputs: Required = (True, True),
    memory_config: MemoryConfig | None = None,
    input_a_grad: Tensor | None = None,
    input_b_grad: Tensor | None = None,
) -> list:
    """The two parts of the gradient."""
    a = input_tensor_a
    for tensor in (grad_tensor, a, input_tensor_b):
        require(len(tensor.shape) == 4, f"the gradient of a concatenation is for rank 4, not {list(tensor.shape)}")
    require(-4 <= dim < 4, f"dimension {dim} is out of range for a tensor of rank 4")
    first, second = pair_prepared(
        are_required_outputs, (input_a_grad, input_b_grad), (a, input_tensor_b), memory_config
    )
    steps = [1, 1, 1, 1]
    if first is not None:
        ttnn.slice(grad_tensor, [0, 0, 0, 0], list(a.shape), steps, output_tensor=first)
    if second is not None:
        start = [0, 0, 0, 0]
        start[dim] = a.shape[dim]
        ttnn.slice(grad_tensor, start, list(grad_tensor.shape), steps, output_tensor=second)
    return [first, second]


@composite("ttnn.repeat_bw")
def repeat_bw(
    grad_tensor: Tensor, input_tensor: Tensor, shape: Any, *, memory_config: MemoryConfig | None = None
) -> list:
    """The gradient summed over the dimension that was repeated: the first or the second."""
    sizes, counts = list(input_tensor.padded_shape), list(shape)
    m = {"memory_config": memory_config if memory_config is not None else input_tensor.memory_config()}
    require(sizes[0] == 1, f"the first dimension of the input must be 1, it is {sizes[0]}")
    if 0 in counts[:4]:
        return [ttnn.zeros_like(input_tensor, **m)]
    for dim in (0, 1):
        if counts[dim] > 1:
            require(len(sizes) == 4, f"a repetition along {dim} is for rank 4, not for {list(input_tensor.shape)}")
            others = [count for axis, count in enumerate(counts[:4]) if axis != dim]
            require(others == [1, 1, 1], f"only one dimension may be repeated, not {counts}")
            target = [1 if axis == dim else size for axis, size in enumerate(sizes)]
            zeros = ttnn.zeros(target, input_tensor.dtype, input_tensor.layout, input_tensor.device(), **m)
            return [ttnn.moreh_sum(grad_tensor, dim, keepdim=True, output=zeros, **m)]
    return []


# -- over a dimension -------------------------------------------------------------------------------------------------

SWAP_HEIGHT, SWAP_BATCH = (0, 2, 1, 3), (3, 1, 2, 0)
WIDTH_TO_CHANNELS, CHANNELS_TO_WIDTH = (0, 3, 1, 2), (0, 2, 3, 1)


@composite("ttnn.prod_bw")
def prod_bw(
    grad_tensor: Tensor, input_tensor: Tensor, *, dim: int | None = None, memory_config: MemoryConfig | None = None
) -> list:
    """g p ÷ x, p the product over one dimension or over all."""
    m = {"memory_config": memory_config if memory_config is not None else input_tensor.memory_config()}
    product = _in_tiles(ttnn.prod(input_tensor, dim, dim is not None, **m))
    if dim is None:
        return [_of_whole_product(grad_tensor, input_tensor, product, **m)]
    grad = grad_tensor
    if tuple(product.shape) != tuple(grad.padded_shape):
        grad = _first_slice(grad, dim, **m)
    inverse = ttnn.reciprocal(input_tensor, **m)
    scaled = _in_tiles(ttnn.multiply(product, grad, **m))
    if dim in (3, -1):
        return [ttnn.bcast(inverse, scaled, MUL, ALONG_WIDTH, **m)]
    if dim in (2, -2):
        return [ttnn.bcast(inverse, scaled, MUL, ALONG_HEIGHT, **m)]
    return [_spread(inverse, scaled, 1 if dim in (1, -3) else 0, **m)]


def _in_tiles(tensor: Tensor) -> Tensor:
    if tensor.layout is Layout.TILE:
        return tensor
    *outer, height, width = tensor.padded_shape
    padded = Shape((*outer, round_up(height, TILE_SIZE), round_up(width, TILE_SIZE)))
    return ttnn.tilize_with_val_padding(tensor, padded, 1.0, memory_config=tensor.memory_config())


def _of_whole_product(grad: Tensor, x: Tensor, product: Tensor, **m: Any) -> Tensor:
    """Only the first element of the gradient counts."""
    if math.prod(grad.shape) != 1:
        rank = len(grad.shape)
        grad = ttnn.slice(grad, [0] * rank, [1] * rank, [1] * rank)
    scaled = ttnn.multiply(product, grad, **m)
    return ttnn.multiply(ttnn.reciprocal(x, **m), scaled, **m)


def _first_slice(grad: Tensor, dim: int, **m: Any) -> Tensor:
    """The gradient's first row or column, for a product along the last two dimensions."""
    sizes, steps = list(grad.padded_shape), [1, 1, 1, 1]
    if dim in (3, -1):
        turned = ttnn.permute(grad, WIDTH_TO_CHANNELS, **m)
        cut = ttnn.slice(turned, [0, 0, 0, 0], [sizes[0], 1, sizes[1], sizes[2]], steps)
        return ttnn.permute(cut, CHANNELS_TO_WIDTH, **m)
    if dim in (2, -2):
        turned = ttnn.permute(grad, SWAP_HEIGHT, **m)
        cut = ttnn.slice(turned, [0, 0, 0, 0], [sizes[0], 1, sizes[1], sizes[3]], steps)
        return _in_tiles(ttnn.permute(cut, SWAP_HEIGHT, **m))
    return grad


def _spread(inverse: Tensor, scaled: Tensor, dim: int, **m: Any) -> Tensor:
    """inverse × scaled with the dimension moved to the width, where a column can be broadcast."""
    sizes = list(inverse.padded_shape)
    there, back = (SWAP_BATCH, SWAP_BATCH) if dim == 0 else (CHANNELS_TO_WIDTH, WIDTH_TO_CHANNELS)
    uneven = sizes[dim] % TILE_SIZE
    wide = inverse
    if uneven:
        padding = [(0, TILE_SIZE - uneven if axis == dim else 0) for axis in range(4)]
        wide = ttnn.pad(inverse, padding, 0.0)
    columns, column = ttnn.permute(wide, there, **m), ttnn.permute(scaled, there, **m)
    result = ttnn.permute(ttnn.bcast(columns, column, MUL, ALONG_WIDTH, **m), back, **m)
    return ttnn.slice(result, [0, 0, 0, 0], sizes, [1, 1, 1, 1]) if uneven else result
