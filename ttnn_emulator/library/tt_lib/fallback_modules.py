"""`tt_lib.fallback_ops`: modules computed by torch on the host, for TT-NN tensors."""

from __future__ import annotations

from typing import Any

import torch

from ttnn_emulator.library.tt_lib.conversion import convert_tt_tensors_wrapper as fallback


def _parameter(values: Any, shape: Any) -> torch.nn.Parameter:
    return torch.nn.Parameter(values.reshape(shape))


class _Fallback(torch.nn.Module):
    """Computes `pt_fallback`, a torch module."""

    pt_fallback: torch.nn.Module
    channels_last = False

    @fallback
    def forward(self, input: Any) -> Any:
        values = torch.permute(input, (0, 3, 1, 2)) if self.channels_last else input
        values = self.pt_fallback(values)
        return torch.permute(values, (0, 2, 3, 1)) if self.channels_last else values


class Conv2d(_Fallback):
    @fallback
    def __init__(
        self,
        weights: Any,
        biases: Any,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: Any = "zeros",
    ) -> None:
        super().__init__()
        module = torch.nn.Conv2d(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode
        )
        module.weight = torch.nn.Parameter(weights)
        module.bias = None if biases is None else _parameter(biases, biases.shape[-1])
        self.pt_fallback = module


class BatchNorm2d(_Fallback):
    @fallback
    def __init__(
        self,
        weights: Any,
        biases: Any,
        running_mean: Any,
        running_var: Any,
        num_batches_tracked: Any,
        num_features: int,
        eps: float = 1e-05,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
    ) -> None:
        super().__init__()
        module = torch.nn.BatchNorm2d(num_features, eps, momentum, affine, track_running_stats)
        module.weight, module.bias = _parameter(weights, num_features), _parameter(biases, num_features)
        module.running_mean, module.running_var = running_mean.reshape(num_features), running_var.reshape(num_features)
        module.num_batches_tracked = torch.tensor(num_batches_tracked.item())
        self.pt_fallback = module


class GroupNorm(_Fallback):
    @fallback
    def __init__(
        self, weights: Any, biases: Any, num_groups: int, num_channels: int, eps: float = 1e-05, affine: bool = True
    ) -> None:
        super().__init__()
        module = torch.nn.GroupNorm(num_groups, num_channels, eps, affine)
        module.weight, module.bias = _parameter(weights, num_channels), _parameter(biases, num_channels)
        self.pt_fallback = module


class LayerNorm(_Fallback):
    @fallback
    def __init__(
        self, weights: Any, biases: Any, normalized_shape: Any, eps: float = 1e-05, elementwise_affine: bool = True
    ) -> None:
        super().__init__()
        shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
        assert list(weights.shape[-len(shape) :]) == shape
        assert list(biases.shape[-len(shape) :]) == shape
        module = torch.nn.LayerNorm(shape, eps, elementwise_affine)
        module.weight, module.bias = _parameter(weights, shape), _parameter(biases, shape)
        self.pt_fallback = module


class MaxPool2d(_Fallback):
    @fallback
    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
        channels_last: bool = False,
        reshape_2d: bool = False,
    ) -> None:
        super().__init__()
        self.pt_fallback = torch.nn.MaxPool2d(kernel_size, stride, padding, dilation, return_indices, ceil_mode)
        self.channels_last = channels_last
        self.reshape_2d = reshape_2d

    @fallback
    def forward(self, input: Any) -> Any:
        values = torch.permute(input, (0, 3, 1, 2)) if self.channels_last else input
        values = self.pt_fallback(values)
        values = torch.permute(values, (0, 2, 3, 1)) if self.channels_last else values
        return values.reshape(1, 1, -1, values.shape[3]) if self.reshape_2d else values


class AdaptiveAvgPool2d(_Fallback):
    @fallback
    def __init__(self, output_size: Any, channels_last: bool = False) -> None:
        super().__init__()
        self.pt_fallback = torch.nn.AdaptiveAvgPool2d(output_size)
        self.channels_last = channels_last
