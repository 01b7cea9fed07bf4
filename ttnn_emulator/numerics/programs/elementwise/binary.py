"""Elementwise operations of two operands: load the operands, apply functions to them, combine them, pack.

An operation runs on the matrix unit or on the vector unit; the unit determines rounding and the treatment of NaN,
infinities, signed zeros and denormals. `prepare` selects once and returns the computation on carriers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, FLOAT_DTYPES, DataType
from ttnn_emulator.errors import ChipFault
from ttnn_emulator.numerics.broadcasting import of_one_shape, shape_of
from ttnn_emulator.numerics.formats import carriers, casts
from ttnn_emulator.numerics.functions.apply import apply_function
from ttnn_emulator.numerics.kernels.broadcast_lines import add_exactly, multiply_closely, multiply_exactly
from ttnn_emulator.numerics.kernels.elementwise import multiply_in_phases
from ttnn_emulator.numerics.mode import exactly
from ttnn_emulator.numerics.programs.elementwise import binary_by_torch, vector_binary
from ttnn_emulator.numerics.programs.elementwise.integer import INTEGER_FUNCTIONS, INTEGER_KERNELS
from ttnn_emulator.numerics.units import packer

Values = torch.Tensor
Compute = Callable[..., Values]
Function = tuple  # name of a unary function, with "~" in its approximate mode, then its parameters

WIDE_DTYPES = frozenset({DataType.FLOAT32, DataType.INT32, DataType.UINT32})
FIDELITY_PHASES = 4  # HiFi4


@dataclass(frozen=True)
class Recipe:
    """A kind of operation: the kernel that combines its operands, and unary functions before and after it.

    `matrix` is the recipe for the matrix unit, if it differs.
    """

    kernel: str
    of_a: tuple[str, ...] = ()
    of_b: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    matrix: Recipe | None = None


def _logical(kernel: str) -> Recipe:
    return Recipe(kernel, of_a=("nez",), of_b=("nez",), after=("nez",))


def _comparison(kernel: str, on_difference: str) -> Recipe:
    return Recipe(kernel, matrix=Recipe("subtraction", after=(on_difference,)))


RECIPES: dict[str, Recipe] = {
    "ADD": Recipe("addition"),
    "SUB": Recipe("subtraction"),
    "RSUB": Recipe("reversed_subtraction", matrix=Recipe("addition", of_a=("neg",))),
    "MUL": Recipe("multiplication"),
    "DIV": Recipe("division", matrix=Recipe("multiplication", of_b=("recip",))),
    "EQ": _comparison("equals", "eqz"),
    "NE": _comparison("differs", "nez"),
    "LT": _comparison("precedes", "ltz"),
    "GT": _comparison("follows", "gtz"),
    "LE": _comparison("not_after", "lez"),
    "GE": _comparison("not_before", "gez"),
    "SQUARED_DIFFERENCE": Recipe("subtraction", after=("square",)),
    "BIAS_GELU": Recipe("addition"),
    "LOGICAL_AND": _logical("multiplication"),
    "LOGICAL_OR": _logical("addition"),
    "LOGICAL_XOR": _logical("subtraction"),
    "LDEXP": Recipe("multiplication", of_b=("exp2",)),
    "HYPOT": Recipe("addition", of_a=("square",), of_b=("square",), after=("sqrt",)),
    "LOGADDEXP": Recipe("logaddexp"),
    "LOGADDEXP2": Recipe("logaddexp2"),
    "POWER": Recipe("power"),
    "REMAINDER": Recipe("remainder"),
    "FMOD": Recipe("fmod"),
    "MAXIMUM": Recipe("largest"),
    "MINIMUM": Recipe("smallest"),
    "XLOGY": Recipe("xlogy"),
    "ATAN2": Recipe("atan2"),
    "NEXTAFTER": Recipe("nextafter"),
    "ISCLOSE": Recipe("isclose"),
}
EXPONENTIALS = frozenset({"LDEXP"})  # their operands are bfloat16 between steps
SAME_DTYPE_ON_VECTOR_UNIT = frozenset(
    {DataType.FLOAT32, DataType.INT32, DataType.UINT32, DataType.UINT16},
)
ON_VECTOR_UNIT_IF_FLOAT32 = frozenset({"LDEXP", "BIAS_GELU", "HYPOT"})
ON_VECTOR_UNIT_UNLESS_FAST = frozenset({"ADD", "SUB", "RSUB", "MUL", "DIV"})
COMPARISONS = frozenset({"EQ", "NE", "LT", "GT", "LE", "GE"})
LOGICAL = frozenset({"LOGICAL_AND", "LOGICAL_OR", "LOGICAL_XOR", "SQUARED_DIFFERENCE"})


def on_vector_unit(kind: str, a: DataType, b: DataType, fast: bool) -> bool:
    """Whether the vector unit combines the operands, else the matrix unit."""
    if kind in ON_VECTOR_UNIT_UNLESS_FAST and not fast:
        return True
    if kind in ON_VECTOR_UNIT_UNLESS_FAST or kind in LOGICAL:
        return a is b and a in SAME_DTYPE_ON_VECTOR_UNIT
    if kind in COMPARISONS:
        return a is b and (a in SAME_DTYPE_ON_VECTOR_UNIT or a is DataType.BFLOAT16)
    if kind in ON_VECTOR_UNIT_IF_FLOAT32:
        return a is b is DataType.FLOAT32
    return True


@dataclass(frozen=True)
class Setting:
    """The dtypes of a kernel, and whether its destination register is 32 bits wide."""

    a: DataType
    b: DataType
    out: DataType
    vector: bool
    flush_a: bool = False  # the operand is first broadcast within its tiles, which flushes it like a packer
    flush_b: bool = False

    @property
    def fp32(self) -> bool:
        return (
            self.out in WIDE_DTYPES
            or DataType.FLOAT32 in (self.a, self.b)
            or (self.a is self.b and self.a in (DataType.INT32, DataType.UINT32))
        )


def recipe_of(kind: str, vector: bool) -> Recipe:
    recipe = RECIPES.get(kind, Recipe(kind))
    return recipe if vector or recipe.matrix is None else recipe.matrix


def functions_of_operands(kind: str, a: DataType, vector: bool) -> tuple[bool, bool, DataType | None]:
    """Whether a kind applies functions to each operand, and their intermediate dtype if it differs."""
    recipe, between = recipe_of(kind, vector), _between(kind, vector)
    widened = between is not None and a in BLOCK_FLOAT_DTYPES
    return bool(recipe.of_a) or widened, bool(recipe.of_b), between


def _between(kind: str, vector: bool) -> DataType | None:
    return DataType.BFLOAT16 if kind in EXPONENTIALS and not vector else None


def prepare(
    kind: str,
    setting: Setting,
    *,
    before_a: Sequence[Function] = (),
    before_b: Sequence[Function] = (),
    after: Sequence[Function] = (),
    parameters: tuple = (),
) -> Compute:
    """The computation of one call: two carriers → a carrier of the output's dtype."""
    recipe = recipe_of(kind, setting.vector)
    of_a = (*before_a, *((name,) for name in recipe.of_a))
    of_b = (*before_b, *((name,) for name in recipe.of_b))
    later = (*((name,) for name in recipe.after), *after)
    if setting.a not in FLOAT_DTYPES:
        return _prepare_integers(kind, recipe, setting, of_a, of_b, later)
    between = _between(kind, setting.vector)
    load_a = _operand(setting.a, setting, of_a, between, setting.flush_a)
    load_b = _operand(setting.b, setting, of_b, between, setting.flush_b)
    combine = _combined(recipe.kernel, setting, parameters)
    finish = _finish(setting, later)

    def compute(a: Values, b: Values) -> Values:
        return finish(combine(load_a(a), load_b(b)))

    return compute


