"""Dtypes of elementwise operations: torch's type promotion, applied to the device's dtypes.

    @elementwise(aten.mul.Tensor, wraps=True)
    def mul(ttnn, x, y):
        return ttnn.multiply(x, y)

The function receives aligned handles that all have the dtype to compute in. Numbers stay Python numbers, and so does a
uniform constant operand. To compute with a number, convert it with `fitted(number, dtype)`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from torch_ttnn.compiler.errors import refuse
from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.value import Handle, Value
from torch_ttnn.compiler.lowering.registry import lowers, with_builder
from ttnn_emulator import DataType

BFLOAT16, FLOAT32, INT32 = DataType.BFLOAT16, DataType.FLOAT32, DataType.INT32
LARGEST_BFLOAT16 = torch.finfo(torch.bfloat16).max
NARROW_BITS = {torch.int8: 8, torch.uint8: 8, torch.int16: 16}

Number = bool | int | float
Operand = Any  # a Handle or a Number
Rule = Callable[[Sequence[Any], torch.dtype], torch.dtype | None]


def is_number(item: Any) -> bool:
    return isinstance(item, bool | int | float)


# -- which dtype to compute in ----------------------------------------------------------------------------------------


def in_result_dtype(operands: Sequence[Any], result: torch.dtype) -> torch.dtype:
    """Operands are cast to the dtype of the result: `int + 0.5` is computed in float, `bool * int` in integers."""
    return result


def in_common_dtype(operands: Sequence[Any], result: torch.dtype) -> torch.dtype:
    """For comparisons: the dtype to which torch promotes both sides."""
    return torch.result_type(*[_like(item) for item in operands])


def as_held(operands: Sequence[Any], result: torch.dtype) -> None:
    """Operands keep their dtypes."""


def device_dtype_for(
    builder: ProgramBuilder, operands: Sequence[Any], dtype: torch.dtype, *, exact: bool = False
) -> DataType:
    """The device's dtype for a computation that torch does in `dtype`.

    Floats converted from integers are float32, as bfloat16 cannot represent 257. With a bfloat16 operand the
    computation is in bfloat16, since the result is no more precise; but in float32 for comparisons (`exact`). Weights
    and constants follow the other operands.
    """
    wanted = builder.device_dtype(dtype)
    if wanted is not BFLOAT16 or dtype is torch.bfloat16 or not dtype.is_floating_point:
        return wanted
    deciding = [item for item in operands if isinstance(item, Value) and not item.is_bool and not item.is_static]
    found = {item.device_dtype for item in deciding}
    wide = bool(found - {BFLOAT16}) if exact else bool(found) and BFLOAT16 not in found
    return FLOAT32 if wide else BFLOAT16


def _like(item: Any) -> Any:
    """A stand-in with the same priority in type promotion: numbers and 0-d tensors yield to other tensors."""
    return torch.empty((1,) * min(item.ndim, 1), dtype=item.dtype) if isinstance(item, Value) else item


# -- casting operands -------------------------------------------------------------------------------------------------


def cast_operand(
    ttnn: Any, builder: ProgramBuilder, value: Value, handle: Handle, dtype: torch.dtype, device_dtype: DataType
) -> Handle:
    """Cast an aligned operand to torch's compute dtype, stored in the device's dtype.

    A value from the host is compared in full precision if the other side has it.
    """
    if (
        value.is_static
        and value.is_float
        and device_dtype is FLOAT32 is not handle.dtype
        and _is_same_order(value, handle)
    ):
        return builder.upload(value, dtype=FLOAT32)  # again, from the unrounded host value
    if value.dtype is torch.float32 and device_dtype is FLOAT32 is not handle.dtype and _is_in_order(value, handle):
        return value.tile(FLOAT32)
    handle = builder.cast(handle, device_dtype)
    narrower = value.is_integer and value.dtype is not dtype
    return wrapped(ttnn, handle, dtype) if narrower else handle


def _is_in_order(value: Value, handle: Handle) -> bool:
    """Whether an aligned operand is the value's own tiles, so that its tiles in another dtype can replace it."""
    return value.form.is_plain and handle.node is value.tile().node


def _is_same_order(value: Value, handle: Handle) -> bool:
    """Whether an aligned operand has its dimensions in torch's order. Shapes decide, unless two sizes are equal."""
    sizes = [size for size in value.shape if size > 1]
    return handle.shape == value.shape and (len(set(sizes)) == len(sizes) or _is_in_order(value, handle))


