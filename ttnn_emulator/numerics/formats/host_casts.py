"""Floats to integers as the library's host code casts them on x86.

Its loops are vectorised: values in whole vectors saturate to 8 and 16 bits, those in the remainder wrap. Values outside
int32 become the smallest int32.
"""

from __future__ import annotations

import torch

from ttnn_emulator.enums import DataType

LEAST = -(2**31)
LEAST_64 = -(2**63)
# asked ttnn 0.81.1: casts of tensors of 1 to 5000 values
# Values per vector, by source and target dtype; all values wrap for pairs that are not listed.
VECTOR = {
    (torch.float32, DataType.UINT16): 4,
    (torch.float32, DataType.UINT8): 8,
    (torch.float32, DataType.INT8): 8,
    (torch.float32, DataType.UINT32): 8,
    (torch.bfloat16, DataType.UINT16): 8,
    (torch.bfloat16, DataType.UINT8): 8,
    (torch.bfloat16, DataType.INT8): 8,
    (torch.bfloat16, DataType.UINT32): 8,
    (torch.float64, DataType.UINT32): 4,
}
NARROW = {DataType.UINT16: (0, 2**16 - 1), DataType.UINT8: (0, 2**8 - 1), DataType.INT8: (-(2**7), 2**7 - 1)}


def truncated(values: torch.Tensor, dtype: DataType) -> torch.Tensor:
    """Truncated values as int64; the caller keeps the low bits that `dtype` has."""
    whole = values.double().trunc()
    if dtype is not DataType.UINT32 and dtype not in NARROW:
        return _int32(whole)
    step = VECTOR.get((values.dtype, dtype))
    rest = values.numel() % step if step is not None else values.numel()
    if rest == 0:
        return _of_vectors(whole, values.dtype, dtype)
    flat = whole.reshape(-1)
    cut = flat.numel() - rest
    parts = [_of_vectors(flat[:cut], values.dtype, dtype), _of_the_rest(flat[cut:], dtype)]
    return torch.cat(parts).reshape(values.shape)


def _int32(whole: torch.Tensor) -> torch.Tensor:
    return torch.where((whole >= LEAST) & (whole < -LEAST), whole, float(LEAST)).to(torch.int64)


def _of_vectors(whole: torch.Tensor, source: torch.dtype, dtype: DataType) -> torch.Tensor:
    if dtype is not DataType.UINT32:
        return _int32(whole).clamp(*NARROW[dtype])
    fits = (whole >= LEAST) & (whole < 2**32)
    otherwise = torch.full_like(whole, float(LEAST))
    if source is torch.float64:  # overflow gives 0 here
        otherwise = torch.where(whole > 0, 0.0, otherwise)
    return torch.where(fits, whole, otherwise).to(torch.int64)


def _of_the_rest(whole: torch.Tensor, dtype: DataType) -> torch.Tensor:
    if dtype is not DataType.UINT32:
        return _int32(whole)
    return torch.where((whole >= LEAST_64) & (whole < -LEAST_64), whole, float(LEAST_64)).to(torch.int64)