# -- operands ---------------------------------------------------------------------------------------------------------


def copied_in(values: Values, dtype: DataType, *, fp32: bool, vector: bool) -> Values:
    """A tile after unpacking to the registers of the unit."""
    if dtype is DataType.FLOAT32:
        return values if vector else carriers.from_bits(carriers.bits_of(values) & -0x2000)
    return carriers.flush(values) if fp32 else values


def _operand(
    dtype: DataType, setting: Setting, functions: tuple[Function, ...], between: DataType | None, flushed: bool
) -> Compute:
    fp32, vector = setting.fp32, setting.vector
    if not functions and not flushed and not (dtype is DataType.FLOAT32 and not vector):
        return carriers.flush if fp32 and dtype is not DataType.FLOAT32 else _unchanged

    def load(values: Values) -> Values:
        if flushed and dtype is not DataType.FLOAT32:
            values = carriers.flush(values)
        if functions:
            values = copied_in(values, dtype, fp32=fp32, vector=True)
            values = applied(functions, values, fp32)
            values = packer.pack(values, between or dtype, from_fp32=fp32)
        return copied_in(values, between or dtype, fp32=fp32, vector=vector)

    return load


def _unchanged(values: Values) -> Values:
    return values


def applied(functions: Sequence[Function], values: Values, fp32: bool) -> Values:
    """Unary functions applied in order, in the destination register."""
    for name, *parameters in functions:
        approx = name.endswith("~")
        values = apply_function(name.rstrip("~"), values, *parameters, approx=approx, fp32_dest=fp32)
    return values


# -- combination ------------------------------------------------------------------------------------------------------

