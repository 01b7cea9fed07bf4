"""Casts between dtypes: by the typecast kernels, by the packer alone, and by the host code.

All functions take and return carriers (see `carriers`). The kernels are those of Wormhole's vector unit; each is a
short instruction sequence, expressed here in torch on whole tensors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import torch

from ttnn_emulator.enums import FLOAT_DTYPES, DataType
from ttnn_emulator.errors import ChipFault, NotEmulated, require
from ttnn_emulator.numerics.formats import carriers
from ttnn_emulator.numerics.formats.carriers import CARRIER, INTEGER_RANGE, bits_of, from_bits
from ttnn_emulator.numerics.formats.float8 import from_fp8, packed_fp8, to_fp8
from ttnn_emulator.numerics.units import packer, vector_unit

Cast = Callable[[torch.Tensor], torch.Tensor]


# -- floats to integers -----------------------------------------------------------------------------------------------


def _exponent_and_magnitude(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Unbiased exponent, |value| truncated to an integer (wrong from 2^39 on), and whether the sign bit is set."""
    raw = bits_of(values)
    exponent = ((raw >> 23) & 0xFF) - 127
    mantissa = ((raw & 0x7FFFFF) | 0x800000).to(torch.int64)
    left = (exponent - 23).clamp(0, 15)
    right = (23 - exponent).clamp(0, 31)
    return exponent, (mantissa << left) >> right, raw < 0


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_typecast.h,
#     calculate_typecast_fp32_to_int32
def float_to_int32(values: torch.Tensor) -> torch.Tensor:
    """Truncated toward zero; overflow, infinities and NaN saturate by their sign."""
    exponent, magnitude, negative = _exponent_and_magnitude(values)
    signed = torch.where(negative, -magnitude, magnitude)
    limit = torch.where(negative, -(2**31), 2**31 - 1)
    return torch.where(exponent >= 31, limit, torch.where(exponent < 0, 0, signed)).to(torch.int32)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_typecast.h,
#     calculate_typecast_fp32_to_uint32
def float_to_uint32(values: torch.Tensor) -> torch.Tensor:
    """Truncated toward zero; everything with a sign bit is 0, overflow saturates."""
    exponent, magnitude, negative = _exponent_and_magnitude(values)
    fitting = torch.where(exponent >= 32, 2**32 - 1, torch.where(exponent < 0, 0, magnitude))
    return torch.where(negative, 0, fitting)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_typecast.h,
#     calculate_typecast_fp32_to_uint16
def float_to_uint16(values: torch.Tensor) -> torch.Tensor:
    """Rounded half up; everything with a sign bit is 0, overflow is 65535."""
    raw = bits_of(values)
    exponent = ((raw >> 23) & 0xFF) - 127
    mantissa = ((raw & 0x7FFFFF) | 0x800000).to(torch.int64)
    # One fractional bit survives the shift and decides the rounding.
    doubled = (mantissa << exponent.clamp(0, 15)) >> (22 + (-exponent).clamp(0, 2))
    rounded = ((doubled + 1) >> 1).clamp(max=65535)
    fitting = torch.where(exponent >= 16, 65535, torch.where(exponent < -1, 0, rounded))
    return torch.where(raw < 0, 0, fitting).to(torch.int32)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_typecast.h,
#     calculate_typecast_fp32_to_uint8
def float_to_uint8(values: torch.Tensor) -> torch.Tensor:
    """Truncated toward zero, then the low byte of the two's complement; 0 from 2^31 on and for NaN."""
    exponent, magnitude, negative = _exponent_and_magnitude(values)
    whole = torch.where((exponent < 0) | (exponent >= 31), 0, magnitude)
    return (torch.where(negative, -whole, whole) & 0xFF).to(torch.int32)


# -- integers to floats -----------------------------------------------------------------------------------------------


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_typecast.h,
#     calculate_typecast_int32_to_fp32
def signed_to_float(values: torch.Tensor) -> torch.Tensor:
    """Nearest even: SFPCAST."""
    return values.to(torch.float32)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_typecast.h,
