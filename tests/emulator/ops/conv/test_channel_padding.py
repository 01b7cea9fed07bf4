"""Convolutions whose input, weights and in_channels differ in channels but agree after padding."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import pcc

SIZE, OUT = 16, 32


def convolve(
    device: Any,
    values: torch.Tensor,
    weights: torch.Tensor,
    in_channels: int,
    *,
    layout: Any = ttnn.ROW_MAJOR_LAYOUT,
    place: str = "sharded",
    ahead: bool = False,
) -> torch.Tensor:
    kernel = tuple(weights.shape[2:])
    shape = (1, 1, SIZE * SIZE, values.shape[-1])
    config = {"l1": ttnn.L1_MEMORY_CONFIG, "dram": ttnn.DRAM_MEMORY_CONFIG}.get(place)
    if config is None:
        config = ttnn.create_sharded_memory_config(shape, ttnn.CoreGrid(x=8, y=1), ttnn.ShardStrategy.HEIGHT)
    x = ttnn.from_torch(values.reshape(shape), ttnn.bfloat16, layout=layout, device=device, memory_config=config)
    problem = {
        "device": device,
        "in_channels": in_channels,
        "out_channels": OUT,
        "batch_size": 1,
        "input_height": SIZE,
        "input_width": SIZE,
        "kernel_size": kernel,
        "stride": (1, 1),
        "padding": (kernel[0] // 2, kernel[1] // 2),
        "dilation": (1, 1),
        "groups": 1,
        "conv_config": ttnn.Conv2dConfig(weights_dtype=ttnn.bfloat16),
    }
    weight = ttnn.from_torch(weights, ttnn.bfloat16)
    if ahead:
        described = {"input_memory_config": config, "input_layout": layout, "input_dtype": ttnn.bfloat16}
        weight = ttnn.prepare_conv_weights(
            weight_tensor=weight, weights_format="OIHW", has_bias=False, **described, **problem
        )
        weight = ttnn.to_device(weight, device)
    return ttnn.to_torch(ttnn.conv2d(input_tensor=x, weight_tensor=weight, **problem)).float()


def reference(values: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    images = values[..., : weights.shape[1]].reshape(1, SIZE, SIZE, -1).permute(0, 3, 1, 2)
    padding = (weights.shape[2] // 2, weights.shape[3] // 2)
    return torch.nn.functional.conv2d(images, weights, padding=padding).permute(0, 2, 3, 1).reshape(1, 1, -1, OUT)


def drawn(input_channels: int, channels: int, kernel: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(input_channels + channels)
    return torch.randn(SIZE * SIZE, input_channels), torch.randn(OUT, channels, kernel, kernel)


# channels of the input, in_channels, channels of the weights
DIFFERING = [(16, 3, 3), (8, 3, 3), (8, 8, 3), (16, 8, 3), (16, 16, 3), (32, 32, 16), (32, 16, 32), (32, 3, 3)]


@pytest.mark.parametrize("ahead", [False, True], ids=["", "prepared ahead"])
@pytest.mark.parametrize("channels", DIFFERING, ids=str)
def test_channels_that_differ_by_padding(channels: tuple[int, int, int], ahead: bool, device: Any) -> None:
    input_channels, in_channels, weight_channels = channels
    values, weights = drawn(input_channels, weight_channels)
    assert pcc(convolve(device, values, weights, in_channels, ahead=ahead), reference(values, weights)) > 0.9999


@pytest.mark.parametrize(("place", "layout"), [("l1", "TILE"), ("l1", "ROW_MAJOR"), ("dram", "ROW_MAJOR")])
@pytest.mark.parametrize("kernel", [3, 7])
def test_weights_of_fewer_channels_than_the_call(place: str, layout: str, kernel: int, device: Any) -> None:
    values, weights = drawn(8, 3, kernel)
    result = convolve(device, values, weights, 8, layout=getattr(ttnn.Layout, layout), place=place)
    assert pcc(result, reference(values, weights)) > 0.9999


def test_input_channels_beyond_the_padded_weights_are_a_fault(device: Any) -> None:
    values, weights = drawn(64, 3)
    with pytest.raises(ttnn.ChipFault, match="padded to another width"):
        convolve(device, values, weights, 3)
    assert not convolve(device, values * 0, weights, 3).any()


def test_weights_that_multiply_padding_are_a_fault(device: Any) -> None:
    values, weights = drawn(3, 8)
    with pytest.raises(ttnn.ChipFault, match="multiply padding"):
        convolve(device, values, weights, 8, place="l1")
    weights[:, 3:] = 0
    assert pcc(convolve(device, values, weights, 8, place="l1"), reference(values, weights[:, :3])) > 0.9999


def test_in_dram_the_volume_must_fit(device: Any) -> None:
    values, weights = drawn(16, 3)
    with pytest.raises(ttnn.InvalidArgument, match="do not fit the shape"):
        convolve(device, values, weights, 3, place="dram")
