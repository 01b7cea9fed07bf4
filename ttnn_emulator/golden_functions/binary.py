"""Torch counterparts of binary and ternary operations."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from ttnn_emulator.golden_functions.calling import golden
from ttnn_emulator.golden_functions.unary import activated
from ttnn_emulator.golden_functions.unsigned import is_unsigned, on_unsigned

PROMOTED = (torch.int32, torch.uint32)  # become float32 beside a floating-point number
INT32_SCALARS = range(-(2**31), 2**32)  # integers passed to kernels exactly; others are passed as float32


def _sized(a: Any, b: Any) -> Any:
    """The operand that determines the compute dtype: the one that is not a number."""
    return b if not _has_shape(a) and _has_shape(b) else a


def _has_shape(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dim() > 0


def _whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value not in INT32_SCALARS:
        return int(torch.tensor(float(value), dtype=torch.float32).item())
    return value


def _is_fraction(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.dim() == 0 and value.is_floating_point()
    return isinstance(value, float) or (isinstance(value, int) and value not in INT32_SCALARS)


def _promoted(a: Any, b: Any) -> tuple[Any, Any]:
    """int32 and uint32 become float32 if the other operand is a float, even an integral one."""
    if getattr(_sized(a, b), "dtype", None) not in PROMOTED or not (_is_fraction(a) or _is_fraction(b)):
        return a, b
    return tuple(x.float() if isinstance(x, torch.Tensor) and x.dtype in PROMOTED else x for x in (a, b))  # type: ignore[return-value]


def _kept(a: Any, b: Any) -> tuple[Any, Any]:
    """Integers stay integers, also beside an integral float."""
    if getattr(_sized(a, b), "dtype", None) not in PROMOTED:
        return a, b
    return _whole(a), _whole(b)


def _all(values: Any, activations: Any, like: Any = None) -> Any:
    if not activations:
        return values
    if not isinstance(values, torch.Tensor):
        values = torch.as_tensor(values, dtype=getattr(like, "dtype", None))
    return functools.reduce(activated, activations, values)


def _arithmetic(
    function: Callable[[Any, Any], torch.Tensor], prepare: Callable[[Any, Any], tuple[Any, Any]]
) -> Callable:
    """With activations before and after."""

    def run(
        a: Any,
        b: Any,
        *,
        activations: Any = None,
        input_tensor_a_activations: Any = None,
        input_tensor_b_activations: Any = None,
    ) -> torch.Tensor:
        a, b = prepare(a, b)
        a, b = _all(a, input_tensor_a_activations, b), _all(b, input_tensor_b_activations, a)
        return _all(on_unsigned(function)(a, b), activations)

    return golden(run, typed=True)


def divide(
    a: Any,
    b: Any,
    rounding_mode: str | None = None,
    *,
    activations: Any = None,
    input_tensor_a_activations: Any = None,
    input_tensor_b_activations: Any = None,
) -> torch.Tensor:
    a, b = _promoted(a, b)
    a, b = _all(a, input_tensor_a_activations, b), _all(b, input_tensor_b_activations, a)
    if getattr(_sized(a, b), "dtype", None) is torch.int32 and rounding_mode is not None:
        wide = [x.to(torch.int64) if isinstance(x, torch.Tensor) else x for x in (a, b)]
        result = torch.div(*wide, rounding_mode=rounding_mode).to(torch.int32)
    else:
        result = torch.divide(a, b, rounding_mode=rounding_mode)
    return _all(result, activations)


def _in_float(function: Callable[[torch.Tensor, Any], torch.Tensor]) -> Callable[..., torch.Tensor]:
    """bfloat16 beside a number is computed in float32."""

    def run(a: torch.Tensor, b: Any) -> torch.Tensor:
        if isinstance(b, torch.Tensor) or a.dtype is not torch.bfloat16:
            return function(a, b)
        return function(a.float(), b).to(torch.bfloat16)

    return run


def _extremum(function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Callable:
    def run(a: torch.Tensor, b: Any) -> torch.Tensor:
        return function(a, b if isinstance(b, torch.Tensor) else torch.tensor(b, dtype=a.dtype))

    return _arithmetic(run, lambda a, b: (a, b))


def _compared(function: Callable[[Any, Any], torch.Tensor]) -> Callable:
    return golden(lambda a, b: on_unsigned(function)(a, b), typed=True)


def _truth(function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Callable:
    return golden(lambda a, b: function(a != 0, torch.as_tensor(b) != 0), typed=True)


def _in_place(function: Callable[..., torch.Tensor]) -> Callable:
    """Store into the first operand, in its dtype."""
    return golden(lambda a, b: a.copy_(function(a, b)))


def isclose(
    a: torch.Tensor, b: Any, *, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> torch.Tensor:
    if (isinstance(b, torch.Tensor) and a.dtype is not b.dtype) or a.dtype is torch.int32:
        integers = torch.int32 in (a.dtype, b.dtype)
        common = torch.float32 if integers else torch.promote_types(a.dtype, b.dtype)
        a, b = a.to(common), b.to(common)
    return torch.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)


def div_no_nan(a: torch.Tensor, b: Any) -> torch.Tensor:
    divisor = torch.as_tensor(b)
    return torch.where(divisor == 0, torch.zeros_like(a), a / b)


def prelu(a: torch.Tensor, weight: Any) -> torch.Tensor:
    slopes = weight if isinstance(weight, torch.Tensor) else torch.tensor(weight, dtype=a.dtype)
    return functional.prelu(a, slopes)


def polyval(a: torch.Tensor, coeffs: Any) -> torch.Tensor:
    result: Any = 0.0
    for coefficient in coeffs:
        result = result * a + coefficient
    return result


def outer(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.unsqueeze(-1) * b.unsqueeze(-2) if max(a.dim(), b.dim()) > 1 else torch.outer(a, b)


def situ_glu(gate: torch.Tensor, up: torch.Tensor, beta1: float, beta2: float) -> torch.Tensor:
    gate, up = gate.float(), up.float()
    return beta1 * torch.tanh(gate / beta1) * torch.sigmoid(gate) * (beta2 * torch.tanh(up / beta2))


def clamped_silu_glu(gate: torch.Tensor, up: torch.Tensor, limit: float) -> torch.Tensor:
    return functional.silu(gate.float().clamp(max=limit)) * up.float().clamp(-limit, limit)


def mac(a: Any, b: Any, c: Any) -> torch.Tensor:
    dtype = next(x.dtype for x in (a, b, c) if isinstance(x, torch.Tensor))
    a, b, c = (x.float() if isinstance(x, torch.Tensor) else x for x in (a, b, c))
    return (a * b + c).to(dtype)


def where(predicate: torch.Tensor, true_value: Any, false_value: Any) -> torch.Tensor:
    if not is_unsigned(predicate):
        return torch.where(predicate != 0, true_value, false_value)
    tensors = [x for x in (true_value, false_value) if isinstance(x, torch.Tensor)]
    yes, no = (x.to(torch.int64) if is_unsigned(x) else x for x in (true_value, false_value))
    chosen: torch.Tensor = torch.where(predicate.to(torch.int64) != 0, yes, no)
    return chosen.to(tensors[0].dtype if tensors else predicate.dtype)


def lerp(a: torch.Tensor, end: torch.Tensor, weight: Any) -> torch.Tensor:
    return torch.lerp(a, end.to(a.dtype), weight.to(a.dtype) if isinstance(weight, torch.Tensor) else weight)


def bcast(a: torch.Tensor, b: torch.Tensor, math_op: Any, dim: Any = None) -> torch.Tensor:
    functions: dict[str, Callable[..., torch.Tensor]] = {"ADD": torch.add, "SUB": torch.sub, "MUL": torch.mul}
    return functions[math_op.name](a, b)


_COMPARISONS = {name: getattr(torch, name) for name in ("eq", "ne", "gt", "ge", "lt", "le")}
_TRUTHS = {f"logical_{name}": getattr(torch, f"logical_{name}") for name in ("and", "or", "xor")}
_BITS = {f"bitwise_{name}": getattr(torch, f"bitwise_{name}") for name in ("and", "or", "xor")}
_PLAIN = {
    name: getattr(torch, name)
    for name in ("ldexp", "logaddexp", "logaddexp2", "xlogy", "hypot", "atan2", "nextafter", "gcd", "lcm")
}
_ARITHMETIC = {
    "add": _arithmetic(lambda a, b: a + b, _kept),
    "subtract": _arithmetic(lambda a, b: a - b, _kept),
    "rsub": _arithmetic(lambda a, b: b - a, _kept),
    "multiply": _arithmetic(lambda a, b: a * b, _promoted),
    "divide": golden(divide, typed=True),
    "squared_difference": _arithmetic(lambda a, b: torch.square(a - b), lambda a, b: (a, b)),
    **{name: golden(lambda a, b, function=function: function(a, b), typed=True) for name, function in _PLAIN.items()},
    "bias_gelu": golden(lambda a, b: functional.gelu(a + b), typed=True),
}
_IN_PLACE = "add subtract rsub multiply divide squared_difference ldexp logaddexp logaddexp2 bias_gelu".split(" ")

BINARY: dict[str, Callable] = {
    **_ARITHMETIC,
    **{f"{name}_": _ARITHMETIC[name] for name in _IN_PLACE},
    **{name: _compared(function) for name, function in _COMPARISONS.items()},
    **{f"{name}_": _in_place(on_unsigned(function)) for name, function in _COMPARISONS.items()},
    **{name: _truth(function) for name, function in _TRUTHS.items()},
    **{f"{name}_": _in_place(_truth(function)) for name, function in _TRUTHS.items()},
    **{name: golden(lambda a, b, function=function: function(a, b)) for name, function in _BITS.items()},
    "maximum": _extremum(torch.maximum),
    "minimum": _extremum(torch.minimum),
    "remainder": _arithmetic(_in_float(torch.remainder), lambda a, b: (a, b)),
    "fmod": golden(_in_float(torch.fmod)),
    "floor_div": golden(lambda a, b: torch.floor_divide(a, b)),
    "div_no_nan": golden(div_no_nan),
    "isclose": golden(isclose),
    "addalpha": golden(lambda a, b, alpha: torch.add(a, b, alpha=alpha)),
    "subalpha": golden(lambda a, b, alpha: torch.sub(a, b, alpha=alpha)),
    "prelu": golden(prelu),
    "polyval": golden(polyval),
    "outer": golden(outer),
    "bcast": golden(bcast),
    "situ_glu": golden(situ_glu),
    "clamped_silu_glu": golden(clamped_silu_glu),
    "mac": golden(mac),
    "where": golden(where),
    "lerp": golden(lerp),
    "addcmul": golden(
        lambda a, b, c, *, value=1: (
            on_unsigned(lambda x, y, z, v: x + v * y * z)(a, b, c, value)
            if is_unsigned(a)
            else torch.addcmul(a, b, c, value=value)
        )
    ),
    "addcdiv": golden(lambda a, b, c, *, value=1: torch.addcdiv(a, b, c, value=value)),
    "snake_beta": golden(lambda x, alpha, beta: x + torch.sin(alpha * x) ** 2 / beta),
}
