"""`tt_lib.fused_ops`: softmax, linear layers and pools composed of operations."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

from ttnn_emulator.enums import Layout
from ttnn_emulator.execution.operation_table import ttnn
from ttnn_emulator.library.tt_lib.utils import (
    float_to_bits,
    pad_activation,
    pad_weight,
    print_diff_argmax,
    roundup32,
    tilize,
    tilize_to_list,
    tt2torch,
    tt2torch_rm,
    untilize,
)

t2t, t2trm = tt2torch, tt2torch_rm


def softmax(x: Any, stable: bool = False) -> Any:
    """Softmax over the last of four dimensions; `stable` subtracts the maximum first."""
    shifted = ttnn.subtract(x, ttnn.max(x, 3)) if stable else x
    numerator = ttnn.exp(shifted)
    return ttnn.multiply(numerator, ttnn.reciprocal(ttnn.sum(numerator, 3)))


def ref_stable_softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, 3)


def Linear(in_features: int, out_features: int, weight: Any, bias: Any, device: Any) -> Callable:
    """A function that multiplies by the transposed weight and adds the bias; both are tiled."""
    warnings.warn("Linear will be deprecated soon", stacklevel=2)
    assert weight.get_layout() == Layout.TILE
    on_device = weight.to(device)
    if bias is not None:
        assert bias.get_layout() == Layout.TILE
    added = None if bias is None else bias.to(device)

    def linear_(activation: Any) -> Any:
        product = ttnn.matmul(activation, ttnn.transpose(on_device, -2, -1))
        return product if added is None else ttnn.add(product, added)

    return linear_


def run_global_avg_pool_on_device_wrapper(device: Any) -> Callable:
    def global_avg_pool2d(x: Any, output_mem_config: Any, output_dtype: Any = None) -> Any:
        return ttnn.global_avg_pool2d(x, memory_config=output_mem_config, dtype=output_dtype)

    return global_avg_pool2d


def compute_max_pool_shape(kernel_size: int, stride: int, padding: int, x_shape: Any) -> list[int]:
    """[batch, height, width, channels] after a pool with square windows."""
    height, width = (int((size - kernel_size + 2 * padding) / stride) + 1 for size in x_shape[1:3])
    return [x_shape[0], height, width, x_shape[3]]


def ref_ln(x: torch.Tensor, gamma: Any, beta: Any = None, epsilon: float = 1e-5) -> tuple[torch.Tensor, ...]:
    """Layer norm of the last dimension with its intermediate values."""
    mean = x.mean(dim=-1, keepdim=True)
    var = ((x - mean) ** 2).mean(dim=-1, keepdim=True)
    std = (var + epsilon).sqrt()
    normal = (x - mean) / std
    scaled = normal if gamma is None else normal * gamma
    return (scaled if beta is None else scaled + beta), mean, var, std, 1.0 / std, normal


__all__ = [
    "Linear",
    "compute_max_pool_shape",
    "float_to_bits",
    "pad_activation",
    "pad_weight",
    "print_diff_argmax",
    "ref_ln",
    "ref_stable_softmax",
    "roundup32",
    "run_global_avg_pool_on_device_wrapper",
    "softmax",
    "t2t",
    "t2trm",
    "tilize",
    "tilize_to_list",
    "untilize",
]
