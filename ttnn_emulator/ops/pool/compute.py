"""The computation of pools: the window's maximum, or its sum by the matrix unit times a scaler."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn.functional import pad

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, DataType
from ttnn_emulator.execution.operation_table import Bind
from ttnn_emulator.numerics.formats.carriers import CARRIER, flush
from ttnn_emulator.numerics.kernels.pool import largest
from ttnn_emulator.numerics.kernels.product_endings import round_in_place
from ttnn_emulator.numerics.mode import exactly
from ttnn_emulator.numerics.native.addresses import address_of
from ttnn_emulator.numerics.native.threaded_copies import contiguous
from ttnn_emulator.numerics.native.worker_threads import cut, share
from ttnn_emulator.numerics.units.matrix_unit import PHASES, MathConfig
from ttnn_emulator.numerics.units.packer import device_pack_block_float, pack
from ttnn_emulator.numerics.units.reductions import column_sums, scaler_of
from ttnn_emulator.ops.conv.sliding_window import TILE, Pair, Window
from ttnn_emulator.ops.pool.sharding import Pool

LEAST = float("-inf")
ONE_WORKER = 1 << 19  # values below which threads cost more than they save
GATHERED = 2  # cost of a product when its window is gathered before it is summed
EIGHT, NINTH = (0, 2, 4, 6, 1, 3, 5, 7), 8


def computation(pool: Pool, math: MathConfig, large: bool) -> Callable[[torch.Tensor], Any]:
    """Input → the result, with indices on request."""
    if pool.average:
        run = _averages(pool, math)
    else:
        run = _largest_with_places(pool, large) if pool.indices else _largest(pool)
    window = pool.window
    images = (window.batch, *window.size, pool.channels)
    volume = images[0] * images[1] * images[2] * images[3]
    shape = (1, 1, window.rows, pool.channels)

    def compute(x: torch.Tensor) -> Any:
        x = x if x.is_floating_point() else x.float()
        result = run(x.reshape(images) if x.numel() == volume else x.reshape(-1)[:volume].reshape(images))
        if not pool.indices:
            return _packed(result, pool.dtype).reshape(shape)
        values, indices = result
        return _packed(values, pool.dtype).reshape(shape), indices.reshape(shape)

    return compute


def binding(pool: Pool) -> Bind | None:
    """See `Bindable`: the largest values of bfloat16 or float32 images."""
    window = pool.window
    images = (window.batch, *window.size, pool.channels)
    shape = (1, 1, window.rows, pool.channels)
    if pool.average or pool.indices or pool.dtype in BLOCK_FLOAT_DTYPES:
        return None

    def bind(carriers: Sequence[torch.Tensor], constant: Sequence[bool]) -> Any:
        (x,) = carriers
        if x.dtype is not torch.float32 or x.numel() != math.prod(images):
            return None
        find, found = finding_largest(pool, x.reshape(images))
        return find, found.reshape(shape)

    return bind


def _packed(values: torch.Tensor, dtype: DataType) -> torch.Tensor:
    return device_pack_block_float(values, dtype) if dtype in BLOCK_FLOAT_DTYPES else values


def _around(window: Window) -> tuple[int, int, int, int]:
    """Padding in torch's order: left, right, top, bottom, including ceil mode."""
    top, bottom, left, right = window.padding
    return left, right + window.ceil_pad[1], top, bottom + window.ceil_pad[0]


def _gathered(images: torch.Tensor, window: Window, value: float) -> torch.Tensor:
    """[images × output pixels, taps, channels]"""
    source = pad(images, (0, 0, *_around(window)), value=value).contiguous()
    batch, channels = source.shape[0], source.shape[3]
    by_image, by_row, by_pixel, by_channel = source.stride()
    (step_y, step_x), (apart_y, apart_x) = window.stride, window.dilation
    view = source.as_strided(
        (batch, *window.output_size, *window.kernel, channels),
        (by_image, by_row * step_y, by_pixel * step_x, by_row * apart_y, by_pixel * apart_x, by_channel),
    )
    return view.reshape(-1, window.kernel[0] * window.kernel[1], channels)


