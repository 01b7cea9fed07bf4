"""Elementwise functions of one tensor and some numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ttnn_emulator.enums import INTEGER_DTYPES, DataType
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.hardware.core_grid import CoreRangeSet
from ttnn_emulator.numerics.formats.carriers import INTEGER_RANGE
from ttnn_emulator.numerics.functions.apply import Activation, activation_of
from ttnn_emulator.ops.elementwise.unary.kinds import TWO_PARAMETERS, WITH_PARAMETERS, WITHOUT_PARAMETERS
from ttnn_emulator.ops.elementwise.unary.program import unary_plan
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.spec import Spec

Number = int | float


def single(value: float) -> float:
    """A number as the library passes it on: in single precision."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


# -- one float, or two ------------------------------------------------------------------------------------------------

# Operation → (kind of function, names of its parameters in the kernel's order)
FLOATS = {
    "celu": ("celu", ("alpha",)),
    "elu": ("elu", ("alpha",)),
    "hardtanh": ("hardtanh", ("min_val", "max_val")),
    "heaviside": ("heaviside", ("value",)),
    "leaky_relu": ("leaky_relu", ("negative_slope",)),
    "rpow": ("rpow", ("exponent",)),
    "selu": ("selu", ("scale", "alpha")),
    "softcap": ("softcap", ("beta",)),
    "softplus": ("softplus", ("beta", "threshold")),
    "softshrink": ("softshrink", ("lambd",)),
    "threshold": ("threshold", ("threshold", "value")),
    "xielu": ("xielu", ("alpha_p", "alpha_n")),
}


def _register(name: str, kind: str, parameters: tuple[str, ...]) -> None:
    @operation(f"ttnn.{name}")
    def compute(
        input_tensor: Spec,
        *,
        memory_config: MemoryConfig | None = None,
        output_tensor: Spec | None = None,
        sub_core_grids: CoreRangeSet | None = None,
        **numbers: float,
    ) -> Plan:
        function = Activation(kind, tuple(single(numbers[parameter]) for parameter in parameters))
        return unary_plan(input_tensor, [function], memory_config, output_tensor, sub_core_grids)

    compute.__doc__ = f"{name} of every element."


for _name, (_kind, _parameters) in FLOATS.items():
    _register(_name, _kind, _parameters)


@operation("ttnn.hardshrink")
def hardshrink(
    input_tensor: Spec,
    *,
    lambd: float = 0.5,
    memory_config: MemoryConfig | None = None,
    output_tensor: Spec | None = None,
    sub_core_grids: CoreRangeSet | None = None,
) -> Plan:
    """Zero where |x| ≤ λ; for bfloat16 tensors λ is rounded to bfloat16 first."""
    limit = single(lambd)
    if input_tensor.dtype is DataType.BFLOAT16:
        raw = int(np.float32(limit).view(np.uint32))
        rounded = ((raw + 0x7FFF + ((raw >> 16) & 1)) & 0xFFFFFFFF) >> 16 << 16
        limit = float(np.uint32(rounded).view(np.float32))
    return unary_plan(input_tensor, [Activation("hardshrink", (limit,))], memory_config, output_tensor, sub_core_grids)


@operation("ttnn.logit")
def logit(
    input_tensor: Spec,
    *,
    eps: float | None = None,
    memory_config: MemoryConfig | None = None,
    output_tensor: Spec | None = None,
    sub_core_grids: CoreRangeSet | None = None,
) -> Plan:
    """log(x ÷ (1 - x)) of x clamped to [ε, 1 - ε]."""
    function = Activation("logit", (-1.0 if eps is None else single(eps),))
    return unary_plan(input_tensor, [function], memory_config, output_tensor, sub_core_grids)


# k! as the C library's single-precision gamma function gives it: some are off by one unit of the last place.
FACTORIALS = (1.0, 1.0, 2.0000002, 6.0000005, 24.0, 120.00001, 720.0, 5040.0, 40320.0, 362880.03, 3628800.0, 39916804.0)


