"""fp8_e4m3: a sign, four bits of exponent, three of mantissa; Blackhole's alone. Carriers hold the bytes themselves.

The host code of the library rounds to nearest even, has no denormals, saturates at 448 and makes one NaN of all
(`ttnn.from_torch` of 0.81.1, read back). What the chip packs is taken to be the same.
"""

from __future__ import annotations

import torch

LARGEST = 448.0
LEAST_NORMAL = 2.0**-6
NOT_A_NUMBER = 0x7F
SIGN = 0x80


def to_fp8(values: torch.Tensor) -> torch.Tensor:
    """float32 as bytes."""
    source = values.float().contiguous()
    size = source.abs()
    size = torch.where(size < LEAST_NORMAL, 0.0, size).clamp(max=LARGEST)
    packed = size.to(torch.float8_e4m3fn).view(torch.uint8)
    signed = packed | torch.where(torch.signbit(source), SIGN, 0).to(torch.uint8)
    return torch.where(source.isnan(), NOT_A_NUMBER, signed).to(torch.uint8)


def from_fp8(bytes_: torch.Tensor) -> torch.Tensor:
    """Bytes as float32."""
    return bytes_.contiguous().view(torch.float8_e4m3fn).float()