#     calculate_typecast_uint32_to_fp32
def uint32_to_float(values: torch.Tensor) -> torch.Tensor:
    """(high - 1) × 2^23 + (2^23 + low), of 9 high and 23 low bits: one multiply-add, rounded by the unit."""
    if not bool((values >= 1 << 24).any()):
        return values.to(torch.float32)
    high = (values >> 23).to(torch.float32).numpy() - np.float32(1.0)
    low = ((values & 0x7FFFFF) + 0x800000).to(torch.float32).numpy()
    return torch.from_numpy(vector_unit.mad(high, np.float32(2**23), low))


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_typecast.h,
#     calculate_typecast_uint32_to_fp16b
def uint32_to_float_in_halves(values: torch.Tensor) -> torch.Tensor:
    """The low 31 bits, plus 2^31 if the top bit is set: as the kernels for 16-bit floats compute it."""
    low = (values & 0x7FFFFFFF).to(torch.float32)
    top = values >= 1 << 31
    if not bool(top.any()):
        return low
    sums = torch.from_numpy(vector_unit.add(np.float32(2**31), low.numpy()))
    return torch.where(top, sums, low)


def round_to_bf16(values: torch.Tensor) -> torch.Tensor:
    """SFP_STOCH_RND from float32 to bfloat16: half away from zero, NaN to infinity, denormals to +0."""
    return carriers.flush(carriers.round_bf16_half_away(values))


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_typecast.h,
#     calculate_typecast_fp32_to_fp16b
def float32_to_bf16(values: torch.Tensor) -> torch.Tensor:
    """Nearest even by integer addition, which lets the largest NaNs wrap to zero; then the packer flushes."""
    raw = bits_of(values)
    rounded = (raw + 0x7FFF + ((raw >> 16) & 1)) & -0x10000
    return carriers.flush(from_bits(rounded))


# -- typecast ---------------------------------------------------------------------------------------------------------

FLOAT_TO_INTEGER: dict[DataType, Cast] = {
    DataType.INT32: float_to_int32,
    DataType.UINT32: float_to_uint32,
    DataType.UINT16: float_to_uint16,
    DataType.UINT8: float_to_uint8,
}
TO_FLOAT32: dict[DataType, Cast] = {
    DataType.BFLOAT16: carriers.flush,
    DataType.BFLOAT8_B: carriers.flush,
    DataType.BFLOAT4_B: carriers.flush,
    DataType.INT32: signed_to_float,
    DataType.UINT32: uint32_to_float,
    DataType.UINT16: signed_to_float,
    DataType.UINT8: signed_to_float,
}
# The destination register before the packer converts it to a 16-bit or block float.
TO_NARROW_FLOAT: dict[DataType, Cast] = {
    DataType.BFLOAT16: carriers.flush,
    DataType.BFLOAT8_B: carriers.flush,
    DataType.BFLOAT4_B: carriers.flush,
    DataType.INT32: lambda values: round_to_bf16(signed_to_float(values)),
    DataType.UINT32: lambda values: round_to_bf16(uint32_to_float_in_halves(values)),
    DataType.UINT16: lambda values: round_to_bf16(signed_to_float(values)),
    DataType.UINT8: signed_to_float,
}


def typecast(source: DataType, target: DataType) -> Cast | None:
    """The device's cast, or None if the bits do not change."""
    if DataType.FP8_E4M3 in (source, target):
        return _cast_of_fp8(source, target)
    if target in FLOAT_TO_INTEGER:
        return FLOAT_TO_INTEGER[target] if source in FLOAT_DTYPES else _integer_cast(source, target)
    if target is DataType.FLOAT32:
        return None if source is DataType.FLOAT32 else TO_FLOAT32[source]
    if target is DataType.BFLOAT16:
        return float32_to_bf16 if source is DataType.FLOAT32 else TO_NARROW_FLOAT[source]
    if source is DataType.FLOAT32:
        # Packed with bfp8_pack_precise from 32 bits, NaNs keep the upper bits of their payload.
        enter = carriers.truncate_bf16 if target is DataType.BFLOAT8_B else _cut_and_flushed
        return lambda values: _block(enter(values), target)
    narrow = TO_NARROW_FLOAT[source]
    return lambda values: _block(narrow(values), target)


def _cast_of_fp8(source: DataType, target: DataType) -> Cast | None:
    if source is target:
        return None
    if not {source, target} <= {DataType.FP8_E4M3, DataType.FLOAT32, DataType.BFLOAT16}:
        raise NotEmulated(f"the cast from {source} to {target} is not emulated")
    return from_fp8 if source is DataType.FP8_E4M3 else packed_fp8


