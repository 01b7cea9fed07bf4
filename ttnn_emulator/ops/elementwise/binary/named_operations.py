"""Elementwise operations of two operands, by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import Operation, Plan, operation, same
from ttnn_emulator.ops.elementwise.binary.device_operation import plan_binary
from ttnn_emulator.tensors.spec import Spec

# Name → kind of the device operation. Each takes two tensors or a tensor and a number.
PLAIN = {
    "add": "ADD",
    "subtract": "SUB",
    "multiply": "MUL",
    "rsub": "RSUB",
    "logaddexp": "LOGADDEXP",
    "logaddexp2": "LOGADDEXP2",
    "ldexp": "LDEXP",
    "xlogy": "XLOGY",
    "squared_difference": "SQUARED_DIFFERENCE",
    "eq": "EQ",
    "ne": "NE",
    "lt": "LT",
    "le": "LE",
    "gt": "GT",
    "ge": "GE",
    "logical_and": "LOGICAL_AND",
    "logical_or": "LOGICAL_OR",
    "logical_xor": "LOGICAL_XOR",
    "logical_right_shift": "LOGICAL_RIGHT_SHIFT",
    "gcd": "GCD",
    "lcm": "LCM",
    "atan2": "ATAN2",
    "hypot": "HYPOT",
    "nextafter": "NEXTAFTER",
}
IN_PLACE = {
    f"{name}_": PLAIN[name]
    for name in (
        "add subtract multiply rsub logaddexp logaddexp2 ldexp squared_difference eq ne lt le gt ge "
        "logical_and logical_or logical_xor"
    ).split(" ")
}
FAST_BY_DEFAULT = frozenset({"ADD", "SUB", "RSUB"})
WHERE_IT_RUNS = ("sub_core_grids", "sub_device_id")


def _fast(kind: str, asked: bool | None, operands: list[Any]) -> dict[str, bool]:
    """Whether the matrix unit may compute it. Only the matrix unit multiplies block floats."""
    fast = kind in FAST_BY_DEFAULT if asked is None else asked
    if kind == "MUL" and any(isinstance(item, Spec) and item.dtype in BLOCK_FLOAT_DTYPES for item in operands):
        fast = True
    return {"fast": fast, "accurate_asked": asked is False}


def _operands(given: dict[str, Any]) -> tuple[list[str], list[Any]]:
    """The first two parameters, whatever this overload calls them."""
    names = list(given)[:2]
    return names, [given.pop(name) for name in names]


def run(kind: str, given: dict[str, Any], *, in_place: bool = False, after: tuple[tuple, ...] = ()) -> Plan:
    """Plan a call from its bound arguments. `after` are functions of the result that belong to the operation."""
    cores, part = (given.pop(name, None) for name in WHERE_IT_RUNS)
    require(cores is None or part is None, "Cannot specify both sub_core_grids and sub_device_id")
    asked = given.pop("fast_and_approximate_mode", None)
    names, (left, right) = _operands(given)
    given |= _fast(kind, asked, [left, right]) | {"after": after}
    if in_place:
        require(isinstance(left, Spec), "the first operand must be a tensor")
        given |= {"output": left, "output_name": names[0]}
    else:
        given["output"] = given.pop("output_tensor", None)
    if isinstance(left, Spec) and isinstance(right, Spec):
        plan = plan_binary(kind, left, right, names=names, **given)
    elif isinstance(left, Spec):
        plan = plan_binary(kind, left, right, names=names[:1], **given)
    else:
        plan = plan_binary(kind, right, left, names=names[1:], number_first=True, **given)
    return plan if cores is None and part is None else replace(plan, program=(plan.program, cores, part))


def _register(name: str, kind: str, *, in_place: bool) -> Operation:
    def plan(**given: Any) -> Plan:
        return run(kind, given, in_place=in_place)

    plan.__doc__ = f"{kind.replace('_', ' ').lower()} of two operands, elementwise."
    return operation(f"ttnn.{name}")(plan)


for _name, _kind in PLAIN.items():
    _register(_name, _kind, in_place=False)
for _name, _kind in IN_PLACE.items():
    _register(_name, _kind, in_place=True)
for _alias, _name in (("sub", "subtract"), ("mul", "multiply"), ("sub_", "subtract_"), ("mul_", "multiply_")):
    same(f"ttnn.{_alias}", f"ttnn.{_name}")
