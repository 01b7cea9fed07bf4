"""Max and average pools: over windows, adaptive, and over whole images."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any

import torch

import ttnn_emulator
from torch_ttnn.compiler.errors import StaysOnHost, refuse
from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.value import ROW_MAJOR, TILE, Handle, Value
from torch_ttnn.compiler.lowering.registry import lowers
from torch_ttnn.compiler.lowering.support import image_layout
from torch_ttnn.compiler.lowering.support.linear_maps import LinearMap, along_images, averaging
from torch_ttnn.compiler.lowering.support.windows import MOST_TAPS, Windows, padded_images, spread, taps_of
from ttnn_emulator import DataType

aten = torch.ops.aten

# Padding value of max pools; -inf in float32 would become NaN.
LEAST = {DataType.BFLOAT16: float("-inf"), DataType.FLOAT32: torch.finfo(torch.float32).min}
# Results and index tables in DRAM: L1 is needed for other tensors.
IN_DRAM = {"memory_config": ttnn_emulator.DRAM_MEMORY_CONFIG, "config_tensor_in_dram": True}

# Number of spatial dimensions.
RANKS = {
    aten.max_pool2d_with_indices.default: 2,
    aten.max_pool3d_with_indices.default: 3,
    aten.avg_pool2d.default: 2,
    aten.avg_pool3d.default: 3,
    aten._adaptive_avg_pool2d.default: 2,
    aten._adaptive_avg_pool3d.default: 3,
    aten.adaptive_max_pool2d.default: 2,
}


def no_pool(ttnn: Any, x: Value, *rest: Any, **options: Any) -> str | None:
    return None if x.is_float else "the device does not support pools of integers"


def output_of(builder: ProgramBuilder) -> Any:
    """The output sizes that torch inferred, so that ceil mode is not computed twice."""
    val = builder.origin.meta["val"]
    return val[0] if isinstance(val, tuple | list) else val


def batched(x: Value, rank: int) -> Value:
    """[C, *sizes] as a batch of one."""
    return x if x.ndim == rank + 2 else x.view((1, *x.shape))


def unbatched(value: Value, like: Sequence[int]) -> Value:
    return value if value.ndim == len(like) else value.view(like)


def _pool_arguments(
    ttnn: Any, builder: ProgramBuilder, x: Value, windows: Windows, padding: Sequence[int], ceil_mode: bool
) -> dict[str, Any]:
    """The arguments shared by the library's pools: images, windows, and the memory of the result."""
    batch, channels, height, width = x.shape
    source = image_layout.stored(ttnn, builder, x, None, DataType.BFLOAT16)
    return {
        "input_tensor": source,
        "batch_size": batch,
        "input_h": height,
        "input_w": width,
        "channels": channels,
        "kernel_size": list(windows.kernel),
        "stride": list(windows.stride),
        "padding": list(spread(padding, 2)),
        "ceil_mode": ceil_mode,
        **IN_DRAM,
        "output_layout": source.layout,  # tiles of narrower rows would be wrong
    }


# -- max pools --------------------------------------------------------------------------------------------------------


@lowers(aten.max_pool2d_with_indices.default, aten.max_pool3d_with_indices.default, when=no_pool)
def largest(
    ttnn: Any,
    builder: ProgramBuilder,
    x: Value,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
) -> tuple[Value, Value | None]:
    """The library's pool, or a maximum of slices in float32, in 3D, or where indices are used."""
    shape, rank = tuple(output_of(builder).shape), RANKS[builder.origin.target]
    source = batched(x, rank)
    windows = Windows.of(source.shape[2:], kernel, stride or kernel, padding, dilation, shape[-rank:])
    dtype = builder.device_dtype(x.dtype)
    if 1 not in builder.used and rank == 2 and dtype is DataType.BFLOAT16:
        with contextlib.suppress(StaysOnHost):  # does not fit L1: use slices
            arguments = _pool_arguments(ttnn, builder, source, windows, padding, ceil_mode)
            result = ttnn.max_pool2d(**arguments, dilation=list(windows.dilation))
            return unbatched(image_layout.value(builder, result, source.shape[0], windows.output, x.dtype), shape), None
    values, indices = max_of_slices(ttnn, builder, source, windows, dtype, with_indices=1 in builder.used)
    batch, sizes = source.shape[0], windows.output
    found = unbatched(image_layout.value(builder, values, batch, sizes, x.dtype), shape)
    if indices is None:
        return found, None
    return found, unbatched(image_layout.value(builder, indices, batch, sizes, torch.int64), shape)