def _cut_and_flushed(values: torch.Tensor) -> torch.Tensor:
    return carriers.flush(carriers.truncate_bf16(values))


def _block(values: torch.Tensor, target: DataType) -> torch.Tensor:
    return packer.device_pack_block_float(values, target, precise=target is DataType.BFLOAT8_B)


def _integer_cast(source: DataType, target: DataType) -> Cast | None:
    if source is target:
        return None
    if target is DataType.UINT16:  # saturates; the others keep their low bits
        return lambda values: values.clamp(0, 65535).to(torch.int32)
    return lambda values: carriers.wrap_integer(values, target)


# -- copies that change the dtype on the way --------------------------------------------------------------------------


def repacked(source: DataType, target: DataType, *, fp32_dest: bool = False) -> Cast | None:
    """A copy through the destination register, where only the packer converts.

    `fp32_dest`: the register has 32 bits per value and bypasses the source registers, which truncate to 16 bits.
    """
    if source is target:
        return carriers.flush if source is DataType.BFLOAT16 else None
    if source not in FLOAT_DTYPES or target not in FLOAT_DTYPES:
        return functools.partial(_reinterpreted, source=source, target=target)
    if target is DataType.FLOAT32:
        return carriers.flush
    if source is DataType.FLOAT32 and not fp32_dest:
        return lambda values: packer.pack(carriers.truncate_bf16(values), target, from_fp32=False)
    return lambda values: packer.pack(values, target, from_fp32=fp32_dest)


def _reinterpreted(values: torch.Tensor, *, source: DataType, target: DataType) -> torch.Tensor:
    """The packer does not convert between integers and floats: only zero survives."""
    if bool(values.any()):
        raise ChipFault(
            f"a copy from {source} to {target} reinterprets bits instead of converting values",
            hint="Cast with ttnn.typecast.",
        )
    return torch.zeros(values.shape, dtype=CARRIER[target])


# -- host -------------------------------------------------------------------------------------------------------------


def host_cast(source: DataType, target: DataType) -> Cast | None:
    """The cast of the library's host code."""
    if source is target:
        return None
    if DataType.FP8_E4M3 in (source, target):
        require({source, target} <= {DataType.FP8_E4M3, DataType.FLOAT32}, "fp8_e4m3 is cast from and to float32 only")
        return from_fp8 if source is DataType.FP8_E4M3 else to_fp8
    if source in FLOAT_DTYPES and target in FLOAT_TO_INTEGER:
        return lambda values: _host_integers(values, target)
    return lambda values: carriers.wide(carriers.host_convert(values, target))


def _host_integers(values: torch.Tensor, target: DataType) -> torch.Tensor:
    """Truncated as x86 vector instructions do, to the smallest int32 on overflow; 8 and 16 bits saturate."""
    whole = values.double().trunc()
    high = 2**32 if target is DataType.UINT32 else 2**31
    fits = (whole >= -(2**31)) & (whole < high)
    integers = torch.where(fits, whole, float(-(2**31))).to(torch.int64)
    if target in (DataType.UINT8, DataType.UINT16):
        integers = integers.clamp(0, INTEGER_RANGE[target][1])
    return carriers.wrap_integer(integers, target)


SAME_WIDTH = (
    frozenset({DataType.BFLOAT16, DataType.UINT16}),
    frozenset({DataType.FLOAT32, DataType.INT32, DataType.UINT32}),
)


def bitcast(source: DataType, target: DataType) -> Cast | None:
    """The same bits under another dtype, as far as a copy through the destination register keeps them.

    Floats are flushed, and 32-bit integers pass through a source register that drops 13 bits.
    """
    if source is target:
        return carriers.flush if source is DataType.BFLOAT16 else None
    if not any({source, target} <= group for group in SAME_WIDTH):
        return functools.partial(_reinterpreted, source=source, target=target)
    if target is DataType.BFLOAT16:
        return lambda values: carriers.flush(from_bits((values << 16).to(torch.int32)))
    if target is DataType.FLOAT32:
        return lambda values: carriers.flush(from_bits(values.to(torch.int32) & ~0x1FFF))
    if source is DataType.BFLOAT16:
        return lambda values: (bits_of(values) >> 16) & 0xFFFF
    if source is DataType.FLOAT32:
        return lambda values: carriers.wrap_integer(bits_of(values), target)
    return lambda values: carriers.wrap_integer(values, target)
