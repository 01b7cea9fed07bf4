"""Quantisation with a scale and a zero point, and dequantisation."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, FLOAT_DTYPES, DataType
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import Plan, composite, internal, ttnn
from ttnn_emulator.numerics.broadcasting import of_one_shape
from ttnn_emulator.numerics.formats import carriers
from ttnn_emulator.numerics.functions.kernel_vocabulary import to_integer, to_uint8
from ttnn_emulator.numerics.units import packer
from ttnn_emulator.numerics.units.vector_unit import add, mad, mul
from ttnn_emulator.ops.elementwise.binary.device_operation import plan_binary
from ttnn_emulator.ops.elementwise.binary.operand_rules import INT32, UINT8
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.spec import Spec

Values = torch.Tensor
QUANTIZED = frozenset({INT32, UINT8})
DEQUANTIZED = frozenset({DataType.FLOAT32, DataType.BFLOAT16})
SCALES = FLOAT_DTYPES - BLOCK_FLOAT_DTYPES
# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_quant.h, "saturates at +/-127"
LARGEST_INT8 = 127


# -- the kernels ------------------------------------------------------------------------------------------------------


def _rounded(values: np.ndarray, dtype: DataType) -> Values:
    """Rounding to 8 bits by the vector unit, half away from zero."""
    if dtype is UINT8:
        return torch.from_numpy(np.ascontiguousarray(to_uint8(values)))
    raw = to_integer(values, LARGEST_INT8, signed=True)
    size = raw & np.int32(0x7FFFFFFF)
    return torch.from_numpy(np.where(raw < 0, -size, size))


@internal("ttnn.prim.binary_ng")
def scaled(
    source: Spec,
    scale: Spec | None,
    number: float,
    zero_point: float,
    kind: str,
    dtype: DataType,
    memory_config: MemoryConfig | None,
    output_tensor: Spec | None = None,
) -> Plan:
    """source × scale + zero_point, or (source + zero_point) × scale, on the vector unit in float32."""
    plan = plan_binary(
        kind,
        source,
        scale if scale is not None else number,
        names=("source", "scale") if scale is not None else ("source",),
        dtype=dtype,
        memory_config=memory_config,
        output=output_tensor,
        convert_layouts=False,
    )
    out = plan.outputs
    assert isinstance(out, Spec)
    factor, offset = torch.tensor(float(np.float32(number))), np.float32(zero_point)

    def compute(values: Values, by: Values = factor) -> Values:
        held = values.float() if source.dtype in QUANTIZED else carriers.flush(values)
        held = values if source.dtype is DataType.FLOAT32 else held
        left, right = of_one_shape(held, by)
        x, y = left.contiguous().numpy(), right.contiguous().numpy()
        if kind == "DEQUANT":
            result = torch.from_numpy(mul(add(x, offset), y))
            return packer.pack(result, out.dtype, from_fp32=True).reshape(out.shape)
        return _rounded(mad(x, y, offset), out.dtype).reshape(out.shape)

    return Plan(out, compute, reads=plan.reads, into=plan.into)


# -- arguments --------------------------------------------------------------------------------------------------------


def _output_dtype(dtype: DataType | None, output: Any, default: DataType) -> DataType:
    if dtype is not None and output is not None:
        require(dtype is output.dtype, f"the output tensor is {output.dtype}, {dtype} was requested")
    return dtype or (output.dtype if output is not None else default)


def _is_tensor(value: Any) -> bool:
    return not isinstance(value, int | float)


def _volume(tensor: Any) -> int:
    return int(np.prod(tuple(tensor.shape), dtype=np.int64))


def _require_parameter(name: str, value: Any, dtypes: frozenset, shape: tuple[int, ...], axis: int | None) -> None:
    """One value per tensor, or one per channel along `axis`."""
    if not _is_tensor(value):
        return
    if axis is not None:
        rank = len(shape)
        require(-rank <= axis < rank, f"axis {axis} is out of range for a tensor of rank {rank}")
    require(value.dtype in dtypes, f"a {name} of {value.dtype} is not supported")
    if axis is None:
        require(_volume(value) == 1, f"one {name} for the whole tensor, not {_volume(value)}")
        return
    require(len(value.shape) == 1, f"a {name} a channel is a vector, not of shape {list(value.shape)}")
    require(_volume(value) == shape[axis], f"{_volume(value)} values of {name} for {shape[axis]} channels")


def _check(shape: tuple[int, ...], scale: Any, zero_point: Any, axis: int | None) -> None:
    require(axis is None or _is_tensor(scale), "a scale a channel must be a tensor")
    _require_parameter("scale", scale, SCALES, shape, axis)
    _require_parameter("zero point", zero_point, frozenset({INT32}), shape, axis)


def _along(value: Any, shape: tuple[int, ...], axis: int | None, dtype: DataType) -> Any:
    """A vector of channels in a shape that broadcasts against the input."""
    if axis is None or not _is_tensor(value):
        return value
    target = [1] * len(shape)
    target[axis] = shape[axis]
    return ttnn.reshape(ttnn.typecast(value, dtype), target)


def _as(tensor: Any, dtype: DataType) -> Any:
    return tensor if tensor.dtype is dtype else ttnn.typecast(tensor, dtype)


# -- operations -------------------------------------------------------------------------------------------------------


@composite("ttnn.quantize")
def quantize(
    input_tensor: Any,
    scale: Any,
    zero_point: Any,
    *,
    axis: int | None = None,
    dtype: DataType | None = None,
    memory_config: MemoryConfig | None = None,
    output_tensor: Any = None,
) -> Any:
    """round(x ÷ scale) + zero_point."""
    source = _as(input_tensor, DataType.BFLOAT16) if input_tensor.dtype in BLOCK_FLOAT_DTYPES else input_tensor
    target = _output_dtype(dtype, output_tensor, INT32)
    require(source.dtype in FLOAT_DTYPES, f"quantize takes floats, not {source.dtype}")
    require(target in QUANTIZED, f"quantize returns int32 or uint8, not {target}")
    require(axis is None or target is not UINT8, "quantizing per channel does not support uint8")
    shape = tuple(source.shape)
    _check(shape, scale, zero_point, axis)
    scale = _along(scale, shape, axis, DataType.FLOAT32)
    zero_point = _along(zero_point, shape, axis, source.dtype)
    if not _is_tensor(zero_point):
        offset = float(zero_point)
        if _is_tensor(scale):
            inverse = ttnn.reciprocal(_as(scale, DataType.FLOAT32))
            return scaled(source, inverse, 0.0, offset, "QUANT", target, memory_config, output_tensor)
        inverse = float(np.float32(1.0) / np.float32(scale))
        return scaled(source, None, inverse, offset, "QUANT", target, memory_config, output_tensor)
    if _is_tensor(scale):
        quotient = ttnn.divide(source, _as(scale, source.dtype), dtype=source.dtype)
    else:
        quotient = ttnn.divide(source, scale)
    shifted = ttnn.add(quotient, _as(zero_point, source.dtype), dtype=source.dtype)
    return ttnn.typecast(shifted, target, memory_config=memory_config, output_tensor=output_tensor)


@composite("ttnn.dequantize")
def dequantize(
    input_tensor: Any,
    scale: Any,
    zero_point: Any,
    *,
    axis: int | None = None,
    dtype: DataType | None = None,
    memory_config: MemoryConfig | None = None,
    output_tensor: Any = None,
) -> Any:
    """(x - zero_point) × scale."""
    target = _output_dtype(dtype, output_tensor, DataType.BFLOAT16)
    require(input_tensor.dtype in QUANTIZED, f"dequantize takes int32 or uint8, not {input_tensor.dtype}")
    require(target in DEQUANTIZED, f"dequantize returns float32 or bfloat16, not {target}")
    shape = tuple(input_tensor.shape)
    _check(shape, scale, zero_point, axis)
    scale = _along(scale, shape, axis, DataType.FLOAT32)
    zero_point = _along(zero_point, shape, axis, INT32)
    if not _is_tensor(zero_point):
        tensor, number = (_as(scale, DataType.FLOAT32), 0.0) if _is_tensor(scale) else (None, float(scale))
        offset = float(-zero_point)
        return scaled(input_tensor, tensor, number, offset, "DEQUANT", target, memory_config, output_tensor)
    shifted = ttnn.typecast(ttnn.subtract(_as(input_tensor, INT32), zero_point), DataType.FLOAT32)
    factor = _as(scale, DataType.FLOAT32) if _is_tensor(scale) else scale
    return ttnn.multiply(shifted, factor, dtype=target, memory_config=memory_config, output_tensor=output_tensor)


@composite("ttnn.requantize")
def requantize(
    input_tensor: Any,
    in_scale: Any,
    in_zero_point: Any,
    out_scale: Any,
    out_zero_point: Any,
    *,
    axis: int | None = None,
    dtype: DataType | None = None,
    memory_config: MemoryConfig | None = None,
    output_tensor: Any = None,
) -> Any:
    """From one scale and zero point to another."""
    target = _output_dtype(dtype, output_tensor, INT32)
    require(input_tensor.dtype in QUANTIZED, f"requantize takes int32 or uint8, not {input_tensor.dtype}")
    require(target in QUANTIZED, f"requantize returns int32 or uint8, not {target}")
    require(axis is None or target is not UINT8, "requantizing per channel does not support uint8")
    parameters = (in_scale, in_zero_point, out_scale, out_zero_point)
    if axis is not None and all(map(_is_tensor, parameters)):
        return _requantize_channels(input_tensor, parameters, axis, target, memory_config, output_tensor)
    if not any(map(_is_tensor, parameters)):
        ratio = np.float32(in_scale) / np.float32(out_scale)
        offset = np.float32(out_zero_point) - np.float32(in_zero_point) * ratio
        return scaled(input_tensor, None, float(ratio), float(offset), "REQUANT", target, memory_config, output_tensor)
    floats = dequantize(input_tensor, in_scale, in_zero_point, axis=axis if _is_tensor(in_scale) else None)
    return quantize(
        floats,
        out_scale,
        out_zero_point,
        axis=axis if _is_tensor(out_scale) else None,
        dtype=target,
        memory_config=memory_config,
        output_tensor=output_tensor,
    )


def _requantize_channels(
    tensor: Any, parameters: tuple, axis: int, target: DataType, memory_config: Any, output: Any
) -> Any:
    """Four tensors, each pair of scale and zero point per tensor or per channel."""
    shape = tuple(tensor.shape)
    require(-len(shape) <= axis < len(shape), f"axis {axis} is out of range for a tensor of rank {len(shape)}")
    full = [_volume(parameter) == shape[axis] for parameter in parameters]
    require(full[0] == full[1], "input scale and zero point must both be per tensor or both per channel")
    require(full[2] == full[3], "output scale and zero point must both be per tensor or both per channel")
    held = []
    for parameter, is_full, name in zip(parameters, full, ("scale", "zero point") * 2):
        dtypes = SCALES if name == "scale" else frozenset({INT32})
        _require_parameter(name, parameter, dtypes, shape, axis if is_full else None)
        wide = DataType.FLOAT32
        held.append(_along(parameter, shape, axis, wide) if is_full else ttnn.typecast(parameter, wide))
    in_scale, in_zero_point, out_scale, out_zero_point = held
    ratio = ttnn.divide(in_scale, out_scale)
    offset = ttnn.subtract(out_zero_point, ttnn.multiply(in_zero_point, ratio))
    product = ttnn.multiply(ttnn.typecast(tensor, DataType.FLOAT32), ratio)
    total = ttnn.add(product, offset, memory_config=memory_config, output_tensor=output)
    return ttnn.typecast(total, target)