def max_of_slices(
    ttnn: Any, builder: ProgramBuilder, x: Value, windows: Windows, dtype: DataType, *, with_indices: bool
) -> tuple[Handle, Handle | None]:
    """A running maximum over taps; the first of equal values wins, as in torch."""
    if dtype is DataType.FLOAT32 and windows.has_empty_window:
        refuse("a window without any pixel is minus infinity, which the device does not return in float32")
    source = padded_images(ttnn, image_layout.videos(ttnn, builder, x, ROW_MAJOR, dtype), windows.padding, LEAST[dtype])
    best: Handle | None = None
    indices: Handle | None = None
    for seen, index in zip(taps_of(ttnn, source, windows), tap_indices(builder, windows)):
        seen = builder.tiled(seen)
        if best is None:
            best = seen
            indices = first_indices(builder, windows, seen.shape).tile() if with_indices else None
            continue
        if with_indices:
            indices = ttnn.where(ttnn.gt(seen, best), index, indices)
        best = ttnn.maximum(best, seen)
    assert best is not None
    return best, indices


def tap_indices(builder: ProgramBuilder, windows: Windows) -> list[Value]:
    """For every tap, the image index of the pixel that each window reads with it: [1, *output, 1]."""
    starts = [[start - pad[0] for start, pad in zip(windows.start(tap), windows.padding)] for tap in windows.taps]
    return [
        builder.static(_pixel_indices(windows, [rows_of(windows, axis, at) for axis, at in enumerate(at_tap)]))
        for at_tap in starts
    ]


def first_indices(builder: ProgramBuilder, windows: Windows, shape: Sequence[int]) -> Value:
    """The index of each window's first pixel within the image: torch's result if no value is larger."""
    rows = []
    for axis, (pad, dilation) in enumerate(zip(windows.padding, windows.dilation)):
        row = rows_of(windows, axis, -pad[0])
        rows.append(torch.where(row < 0, row % dilation, row))
    return builder.static(_pixel_indices(windows, rows).expand(shape).contiguous())


def rows_of(windows: Windows, axis: int, start: int) -> torch.Tensor:
    """Along one dimension, the pixel index of each window's tap."""
    return torch.arange(windows.output[axis], dtype=torch.int32) * windows.stride[axis] + start


def _pixel_indices(windows: Windows, rows: Sequence[torch.Tensor]) -> torch.Tensor:
    """Linear pixel indices in an image, from the index along each dimension."""
    rank = len(rows)
    index = torch.zeros((1,) * rank, dtype=torch.int32)
    for axis, row in enumerate(rows):
        index = index + row.view([-1 if each == axis else 1 for each in range(rank)]) * math.prod(
            windows.sizes[axis + 1 :]
        )
    return index.view(1, *index.shape, 1)


# -- average pools ----------------------------------------------------------------------------------------------------


