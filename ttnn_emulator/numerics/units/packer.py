"""The packer: writes results to buffers, rounded to the dtype of the buffer."""

from __future__ import annotations

import numpy as np
import torch

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, FLOAT_DTYPES, DataType
from ttnn_emulator.numerics.formats.carriers import (
    MANTISSA_BITS,
    ONE_WORKER,
    bits_of,
    flush,
    round_bf16_half_away,
    round_bf16_nearest_even,
    truncate_bf16,
    wrap_integer,
)
from ttnn_emulator.numerics.kernels import formats
from ttnn_emulator.numerics.native.worker_threads import cut, share


def store(values: torch.Tensor, dtype: DataType) -> torch.Tensor:
    """Round a float32 result to `dtype`, to nearest even, and flush it as the packer does; integers wrap.

    The common last step of an operation whose kernel rounds to nearest even. Kernels that truncate, or whose results
    the packer rounds half away from zero, call the functions above.
    """
    if dtype is DataType.FLOAT32:
        return values
    if dtype in FLOAT_DTYPES:
        rounded = flush(round_bf16_nearest_even(values))
        return device_pack_block_float(rounded, dtype) if dtype in BLOCK_FLOAT_DTYPES else rounded
    return wrap_integer(values, dtype)


def pack(values: torch.Tensor, dtype: DataType, *, from_fp32: bool) -> torch.Tensor:
    """Pack destination values; `from_fp32`: the destination register has 32 bits per value."""
    if dtype is DataType.FLOAT32:
        return values
    if dtype is DataType.BFLOAT16:
        return flush(round_bf16_half_away(values) if from_fp32 else truncate_bf16(values))
    return device_pack_block_float(flush(truncate_bf16(values)), dtype)


def device_pack_block_float(values: torch.Tensor, dtype: DataType, *, precise: bool = False) -> torch.Tensor:
    """Quantise bfloat16 values as the packer does: round half away from zero to 7 bits; bfloat4_b then drops 4 bits.

    Before that, each value is rounded to 7 bits on its own, in a bfloat8_b register. Only kernels built with
    bfp8_pack_precise, such as typecast to bfloat8_b, skip this rounding.
    """
    if values.dim() == 0:
        return device_pack_block_float(values.reshape(1), dtype, precise=precise).reshape(())
    width = values.shape[-1]
    raw = bits_of(values.float()).numpy().reshape(-1, width) if values.numel() else np.empty((0, 1), np.int32)
    result = np.empty(values.shape, np.float32)
    target = result.reshape(raw.shape)
    parts = cut(raw.shape[0], max(ONE_WORKER // max(width, 1), 1))
    kind = MANTISSA_BITS[dtype], precise
    share(formats.pack_blocks, [(raw[a:b], target[a:b], *kind) for a, b in parts])
    return torch.from_numpy(result)