def finding_largest(pool: Pool, images: torch.Tensor) -> tuple[Callable[[], Any], torch.Tensor]:
    """A function that computes the maxima of contiguous images [N, H, W, C] when called, and its output memory.

    NaN counts as infinity of its sign.
    """
    window, channels = pool.window, pool.channels
    shape = window.kernel, window.dilation, window.stride, (window.padding[0], window.padding[2])
    found = torch.empty(window.batch, *window.output_size, channels)
    end = (address_of(images), address_of(found), window.size, window.output_size, shape, channels)
    taps = window.kernel[0] * window.kernel[1]
    rows = window.batch * window.output_size[0]
    least = max(ONE_WORKER // max(taps * window.output_size[1] * channels, 1), 1)
    return functools.partial(share, largest, [(*part, *end) for part in cut(rows, least)]), found


def _largest(pool: Pool) -> Callable[[torch.Tensor], Any]:
    def run(images: torch.Tensor) -> torch.Tensor:
        images = contiguous(images)
        find, found = finding_largest(pool, images)
        find()
        return found

    return run


def _largest_with_places(pool: Pool, large: bool) -> Callable[[torch.Tensor], Any]:
    window, width = pool.window, pool.window.size[1]
    order = torch.tensor(preference(window.kernel, large))
    y, x = order // window.kernel[1] * window.dilation[0], order % window.kernel[1] * window.dilation[1]
    offsets = y * width + x
    top, left = window.padding[0], window.padding[2]
    rows = torch.arange(window.output_size[0]) * window.stride[0] - top
    columns = torch.arange(window.output_size[1]) * window.stride[1] - left
    starts = (rows[:, None] * width + columns).reshape(-1, 1).repeat(window.batch, 1)
    mask = 0xFFFF if pool.index_dtype is DataType.UINT16 else 0xFFFFFFFF

    def run(images: torch.Tensor) -> Any:
        values = _gathered(flush(images), window, LEAST)[:, order]
        found = values.amax(1)
        first = (values == found.unsqueeze(1)).to(torch.uint8).argmax(1)
        places = (starts + offsets[first]) & mask
        return found, places.to(CARRIER[pool.index_dtype])

    return run


def preference(kernel: Pair, large: bool) -> list[int]:
    """Pixels of a window in order of precedence among equal values.

    The vector unit holds two pixels per register; the register that is compared wins: of eight, even ones before odd
    ones. Of several such groups, the one that is computed later wins; a large kernel goes through its rows in turn.
    """
    taps = kernel[0] * kernel[1]
    if taps <= NINTH + 1 and not large:
        return [tap for tap in (*EIGHT, NINTH) if tap < taps]
    rows = [range(taps)] if not large else [range(y * kernel[1], (y + 1) * kernel[1]) for y in range(kernel[0])]
    chunks = [row[at : at + TILE] for row in rows for at in range(0, len(row), TILE)]
    order: list[int] = []
    for chunk in reversed(chunks):
        for first in (24, 16, 8, 0):
            order += [chunk[first + tap] for tap in EIGHT if first + tap < len(chunk)]
    return order


def areas(pool: Pool) -> torch.Tensor:
    """The divisor of each window: [output rows, output columns]."""
    sides = []
    window = pool.window
    for axis in (0, 1):
        size, before, after = window.size[axis], window.padding[2 * axis], window.padding[2 * axis + 1]
        start = torch.arange(window.output_size[axis]) * window.stride[axis] - before
        end = (start + window.kernel[axis]).clamp(max=size + after)
        if not pool.with_padding:
            start, end = start.clamp(min=0), end.clamp(max=size)
        sides.append((end - start).clamp(min=0))
    return sides[0][:, None] * sides[1][None, :]


def _averages(pool: Pool, math: MathConfig) -> Callable[[torch.Tensor], torch.Tensor]:
    window, around = pool.window, _around(pool.window)
    taps = window.kernel[0] * window.kernel[1]
    if pool.one_scaler:
        divisor = pool.divisor if pool.divisor is not None else taps
        single = scaler_of(1.0 / divisor if divisor else float("inf"))
        groups = [(single, None)]
    else:
        counted = areas(pool)
        groups = [
            (scaler_of(1.0 / area) if area else 0.0, (counted == area).reshape(-1))
            for area in counted.unique().tolist()
        ]

    def exact(images: torch.Tensor) -> torch.Tensor:
        rows = _gathered(images, window, 0.0)
        if len(groups) == 1:
            sums = column_sums(rows, groups[0][0], math, exact=True)
        else:
            sums = torch.empty(rows.shape[0], rows.shape[2])
            for scaler, which in groups:
                assert which is not None
                chosen = which.repeat(window.batch)
                sums[chosen] = column_sums(rows[chosen], scaler, math, exact=True)
        return pack(sums, DataType.BFLOAT16, from_fp32=math.fp32_acc)

    weights = torch.zeros(window.output_size[0] * window.output_size[1])
    for scaler, which in groups:
        weights = torch.where(which, scaler, weights) if which is not None else torch.full_like(weights, scaler)

    def fast(images: torch.Tensor) -> torch.Tensor:
        source = pad(images.permute(0, 3, 1, 2), around)
        sums = torch.nn.functional.avg_pool2d(source, window.kernel, window.stride, divisor_override=1)
        scaled = sums.permute(0, 2, 3, 1) * weights.reshape(*window.output_size, 1)
        return round_in_place(scaled.contiguous())

    def run(images: torch.Tensor) -> torch.Tensor:
        work = window.rows * taps * pool.channels * PHASES[math.fidelity]
        return exact(images) if exactly(GATHERED * work) else fast(images)

    return run
