"""Resampling of images: nearest, bilinear, bicubic, and grid_sample.

Torch's upsampling along one dimension is a matrix. It is not derived from formulas here: torch upsamples an identity
matrix, which yields it for any mode, alignment and scales.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import torch

from torch_ttnn.compiler.errors import StaysOnHost, refuse
from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.value import ROW_MAJOR, Handle, Value
from torch_ttnn.compiler.lowering.registry import lowers
from torch_ttnn.compiler.lowering.support import image_layout
from torch_ttnn.compiler.lowering.support.linear_maps import LinearMap, along_images
from ttnn_emulator import DataType

aten = torch.ops.aten

NEAREST = (
    aten.upsample_nearest1d,
    aten.upsample_nearest2d,
    aten.upsample_nearest3d,
    aten._upsample_nearest_exact1d,
    aten._upsample_nearest_exact2d,
    aten._upsample_nearest_exact3d,
)
SMOOTH = (
    aten.upsample_linear1d,
    aten.upsample_bilinear2d,
    aten.upsample_trilinear3d,
    aten.upsample_bicubic2d,
    aten._upsample_bilinear2d_aa,
    aten._upsample_bicubic2d_aa,
)
BACKWARD = {
    aten.upsample_nearest1d_backward.default: aten.upsample_nearest1d,
    aten.upsample_nearest2d_backward.default: aten.upsample_nearest2d,
    aten.upsample_nearest3d_backward.default: aten.upsample_nearest3d,
    aten.upsample_linear1d_backward.default: aten.upsample_linear1d,
    aten.upsample_bilinear2d_backward.default: aten.upsample_bilinear2d,
    aten.upsample_trilinear3d_backward.default: aten.upsample_trilinear3d,
    aten.upsample_bicubic2d_backward.default: aten.upsample_bicubic2d,
}
POINT_CHANNELS = 32  # `ttnn.grid_sample` takes whole tiles of channels


def no_resampling(ttnn: Any, x: Value, *rest: Any, **options: Any) -> str | None:
    return None if x.is_float else "integers are not resampled on the device"


# -- upsampling -------------------------------------------------------------------------------------------------------


@lowers(*[packet.default for packet in NEAREST], when=no_resampling)
def nearest(ttnn: Any, builder: ProgramBuilder, x: Value, output_size: Sequence[int], *scales: float | None) -> Value:
    return copied(ttnn, builder, x, builder.origin.target, output_size, scales)


@lowers(aten.upsample_nearest2d.vec, aten._upsample_nearest_exact2d.vec, when=no_resampling)
def nearest_vec(
    ttnn: Any, builder: ProgramBuilder, x: Value, output_size: Sequence[int] | None, scales: Sequence[float] | None
) -> Value:
    size = builder.origin.meta["val"].shape[2:]
    return copied(ttnn, builder, x, builder.origin.target.overloadpacket.default, size, scales or ())


def copied(
    ttnn: Any, builder: ProgramBuilder, x: Value, operation: Any, size: Sequence[int], scales: Sequence[float | None]
) -> Value:
    """Nearest: every pixel is a copy of one input pixel."""
    factor = whole_factor(x, size)
    if factor is not None and x.ndim == 4 and _plain(factor, scales):
        with contextlib.suppress(StaysOnHost):
            return repeated(ttnn, builder, x, factor, "nearest")
    matrices = matrices_of(operation, x.shape[2:], size, (), scales)
    if builder.device_dtype(x.dtype) is DataType.FLOAT32 and any(each is not None for each in matrices):
        refuse("the device's products round float32, so copies of pixels would not be exact")
    return along_images(ttnn, builder, x, matrices)


@lowers(*[packet.default for packet in SMOOTH], when=no_resampling)
def smooth(
    ttnn: Any, builder: ProgramBuilder, x: Value, output_size: Sequence[int], align_corners: bool, *scales: float | None
) -> Value:
    return interpolated(ttnn, builder, x, builder.origin.target, output_size, align_corners, scales)


@lowers(aten.upsample_bilinear2d.vec, aten.upsample_bicubic2d.vec, when=no_resampling)
def smooth_vec(
    ttnn: Any,
    builder: ProgramBuilder,
    x: Value,
    output_size: Sequence[int] | None,
    align_corners: bool,
    scales: Sequence[float] | None,
) -> Value:
    size = builder.origin.meta["val"].shape[2:]
    return interpolated(
        ttnn, builder, x, builder.origin.target.overloadpacket.default, size, align_corners, scales or ()
    )


def interpolated(
    ttnn: Any,
    builder: ProgramBuilder,
    x: Value,
    operation: Any,
    size: Sequence[int],
    align_corners: bool,
    scales: Sequence[float | None],
) -> Value:
    """Every pixel is a weighted sum of its neighbours."""
    factor = whole_factor(x, size)
    bilinear = operation is aten.upsample_bilinear2d.default and not align_corners
    if bilinear and factor is not None and _plain(factor, scales):
        with contextlib.suppress(StaysOnHost):
            return repeated(ttnn, builder, x, factor, "bilinear")
    return along_images(ttnn, builder, x, matrices_of(operation, x.shape[2:], size, (align_corners,), scales))


def whole_factor(x: Value, output_size: Sequence[int]) -> list[int] | None:
    """The integer factors by which the image grows, or None."""
    if any(new % old for new, old in zip(output_size, x.shape[2:])):
        return None
    factor = [new // old for new, old in zip(output_size, x.shape[2:])]
    return factor if any(each > 1 for each in factor) else None


def _plain(factor: Sequence[int], scales: Sequence[float | None]) -> bool:
    return all(scale is None or scale == each for each, scale in zip(factor, scales))


def repeated(ttnn: Any, builder: ProgramBuilder, x: Value, factor: Sequence[int], mode: str) -> Value:
    """The library's upsampling, by integer factors."""
    dtype = builder.device_dtype(x.dtype)
    if mode == "bilinear" and dtype is not DataType.BFLOAT16:
        refuse("bilinear upsampling takes bfloat16 only")
    batch, _, *sizes = x.shape
    source = image_layout.videos(ttnn, builder, x, ROW_MAJOR, dtype)
    result = ttnn.upsample(source, list(factor), mode=mode, memory_config=ttnn.DRAM_MEMORY_CONFIG)
    return image_layout.value(builder, result, batch, [size * each for size, each in zip(sizes, factor)], x.dtype)


