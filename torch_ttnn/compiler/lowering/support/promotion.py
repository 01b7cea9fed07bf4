"""Dtypes of elementwise operations: torch's type promotion, carried out on what the device holds.

    @elementwise(aten.mul.Tensor, wraps=True)
    def mul(ttnn, x, y):
        return ttnn.multiply(x, y)

The function sees aligned handles that all have one dtype, the one to compute in; numbers stay Python numbers, and so
does a constant operand that is one number all over. Whoever computes with numbers says `fitted(number, dtype)`.
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
    """Operands become what the result is: `int + 0.5` is computed in float, `bool * int` in integers."""
    return result


def in_common_dtype(operands: Sequence[Any], result: torch.dtype) -> torch.dtype:
    """For comparisons: what torch promotes both sides to."""
    return torch.result_type(*[_like(item) for item in operands])


def as_held(operands: Sequence[Any], result: torch.dtype) -> None:
    """Operands stay as they are."""


def device_dtype_for(
    builder: ProgramBuilder, operands: Sequence[Any], dtype: torch.dtype, *, exact: bool = False
) -> DataType:
    """The device's dtype for a computation that torch does in `dtype`.

    Floats made from integers are float32, as bfloat16 cannot hold 257. They meet a bfloat16 operand in bfloat16, since
    the result is no more precise than that; but in float32 if they are compared (`exact`). Weights and constants follow
    the others.
    """
    wanted = builder.device_dtype(dtype)
    if wanted is not BFLOAT16 or dtype is torch.bfloat16 or not dtype.is_floating_point:
        return wanted
    deciding = [item for item in operands if isinstance(item, Value) and not item.is_bool and not item.is_static]
    held = {item.device_dtype for item in deciding}
    wide = bool(held - {BFLOAT16}) if exact else bool(held) and BFLOAT16 not in held
    return FLOAT32 if wide else BFLOAT16


def _like(item: Any) -> Any:
    """Something with the same say in type promotion: numbers and 0-d tensors give way to others."""
    return torch.empty((1,) * min(item.ndim, 1), dtype=item.dtype) if isinstance(item, Value) else item


# -- bringing operands there ------------------------------------------------------------------------------------------


def brought(
    ttnn: Any, builder: ProgramBuilder, value: Value, handle: Handle, dtype: torch.dtype, held: DataType
) -> Handle:
    """An aligned operand in torch's dtype to compute in, held in the device's.

    What the host computed is compared with all digits it has, if the other side has them.
    """
    if value.is_static and value.is_float and held is FLOAT32 is not handle.dtype and _is_same_order(value, handle):
        return builder.upload(value, dtype=FLOAT32)  # anew: it lost nothing yet
    if value.dtype is torch.float32 and held is FLOAT32 is not handle.dtype and _is_in_order(value, handle):
        return value.tile(FLOAT32)
    handle = builder.cast(handle, held)
    narrower = value.is_integer and value.dtype is not dtype
    return wrapped(ttnn, handle, dtype) if narrower else handle


def _is_in_order(value: Value, handle: Handle) -> bool:
    """Whether an aligned operand is its own tiles: the same value asked for in another dtype is then the same again."""
    return value.form.is_plain and handle.node is value.tile().node


def _is_same_order(value: Value, handle: Handle) -> bool:
    """Whether an aligned operand has its dimensions in torch's order: shapes show it, unless two sizes are equal."""
    sizes = [size for size in value.shape if size > 1]
    return handle.shape == value.shape and (len(set(sizes)) == len(sizes) or _is_in_order(value, handle))


def converted(item: Any, dtype: torch.dtype) -> Any:
    """A number as torch converts it to a narrow integer dtype: -1 is 255 in uint8."""
    if dtype not in NARROW_BITS or not isinstance(item, int) or isinstance(item, bool):
        return item
    return int(torch.tensor(item).to(dtype))


def fitted(number: Number, dtype: DataType) -> Number:
    """A Python number as an operand beside a tensor of `dtype`. What is finite in torch stays finite."""
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
    """The one number that a constant is all over, if it is one."""
    if not value.is_static:
        return None
    constant = value.constant()
    if constant is None or not constant.numel():
        return None
    first = constant.flatten()[0]
    return first.item() if constant.numel() == 1 or bool((constant == first).all()) else None


def as_number(value: Value, others: Sequence[Value], shape: Sequence[int]) -> Any:
    """A constant that is one number all over as that number, unless the result has its shape from it."""
    number = uniform(value)
    if number is None or not others:
        return value
    without = torch.broadcast_shapes(*[other.shape for other in others])
    return number if math.prod(without) == math.prod(shape) else value


def wrapped(ttnn: Any, handle: Handle, dtype: torch.dtype) -> Handle:
    """32-bit results of narrower integers, wrapped around as torch's are."""
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
    """A result that is one number everywhere: a constant, not an operation."""
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
    constants  places of arguments that become Python numbers if they are constants of one value
    wraps      results of int8, int16 and uint8 may leave their range and wrap around
    """

    def register(function: Callable[..., Handle]) -> Callable[..., Handle]:
        compute = with_builder(function)

        @functools.wraps(function)
        def lowering(ttnn: Any, builder: ProgramBuilder, *args: Any, **kwargs: Any) -> Any:
            result = builder.origin.meta["val"]
            given = [*args, *kwargs.values()]
            operands = [item for item in given if isinstance(item, Value) or is_number(item)]
            for place in constants:
                if place < len(args) and isinstance(args[place], Value):
                    others = [item for item in (*given[:place], *given[place + 1 :]) if isinstance(item, Value)]
                    given[place] = as_number(args[place], others, result.shape)
            values = [item for item in given if isinstance(item, Value)]
            handles, form = builder.aligned(values, result.shape)
            dtype = computes(operands, result.dtype)
            if dtype is not None:
                held = device_dtype_for(builder, operands, dtype, exact=result.dtype is torch.bool)
                handles = [brought(ttnn, builder, value, handle, dtype, held) for value, handle in zip(values, handles)]
                given = [converted(item, dtype) for item in given]
            rest = iter(handles)
            taken = [next(rest) if isinstance(item, Value) else item for item in given]
            made = compute(ttnn, builder, *taken[: len(args)], **dict(zip(kwargs, taken[len(args) :])))
            if isinstance(made, Value):
                return made
            if wraps and made.dtype is INT32:
                made = wrapped(ttnn, made, result.dtype)
            return builder.value(made, result.shape, result.dtype, form)

        lowers(*overloads, when=when)(lowering)
        return function

    return register
