"""Sorting, top-k and argmax, in the chip's order of values."""

from __future__ import annotations

import torch

from ttnn_emulator.enums import FLOAT_DTYPES, DataType
from ttnn_emulator.numerics.formats.carriers import CARRIER, bits_of, from_bits
from ttnn_emulator.numerics.kernels import sorting as sorting_kernels
from ttnn_emulator.numerics.mode import exactly
from ttnn_emulator.numerics.units.sorting_network import BLOCK, MAX, MIN, merging, sorting

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/data_movement/sort/device/sort_device_operation.cpp, SORT_WT_THRESHOLD
MOST_TILES_ON_A_CORE = 64  # wider rows are sorted by several cores, with a stable network
NETWORK_DEPTH = 8  # work per value, in the unit of `mode`: about 100 compare-and-swaps
LAST_PHASE = 5  # of the network that sorts 64 values


def keys(values: torch.Tensor) -> torch.Tensor:
    """int32 keys in the vector unit's order of floats: by sign, then by magnitude, NaNs beyond infinity."""
    if not values.is_floating_point():
        return values.to(torch.int32)
    bits = bits_of(values)
    return torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits)


def from_keys(order: torch.Tensor, dtype: DataType) -> torch.Tensor:
    if dtype not in FLOAT_DTYPES:
        return order.to(CARRIER[dtype])
    return from_bits(torch.where(order < 0, order ^ 0x7FFFFFFF, order))


def _flushed(order: torch.Tensor, dtype: DataType) -> torch.Tensor:
    """Keys after packing: 16-bit floats lose NaNs, denormals and -0, float32 loses denormals."""
    if dtype not in FLOAT_DTYPES:
        return order
    least, infinity = sorting_kernels.LEAST_NORMAL, sorting_kernels.INFINITY
    if dtype is DataType.FLOAT32:
        denormal = (order < least) & (order >= ~least + 1)
        return torch.where(denormal, torch.where(order < 0, -1, 0).to(torch.int32), order)
    order = order.clamp(~infinity, infinity)
    return torch.where((order < least) & (order > ~least), 0, order)


# tt-metal v0.81.1: tt_metal/tt-llk/tt_llk_wormhole_b0/common/inc/sfpu/ckernel_sfpu_topk.h, _bitonic_topk_phases_steps
def sort_rows(
    values: torch.Tensor, dtype: DataType, *, descending: bool, stable: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sorted rows and the original indices; the width is a power of two, at least 64.

    Without `stable`, the network determines the order of equal values. With it, or if several cores sort a row, equal
    values keep their order, as in torch.
    """
    rows = keys(values).reshape(-1, values.shape[-1])
    width = rows.shape[-1]
    work = rows.numel() * NETWORK_DEPTH
    if stable or width // 32 > MOST_TILES_ON_A_CORE or not exactly(work):
        canonical = torch.where(rows == -1, 0, rows) if dtype in FLOAT_DTYPES else rows
        order = torch.argsort(canonical, dim=-1, descending=descending, stable=True)
        ordered = torch.gather(_flushed(rows, dtype), -1, order)
        return from_keys(ordered, dtype).reshape(values.shape), order.reshape(values.shape)
    packed = _packed(rows, torch.arange(width))
    sorting_kernels.sort_rows(packed.numpy(), descending, dtype is DataType.BFLOAT16, sorting(LAST_PHASE))
    ordered, places = _unpacked(packed)
    return from_keys(_flushed(ordered, dtype), dtype).reshape(values.shape), places.reshape(values.shape)


def _packed(rows: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    """int64 with the key in the upper half and the index in the lower."""
    return (rows.to(torch.int64) << 32) | (indices.to(torch.int64) & 0xFFFFFFFF)


def _unpacked(packed: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return (packed >> 32).to(torch.int32), packed & 0xFFFFFFFF


# tt-metal v0.81.1: tt_metal/tt-llk/tt_llk_wormhole_b0/common/inc/sfpu/ckernel_sfpu_topk.h,
#     _bitonic_topk_merge, _bitonic_topk_rebuild
def best_of_rows(
    values: torch.Tensor,
    indices: torch.Tensor,
    count: int,
    dtype: DataType,
    *,
    largest: bool,
    stable: bool = False,
    split: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The best `count` values of every row, sorted, and their indices; `count` is a multiple of 32.

    `split`: columns per core; None: one core processes a whole row.
    """
    shape = (*values.shape[:-1], count)
    rows = keys(values).reshape(-1, values.shape[-1])
    work = rows.numel() * NETWORK_DEPTH
    if split is None or stable or not exactly(work):
        rows = _flushed(rows, dtype)
    if stable or not exactly(work):
        canonical = torch.where(rows == -1, 0, rows)
        order = torch.argsort(canonical, dim=-1, descending=largest, stable=True)[:, :count]
        chosen = torch.gather(rows, -1, order), torch.gather(indices.reshape(rows.shape), -1, order)
        return from_keys(chosen[0], dtype).reshape(shape), chosen[1].reshape(shape)
    packed = _packed(rows, indices.reshape(rows.shape))
    best = torch.empty(rows.shape[0], count, dtype=torch.int64)
    if split is None:
        steps, places = sorting(LAST_PHASE)[MAX if largest else MIN]
        sorting_kernels.best_of_rows(packed.numpy(), steps, places, best.numpy())
    else:
        phase = LAST_PHASE if count == BLOCK else LAST_PHASE - 1
        flushes = dtype is DataType.BFLOAT16
        sorting_kernels.best_of_long_rows(
            packed.numpy(), count, split, largest, flushes, sorting(phase), merging(phase), best.numpy()
        )
    chosen = _unpacked(best)
    return from_keys(chosen[0], dtype).reshape(shape), chosen[1].reshape(shape)


def first_largest(values: torch.Tensor, dim: int) -> torch.Tensor:
    """The index of the first maximum along `dim`: NaN is the largest, 0 and -0 are equal."""
    return values.argmax(dim=dim)
