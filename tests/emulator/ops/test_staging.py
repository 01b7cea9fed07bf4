"""Memory that convolutions and pools allocate and free: addresses and limits of ttnn 0.81.1 on an n150."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import ttnn_emulator as ttnn

TILE, ROWS = ttnn.TILE_LAYOUT, ttnn.ROW_MAJOR_LAYOUT
HEIGHT, BLOCK, WIDTH = (
    ttnn.TensorMemoryLayout.HEIGHT_SHARDED,
    ttnn.TensorMemoryLayout.BLOCK_SHARDED,
    ttnn.TensorMemoryLayout.WIDTH_SHARDED,
)
CHANNELS = 64
CORES = {HEIGHT: ttnn.CoreGrid(x=8, y=4), BLOCK: ttnn.CoreGrid(x=2, y=4), WIDTH: ttnn.CoreGrid(x=2, y=1)}
STRATEGY = {HEIGHT: ttnn.ShardStrategy.HEIGHT, BLOCK: ttnn.ShardStrategy.BLOCK, WIDTH: ttnn.ShardStrategy.WIDTH}


@pytest.fixture
def sizing() -> Any:
    with ttnn.open_device(device_id=0, board="n150", l1_small_size=32768, holds_values=False) as device:
        yield device


def images(device: Any, size: int, layout: Any, place: Any) -> Any:
    shape = (1, 1, size * size, CHANNELS)
    dtype = ttnn.bfloat8_b if layout is TILE else ttnn.bfloat16
    config = ttnn.L1_MEMORY_CONFIG
    if place is not None:
        config = ttnn.create_sharded_memory_config(shape, CORES[place], STRATEGY[place])
    return ttnn.from_torch(torch.zeros(shape), dtype, layout=layout, device=device, memory_config=config)


def convolve(x: Any, size: int, kernel: int, stride: int = 1, padding: int = 0, *, transposed: bool = False, **config):
    operation = ttnn.conv_transpose2d if transposed else ttnn.conv2d
    return operation(
        input_tensor=x,
        weight_tensor=ttnn.from_torch(torch.zeros(CHANNELS, CHANNELS, kernel, kernel), ttnn.bfloat16),
        device=x.device(),
        in_channels=CHANNELS,
        out_channels=CHANNELS,
        batch_size=1,
        input_height=size,
        input_width=size,
        kernel_size=(kernel, kernel),
        stride=(stride, stride),
        padding=(padding, padding),
        conv_config=ttnn.Conv2dConfig(**config),
    )


FREES, STAYS = {"deallocate_activation": True}, {"deallocate_activation": False}
NOT_MOVED = {"reallocate_halo_output": False}
TO_BLOCKS = {"shard_layout": BLOCK, "reshard_if_not_optimal": True}

# layout and sharding of the input; window; settings; whether the input stays; address of the result; L1 in use after
CONVOLUTIONS = [
    (TILE, HEIGHT, (3, 1, 1), FREES, False, 1451136, 2176),
    (TILE, HEIGHT, (3, 1, 1), FREES | NOT_MOVED, False, 1464192, 2176),
    (TILE, HEIGHT, (3, 1, 1), STAYS, True, 1448960, 4352),
    (TILE, HEIGHT, (1, 1, 0), FREES, False, 1462016, 2176),
    (TILE, HEIGHT, (1, 1, 0), STAYS, True, 1462016, 4352),
    (TILE, HEIGHT, (3, 1, 1), FREES | TO_BLOCKS, False, 1448960, 4352),
    (TILE, HEIGHT, (3, 1, 1), STAYS | TO_BLOCKS, True, 1446784, 6528),
    (ROWS, HEIGHT, (2, 2, 0), FREES | {"shard_layout": HEIGHT}, False, 1462272, 4096),
    (ROWS, HEIGHT, (2, 2, 0), STAYS | {"shard_layout": HEIGHT}, True, 1458176, 8192),
    (ROWS, WIDTH, (3, 1, 0), FREES, True, 1341440, 124928),  # no halo, whose program frees the input
    (TILE, None, (3, 1, 1), FREES | {"shard_layout": HEIGHT}, False, 1451136, 2176),
    (TILE, None, (3, 1, 1), STAYS | {"shard_layout": HEIGHT}, True, 1450048, 3264),
    (TILE, HEIGHT, (2, 2, 0), FREES | {"transposed": True}, False, 1432704, 8704),
    (TILE, HEIGHT, (2, 2, 0), FREES | NOT_MOVED | {"transposed": True}, False, 1430528, 8704),
    (TILE, HEIGHT, (2, 2, 0), STAYS | {"transposed": True}, True, 1430528, 10880),
]


@pytest.mark.parametrize("row", CONVOLUTIONS, ids=str)
def test_convolutions_allocate_and_free_like_the_library(row: tuple, sizing: Any) -> None:
    layout, place, window, settings, stays, address, l1_bytes = row
    x = images(sizing, 32, layout, place)
    result = convolve(x, 32, *window, **settings)
    assert x.is_allocated() is stays
    assert result.buffer_address() == address
    assert ttnn.get_memory_view(sizing, ttnn.BufferType.L1).total_bytes_allocated_per_bank == l1_bytes


# settings; bytes per core of another tensor with which the convolution fits; with 4 KB more it does not
@pytest.mark.parametrize(("settings", "fits"), [(FREES, 1084096), (STAYS, 1063808)])
def test_a_freed_input_leaves_more_memory_for_circular_buffers(settings: dict, fits: int, sizing: Any) -> None:
    for beside, expected in ((fits, True), (fits + 4096, False)):
        x = images(sizing, 96, TILE, HEIGHT)
        shape = [64, beside // 2]
        other = ttnn.empty(shape, ttnn.bfloat16, ROWS, sizing, ttnn.L1_MEMORY_CONFIG)
        if expected:
            convolve(x, 96, 3, 1, 1, **settings)
        else:
            with pytest.raises(ttnn.OutOfMemory):
                convolve(x, 96, 3, 1, 1, **settings)
        ttnn.deallocate(other)
        ttnn.deallocate(x)


@pytest.mark.parametrize(("frees", "fits"), [(True, 1197120), (False, 1180608)])
def test_pools_free_their_input_after_the_halo(frees: bool, fits: int, sizing: Any) -> None:
    for beside, expected in ((fits, True), (fits + 4096, False)):
        x = images(sizing, 128, ROWS, HEIGHT)
        other = ttnn.empty([64, beside // 2], ttnn.bfloat16, ROWS, sizing, ttnn.L1_MEMORY_CONFIG)
        window = {"kernel_size": [3, 3], "stride": [2, 2], "padding": [1, 1], "dilation": [1, 1]}
        pooled = {"batch_size": 1, "input_h": 128, "input_w": 128, "channels": CHANNELS, **window}
        if expected:
            ttnn.max_pool2d(x, **pooled, deallocate_input=frees)
            assert x.is_allocated() is not frees
        else:
            with pytest.raises(ttnn.OutOfMemory):
                ttnn.max_pool2d(x, **pooled, deallocate_input=frees)
        ttnn.deallocate(other)
        ttnn.deallocate(x)


def _convolved(x: Any, weight: Any, device: Any, config: Any, **more: Any) -> Any:
    """A 3 × 3 convolution of 64 channels, 32 × 32 pixels."""
    return ttnn.conv2d(
        input_tensor=x,
        weight_tensor=weight,
        device=device,
        in_channels=64,
        out_channels=64,
        batch_size=1,
        input_height=32,
        input_width=32,
        kernel_size=(3, 3),
        padding=(1, 1),
        conv_config=config,
        **more,
    )


def test_a_convolution_that_frees_its_input_computes_the_same(device: Any) -> None:
    torch.manual_seed(0)
    values, weights = torch.randn(1, 1, 1024, 64), torch.randn(64, 64, 3, 3)
    config = ttnn.create_sharded_memory_config(values.shape, ttnn.CoreGrid(x=8, y=1), ttnn.ShardStrategy.HEIGHT)
    results = []
    for frees in (False, True):
        x = ttnn.from_torch(values, ttnn.bfloat16, layout=TILE, device=device, memory_config=config)
        view = ttnn.reshape(x, (1, 32, 32, 64))
        weight = ttnn.from_torch(weights, ttnn.bfloat16)
        result = _convolved(view, weight, device, ttnn.Conv2dConfig(deallocate_activation=frees))
        assert x.is_allocated() is view.is_allocated() is not frees
        results.append(ttnn.to_torch(result))
    assert torch.equal(*results)


def test_a_trace_frees_the_inputs_of_its_convolutions(device: Any) -> None:
    config = ttnn.create_sharded_memory_config((1, 1, 1024, 64), CORES[HEIGHT], STRATEGY[HEIGHT])
    source = ttnn.from_torch(torch.ones(1, 1, 1024, 64), ttnn.bfloat16, layout=TILE, device=device)

    weight = None

    def run() -> Any:
        nonlocal weight
        middle = ttnn.to_memory_config(source, config)
        given = ttnn.from_torch(torch.ones(64, 64, 3, 3), ttnn.bfloat16) if weight is None else weight
        frees = ttnn.Conv2dConfig(**FREES)
        result, (weight, _) = _convolved(middle, given, device, frees, return_weights_and_bias=True)
        assert not middle.is_allocated()
        return result

    run()
    expected = ttnn.to_torch(run())
    trace = ttnn.begin_trace_capture(device, cq_id=0)
    result = run()
    ttnn.end_trace_capture(device, trace, cq_id=0)
    ttnn.execute_trace(device, trace, cq_id=0)
    assert torch.equal(ttnn.to_torch(result), expected)
    ttnn.release_trace(device, trace)


def test_tensors_without_values_are_freed_too(device: Any) -> None:
    config = ttnn.create_sharded_memory_config((1, 1, 1024, 64), CORES[HEIGHT], STRATEGY[HEIGHT])
    x = ttnn.spec_tensor((1, 1, 1024, 64), ttnn.bfloat8_b, device=device, memory_config=config)
    convolve(x, 32, 3, 1, 1, **FREES)
    assert not x.is_allocated()
