"""Folds, channel orders, broadcasts, colours, gates and 3D convolutions, compared with torch."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import LEAST_PCC, pcc, stored, upload

CORES = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(1, 0))])
FLOATS = ("bfloat16", "float32")
GATE_DTYPES = ("bfloat16", "uint16")
HEIGHT = ttnn.TensorMemoryLayout.HEIGHT_SHARDED


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).bfloat16().float()


def sharded(layout: Any, shape: tuple[int, int]) -> Any:
    return ttnn.MemoryConfig(layout, ttnn.BufferType.L1, ttnn.ShardSpec(CORES, shape, ttnn.ShardOrientation.ROW_MAJOR))


# -- moreh_fold -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "window",
    (
        {},
        {"stride": (2, 2)},
        {"padding": (1, 1)},
        {"dilation": (2, 1), "padding": (1, 0)},
        {"stride": (3, 2), "padding": (0, 1)},
    ),
)
def test_fold_adds_patches(window: dict[str, tuple[int, int]], dtype: str, device: Any) -> None:
    size, kernel = (8, 7), (3, 2)
    dilation, padding, stride = (window.get(name, (1, 1)) for name in ("dilation", "padding", "stride"))
    padding = window.get("padding", (0, 0))
    places = [
        (extent + 2 * side - apart * (taps - 1) - 1) // step + 1
        for extent, side, apart, taps, step in zip(size, padding, dilation, kernel, stride)
    ]
    columns = numbers(2, 4 * math.prod(kernel), math.prod(places))
    ours = ttnn.moreh_fold(upload(columns, dtype, "ROW_MAJOR", device), output_size=size, kernel_size=kernel, **window)
    reference = F.fold(columns, size, kernel, dilation, padding, stride)
    error = (stored(ours) - reference).abs().max()
    assert error <= reference.abs().max() * (2.0**-7 if dtype == "bfloat16" else 2.0**-22)


# -- channel orders -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("channels", (3, 16, 32))
def test_channels_first_and_back(channels: int, device: Any) -> None:
    x = numbers(1, 1, 128, channels)
    source = ttnn.from_torch(
        x,
        dtype=ttnn.bfloat16,
        layout=ttnn.TILE_LAYOUT,
        device=device,
        memory_config=sharded(ttnn.TensorMemoryLayout.HEIGHT_SHARDED, (64, 32)),
    )
    first = ttnn.experimental.convert_to_chw(source)
    assert torch.equal(stored(first), x.transpose(2, 3))
    assert first.memory_config().memory_layout == ttnn.TensorMemoryLayout.WIDTH_SHARDED
    last = ttnn.experimental.convert_to_hwc(first)
    wide = -(-channels // 8) * 8
    assert list(last.shape) == [1, 1, 128, wide]
    assert torch.equal(stored(last)[..., :channels], x)


@pytest.mark.parametrize("dtype", FLOATS)
def test_transpose_of_rows_keeps_bits(dtype: str, device: Any) -> None:
    x = torch.randn(2, 64, 96, generator=torch.Generator().manual_seed(2))
    source = upload(x, dtype, "ROW_MAJOR", device)
    assert torch.equal(stored(ttnn.experimental.transpose_rm(source)), stored(source).transpose(1, 2))


@pytest.mark.parametrize("dtype", (*FLOATS, "int32"))
@pytest.mark.parametrize("shape", ((1, 64), (33, 1), (1, 1), (2, 1, 1, 1), (33, 64)))
def test_broadcast_is_exact(shape: tuple[int, ...], dtype: str, device: Any) -> None:
    x = numbers(*shape) if dtype != "int32" else torch.randint(-99, 99, shape)
    ours = ttnn.experimental.broadcast_to(upload(x, dtype, "TILE", device), (2, 3, 33, 64))
    assert torch.equal(stored(ours), x.expand(2, 3, 33, 64))


@given(sizes=st.lists(st.tuples(st.integers(1, 40), st.booleans()), min_size=2, max_size=4))
def test_any_broadcast(sizes: list[tuple[int, bool]]) -> None:
    shape, target = tuple(1 if one else size for size, one in sizes), tuple(size for size, _ in sizes)
    x = numbers(*shape)
    with ttnn.open_device(device_id=0) as device:
        ours = ttnn.experimental.broadcast_to(upload(x, "bfloat16", "TILE", device), target)
        assert torch.equal(stored(ours), x.expand(target))


# -- colours ----------------------------------------------------------------------------------------------------------

SHARES = {"BT601": (0.299, 0.114), "BT709": (0.2126, 0.0722), "BT2020": (0.2627, 0.0593)}


@pytest.mark.parametrize("wide_rows", (False, True))
@pytest.mark.parametrize("space", SHARES)
def test_rgb_to_yuv(space: str, wide_rows: bool, device: Any) -> None:
    x = torch.rand(3, 6, 8, 5, generator=torch.Generator().manual_seed(3)).bfloat16().float()
    planes = ttnn.rgb_to_yuv(
        upload(x, "bfloat16", "ROW_MAJOR", device),
        color_space=getattr(ttnn.YUVColorSpace, space),
        input_range=ttnn.RGBRange.ZeroToOne,
        output_range=ttnn.YUVRange.Full,
        wide_rows=wide_rows,
    )
    red, blue = SHARES[space]
    luma = red * x[0] + (1 - red - blue) * x[1] + blue * x[2]
    chroma = [(x[2] - luma) / (2 * (1 - blue)), (x[0] - luma) / (2 * (1 - red))]
    halved = [F.avg_pool2d(plane.permute(2, 0, 1), 2).permute(1, 2, 0) for plane in chroma]
    for ours, reference in zip(planes, (luma * 255, *(plane * 255 + 128 for plane in halved))):
        assert ours.dtype == ttnn.uint8
        error = (stored(ours).reshape(reference.shape) - reference).abs().max()
        assert error <= 3, f"error of {error:.2f} of 255"  # a sum of bfloat16 near 255 is exact to 1


def test_standard_coefficients(device: Any) -> None:
    row = ttnn.yuv_bt601_coefficients()
    assert row.y == pytest.approx((32.7405, 64.2765, 12.483, 125.5), abs=1e-3)
    assert row.cr[3] == 128.0


# -- gates ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("experts", (64, 256))
def test_moe_returns_the_weight_of_the_first_expert(experts: int, device: Any) -> None:
    logits = numbers(1, 1, 32, experts)
    logits[..., 0] += 2
    expert_mask, best_mask = torch.zeros(1, 1, 1, experts), torch.full((1, 1, 1, 32), float("-inf"))
    expert_mask[..., experts // 2 :] = float("-inf")
    best_mask[..., :4] = 0
    tensors = [upload(each, "bfloat16", "TILE", device) for each in (logits, expert_mask, best_mask)]
    ours = stored(ttnn.moe(*tensors, 32))
    values, places = (logits + expert_mask).topk(32, -1)
    shares = torch.softmax(values + best_mask, -1)
    reference = torch.where(places == 0, shares, 0.0).sum(-1, keepdim=True)
    assert (ours - reference).abs().max() <= 0.02
    assert pcc(ours, reference) >= LEAST_PCC["bfloat16"]


@pytest.mark.parametrize(
    "options",
    (
        {"blocks": 1, "topk": 8},
        {"blocks": 1, "topk": 6, "enable_sigmoid": True},
        {"blocks": 2, "topk": 4, "output_softmax": True},
        {"blocks": 2, "topk": 8, "enable_sigmoid": True},
        {"blocks": 1, "topk": 8, "grouped": True},
    ),
    ids=str,
)
def test_gate_selects_the_best_experts_and_their_weights(options: dict[str, Any], device: Any) -> None:
    options = dict(options)
    blocks, best = options.pop("blocks"), options["topk"]
    tokens, experts = 2, 256 * blocks
    # All keys differ, also in bfloat16, so that the selection does not depend on ties.
    scores = torch.linspace(0.5, 0.75, 32).repeat(tokens, experts // 32).bfloat16().float()
    places = torch.stack([torch.randperm(experts, generator=torch.Generator().manual_seed(n)) for n in range(tokens)])
    bias = torch.where(places < 240, 2.0 + places, -3.0 - places / 2).bfloat16().float()
    ids = torch.arange(experts).expand(tokens, -1)

    def shown(values: torch.Tensor, dtype: str, *, transposed: bool) -> Any:
        cut = values.reshape(tokens, blocks, 16, 16)
        cut = cut.transpose(-1, -2).contiguous() if transposed else cut
        return ttnn.to_memory_config(upload(cut, dtype, "TILE", device), sharded(HEIGHT, (32 * blocks, 32)))

    empty = [upload(torch.zeros(tokens, 1, 16), dtype, "TILE", device) for dtype in GATE_DTYPES]
    outputs = [ttnn.to_memory_config(each, sharded(HEIGHT, (32, 32))) for each in empty]
    weights, experts_out = ttnn.experimental.deepseek.moe.generalized_moe_gate(
        shown(scores, "bfloat16", transposed=False),
        bias_tensor=shown(bias, "bfloat16", transposed=True),
        input_indices_tensor=shown(ids, "uint16", transposed=True),
        output_tensor=outputs[0],
        output_indices_tensor=outputs[1],
        **options,
    )
    if options.get("enable_sigmoid"):
        scores = torch.sigmoid(scores)
    keys = (scores + bias).bfloat16().float()
    if options.get("grouped"):
        groups = keys.reshape(tokens, 8, 32).topk(2).values.sum(-1).topk(4).indices
        inside = torch.zeros(tokens, 8).scatter(1, groups, 1.0).repeat_interleave(32, 1)
        keys = torch.where(inside > 0, keys, -torch.inf)
    chosen = keys.topk(best).indices
    ours = stored(experts_out)[:, 0, :8].long()
    assert (ours[:, :best].sort().values == chosen.sort().values).all()
    assert not ours[:, best:].any()
    picked = scores.gather(1, ours[:, :best])
    shares = torch.softmax(picked, -1) if options.get("output_softmax") else picked / picked.sum(-1, keepdim=True)
    assert (stored(weights)[:, 0, :best] - 2.5 * shares).abs().max() <= 0.01


@pytest.mark.parametrize(
    ("options", "match"),
    (
        ({"topk": 5}, "topk must be one of"),
        ({"topk": 4, "grouped": True}, "groups give 8"),
        ({"output_softmax": True, "grouped": True}, "not of exponentials"),
    ),
)
def test_gate_rejects(options: dict[str, Any], match: str, device: Any) -> None:
    names = ("bias_tensor", "input_indices_tensor", "output_tensor", "output_indices_tensor")
    floats, indices = (upload(torch.zeros(2, 16, 16), t, "TILE", device) for t in GATE_DTYPES)
    others = dict(zip(names, (floats, indices, floats, indices)))
    gate = ttnn.experimental.deepseek.moe.generalized_moe_gate
    with pytest.raises(ttnn.InvalidArgument, match=match):
        gate(floats, **others, **options)
    with pytest.raises(ttnn.InvalidArgument, match="sharded"):
        gate(floats, **others)


# -- correlation ------------------------------------------------------------------------------------------------------


def test_correlation(device: Any) -> None:
    x = torch.randn(40, 50, generator=torch.Generator().manual_seed(4))
    same = upload(x, "float32", "TILE", device)
    coefficient = ttnn.pearson_correlation_coefficient
    assert coefficient(x, same) == 1.0
    assert coefficient(x, upload(x, "bfloat8_b", "TILE", device)) > 0.999
    assert coefficient(x, -x) == pytest.approx(-1.0)
    assert coefficient(torch.zeros(4), torch.ones(4)) == 0.0
    with pytest.raises(ValueError, match="torch tensor"):
        coefficient(same, x)


# -- 3D convolutions -------------------------------------------------------------------------------------------------

WINDOWS: tuple[dict[str, Any], ...] = (
    {"kernel": (3, 3, 3)},
    {"kernel": (1, 3, 3), "padding": (0, 1, 1)},
    {"kernel": (2, 2, 2), "stride": (2, 2, 2)},
    {"kernel": (3, 3, 3), "padding": (1, 1, 1), "padding_mode": "replicate"},
    {"kernel": (1, 2, 2), "dilation": (1, 2, 2)},
    {"kernel": (1, 1, 1)},
)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_conv3d(window: dict[str, Any], dtype: str, device: Any) -> None:
    kernel = window["kernel"]
    options = {name: value for name, value in window.items() if name != "kernel"}
    video, weight, bias = numbers(1, 4, 6, 6, 64), numbers(40, 64, *kernel, seed=1) / 8, numbers(1, 40, seed=2)
    ours = ttnn.experimental.conv3d(
        input_tensor=upload(video, dtype, "ROW_MAJOR", device),
        weight_tensor=ttnn.from_torch(weight, dtype=getattr(ttnn, dtype)),
        bias_tensor=upload(bias, dtype, "TILE", device),
        device=device,
        dtype=getattr(ttnn, dtype),
        output_channels=40,
        kernel_size=kernel,
        compute_kernel_config=ttnn.WormholeComputeKernelConfig(
            math_fidelity=ttnn.MathFidelity.HiFi4, fp32_dest_acc_en=True
        ),
        **options,
    )
    planes, mode = video.permute(0, 4, 1, 2, 3), options.pop("padding_mode", "zeros")
    if mode == "replicate":
        planes, options = F.pad(planes, (1,) * 6, mode="replicate"), {}
    reference = F.conv3d(planes, weight, bias[0], **options).permute(0, 2, 3, 4, 1)
    assert list(ours.shape) == list(reference.shape)
    assert pcc(stored(ours), reference) >= LEAST_PCC[dtype]
    assert (stored(ours) - reference).abs().max() <= reference.abs().max() * 2.0**-7


def _conv3d(device: Any, video: torch.Tensor, weight: torch.Tensor, **more: Any) -> Any:
    return ttnn.experimental.conv3d(
        input_tensor=upload(video, "bfloat16", "ROW_MAJOR", device),
        weight_tensor=ttnn.from_torch(weight, dtype=ttnn.bfloat16),
        device=device,
        dtype=ttnn.bfloat16,
        output_channels=weight.shape[0],
        kernel_size=tuple(weight.shape[2:]),
        **more,
    )


def test_conv3d_in_groups(device: Any) -> None:
    video, weight = numbers(1, 2, 5, 5, 32), numbers(32, 16, 1, 3, 3, seed=1) / 4
    ours = _conv3d(device, video, weight, groups=2)
    reference = F.conv3d(video.permute(0, 4, 1, 2, 3), weight.bfloat16().float(), groups=2).permute(0, 2, 3, 4, 1)
    assert pcc(stored(ours), reference) >= LEAST_PCC["bfloat16"]


def _masked_conv3d(device: Any, **more: Any) -> torch.Tensor:
    video, weight = numbers(1, 3, 8, 8, 32), numbers(32, 32, 3, 3, 3, seed=1) / 8
    return stored(_conv3d(device, video, weight, **{"padding": (0, 1, 1), **more}))


@pytest.mark.parametrize(
    ("start", "logical", "kept"),
    (((0, 0), (6, 0), (6, 8)), ((0, 0), (0, 5), (8, 5)), ((2, 1), (6, 5), (4, 4)), ((3, 3), (0, 0), (8, 8))),
)
def test_conv3d_reads_zeros_past_the_logical_size(start: Any, logical: Any, kept: Any, device: Any) -> None:
    """Positions are relative to the whole volume; a logical size of 0 sets no limit."""
    offset = ttnn.from_torch(torch.tensor([start], dtype=torch.int32), dtype=ttnn.uint32, device=device)
    sizes = {"logical_h_mask": logical[0], "logical_w_mask": logical[1]}
    ours = _masked_conv3d(device, pad_offset_tensor=offset, **sizes)
    video, weight = numbers(1, 3, 8, 8, 32), numbers(32, 32, 3, 3, 3, seed=1) / 8
    video[:, :, kept[0] :] = 0
    video[:, :, :, kept[1] :] = 0
    reference = F.conv3d(video.permute(0, 4, 1, 2, 3), weight.bfloat16().float(), padding=(0, 1, 1)).permute(
        0, 2, 3, 4, 1
    )
    assert pcc(ours, reference) >= LEAST_PCC["bfloat16"]
    assert torch.equal(_masked_conv3d(device, **sizes), _masked_conv3d(device))  # without an offset nothing is masked


@pytest.mark.parametrize(
    ("more", "pages", "reason"),
    (
        ({"padding_mode": "replicate"}, 512, "padding_mode"),
        ({"dilation": (1, 2, 2)}, 512, "no dilation"),
        ({}, 1, "sections need 108"),
        ({}, 512, "not emulated"),
    ),
)
def test_conv3d_with_a_halo_buffer(more: dict[str, Any], pages: int, reason: str, device: Any) -> None:
    halo = upload(torch.zeros(pages, 32), "bfloat16", "ROW_MAJOR", device)
    with pytest.raises(RuntimeError, match=reason):
        _masked_conv3d(device, halo_buffer=halo, **more)


def test_rejected_arguments(device: Any) -> None:
    x = upload(numbers(3, 5, 6, 8), "bfloat16", "ROW_MAJOR", device)
    for rejected in (
        lambda: ttnn.rgb_to_yuv(x),
        lambda: ttnn.experimental.convert_to_chw(x),
        lambda: ttnn.experimental.transpose_rm(x),
        lambda: ttnn.experimental.broadcast_to(x, (3, 5, 6, 8)),
        lambda: ttnn.moreh_fold(x, output_size=(4, 4), kernel_size=(2, 2)),
    ):
        with pytest.raises(RuntimeError):
            rejected()


# -- integral images --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(1, 3, 32, 32), (1, 5, 40, 48), (1, 50, 33, 32)])
def test_integral_images_sum_both_dimensions(shape: tuple[int, ...], dtype: str, device: Any) -> None:
    values = numbers(*shape).abs()
    x = ttnn.from_torch(values, dtype=getattr(ttnn, dtype), layout=ttnn.TILE_LAYOUT, device=device)
    result = ttnn.experimental.intimg(x)
    assert (result.dtype, result.memory_config()) == (x.dtype, x.memory_config())
    expected = values.double().cumsum(1).cumsum(2)
    assert torch.allclose(stored(result).double(), expected, rtol=0.05 if dtype == "bfloat16" else 0.005, atol=0.01)


@pytest.mark.parametrize(
    "shape, dtype, message",
    [
        ((2, 3, 32, 32), "bfloat16", "one batch"),
        ((3, 32, 32), "bfloat16", "4D"),
        ((1, 3, 32, 32), "bfloat8_b", "bf16 and fp32"),
    ],
)
def test_unsupported_integral_images(shape: tuple[int, ...], dtype: str, message: str, device: Any) -> None:
    x = ttnn.from_torch(torch.ones(shape), dtype=getattr(ttnn, dtype), layout=ttnn.TILE_LAYOUT, device=device)
    with pytest.raises(RuntimeError, match=message):
        ttnn.experimental.intimg(x)
