"""fp8_e4m3: a sign bit, four exponent bits, three mantissa bits; Blackhole only. Carriers hold the bytes themselves.

The library's host code rounds to nearest even, flushes denormals, saturates at 448 and maps every NaN to one pattern.
The chip's packer truncates instead of rounding, as the library's own test of per_token_cast_to_fp8 states
(test_cast_to_fp8_power_of_two_scale_e4m3fn_boundary); in all other respects it is assumed to match the host.
"""

from __future__ import annotations

import torch

# asked ttnn 0.81.1: ttnn.from_torch of float32 to fp8_e4m3, read back
LARGEST = 448.0
LEAST_NORMAL = 2.0**-6
NOT_A_NUMBER = 0x7F
SIGN = 0x80
KEPT_BITS = ~((1 << 20) - 1)  # of a float32: sign, exponent and three bits of the mantissa


def to_fp8(values: torch.Tensor) -> torch.Tensor:
    """float32 as bytes."""
    source = values.float().contiguous()
    size = source.abs()
    size = torch.where(size < LEAST_NORMAL, 0.0, size).clamp(max=LARGEST)
    packed = size.to(torch.float8_e4m3fn).view(torch.uint8)
    signed = packed | torch.where(torch.signbit(source), SIGN, 0).to(torch.uint8)
    return torch.where(source.isnan(), NOT_A_NUMBER, signed).to(torch.uint8)


def packed_fp8(values: torch.Tensor) -> torch.Tensor:
    """float32 as packed by the chip."""
    source = values.float().contiguous()
    cut = (source.view(torch.int32) & KEPT_BITS).view(torch.float32)
    return to_fp8(torch.where(source.isnan(), source, cut))


def from_fp8(bytes_: torch.Tensor) -> torch.Tensor:
    """Bytes as float32."""
    return bytes_.contiguous().view(torch.float8_e4m3fn).float()
