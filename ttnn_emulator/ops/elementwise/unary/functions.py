"""Elementwise functions of one tensor without parameters, or with only a mode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from ttnn_emulator.enums import ALL_ENUMS, DataType
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.hardware.core_grid import CoreRangeSet
from ttnn_emulator.numerics.functions.apply import Activation
from ttnn_emulator.numerics.units.packer import pack
from ttnn_emulator.ops.elementwise.unary.program import unary_plan
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import TILE_SIZE
from ttnn_emulator.tensors.spec import FACE_WIDTH, Spec

GeluVariant, SigmoidMode = ALL_ENUMS["GeluVariant"], ALL_ENUMS["SigmoidMode"]

# Operation → the kind of function that its program runs.
PLAIN = {
    **{
        name: name
        for name in (
            "acos acosh asin asinh atan atanh bitwise_not cbrt ceil cos cosh digamma eqz erfc erfinv exp2 expm1 floor "
            "frac gez gtz hardmish hardsigmoid hardswish i0 i1 identity isfinite isinf isnan isneginf isposinf lez "
            "lgamma ltz neg nez relu relu6 sign signbit silu sin sinh softsign square tan tanhshrink trunc"
        ).split(" ")
    },
    "swish": "silu",
    "reciprocal": "recip",
    "logical_not": "logical_not_unary",
    "log_sigmoid": "logsigmoid",
}


def _register(name: str, kind: str) -> None:
    @operation(f"ttnn.{name}")
    def compute(
        input_tensor: Spec,
        *,
        memory_config: MemoryConfig | None = None,
        output_tensor: Spec | None = None,
        sub_core_grids: CoreRangeSet | None = None,
    ) -> Plan:
        return unary_plan(input_tensor, [Activation(kind)], memory_config, output_tensor, sub_core_grids)

    compute.__doc__ = f"{name} of every element."


for _name, _kind in PLAIN.items():
    _register(_name, _kind)


@operation("ttnn.abs")
def absolute(
    input_tensor: Spec,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Spec | None = None,
    sub_core_grids: CoreRangeSet | None = None,
) -> Plan:
    """The magnitude of every element."""
    kind = "abs_int32" if input_tensor.dtype is DataType.INT32 else "abs"
    return unary_plan(input_tensor, [Activation(kind)], memory_config, output_tensor, sub_core_grids)


@operation("ttnn.alt_complex_rotate90")
def alt_complex_rotate90(
    input_tensor: Spec,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Spec | None = None,
    sub_core_grids: CoreRangeSet | None = None,
) -> Plan:
    """Pairs (a, b) along the last dimension as (-b, a): complex numbers times i."""
    kind = Activation("alt_complex_rotate90")
    plan = unary_plan(input_tensor, [kind], memory_config, output_tensor, sub_core_grids)
    assert isinstance(plan.outputs, Spec)
    out, wide = plan.outputs.dtype, input_tensor.dtype is DataType.FLOAT32
    whole = input_tensor.is_tile or not input_tensor.shape or input_tensor.shape[-1] % 2 == 0

    def compute(x: torch.Tensor) -> torch.Tensor:
        if not whole:
            raise ChipFault("pairs of a row-major tensor of odd width cross from row to row")
        pairs = torch.nn.functional.pad(x.reshape(x.shape or (1,)), (0, x.shape[-1] % 2 if x.dim() else 1))
        turned = torch.stack((-pairs[..., 1::2], pairs[..., 0::2]), dim=-1).reshape(pairs.shape)
        return pack(turned[..., : x.shape[-1] if x.dim() else 1].reshape(x.shape), out, from_fp32=wide)

    return replace(plan, compute=compute)


# -- angles -----------------------------------------------------------------------------------------------------------

DEGREE = 0.017453292519943295


@operation("ttnn.deg2rad")
def deg2rad(
    input_tensor: Spec,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Spec | None = None,
    sub_core_grids: CoreRangeSet | None = None,
) -> Plan:
    """Degrees as radians."""
    scale = Activation("mul_unary_sfpu", (DEGREE,))
    return unary_plan(input_tensor, [scale], memory_config, output_tensor, sub_core_grids)


@operation("ttnn.rad2deg")
def rad2deg(
    input_tensor: Spec,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Spec | None = None,
    sub_core_grids: CoreRangeSet | None = None,
) -> Plan:
    """Radians as degrees."""
    scale = Activation("mul_unary_sfpu", (57.29577951308232,))
    return unary_plan(input_tensor, [scale], memory_config, output_tensor, sub_core_grids)


# -- with a fast mode -------------------------------------------------------------------------------------------------


def _register_with_mode(name: str) -> None:
    @operation(f"ttnn.{name}")
    def compute(
        input_tensor: Spec,
        *,
        fast_and_approximate_mode: bool = False,
        memory_config: MemoryConfig | None = None,
        output_tensor: Spec | None = None,
        sub_core_grids: CoreRangeSet | None = None,
    ) -> Plan:
        function = _in_mode(name, fast_and_approximate_mode)
        return unary_plan(input_tensor, [function], memory_config, output_tensor, sub_core_grids)

    compute.__doc__ = f"{name} of every element."


def _in_mode(name: str, fast: bool) -> Activation:
    """Roots have a fast variant without checks for negative arguments; the others have an approximate mode."""
    if name in ("sqrt", "rsqrt"):
        return Activation(name, (float(fast),))
    return Activation(name, (), fast)


for _name in ("erf", "exp", "log", "log10", "log1p", "log2", "mish", "rsqrt", "sqrt", "tanh"):
    _register_with_mode(_name)


@operation("ttnn.gelu")
def gelu(
    input_tensor: Spec,
    *,
    variant: Any = None,
    fast_and_approximate_mode: bool = False,
    memory_config: MemoryConfig | None = None,
    output_tensor: Spec | None = None,
    sub_core_grids: CoreRangeSet | None = None,
) -> Plan:
    """x times the distribution function of the standard normal distribution."""
    if variant is GeluVariant.Tanh:
        function = Activation("gelu_tanh")
    else:
        function = Activation("gelu", (), fast_and_approximate_mode or variant is GeluVariant.FastLut)
    return unary_plan(input_tensor, [function], memory_config, output_tensor, sub_core_grids)


# -- sigmoid ----------------------------------------------------------------------------------------------------------

BY_FAST_EXP = (
    Activation("neg"),
    Activation("exp", (), True),
    Activation("add_unary_sfpu", (1.0,)),
    Activation("recip"),
)
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/eltwise/unary/common/unary_op_utils.cpp, VecMode
LEFT_FACES, ALL_FACES = 2, 4


@operation("ttnn.sigmoid")
def sigmoid(
    input_tensor: Spec,
    *,
    vector_mode: int = ALL_FACES,
    mode: Any = None,
    memory_config: MemoryConfig | None = None,
    output_tensor: Spec | None = None,
    sub_core_grids: CoreRangeSet | None = None,
) -> Plan:
    """1 ÷ (1 + exp(-x))."""
    if mode is SigmoidMode.AccurateWithFastExp:
        return unary_plan(input_tensor, BY_FAST_EXP, memory_config, output_tensor, sub_core_grids)
    require(vector_mode in (LEFT_FACES, ALL_FACES), f"the vector mode is 2 (left faces) or 4 (all), not {vector_mode}")
    function = Activation("sigmoid", (), mode is SigmoidMode.FastApproximate)
    plan = unary_plan(input_tensor, [function], memory_config, output_tensor, sub_core_grids)
    if vector_mode == LEFT_FACES:
        compute = _on_left_faces(plan.compute, input_tensor.is_tile)
        return replace(plan, compute=compute, program=(plan.program, vector_mode))
    return plan


def _on_left_faces(compute: Any, is_tile: bool) -> Callable[[torch.Tensor], torch.Tensor]:
    """The function on the left half of every tile; the right half keeps its input."""

    def run(x: torch.Tensor) -> torch.Tensor:
        if not is_tile:
            raise ChipFault("vector mode 2 reaches every second 256 elements of a row-major tensor")
        columns = torch.arange(x.shape[-1] if x.dim() else 1) % TILE_SIZE
        return torch.where(columns < FACE_WIDTH, compute(x), x)

    return run


@operation("ttnn.sigmoid_accurate")
def sigmoid_accurate(
    input_tensor: Spec,
    fast_and_approximate_mode: bool = False,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Spec | None = None,
    sub_core_grids: CoreRangeSet | None = None,
) -> Plan:
    """1 ÷ (1 + exp(-x)), always accurate but for the exponential in the fast mode."""
    chain = BY_FAST_EXP if fast_and_approximate_mode else (Activation("sigmoid"),)
    return unary_plan(input_tensor, chain, memory_config, output_tensor, sub_core_grids)