ALWAYS_BY_TORCH = frozenset(binary_by_torch.EXACT)
COST = {"addition": 1, "subtraction": 1, "reversed_subtraction": 1, "multiplication": 1}


def _combined(name: str, setting: Setting, parameters: tuple) -> Compute:
    if not setting.vector:
        return _on_matrix_unit(name, setting.fp32)
    if name in ALWAYS_BY_TORCH:
        return binary_by_torch.EXACT[name]
    if name == "multiplication" and not setting.fp32:
        return multiply_exactly
    kernel, cost, fp32 = vector_binary.KERNELS[name], COST.get(name, 16), setting.fp32
    fast = binary_by_torch.CLOSE[name]

    def combine(a: Values, b: Values) -> Values:
        shape = shape_of(a, b)
        if not exactly(shape.numel() * cost):
            return fast(a, b, *parameters, fp32=fp32)
        left, right = a.expand(shape).contiguous().numpy(), b.expand(shape).contiguous().numpy()
        result = kernel(left, right, *parameters, fp32=fp32)
        stored = vector_binary.stored(result, fp32)
        return torch.from_numpy(np.ascontiguousarray(stored)).reshape(shape)

    return combine


def _on_matrix_unit(name: str, fp32: bool) -> Compute:
    if name == "multiplication":
        return lambda a, b: _in_phases(a, b, fp32)
    return functools.partial(add_exactly, subtract=name == "subtraction", fp32=fp32)


def _in_phases(a: Values, b: Values, fp32: bool) -> Values:
    work = shape_of(a, b).numel() * FIDELITY_PHASES
    if exactly(work):
        return _flat(multiply_in_phases, a, b, FIDELITY_PHASES, fp32)
    return multiply_closely(a, b, fp32=fp32)


def _flat(loop: Callable, a: Values, b: Values, *arguments: object) -> Values:
    """Run a compiled loop over bit patterns of two broadcast operands."""
    a, b = of_one_shape(a, b)
    out = np.empty(a.shape, np.float32)
    left, right = (carriers.bits_of(values).numpy().reshape(-1) for values in (a, b))
    loop(left, right, *arguments, out.view(np.int32).reshape(-1))
    return torch.from_numpy(out)


# -- results ----------------------------------------------------------------------------------------------------------

# Pairs of dtypes between which the kernel casts; the packer converts between all others.
CAST_TARGETS: dict[DataType, frozenset[DataType]] = {
    **{
        dtype: frozenset({DataType.INT32, DataType.UINT16, DataType.UINT32})
        for dtype in (DataType.BFLOAT16, *BLOCK_FLOAT_DTYPES)
    },
    DataType.FLOAT32: frozenset({DataType.BFLOAT16, DataType.INT32, DataType.UINT16, DataType.UINT32}),
    DataType.INT32: frozenset({*FLOAT_DTYPES, DataType.UINT16}),
    DataType.UINT16: frozenset({*FLOAT_DTYPES, DataType.UINT32, DataType.INT32}),
    DataType.UINT32: frozenset({*FLOAT_DTYPES, DataType.UINT16}),
}


def _finish(setting: Setting, functions: tuple[Function, ...]) -> Compute:
    out, fp32 = setting.out, setting.fp32
    cast = None
    if out in CAST_TARGETS[setting.a] or out not in FLOAT_DTYPES:
        cast = casts.typecast(setting.a, out)
    if cast is None and not functions and not fp32 and out is DataType.BFLOAT16:
        return carriers.flushed_in_place

    def finish(values: Values) -> Values:
        values = applied(functions, values, fp32)
        return cast(values) if cast is not None else packer.pack(values, out, from_fp32=fp32)

    return finish


def _prepare_integers(
    kind: str,
    recipe: Recipe,
    setting: Setting,
    of_a: tuple[Function, ...],
    of_b: tuple[Function, ...],
    later: tuple[Function, ...],
) -> Compute:
    combine = INTEGER_KERNELS[recipe.kernel]
    source = setting.a
    out_of_kernel = DataType.FLOAT32 if kind == "DIV" else source
    cast = casts.typecast(out_of_kernel, setting.out)

    def through(values: Values, functions: tuple[Function, ...]) -> Values:
        for name, *parameters in functions:
            values = INTEGER_FUNCTIONS[name](values, source, *parameters)
        return values

    floating = [name for name, *_ in (*of_a, *of_b, *later) if name not in INTEGER_FUNCTIONS]

    def compute(a: Values, b: Values) -> Values:
        if floating:
            raise ChipFault(f"the kernel of {floating[0]} interprets {source} bits as a float")
        values = through(combine(through(a, of_a), through(b, of_b), source), later)
        return cast(values) if cast is not None else values

    return compute
