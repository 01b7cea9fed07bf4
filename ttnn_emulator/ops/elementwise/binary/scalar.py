"""Binary operations of a tensor and a number with a unary kernel: maximum, shifts, powers and related functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ttnn_emulator.enums import FLOAT_DTYPES, DataType
from ttnn_emulator.errors import SignatureError, require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.numerics.formats import carriers, casts
from ttnn_emulator.numerics.functions.apply import apply_function
from ttnn_emulator.numerics.programs.elementwise.integer import INTEGER_KERNELS
from ttnn_emulator.numerics.units import packer
from ttnn_emulator.ops.elementwise.binary.named_operations import run
from ttnn_emulator.ops.elementwise.binary.operand_rules import (
    INT32,
    UINT8,
    UINT16,
    UINT32,
    WIDE_INTEGERS,
    Number,
    adjusted_shards,
    as_number,
    number_carrier,
)
from ttnn_emulator.ops.support.derived_shards import fresh_shards, lacks_shards
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.spec import Spec

Values = torch.Tensor
INTEGERS = frozenset({INT32, UINT32, UINT16})
MIXED_OUTPUTS = frozenset({DataType.BFLOAT16, DataType.FLOAT32, DataType.BFLOAT8_B})


def output_like(source: Spec, memory_config: MemoryConfig | None, output: Spec | None, dtype: DataType) -> Spec:
    """The result of an operation of one operand: shape and layout of its input."""
    if output is not None:
        require(
            output.shape == source.shape,
            f"the output tensor has shape {list(output.shape)}, the result {list(source.shape)}",
        )
        same = output.layout is source.layout
        require(same, f"the output tensor is in {output.layout}, the input in {source.layout}")
        if output.dtype is not source.dtype:
            floats = {output.dtype, source.dtype} <= MIXED_OUTPUTS
            integers = not {output.dtype, source.dtype} & FLOAT_DTYPES
            require(floats or integers, f"a result of {source.dtype} cannot go into a tensor of {output.dtype}")
        return output
    config = memory_config if memory_config is not None else source.memory_config
    if lacks_shards(config):
        if source.shard_spec is not None:
            shards = adjusted_shards(source.shard_spec, source.padded_shape, source.padded_shape)
        else:
            shards = fresh_shards(current_board().grid, source.padded_shape, config.memory_layout, tiles=source.is_tile)
        config = config.with_shard_spec(shards)
    return source.with_(dtype=dtype, memory_config=config)


# -- integers ---------------------------------------------------------------------------------------------------------


def _shift_left(values: Values, amount: Number, dtype: DataType) -> Values:
    whole = int(amount)
    if not 0 <= whole < 32:
        return torch.zeros_like(values)
    return carriers.wrap_integer(values.to(torch.int64) << whole, dtype)


def _shift_right(values: Values, amount: Number, dtype: DataType) -> Values:
    """Shifts beyond 31 count as 31; int32 shifts are arithmetic."""
    whole = int(amount)
    return carriers.wrap_integer(values.to(torch.int64) >> (whole if 0 <= whole < 32 else 31), dtype)


def _power(values: Values, exponent: Number, dtype: DataType) -> Values:
    """By squaring, modulo 2^32."""
    result, base, rest = torch.ones_like(values, dtype=torch.int64), values.to(torch.int64), int(exponent)
    while rest:
        if rest & 1:
            result = _low_32_bits(result, base)
        base = _low_32_bits(base, base)
        rest >>= 1
    return carriers.wrap_integer(_signed(result), dtype)


def _low_32_bits(a: Values, b: Values) -> Values:
    """a × b modulo 2^32, of factors below 2^32, in 64 bits."""
    a, b = a & 0xFFFFFFFF, b & 0xFFFFFFFF
    return (((a * (b >> 16)) & 0xFFFF) * 65536 + a * (b & 0xFFFF)) & 0xFFFFFFFF


def _signed(values: Values) -> Values:
    return values - ((values >> 31) << 32)


def _joined(name: str) -> Callable[[Values, Number, DataType], Values]:
    return lambda values, number, dtype: INTEGER_KERNELS[name](values, number_carrier(number, dtype), dtype)


WITH_INTEGERS: dict[str, Callable[[Values, Number, DataType], Values]] = {
    "MAXIMUM": _joined("largest"),
    "MINIMUM": _joined("smallest"),
    "BITWISE_AND": _joined("BITWISE_AND"),
    "BITWISE_OR": _joined("BITWISE_OR"),
    "BITWISE_XOR": _joined("BITWISE_XOR"),
    "LEFT_SHIFT": _shift_left,
    "RIGHT_SHIFT": _shift_right,
    "REMAINDER": _joined("remainder"),
    "POWER": _power,
}


def plan_with_number(
    kind: str,
    source: Spec,
    number: Number,
    *,
    name: str,
    memory_config: MemoryConfig | None = None,
    output: Spec | None = None,
    dtype: DataType | None = None,
) -> Plan:
    """A kernel of one operand, with the number as its parameter."""
    require(source.on_device, "the input tensor must be on a device, it is on the host")
    if output is not None and dtype is not None:
        require(output.dtype is dtype, f"the output tensor is {output.dtype}, {dtype} was requested")
    target = output.dtype if output is not None else dtype or source.dtype
    out = output_like(source, memory_config, output, target)
    held = source.dtype
    # The kernel packs directly into a preallocated output; otherwise the library casts afterwards.
    packed = target if output is not None else held
    wide = DataType.FLOAT32 in (held, packed)
    cast = casts.typecast(packed, target) if target is not packed else None
    if held in FLOAT_DTYPES:
        function, parameter = kind.lower(), float(number)

        def compute(values: Values) -> Values:
            values = values if held is DataType.FLOAT32 or not wide else carriers.flush(values)
            values = apply_function(function, values, parameter, fp32_dest=wide)
            values = packer.pack(values, packed, from_fp32=wide)
            return cast(values) if cast is not None else values
    else:
        kernel = WITH_INTEGERS[kind]

        def compute(values: Values) -> Values:
            result = kernel(values, number, held)
            return cast(result) if cast is not None else carriers.wrap_integer(result, packed)

    return Plan(out, compute, reads=(name,), into=() if output is None else ("output_tensor",))


# -- operations -------------------------------------------------------------------------------------------------------


def _fused(given: dict[str, Any]) -> bool:
    return any(given.get(name) for name in given if name.endswith("activations"))


def _of_tensor_or_number(name: str, kind: str, takes: frozenset[DataType]) -> None:
    def plan(**given: Any) -> Plan:
        (left_name, left), (_, right), *_ = given.items()
        if isinstance(right, Spec) or (_fused(given) and kind not in ("MAXIMUM", "MINIMUM")):
            return run(kind, given)
        require(left.dtype in takes, f"{name} does not support {left.dtype}")
        if takes is INTEGERS and not -(2**31) <= right < 2**31:
            raise SignatureError(f"{name} takes an integer of 32 bits, not {right}")
        return plan_with_number(
            kind,
            left,
            as_number(right),
            name=left_name,
            memory_config=given.get("memory_config"),
            output=given.get("output_tensor"),
            dtype=given.get("dtype"),
        )

    plan.__doc__ = f"{kind.replace('_', ' ').lower()} of two operands, elementwise."
    operation(f"ttnn.{name}")(plan)


for _name, _kind, _takes in (
    ("maximum", "MAXIMUM", FLOAT_DTYPES | WIDE_INTEGERS),
    ("minimum", "MINIMUM", FLOAT_DTYPES | WIDE_INTEGERS),
    ("bitwise_and", "BITWISE_AND", INTEGERS),
    ("bitwise_or", "BITWISE_OR", INTEGERS),
    ("bitwise_xor", "BITWISE_XOR", INTEGERS),
    ("bitwise_left_shift", "LEFT_SHIFT", INTEGERS),
    ("logical_left_shift", "LEFT_SHIFT", INTEGERS),
    ("bitwise_right_shift", "RIGHT_SHIFT", INTEGERS),
):
    _of_tensor_or_number(_name, _kind, _takes)

SMALL_POWERS = range(4)


@operation("ttnn.pow")
def power(**given: Any) -> Plan:
    """Powers, with a tensor as base, as exponent, or as both."""
    (base_name, base), (_, exponent), *_ = given.items()
    if isinstance(base, Spec) and isinstance(exponent, Spec):
        return run("POWER", given)
    if not isinstance(base, Spec):
        return _power_of_number(given)
    number = as_number(exponent)
    whole = isinstance(number, int) or (abs(number) < 2**31 and number == int(number))
    options: dict[str, Any] = {
        "name": base_name,
        "memory_config": given.get("memory_config"),
        "output": given.get("output_tensor"),
    }
    if base.dtype in INTEGERS or (base.dtype is UINT8 and number in (0, 1)):
        require(whole and int(number) < 2**31, f"{base.dtype} takes an integer as exponent, not {exponent}")
        require(number >= 0, f"integers have no power of {exponent}")
        return plan_with_number("POWER", base, int(number), **options)
    require(base.dtype in FLOAT_DTYPES, f"pow does not support {base.dtype}")
    kind = "POWER_ITERATIVE" if whole and int(number) in SMALL_POWERS else "POWER"
    return plan_with_number(kind, base, number, **options)


def _power_of_number(given: dict[str, Any]) -> Plan:
    """The library fills a tensor with the number first."""
    (_, base), (name, exponent), *rest = given.items()
    filled = number_carrier(as_number(base), exponent.dtype) if exponent.dtype in FLOAT_DTYPES else None
    plan = run("POWER", {"input_tensor": exponent, name: exponent, **dict(rest)})
    compute = plan.compute
    assert compute is not None
    return Plan(plan.outputs, lambda values: compute(filled, values), reads=(name,), into=plan.into)