def matrices_of(
    operation: Any,
    sizes: Sequence[int],
    output_size: Sequence[int],
    options: Sequence[Any],
    scales: Sequence[float | None],
) -> list[LinearMap | None]:
    """The linear map of torch's operation for each dimension; None where it is the identity."""
    rank = len(sizes)
    scales = tuple(scales) + (None,) * (rank - len(scales))
    found: list[LinearMap | None] = []
    for axis, (old, new) in enumerate(zip(sizes, output_size)):
        # Unit vectors lie along the dimension, and are enumerated along another (of unchanged size), or the channels.
        other_axis = 1 if rank == 1 else 2 + (axis + 1) % rank
        shape = [1] * (rank + 2)
        shape[other_axis], shape[axis + 2] = old, old
        size = [new if each == axis + 2 else shape[each] for each in range(2, rank + 2)]
        only = [scale if each == axis else None for each, scale in enumerate(scales)]
        with torch.utils._python_dispatch._disable_current_modes():
            same = torch.eye(old)
            result = operation(same.view(shape), size, *options, *only).movedim(axis + 2, 0).reshape(new, old)
            if old == new and torch.equal(result, same):
                found.append(None)
                continue
            is_smooth = operation.overloadpacket in SMOOTH
            reach = _reach(operation, rank, axis, old, new, options, only) if is_smooth else result.sign()
            found.append(LinearMap(result.contiguous(), reach))
    return found


def _reach(
    operation: Any,
    rank: int,
    axis: int,
    old: int,
    new: int,
    options: Sequence[Any],
    scales: Sequence[float | None],
) -> torch.Tensor:
    """The effect of infinite pixels along a dimension; torch multiplies some by zero, which yields NaN.

    Along the other dimensions, 4 pixels become 5: the middle one depends on all of them, with no weight of zero.
    """
    sizes, size, middle = [4] * rank, [5] * rank, [2] * rank
    sizes[axis], size[axis] = old, new
    x = torch.zeros(1, old, *sizes)  # one channel per pixel
    source: list[Any] = [1] * rank
    source[axis] = slice(None)
    x[(0, slice(None), *source)] = torch.where(torch.eye(old) > 0, torch.inf, 0.0)
    index: list[Any] = [*middle]
    index[axis] = slice(None)
    result = operation(x, size, *options, *scales)[(0, slice(None), *index)].t()
    return (result.clamp(-1, 1) * ~result.isfinite()).contiguous()


@lowers(*BACKWARD, when=no_resampling)
def backward(
    ttnn: Any,
    builder: ProgramBuilder,
    gradient: Value,
    output_size: Sequence[int],
    input_size: Sequence[int],
    *rest: Any,
) -> Value:
    """The same matrices, transposed."""
    packet = BACKWARD[builder.origin.target]
    options, scales = (rest[:1], rest[1:]) if packet in SMOOTH else ((), rest)
    matrices = matrices_of(packet.default, input_size[2:], output_size, options, scales)
    return along_images(ttnn, builder, gradient, [None if each is None else each.transposed() for each in matrices])


# -- grid_sample ------------------------------------------------------------------------------------------------------


def no_points(
    ttnn: Any,
    builder: ProgramBuilder,
    x: Value,
    grid: Value,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> str | None:
    if builder.device_dtype(x.dtype) is DataType.FLOAT32:
        return "the device rounds the weights of pixels to bfloat16"
    if interpolation_mode != 0:
        return "the device supports only bilinear sampling"
    return "the device supports only zeros around the image" if padding_mode != 0 else None


@lowers(aten.grid_sampler_2d.default, when=no_points)
def grid_sampler_2d(
    ttnn: Any,
    builder: ProgramBuilder,
    x: Value,
    grid: Value,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> Value:
    batch, channels = x.shape[:2]
    source = image_layout.videos(ttnn, builder, x, ROW_MAJOR, builder.device_dtype(x.dtype))
    missing = -channels % POINT_CHANNELS
    if missing:
        source = ttnn.pad(source, [(0, 0), (0, 0), (0, 0), (0, missing)], value=0.0)
    # Points stay float32: in bfloat16 they would be pixels off.
    points = grid.row_major(DataType.FLOAT32)
    result: Handle = ttnn.grid_sample(
        source, points, mode="bilinear", padding_mode="zeros", align_corners=align_corners
    )
    if missing:
        result = ttnn.slice(result, [0, 0, 0, 0], [*result.shape[:3], channels])
    return image_layout.value(builder, result, batch, grid.shape[1:3], x.dtype)
