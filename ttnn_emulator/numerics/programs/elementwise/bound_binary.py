"""Sums, differences and products of two operands in fixed buffers: `binary.prepare` as stages.

`KERNELS` lists the supported kernels; all others are computed by `binary`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ttnn_emulator.enums import DataType
from ttnn_emulator.numerics.bound_stages import Stages, Values
from ttnn_emulator.numerics.broadcasting import shape_of
from ttnn_emulator.numerics.functions.apply import applying_function, table_of
from ttnn_emulator.numerics.kernels import broadcast_lines, formats
from ttnn_emulator.numerics.kernels.elementwise import ADD, MULTIPLY, SUBTRACT, SUBTRACT_REVERSED
from ttnn_emulator.numerics.mode import exactly
from ttnn_emulator.numerics.programs.elementwise import binary

PLAIN = (DataType.BFLOAT16, DataType.FLOAT32)  # dtypes without shared exponents
KERNELS = {
    "addition": ADD,
    "subtraction": SUBTRACT,
    "reversed_subtraction": SUBTRACT_REVERSED,
    "multiplication": MULTIPLY,
}


def bind(
    kind: str,
    setting: binary.Setting,
    a: Values,
    b: Values,
    *,
    before_a: Sequence[binary.Function] = (),
    before_b: Sequence[binary.Function] = (),
    after: Sequence[binary.Function] = (),
) -> tuple[Stages, Values] | None:
    """Stages that combine the current values of two wide carriers, and the buffer that they fill."""
    recipe = binary.recipe_of(kind, setting.vector)
    dtypes = {setting.a, setting.b, setting.out}
    if not dtypes <= set(PLAIN) or recipe.kernel not in KERNELS or setting.out in binary.CAST_TARGETS[setting.a]:
        return None
    functions = [
        (*before_a, *((name,) for name in recipe.of_a)),
        (*before_b, *((name,) for name in recipe.of_b)),
        (*((name,) for name in recipe.after), *after),
    ]
    stages = Stages()
    stages.keep(a, b)
    left = _operand(stages, a, setting.a, setting, functions[0], setting.flush_a)
    right = _operand(stages, b, setting.b, setting, functions[1], setting.flush_b)
    if left is None or right is None:
        return None
    result = _combined(stages, recipe.kernel, setting, left, right)
    if result is not None and not functions[2] and not setting.fp32:
        return stages, stages.flushed(result, in_place=True)
    result = None if result is None else _applied(stages, functions[2], result, setting.fp32)
    return None if result is None else (stages, stages.packed(result, setting.out, from_fp32=setting.fp32))


def _operand(
    stages: Stages,
    values: Values,
    dtype: DataType,
    setting: binary.Setting,
    functions: tuple[binary.Function, ...],
    flushed: bool,
) -> Values | None:
    """An operand as `binary.copied_in` returns it."""
    is_wide, fp32 = dtype is DataType.FLOAT32, setting.fp32
    if not setting.vector and is_wide:
        return None
    if flushed and not is_wide:
        values = stages.flushed(values)
    if functions:
        operand = values if is_wide or not fp32 else stages.flushed(values)
        result = _applied(stages, functions, operand, fp32)
        if result is None:
            return None
        values = stages.packed(result, dtype, from_fp32=fp32)
    return stages.flushed(values) if fp32 and not is_wide else values


def _applied(stages: Stages, functions: Sequence[binary.Function], values: Values, fp32: bool) -> Values | None:
    for name, *parameters in functions:
        if not fp32:
            plain = name.rstrip("~")
            values = stages.looked_up(table_of(plain, tuple(parameters), name.endswith("~")), values)
            continue
        result = applying_function(stages, name, values, *parameters)
        if result is None:
            return None
        values = result
    return values


def _combined(stages: Stages, name: str, setting: binary.Setting, a: Values, b: Values) -> Values | None:
    fp32 = setting.fp32
    if not setting.vector:
        if name == "multiplication":
            return None
        return stages.add(*broadcast_lines.adding_exactly(a, b, subtract=name == "subtraction", fp32=fp32))
    if name == "multiplication" and not fp32:
        return stages.add(*broadcast_lines.joining(a, b, broadcast_lines.VECTOR_UNIT))
    if exactly(shape_of(a, b).numel() * binary.COST[name]):
        return None
    result = stages.add(*broadcast_lines.joining(a, b, broadcast_lines.FLOAT32, KERNELS[name]))
    if not fp32:
        result = stages.loop(formats.round_nearest_even_at, result, in_place=True)
        result = stages.flushed(result, in_place=True)
    return result
