"""Kernels of three operands, on carriers: `where`, multiply-add and related operations."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from ttnn_emulator.enums import FLOAT_DTYPES, DataType
from ttnn_emulator.numerics.broadcasting import joined
from ttnn_emulator.numerics.formats import carriers
from ttnn_emulator.numerics.functions.roots import reciprocal
from ttnn_emulator.numerics.mode import exactly
from ttnn_emulator.numerics.programs.elementwise.binary import WIDE_DTYPES, copied_in
from ttnn_emulator.numerics.programs.elementwise.vector_binary import nearest_even, stored
from ttnn_emulator.numerics.units import packer
from ttnn_emulator.numerics.units.vector_unit import Float, mad, mul, round_to_bf16, sub

Values = torch.Tensor
Compute = Callable[..., Values]


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_addcmul.h, calculate_addcmul
def _addcmul(a: Float, b: Float, c: Float, value: Float, fp32: bool) -> Float:
    result = mad(mul(value, b), c, a)
    return result if fp32 else round_to_bf16(result)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_addcdiv.h, calculate_addcdiv
def _addcdiv(a: Float, b: Float, c: Float, value: Float, fp32: bool) -> Float:
    result = mad(mul(b, value), reciprocal(c, steps=2), a)
    return result if fp32 else nearest_even(result)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_lerp.h, calculate_lerp
def _lerp(a: Float, b: Float, c: Float, value: Float, fp32: bool) -> Float:
    result = mad(c, sub(b, a), a)
    return result if fp32 else nearest_even(result)


# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_mac.h, calculate_mac
def _mac(a: Float, b: Float, c: Float, value: Float, fp32: bool) -> Float:
    result = mad(a, b, c)
    return result if fp32 else round_to_bf16(result)


# Kind → kernel, its cost in fused multiply-adds, and the torch function for large tensors.
KERNELS: dict[str, tuple[Callable[..., Float], int, Compute]] = {
    "ADDCMUL": (_addcmul, 2, lambda a, b, c, value: torch.addcmul(a, b, c, value=value)),
    "ADDCDIV": (_addcdiv, 14, lambda a, b, c, value: torch.addcdiv(a, b, c, value=value)),
    "LERP": (_lerp, 2, lambda a, b, c, value: a + c * (b - a)),
    "MAC": (_mac, 1, lambda a, b, c, value: a * b + c),
}


def prepare_arithmetic(kind: str, dtypes: tuple[DataType, ...], out: DataType, value: float) -> Compute:
    """An arithmetic operation of three floating-point operands on the vector unit."""
    kernel, cost, by_torch = KERNELS[kind]
    fp32 = out in WIDE_DTYPES
    scalar = np.float32(value)

    def compute(*operands: Values) -> Values:
        shape = joined(*(operand.shape for operand in operands))
        loaded = [copied_in(x, dtype, fp32=fp32, vector=True) for x, dtype in zip(operands, dtypes)]
        if exactly(shape.numel() * cost):
            arrays = [x.expand(shape).contiguous().numpy() for x in loaded]
            values = torch.from_numpy(stored(kernel(*arrays, scalar, fp32), fp32)).reshape(shape)
        else:
            values = by_torch(*loaded, value)
            values = values if fp32 else carriers.round_bf16_nearest_even(values)
        return packer.pack(values, out, from_fp32=fp32)

    return compute


# tt-metal v0.81.1: tt_metal/tt-llk/tt_llk_wormhole_b0/common/inc/sfpu/ckernel_sfpu_where.h, _calculate_where_
def prepare_where(condition: DataType, out: DataType) -> Compute:
    """Every bit pattern except that of +0 selects the first value; bits are unchanged up to the packer."""

    def compute(chooser: Values, chosen: Values, other: Values) -> Values:
        raw = carriers.bits_of(chooser) if condition in FLOAT_DTYPES else chooser
        values = torch.where(raw != 0, chosen, other)
        if out in FLOAT_DTYPES and values.is_floating_point():
            return packer.pack(values, out, from_fp32=out is DataType.FLOAT32)
        return carriers.wrap_integer(values, out) if out in carriers.INTEGER_RANGE else values.to(carriers.CARRIER[out])

    return compute