@lowers(aten.avg_pool2d.default, aten.avg_pool3d.default, when=no_pool)
def mean(
    ttnn: Any,
    builder: ProgramBuilder,
    x: Value,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Value:
    """The library's pool, or a sum of slices in float32 and in 3D; matrix products replace many slices."""
    shape, rank = tuple(output_of(builder).shape), RANKS[builder.origin.target]
    source = batched(x, rank)
    windows = Windows.of(source.shape[2:], kernel, stride or kernel, padding, (1,), shape[-rank:])
    dtype = builder.device_dtype(x.dtype)
    result: Handle | None = None
    if rank == 2 and dtype is DataType.BFLOAT16:
        with contextlib.suppress(StaysOnHost):  # does not fit L1: use slices
            result = ttnn.avg_pool2d(
                **_pool_arguments(ttnn, builder, source, windows, padding, ceil_mode),
                count_include_pad=count_include_pad,
                divisor_override=divisor_override,
                compute_kernel_config=builder.accurate,
            )
    if result is None and len(windows.taps) > MOST_TAPS:
        matrices = means_of(windows, spread(padding, rank), count_include_pad, divisor_override)
        maps = [None if each is None else LinearMap(each, each.sign()) for each in matrices]
        return unbatched(along_images(ttnn, builder, source, maps), shape)
    if result is None:
        result = sum_of_slices(ttnn, builder, source, windows, dtype)
        shares = shares_of(windows, spread(padding, rank), count_include_pad, divisor_override)
        result = ttnn.multiply(result, builder.static(shares).tile(dtype))
    return unbatched(image_layout.value(builder, result, source.shape[0], windows.output, x.dtype), shape)


def sum_of_slices(ttnn: Any, builder: ProgramBuilder, x: Value, windows: Windows, dtype: DataType) -> Handle:
    source = padded_images(ttnn, image_layout.videos(ttnn, builder, x, ROW_MAJOR, dtype), windows.padding)
    total: Handle | None = None
    for seen in taps_of(ttnn, source, windows):
        seen = builder.tiled(seen)
        total = seen if total is None else ttnn.add(total, seen)
    assert total is not None
    return total


def shares_of(windows: Windows, padding: Sequence[int], count_include_pad: bool, divisor: int | None) -> torch.Tensor:
    """The weight of one pixel in each window: [1, *output, 1]."""
    rank = len(windows.sizes)
    counts = torch.ones((1,) * rank)
    for axis, pad in enumerate(padding):
        along = counts_along(windows, axis, pad, count_include_pad)
        counts = counts * along.view([-1 if each == axis else 1 for each in range(rank)])
    shares = 1 / counts if divisor is None else torch.full_like(counts, 1 / divisor)
    return shares.view(1, *shares.shape, 1)


def counts_along(windows: Windows, axis: int, pad: int, count_include_pad: bool) -> torch.Tensor:
    """The number of pixels of each window along one dimension."""
    start = rows_of(windows, axis, -pad)
    end = (start + windows.kernel[axis]).clamp(max=windows.sizes[axis] + pad)
    if not count_include_pad:
        start, end = start.clamp(min=0), end.clamp(max=windows.sizes[axis])
    return end - start


def means_of(
    windows: Windows, padding: Sequence[int], count_include_pad: bool, divisor: int | None
) -> list[torch.Tensor]:
    """A matrix [output, size] per dimension: a mean over windows is separable."""
    matrices = []
    for axis, pad in enumerate(padding):
        start = rows_of(windows, axis, -pad)[:, None]
        pixels = torch.arange(windows.sizes[axis])
        seen = ((pixels >= start) & (pixels < start + windows.kernel[axis])).float()
        counts = counts_along(windows, axis, pad, count_include_pad)[:, None]
        matrices.append(seen / counts if divisor is None else seen / (divisor if axis == 0 else 1))
    return matrices


@lowers(aten._adaptive_avg_pool2d.default, aten._adaptive_avg_pool3d.default, when=no_pool)
def adaptive_avg_pool(ttnn: Any, builder: ProgramBuilder, x: Value, output_size: Sequence[int]) -> Value:
    shape = tuple(output_of(builder).shape)
    source = batched(x, RANKS[builder.origin.target])
    sizes = source.shape[2:]
    if tuple(output_size) == sizes:
        return x
    if set(output_size) == {1}:
        return unbatched(mean_over_image(ttnn, builder, source, range(2, source.ndim), keepdim=True), shape)
    if all(size % count == 0 for size, count in zip(sizes, output_size)):
        kernel = [size // count for size, count in zip(sizes, output_size)]
        return mean(ttnn, builder, x, kernel)
    maps = [averaging(size, count) for size, count in zip(sizes, output_size)]
    return unbatched(along_images(ttnn, builder, source, maps), shape)


@lowers(aten.adaptive_max_pool2d.default, when=no_pool)
def adaptive_max_pool2d(
    ttnn: Any, builder: ProgramBuilder, x: Value, output_size: Sequence[int]
) -> tuple[Value, Value | None]:
    sizes = x.shape[-2:]
    if any(size % count for size, count in zip(sizes, output_size)):
        refuse(f"windows of {list(sizes)} pixels for an output of {list(output_size)} are of unequal size")
    kernel = [size // count for size, count in zip(sizes, output_size)]
    return largest(ttnn, builder, x, kernel)


def mean_over_image(ttnn: Any, builder: ProgramBuilder, x: Value, dims: Sequence[int], keepdim: bool) -> Value:
    """The mean of [N, C, *sizes] over all pixels, in storage order."""
    batch, channels, *sizes = x.shape
    assert sorted(dim % x.ndim for dim in dims) == list(range(2, x.ndim))
    pixels = math.prod(sizes)
    source = image_layout.arranged(ttnn, builder, x, (batch, 1, pixels, channels), TILE, None)
    result = ttnn.mean(source, dim=2, keepdim=True, compute_kernel_config=builder.accurate)
    shape = (batch, channels, *(1,) * len(sizes)) if keepdim else (batch, channels)
    return builder.value(builder.reshaped(result, (1, 1, batch, channels)), (batch, channels), x.dtype).view(shape)
