"""The programs of convolutions and pools that the emulator planned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import ttnn_emulator as ttnn
from ttnn_emulator.execution import dispatch
from ttnn_emulator.tensors.tensor import Tensor
from ttnn_emulator.timing.calls import Call
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.pricing import launches_of

Priced = Callable[[Callable[[], Any], str], list[Launch]]
HEIGHT = ttnn.TensorMemoryLayout.HEIGHT_SHARDED
WIDTH = ttnn.TensorMemoryLayout.WIDTH_SHARDED
BLOCK = ttnn.TensorMemoryLayout.BLOCK_SHARDED


@pytest.fixture
def priced(device: Any, monkeypatch: pytest.MonkeyPatch) -> Priced:
    """Runs a function and prices the calls of one operation in it."""
    seen: list[tuple[Any, Any, tuple, Any]] = []
    find = dispatch.find_plan

    def watched(op: Any, overload: Any, values: tuple, on: Any) -> Any:
        prepared = find(op, overload, values, on)
        seen.append((op, overload, values, prepared.plan))
        return prepared

    monkeypatch.setattr(dispatch, "find_plan", watched)

    def run(function: Callable[[], Any], name: str) -> list[Launch]:
        seen.clear()
        function()
        launches: list[Launch] = []
        for op, overload, values, plan in seen:
            if op.name != name:
                continue
            named = dict(zip(overload.names, values))
            tensors = tuple([(key, value._spec) for key, value in named.items() if isinstance(value, Tensor)])
            others = {key: value for key, value in named.items() if not isinstance(value, Tensor)}
            outputs = plan.outputs if isinstance(plan.outputs, list | tuple) else (plan.outputs,)
            launches += launches_of(Call(name, tensors, tuple(outputs), others, device.board, plan.work))
        return launches

    return run


def image(device: Any, *shape: int, **options: Any) -> Any:
    return ttnn.from_torch(torch.zeros(*shape), ttnn.bfloat16, device=device, **options)


def convolve(device: Any, x: Any, size: int, channels: int, kernel: int, **options: Any) -> Any:
    out = options.pop("out_channels", channels)
    weight = ttnn.from_torch(torch.zeros(out, channels, kernel, kernel), ttnn.bfloat16)
    return ttnn.conv2d(
        input_tensor=x,
        weight_tensor=weight,
        device=device,
        in_channels=channels,
        out_channels=out,
        batch_size=1,
        input_height=size,
        input_width=size,
        kernel_size=(kernel, kernel),
        padding=(kernel // 2, kernel // 2),
        **options,
    )


def names(launches: list[Launch]) -> list[str]:
    return [launch.program.removesuffix("DeviceOperation") for launch in launches]


def config(scheme: Any, **options: Any) -> Any:
    return ttnn.Conv2dConfig(shard_layout=scheme, weights_dtype=ttnn.bfloat8_b, **options)


@pytest.mark.parametrize("scheme", [HEIGHT, WIDTH, BLOCK], ids=["height", "width", "block"])
def test_every_program_of_a_convolution_is_timed(device: Any, priced: Priced, scheme: Any) -> None:
    x = image(device, 1, 1, 256, 128, memory_config=ttnn.L1_MEMORY_CONFIG)
    launches = priced(lambda: convolve(device, x, 16, 128, 3, conv_config=config(scheme)), "ttnn.conv2d")
    assert names(launches) == ["InterleavedToSharded", "Halo", "Move", "Conv2d"]
    assert all(launch.kernel_ns > 0 for launch in launches)


def test_the_halo_is_moved_only_into_freed_space(device: Any, priced: Priced) -> None:
    shards = ttnn.create_sharded_memory_config((1, 1, 256, 128), ttnn.CoreGrid(x=8, y=1), ttnn.ShardStrategy.HEIGHT)

    def programs(*, frees: bool, moves: bool) -> list[str]:
        x = image(device, 1, 1, 256, 128, memory_config=shards)
        given = config(HEIGHT, deallocate_activation=frees, reallocate_halo_output=moves)
        return names(priced(lambda: convolve(device, x, 16, 128, 3, conv_config=given), "ttnn.conv2d"))

    assert programs(frees=False, moves=True) == ["Halo", "Conv2d"]
    assert programs(frees=True, moves=True) == ["Halo", "Move", "Conv2d"]
    assert programs(frees=True, moves=False) == ["Halo", "Conv2d"]


def test_a_kernel_of_one_pixel_is_a_matmul(device: Any, priced: Priced) -> None:
    x = image(device, 1, 1, 256, 128, layout=ttnn.TILE_LAYOUT, memory_config=ttnn.L1_MEMORY_CONFIG)
    launches = priced(lambda: convolve(device, x, 16, 128, 1, conv_config=config(HEIGHT)), "ttnn.conv2d")
    assert names(launches) == ["InterleavedToSharded", "Matmul"]


def test_images_in_dram_are_convolved_slice_by_slice(device: Any, priced: Priced) -> None:
    device.holds_values = False
    x = image(device, 1, 512, 512, 64)
    slices = ttnn.Conv2dSliceConfig(slice_type=ttnn.Conv2dDRAMSliceWidth, num_slices=4)
    launches = priced(lambda: convolve(device, x, 512, 64, 3, slice_config=slices), "ttnn.conv2d")
    assert names(launches) == ["PaddedSlice", "Halo", "Move", "Conv2d", "SliceWrite"] * 4


def test_strided_patches_are_folded(device: Any, priced: Priced) -> None:
    weight = ttnn.from_torch(torch.zeros(64, 4, 8, 8), ttnn.bfloat16)
    x = image(device, 1, 64, 64, 4)
    launches = priced(
        lambda: ttnn.conv2d(
            input_tensor=x,
            weight_tensor=weight,
            device=device,
            in_channels=4,
            out_channels=64,
            batch_size=1,
            input_height=64,
            input_width=64,
            kernel_size=(8, 8),
            stride=(8, 8),
        ),
        "ttnn.conv2d",
    )
    assert names(launches)[0] == "Fold"
    assert names(launches)[-1] == "Matmul"


def test_transposed_convolutions_have_slower_halos(device: Any, priced: Priced) -> None:
    x = image(device, 1, 1, 1024, 64, memory_config=ttnn.L1_MEMORY_CONFIG)
    weight = ttnn.from_torch(torch.zeros(64, 32, 2, 2), ttnn.bfloat16)
    launches = priced(
        lambda: ttnn.conv_transpose2d(
            input_tensor=x,
            weight_tensor=weight,
            device=device,
            in_channels=64,
            out_channels=32,
            batch_size=1,
            input_height=32,
            input_width=32,
            kernel_size=(2, 2),
            stride=(2, 2),
        ),
        "ttnn.conv_transpose2d",
    )
    assert "Halo" in names(launches)
    plain = priced(lambda: convolve(device, image(device, 1, 1, 1024, 64), 32, 64, 3), "ttnn.conv2d")
    slow, fast = (next(each for each in found if "Halo" in each.program) for found in (launches, plain))
    assert slow.kernel_ns > fast.kernel_ns


def test_pools_gather_and_reduce(device: Any, priced: Priced) -> None:
    x = image(device, 1, 1, 3136, 64)
    launches = priced(lambda: ttnn.max_pool2d(x, 1, 56, 56, 64, [3, 3], [2, 2], [1, 1], [1, 1]), "ttnn.pool2d")
    assert names(launches) == ["InterleavedToSharded", "Halo", "Move", "Pool2D"]


def test_sequences_and_videos_are_timed(device: Any, priced: Priced) -> None:
    x, weight = image(device, 1, 1, 1024, 64), ttnn.from_torch(torch.zeros(64, 1, 4), ttnn.bfloat16)
    sequence = priced(
        lambda: ttnn.conv1d(
            input_tensor=x,
            weight_tensor=weight,
            device=device,
            in_channels=64,
            out_channels=64,
            batch_size=1,
            input_length=1024,
            kernel_size=4,
            padding=3,
            groups=64,
        ),
        "ttnn.conv1d",
    )
    assert "Conv2d" in names(sequence)
    video = image(device, 1, 4, 16, 16, 32)
    taps = image(device, 32 * 27, 32, layout=ttnn.TILE_LAYOUT)
    launches = priced(
        lambda: ttnn.experimental.conv3d(
            input_tensor=video, weight_tensor=taps, dtype=ttnn.bfloat16, output_channels=32, kernel_size=(3, 3, 3)
        ),
        "ttnn.conv3d.device",
    )
    assert names(launches) == ["Conv3d"]


# The library's performance test of convolutions on n150 allows 5 % around these microseconds.
TARGETS = [
    ("height", (4, 512), (128, 128), 1, 1, 1, "bfloat16", "LoFi", {}, False, 67),
    ("height", (4, 16), (1056, 160), 1, 1, 1, "bfloat8_b", "LoFi",
     {"enable_activation_reuse": True, "enable_act_double_buffer": True}, False, 87),
    ("block", (640, 640), (64, 64), 2, 1, 1, "bfloat16", "HiFi2",
     {"enable_act_double_buffer": True, "enable_weights_double_buffer": True}, True, 115),
    ("width", (576, 576), (8, 8), 1, 0, 576, "bfloat16", "LoFi", {}, False, 74),
]  # fmt: skip


@pytest.mark.parametrize(
    ("scheme", "channels", "size", "stride", "padding", "groups", "dtype", "fidelity", "options", "fp32", "target"),
    TARGETS,
)
def test_performance_tests_of_the_library(
    device: Any,
    priced: Priced,
    scheme: str,
    channels: tuple[int, int],
    size: tuple[int, int],
    stride: int,
    padding: int,
    groups: int,
    dtype: str,
    fidelity: str,
    options: dict[str, bool],
    fp32: bool,
    target: float,
) -> None:
    device.holds_values = False
    given, made = channels
    dense = groups == 1
    x = image(device, 1, 1, size[0] * size[1], given, layout=ttnn.TILE_LAYOUT)
    weight = ttnn.from_torch(torch.zeros(made, given // groups, 3, 3), ttnn.float32 if dense else ttnn.bfloat16)
    bias = ttnn.from_torch(torch.zeros(1, 1, 1, made), ttnn.float32 if dense else ttnn.bfloat16)
    conv_config = ttnn.Conv2dConfig(
        weights_dtype=ttnn.bfloat8_b if dense else ttnn.bfloat16,
        shard_layout={"height": HEIGHT, "width": WIDTH, "block": BLOCK}[scheme],
        config_tensors_in_dram=True,
        **options,
    )
    compute_config = ttnn.init_device_compute_kernel_config(
        device.arch(),
        math_fidelity=getattr(ttnn.MathFidelity, fidelity),
        math_approx_mode=True,
        fp32_dest_acc_en=fp32,
        packer_l1_acc=False,
    )
    launches = priced(
        lambda: ttnn.conv2d(
            input_tensor=x,
            weight_tensor=weight,
            bias_tensor=bias,
            device=device,
            in_channels=given,
            out_channels=made,
            batch_size=1,
            input_height=size[0],
            input_width=size[1],
            kernel_size=(3, 3),
            stride=(stride, stride),
            padding=(padding, padding),
            groups=groups,
            dtype=getattr(ttnn, dtype),
            conv_config=conv_config,
            compute_config=compute_config,
            slice_config=ttnn.Conv2dL1FullSliceConfig,
        ),
        "ttnn.conv2d",
    )
    found = next(launch for launch in launches if launch.program == "Conv2dDeviceOperation")
    assert found.kernel_ns == pytest.approx(1000 * target, rel=0.15)
