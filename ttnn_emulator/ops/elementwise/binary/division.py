"""Division operations: divide, floor_div, div_no_nan, remainder, fmod."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from ttnn_emulator.enums import FLOAT_DTYPES, DataType
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.operation_table import Plan, composite, operation, same, ttnn
from ttnn_emulator.numerics.functions.apply import apply_function
from ttnn_emulator.numerics.units import packer
from ttnn_emulator.ops.elementwise.binary.named_operations import run
from ttnn_emulator.ops.elementwise.binary.operand_rules import INT32, UINT32, Number, as_number
from ttnn_emulator.ops.elementwise.binary.scalar import plan_with_number
from ttnn_emulator.tensors.spec import Spec

INTEGER_ROUNDING = {"floor": "DIV_FLOOR", "trunc": "DIV_TRUNC"}


def _divides_integers(given: dict[str, Any]) -> bool:
    left, right = list(given.values())[:2]
    dtypes = {operand.dtype for operand in (left, right) if isinstance(operand, Spec)}
    fractions = any(isinstance(as_number(n), float) for n in (left, right) if not isinstance(n, Spec))
    return dtypes == {INT32} and not fractions


@operation("ttnn.divide")
def divide(**given: Any) -> Plan:
    """a ÷ b; integers give float32, or integers if rounded."""
    rounding = given.pop("rounding_mode", None)
    fast = given.pop("fast_and_approximate_mode", False)
    if _divides_integers(given):
        require(not fast, "the division of integers has no approximate mode")
        if rounding in INTEGER_ROUNDING:
            return run(INTEGER_ROUNDING[rounding], given)
        return run("DIV", given)
    require(rounding in (None, "floor", "trunc"), f"rounding_mode must be None, 'floor' or 'trunc', not {rounding!r}")
    # Rounded bfloat16 quotients are always computed accurately.
    narrow = any(isinstance(item, Spec) and item.dtype is DataType.BFLOAT16 for item in list(given.values())[:1])
    given["fast_and_approximate_mode"] = fast and not (rounding and narrow)
    plan = run("DIV", given)
    return plan if rounding is None else _rounded(plan, rounding)


same("ttnn.div", "ttnn.divide")
divide.python_fully_qualified_name = "ttnn.div"  # the library reports this one of its two names


def _rounded(plan: Plan, rounding: str) -> Plan:
    """The quotient, packed, goes through the kernel of floor or trunc and is packed again."""
    out, quotient = plan.outputs, plan.compute
    assert isinstance(out, Spec) and quotient is not None
    dtype = out.dtype
    require(dtype in FLOAT_DTYPES, f"{rounding} does not support {dtype}")

    def compute(*operands: torch.Tensor) -> torch.Tensor:
        wide = dtype is DataType.FLOAT32
        whole = apply_function(rounding, quotient(*operands), fp32_dest=wide)
        return packer.pack(whole, dtype, from_fp32=wide)

    return replace(plan, compute=compute, program=(plan.program, rounding))


@operation("ttnn.divide_")
def divide_in_place(**given: Any) -> Plan:
    """a ÷ b, into a."""
    return run("DIV", given, in_place=True)


same("ttnn.div_", "ttnn.divide_")


@composite("ttnn.floor_div")
def floor_div(input_tensor_a: Any, input_tensor_b: Any = None, value: Number = 0, *, memory_config: Any = None) -> Any:
    """floor(a ÷ b); infinite quotients are kept."""
    options = {"memory_config": memory_config}
    if input_tensor_b is None:
        if float(value) == 0.0:
            infinite = ttnn.multiply(ttnn.sign(input_tensor_a, **options), float("inf"), **options)
            return ttnn.where(ttnn.eqz(input_tensor_a, **options), float("nan"), infinite)
        return ttnn.floor(ttnn.multiply(input_tensor_a, 1.0 / as_number(value), **options))
    if input_tensor_a.dtype is INT32 and input_tensor_b.dtype is INT32:
        raise ChipFault(
            "floor_div of int32 returns integers under the name of float32",
            hint="Use ttnn.divide(a, b, rounding_mode='floor').",
        )
    quotient = ttnn.divide(input_tensor_a, input_tensor_b, **options)
    floored = ttnn.divide(input_tensor_a, input_tensor_b, rounding_mode="floor", **options)
    return ttnn.where(ttnn.isinf(quotient, **options), quotient, floored)


@composite("ttnn.div_no_nan")
def div_no_nan(input_tensor_a: Any, input_tensor_b: Any = None, value: Number = 0, *, memory_config: Any = None) -> Any:
    """a ÷ b, but 0 where b is 0."""
    options = {"memory_config": memory_config}
    if input_tensor_b is None:
        if float(value) == 0.0:
            return ttnn.zeros_like(input_tensor_a, **options)
        return ttnn.multiply(input_tensor_a, 1.0 / as_number(value), **options)
    quotient = ttnn.divide(input_tensor_a, input_tensor_b, **options)
    return ttnn.where(ttnn.eqz(input_tensor_b, **options), 0.0, quotient)


# -- remainders -------------------------------------------------------------------------------------------------------


@operation("ttnn.remainder")
def remainder(**given: Any) -> Plan:
    """a - floor(a ÷ b) × b: the sign of the divisor."""
    left, right = list(given.values())[:2]
    fused = any(given.get(name) for name in given if name.endswith("activations"))
    if isinstance(right, Spec) or left.dtype is INT32 or given.get("dtype") is not None or fused:
        return run("REMAINDER", given)
    divisor = as_number(right)
    if left.dtype is UINT32:
        require(isinstance(divisor, int), f"uint32 takes an integer scalar divisor, not {right}")
        require(divisor > 0, f"Divisor must be positive for uint32, not {right}")
    return _by_number("REMAINDER", given, divisor)


@operation("ttnn.fmod")
def fmod(**given: Any) -> Plan:
    """a - trunc(a ÷ b) × b: the sign of the dividend."""
    left, right = list(given.values())[:2]
    if isinstance(right, Spec) or left.dtype is INT32:
        return run("FMOD", given)
    return _by_number("FMOD", given, float(as_number(right)))


def _by_number(kind: str, given: dict[str, Any], divisor: Number) -> Plan:
    (name, left), *_ = given.items()
    takes = FLOAT_DTYPES | {UINT32} if kind == "REMAINDER" else FLOAT_DTYPES
    require(left.dtype in takes, f"{kind.lower()} does not support {left.dtype}")
    return plan_with_number(
        kind,
        left,
        divisor,
        name=name,
        memory_config=given.get("memory_config"),
        output=given.get("output_tensor"),
    )
