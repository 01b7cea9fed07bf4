"""Convolutions compared with torch. Errors are in units in the last place of the sum of magnitudes |x| * |w|, so that
cancellation does not count: the destination register rounds every step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch.nn.functional import conv2d, conv_transpose2d, pad

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import EPSILON, LEAST_PCC, pcc, stored
from ttnn_emulator.errors import ChipFault, InvalidArgument
from ttnn_emulator.numerics.mode import numerics
from ttnn_emulator.numerics.programs.convolution.convolution import remembered

# Tolerance in units in the last place: for a 16-bit destination register, which rounds four times per 16 products, and
# for a 32-bit one, with 11 bits of the operands.
ULPS = {"bfloat16": 3.0, "float32": 2.0**15, "bfloat8_b": 6.0}
HEIGHT, WIDTH, BLOCK = (
    ttnn.TensorMemoryLayout.HEIGHT_SHARDED,
    ttnn.TensorMemoryLayout.WIDTH_SHARDED,
    ttnn.TensorMemoryLayout.BLOCK_SHARDED,
)


@dataclass(frozen=True)
class Row:
    """One convolution."""

    in_channels: int = 16
    out_channels: int = 32
    size: tuple[int, int] = (8, 9)
    kernel: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, ...] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    batch: int = 1
    bias: bool = False
    transposed: bool = False
    output_padding: tuple[int, int] = (0, 0)

    def values(self, seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Images [N, H, W, C], weights and bias, all of them bfloat16 numbers."""
        generator = torch.Generator().manual_seed(seed)
        ends = (self.in_channels, self.out_channels // self.groups)
        if not self.transposed:
            ends = (self.out_channels, self.in_channels // self.groups)
        shapes = ((self.batch, *self.size, self.in_channels), (*ends, *self.kernel), (1, 1, 1, self.out_channels))
        x, w, b = (torch.randn(shape, generator=generator).bfloat16().float() for shape in shapes)
        return x, w, b

    def reference(self, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None) -> torch.Tensor:
        """torch's result as [1, 1, pixels, channels]."""
        images = x.permute(0, 3, 1, 2).double()
        last = None if b is None else b.flatten().double()
        weight = w.double()
        if self.transposed:
            around, more = self.padding[:2], self.output_padding
            result = conv_transpose2d(images, weight, last, self.stride, around, more, self.groups, self.dilation)  # type: ignore[arg-type]
        else:
            sides = self.padding if len(self.padding) == 4 else tuple(p for p in self.padding for _ in range(2))
            images = pad(images, (sides[2], sides[3], sides[0], sides[1]))
            result = conv2d(images, weight, last, self.stride, 0, self.dilation, self.groups)
        return result.permute(0, 2, 3, 1).reshape(1, 1, -1, self.out_channels)

    def arguments(self) -> dict[str, Any]:
        options: dict[str, Any] = {
            "in_channels": self.in_channels,
            "out_channels": self.out_channels,
            "batch_size": self.batch,
            "input_height": self.size[0],
            "input_width": self.size[1],
            "kernel_size": self.kernel,
            "stride": self.stride,
            "padding": self.padding,
            "dilation": self.dilation,
            "groups": self.groups,
        }
        return options | ({"output_padding": self.output_padding} if self.transposed else {})

    def run(self, x: Any, w: Any, b: Any, device: Any, **more: Any) -> Any:
        op = ttnn.conv_transpose2d if self.transposed else ttnn.conv2d
        return op(input_tensor=x, weight_tensor=w, bias_tensor=b, device=device, **self.arguments(), **more)


def on_device(x: torch.Tensor, device: Any, dtype: Any = ttnn.bfloat16, layout: Any = ttnn.ROW_MAJOR_LAYOUT) -> Any:
    flat = x.reshape(1, 1, -1, x.shape[-1])
    return ttnn.from_torch(flat, dtype=dtype, layout=layout, device=device)


def on_host(values: torch.Tensor, dtype: Any = ttnn.bfloat16) -> Any:
    return ttnn.from_torch(values, dtype=dtype)


def check(row: Row, dtype: str, seed: int, device: Any, **more: Any) -> None:
    x, w, b = row.values(seed)
    kind = getattr(ttnn, dtype)
    last = b if row.bias else None
    bias = on_host(b, kind) if row.bias else None
    output = row.run(on_device(x, device, kind), on_host(w, kind), bias, device, **more)
    close(row, output, (x, w, last))


def close(row: Row, output: Any, inputs: tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]) -> None:
    ours, reference = stored(output).double(), row.reference(*inputs)
    scale = row.reference(*(None if each is None else each.abs() for each in inputs))  # type: ignore[arg-type]
    assert ours.shape == reference.shape
    dtype = output.dtype.name.lower()
    error = ((ours - reference).abs() / (scale.clamp(min=2.0**-60) * EPSILON[dtype])).max().item()
    assert error <= ULPS[dtype], f"error of {error:.3g} ulp"
    if reference.numel() > 64:
        assert pcc(ours, reference) >= LEAST_PCC[dtype]


ROWS = {
    "3x3": Row(),
    "bias": Row(bias=True),
    "1x1": Row(kernel=(1, 1), padding=(0, 0), bias=True),
    "1x1, stride 2": Row(kernel=(1, 1), padding=(0, 0), stride=(2, 2)),
    "5x3": Row(kernel=(5, 3), padding=(2, 1)),
    "7x7, three channels": Row(3, 16, (16, 16), (7, 7), (2, 2), (3, 3), bias=True),
    "padding on four sides": Row(padding=(0, 2, 1, 0), batch=2),
    "dilation": Row(dilation=(2, 3), padding=(2, 3)),
    "groups": Row(groups=4, bias=True),
    "depthwise": Row(32, 32, groups=32),
    "depthwise with bias": Row(24, 24, groups=24, bias=True),
    "1D depthwise": Row(32, 32, (1, 40), (1, 3), padding=(0, 1), groups=32),
    "patches": Row(3, 24, (32, 32), (8, 8), (8, 8), (0, 0), bias=True),
    "odd channels": Row(5, 7, (6, 11), batch=3, bias=True),
    "many channels": Row(320, 64, (6, 6), bias=True),
    "transposed": Row(transposed=True),
    "transposed 2x2": Row(kernel=(2, 2), stride=(2, 2), padding=(0, 0), transposed=True, bias=True),
    "transposed, output padding": Row(stride=(2, 2), output_padding=(1, 1), transposed=True),
    "transposed, groups": Row(16, 24, stride=(2, 1), groups=2, transposed=True),
    "transposed, dilation": Row(dilation=(2, 2), transposed=True, batch=2),
}


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("name", ROWS)
def test_against_torch(name: str, dtype: str, device: Any) -> None:
    check(ROWS[name], dtype, len(name), device)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("name", ["3x3", "bias", "depthwise", "patches", "transposed"])
def test_fast_against_torch(name: str, dtype: str, device: Any) -> None:
    """The implementation for large convolutions."""
    with numerics("fast"):
        check(ROWS[name], dtype, 1, device)


@st.composite
def rows(draw: Any) -> Row:
    groups = draw(st.sampled_from((1, 1, 1, 2, 4)))
    pair = lambda low, high: st.tuples(st.integers(low, high), st.integers(low, high))  # noqa: E731
    row = Row(
        groups * draw(st.integers(1, 9)),
        groups * draw(st.integers(1, 9)),
        draw(pair(1, 12)),
        draw(pair(1, 4)),
        draw(pair(1, 3)),
        draw(st.one_of(pair(0, 2), st.tuples(*[st.integers(0, 2)] * 4))),
        draw(pair(1, 2)),
        groups,
        draw(st.integers(1, 2)),
        draw(st.booleans()),
        draw(st.booleans()),
    )
    if row.transposed:
        row = replace(row, padding=row.padding[:2])
    reach = [d * (k - 1) + 1 for k, d in zip(row.kernel, row.dilation)]
    around = row.padding if len(row.padding) == 4 else tuple(p for p in row.padding for _ in range(2))
    if row.transposed:
        assume(all(p < r for p, r in zip(row.padding, reach)))
        assume(all((s - 1) * t + r > 2 * p for s, t, r, p in zip(row.size, row.stride, reach, row.padding)))
    else:
        assume(row.size[0] + around[0] + around[1] >= reach[0] and row.size[1] + around[2] + around[3] >= reach[1])
    return row


@given(row=rows(), seed=st.integers(0, 99), dtype=st.sampled_from(("bfloat16", "float32")))
def test_any_window(row: Row, seed: int, dtype: str, device: Any) -> None:
    """Any window gives torch's result, or is rejected because its work cannot be distributed over cores."""
    try:
        check(row, dtype, seed, device)
    except InvalidArgument:
        assume(False)


@pytest.mark.parametrize("scheme", [HEIGHT, WIDTH, BLOCK])
@pytest.mark.parametrize("bias", [True, False])
def test_sharded(scheme: Any, bias: bool, device: Any) -> None:
    row = Row(64, 96, (16, 16), bias=bias)
    check(row, "bfloat16", 3, device, conv_config=ttnn.Conv2dConfig(weights_dtype=ttnn.bfloat16, shard_layout=scheme))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("adds", [True, False])
def test_compute_configs(bias: bool, wide: bool, adds: bool, device: Any) -> None:
    config = ttnn.WormholeComputeKernelConfig(
        math_fidelity=ttnn.MathFidelity.HiFi4, fp32_dest_acc_en=wide, packer_l1_acc=adds
    )
    check(Row(32, 32, bias=bias), "bfloat16", 4, device, compute_config=config)


@pytest.mark.parametrize("name", ["relu", "gelu", "silu"])
def test_activations(name: str, device: Any) -> None:
    row = Row(bias=True)
    x, w, b = row.values(5)
    activation = ttnn.UnaryWithParam(getattr(ttnn.UnaryOpType, name.upper()))
    config = ttnn.Conv2dConfig(weights_dtype=ttnn.bfloat16, activation=activation)
    output = row.run(on_device(x, device), on_host(w), on_host(b), device, conv_config=config)
    assert pcc(stored(output), getattr(torch.nn.functional, name)(row.reference(x, w, b))) >= LEAST_PCC["bfloat16"]


def test_block_floats(device: Any) -> None:
    row = Row(32, 32)
    x, w, _ = row.values(6)
    source = on_device(x, device, ttnn.bfloat8_b, ttnn.TILE_LAYOUT)
    output = row.run(
        source,
        on_host(w),
        None,
        device,
        conv_config=ttnn.Conv2dConfig(weights_dtype=ttnn.bfloat8_b),
        dtype=ttnn.bfloat8_b,
    )
    assert output.dtype == ttnn.bfloat8_b
    assert pcc(stored(output), row.reference(x, w, None)) >= LEAST_PCC["bfloat8_b"]


def test_row_major_float32_keeps_19_bits(device: Any) -> None:
    """The kernel untilizes its result through a source register."""
    row = Row()
    x, w, _ = row.values(7)
    config = ttnn.Conv2dConfig(weights_dtype=ttnn.float32, shard_layout=HEIGHT, output_layout=ttnn.ROW_MAJOR_LAYOUT)
    source, weight = on_device(x, device, ttnn.float32), on_host(w, ttnn.float32)
    tiled = row.run(source, weight, None, device, slice_config=ttnn.Conv2dL1FullSliceConfig)
    rows_ = row.run(source, weight, None, device, conv_config=config, slice_config=ttnn.Conv2dL1FullSliceConfig)
    assert rows_.layout == ttnn.ROW_MAJOR_LAYOUT
    assert torch.equal(stored(rows_).view(torch.int32), stored(tiled).view(torch.int32) & -0x2000)


def test_slices_change_nothing(device: Any) -> None:
    row = Row(size=(40, 40))
    x, w, _ = row.values(8)
    whole = row.run(on_device(x, device), on_host(w), None, device)
    for kind in (ttnn.Conv2dDRAMSliceHeight, ttnn.Conv2dDRAMSliceWidth):
        config = ttnn.Conv2dSliceConfig(slice_type=kind, num_slices=2)
        sliced = row.run(on_device(x, device), on_host(w), None, device, slice_config=config)
        assert torch.equal(stored(sliced), stored(whole))


# -- weights ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bias", "1x1", "groups", "1D depthwise", "patches", "transposed 2x2"])
def test_returned_weights_give_the_same_bits(name: str, device: Any) -> None:
    row = ROWS[name]
    x, w, b = row.values(9)
    source, bias = on_device(x, device), on_host(b) if row.bias else None
    first, size, (weight, last) = row.run(
        source, on_host(w), bias, device, return_output_dim=True, return_weights_and_bias=True
    )
    again = row.run(source, weight, last, device)
    assert torch.equal(stored(first), stored(again))
    assert size[0] * size[1] * row.batch == first.shape[2]


@pytest.mark.parametrize("transposed", [True, False])
def test_weights_prepared_ahead_give_the_same_bits(transposed: bool, device: Any) -> None:
    row = Row(bias=True, transposed=transposed)
    x, w, b = row.values(10)
    config = ttnn.Conv2dConfig(weights_dtype=ttnn.bfloat16)
    about = {name: value for name, value in row.arguments().items() if name != "output_padding"} | {
        "input_memory_config": ttnn.L1_MEMORY_CONFIG,
        "input_layout": ttnn.ROW_MAJOR_LAYOUT,
        "input_dtype": ttnn.bfloat16,
        "device": device,
        "conv_config": config,
    }
    kind = "conv_transpose2d" if transposed else "conv"
    prepare_weights = getattr(ttnn, f"prepare_{kind}_weights")
    order = "IOHW" if transposed else "OIHW"
    weight = prepare_weights(weight_tensor=on_host(w), weights_format=order, has_bias=True, **about)
    bias = getattr(ttnn, f"prepare_{kind}_bias")(bias_tensor=on_host(b), **about)
    source = ttnn.to_memory_config(on_device(x, device), ttnn.L1_MEMORY_CONFIG)
    plain = row.run(source, on_host(w), on_host(b), device, conv_config=config)
    ahead = row.run(source, ttnn.to_device(weight, device), ttnn.to_device(bias, device), device, conv_config=config)
    assert torch.equal(stored(plain), stored(ahead))


def test_conv1d(device: Any) -> None:
    row = Row(size=(1, 33), kernel=(1, 3), stride=(1, 2), padding=(0, 0, 1, 1), bias=True, batch=2)
    x, w, b = row.values(11)
    output, length = ttnn.conv1d(
        input_tensor=ttnn.from_torch(x.squeeze(1), dtype=ttnn.bfloat16, device=device),
        weight_tensor=on_host(w.squeeze(2)), bias_tensor=on_host(b), device=device, in_channels=16, out_channels=32,
        batch_size=2, input_length=33, kernel_size=3, stride=2, padding=1, return_output_dim=True,
    )  # fmt: skip
    assert length == 17
    close(row, output, (x, w, b))


def test_output_size() -> None:
    assert ttnn.get_conv_output_dim(224, 7, 2, 3) == 112


# -- errors - --------------------------------------------------------------------------------------------------------


def test_a_kernel_larger_than_the_image_is_rejected(device: Any) -> None:
    row = Row(size=(2, 2), kernel=(5, 5), padding=(1, 1))
    x, w, _ = row.values(12)
    with pytest.raises(RuntimeError, match="kernel"):
        row.run(on_device(x, device), on_host(w), None, device)


def test_weights_of_another_convolution_are_a_fault(device: Any) -> None:
    """The card would read them in its own layout and return garbage."""
    narrow, wide = Row(16, 32), Row(32, 32)
    x, w, _ = narrow.values(13)
    _, (weight, _) = narrow.run(on_device(x, device), on_host(w), None, device, return_weights_and_bias=True)
    with pytest.raises(ChipFault, match="weights"):
        wide.run(on_device(wide.values(13)[0], device), weight, None, device)


def test_weights_prepared_for_other_sharding_are_a_fault(device: Any) -> None:
    row = Row(64, 64, (16, 16))
    x, w, _ = row.values(14)
    high, block = (ttnn.Conv2dConfig(weights_dtype=ttnn.bfloat16, shard_layout=scheme) for scheme in (HEIGHT, BLOCK))
    source = on_device(x, device)
    _, (weight, _) = row.run(source, on_host(w), None, device, conv_config=high, return_weights_and_bias=True)
    with pytest.raises(ChipFault, match="weights"):
        row.run(source, weight, None, device, conv_config=block)


def test_integers_are_a_fault(device: Any) -> None:
    """The library accepts them; the card reads their bits as floats."""
    row = Row()
    source = ttnn.from_torch(torch.ones(1, 1, 72, 16, dtype=torch.int32), dtype=ttnn.int32, device=device)
    with pytest.raises(ChipFault, match="INT32"):
        row.run(source, on_host(row.values(15)[1]), None, device)


def test_weights_of_two_convolutions_of_one_shape_are_both_cached() -> None:
    """They share a plan; with only the last ones cached, every call would prepare its weights again."""
    result: list[torch.Tensor] = []

    def prepare(values: torch.Tensor) -> torch.Tensor:
        result.append(values)
        return values * 2

    recall = remembered(prepare)
    first, second = torch.ones(3), torch.zeros(3)
    for _ in range(2):
        assert torch.equal(recall(first), first * 2) and torch.equal(recall(second), second * 2)
    assert len(result) == 2
    first += 1
    assert torch.equal(recall(first), first * 2)


def test_a_convolution_on_grayskull() -> None:
    with ttnn.open_device(device_id=0, board="e150", l1_small_size=32768) as device:
        x = ttnn.spec_tensor((1, 1, 50176, 3), ttnn.bfloat16, ttnn.ROW_MAJOR_LAYOUT, device=device)
        weight = ttnn.spec_tensor((1, 1, 147, 64), ttnn.bfloat16, device=device)
        size = {"in_channels": 3, "out_channels": 64, "batch_size": 1, "input_height": 224, "input_width": 224}
        window = {"kernel_size": [7, 7], "stride": [2, 2], "padding": [3, 3]}
        result = ttnn.conv2d(input_tensor=x, weight_tensor=weight, device=device, **size, **window)
        assert tuple(result.shape) == (1, 1, 112 * 112, 64)