@operation("ttnn.polygamma")
def polygamma(input_tensor: Spec, k: int, *, memory_config: MemoryConfig | None = None) -> Plan:
    """The k-th derivative of digamma."""
    require(1 <= k <= 11, f"the order of polygamma must be 1 to 11, not {k}")
    scale = single(FACTORIALS[k]) * (1.0 if k % 2 else -1.0)
    return unary_plan(input_tensor, [Activation("polygamma", (float(k), scale))], memory_config)


@operation("ttnn.round")
def round_(
    input_tensor: Spec,
    *,
    decimals: int | None = 0,
    memory_config: MemoryConfig | None = None,
    output_tensor: Spec | None = None,
    sub_core_grids: CoreRangeSet | None = None,
) -> Plan:
    """Round half to even, to a number of decimals."""
    function = Activation("round", (float(decimals or 0),))
    return unary_plan(input_tensor, [function], memory_config, output_tensor, sub_core_grids)


ROUNDINGS = {None: 0.0, "trunc": 1.0, "floor": 2.0}


@operation("ttnn.rdiv")
def rdiv(
    input_tensor: Spec,
    value: float,
    *,
    rounding_mode: str | None = None,
    memory_config: MemoryConfig | None = None,
    output_tensor: Spec | None = None,
    sub_core_grids: CoreRangeSet | None = None,
) -> Plan:
    """value ÷ x."""
    require(rounding_mode in ROUNDINGS, f"the rounding mode is None, 'trunc' or 'floor', not {rounding_mode!r}")
    function = Activation("rdiv", (single(value), ROUNDINGS[rounding_mode]))
    return unary_plan(input_tensor, [function], memory_config, output_tensor, sub_core_grids)


# -- numbers that may be integers -------------------------------------------------------------------------------------


def number_for(kind: str, value: Number, dtype: DataType) -> float:
    """A number as the kernel of this dtype gets it; one it cannot hold is refused where the library does."""
    if dtype not in INTEGER_DTYPES:
        return single(value)
    whole = int(value)
    if dtype in (DataType.UINT16, DataType.UINT8):
        low, high = INTEGER_RANGE[dtype]
        require(low <= whole <= high, f"{kind} of {dtype} takes a number from {low} to {high}, not {value}")
    return float(whole)


def _register_with_number(name: str, parameter: str) -> None:
    @operation(f"ttnn.{name}")
    def compute(
        input_tensor: Spec,
        *,
        memory_config: MemoryConfig | None = None,
        output_tensor: Spec | None = None,
        sub_core_grids: CoreRangeSet | None = None,
        **numbers: Number,
    ) -> Plan:
        function = Activation(name, (number_for(name, numbers[parameter], input_tensor.dtype),))
        return unary_plan(input_tensor, [function], memory_config, output_tensor, sub_core_grids)

    compute.__doc__ = f"{name} of every element."


for _name, _parameter in {"fill": "fill_value", "relu_max": "upper_limit", "relu_min": "lower_limit"}.items():
    _register_with_number(_name, _parameter)


# -- chains -----------------------------------------------------------------------------------------------------------


@operation("ttnn.unary_chain")
def unary_chain(
    input_tensor: Spec,
    ops_chain: Sequence[Any],
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Spec | None = None,
    sub_core_grids: CoreRangeSet | None = None,
) -> Plan:
    """Several functions one after the other, in one program."""
    chain = [_link(item.op_type.name.lower(), item.params, input_tensor.dtype) for item in ops_chain]
    return unary_plan(input_tensor, chain, memory_config, output_tensor, sub_core_grids)


def _link(name: str, params: tuple[float, ...], dtype: DataType) -> Activation:
    if not params:
        require(name in WITHOUT_PARAMETERS, f"{name} needs a parameter")
    else:
        require(name in WITH_PARAMETERS, f"{name} has no parameters")
        require(len(params) > 1 or name not in TWO_PARAMETERS, f"{name} takes two parameters")
    if name == "sigmoid" and params:
        require(params[0] in (2.0, 4.0), f"the vector mode of sigmoid is 2 or 4, not {params[0]}")
    if name == "power_iterative":
        require(params[0] >= 0 and params[0] == int(params[0]), f"the exponent must be a whole number, not {params[0]}")
    if name in ("fill", "relu_max", "relu_min"):
        return Activation(name, (number_for(name, params[0], dtype),))
    return activation_of(name, params)