def converted(item: Any, dtype: torch.dtype) -> Any:
    """A number as torch converts it to a narrow integer dtype: -1 is 255 in uint8."""
    if dtype not in NARROW_BITS or not isinstance(item, int) or isinstance(item, bool):
        return item
    return int(torch.tensor(item).to(dtype))


def fitted(number: Number, dtype: DataType) -> Number:
    """A Python number as an operand next to a tensor of `dtype`. Finite numbers stay finite."""
    if dtype is INT32:
        whole = int(number)
        if not -(2**31) <= whole < 2**31:
            refuse(f"{whole} does not fit the 32 bits of integers on the device")
        return whole
    number = float(number)
    if dtype is BFLOAT16 and math.isfinite(number):
        return min(max(number, -LARGEST_BFLOAT16), LARGEST_BFLOAT16)
    return number


def uniform(value: Value) -> Number | None:
    """The value of a uniform constant, or None."""
    if not value.is_static:
        return None
    constant = value.constant()
    if constant is None or not constant.numel():
        return None
    first = constant.flatten()[0]
    return first.item() if constant.numel() == 1 or bool((constant == first).all()) else None


def as_number(value: Value, others: Sequence[Value], shape: Sequence[int]) -> Any:
    """A uniform constant as a number, unless it determines the shape of the result."""
    number = uniform(value)
    if number is None or not others:
        return value
    without = torch.broadcast_shapes(*[other.shape for other in others])
    return number if math.prod(without) == math.prod(shape) else value


def wrapped(ttnn: Any, handle: Handle, dtype: torch.dtype) -> Handle:
    """Wraps 32-bit results of narrower integers around, as torch does."""
    bits = NARROW_BITS.get(dtype)
    if bits is None:
        return handle
    if dtype is torch.uint8:
        return ttnn.bitwise_and(handle, (1 << bits) - 1)
    return ttnn.bitwise_right_shift(ttnn.bitwise_left_shift(handle, 32 - bits), 32 - bits)


def result_dtype(builder: ProgramBuilder) -> torch.dtype:
    """torch's dtype of the result of the operation being lowered."""
    return builder.origin.meta["val"].dtype


def all_over(builder: ProgramBuilder, number: Number) -> Value:
    """A uniform result: a constant, not an operation."""
    result = builder.origin.meta["val"]
    return builder.static(torch.full(tuple(result.shape), number, dtype=result.dtype))


# -- the decorator ----------------------------------------------------------------------------------------------------


def elementwise(
    *overloads: Any,
    computes: Rule = in_result_dtype,
    constants: tuple[int, ...] = (1,),
    wraps: bool = False,
    when: Callable[..., str | None] | None = None,
) -> Callable[[Callable[..., Handle]], Callable[..., Handle]]:
    """Register a pointwise function of operands in one dtype.

    computes   the rule that chooses the dtype
    constants  positions of arguments that become Python numbers if they are uniform constants
    wraps      results of int8, int16 and uint8 may overflow and wrap around
    """

    def register(function: Callable[..., Handle]) -> Callable[..., Handle]:
        compute = with_builder(function)

        @functools.wraps(function)
        def lowering(ttnn: Any, builder: ProgramBuilder, *args: Any, **kwargs: Any) -> Any:
            result = builder.origin.meta["val"]
            arguments = [*args, *kwargs.values()]
            operands = [item for item in arguments if isinstance(item, Value) or is_number(item)]
            for position in constants:
                if position < len(args) and isinstance(args[position], Value):
                    others = [
                        item for item in (*arguments[:position], *arguments[position + 1 :]) if isinstance(item, Value)
                    ]
                    arguments[position] = as_number(args[position], others, result.shape)
            values = [item for item in arguments if isinstance(item, Value)]
            handles, form = builder.aligned(values, result.shape)
            dtype = computes(operands, result.dtype)
            if dtype is not None:
                device_dtype = device_dtype_for(builder, operands, dtype, exact=result.dtype is torch.bool)
                handles = [
                    cast_operand(ttnn, builder, value, handle, dtype, device_dtype)
                    for value, handle in zip(values, handles)
                ]
                arguments = [converted(item, dtype) for item in arguments]
            rest = iter(handles)
            inputs = [next(rest) if isinstance(item, Value) else item for item in arguments]
            output = compute(ttnn, builder, *inputs[: len(args)], **dict(zip(kwargs, inputs[len(args) :])))
            if isinstance(output, Value):
                return output
            if wraps and output.dtype is INT32:
                output = wrapped(ttnn, output, result.dtype)
            return builder.value(output, result.shape, result.dtype, form)

        lowers(*overloads, when=when)(lowering)
        return function

    return register
