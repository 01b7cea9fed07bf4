"""Torch counterparts of unary operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from ttnn_emulator.enums import ALL_ENUMS, DataType
from ttnn_emulator.golden_functions.calling import golden, stored_as
from ttnn_emulator.golden_functions.unsigned import is_unsigned, on_unsigned, shifted, shifted_right
from ttnn_emulator.numerics.formats.carriers import TORCH_DTYPE

INFINITY = float("inf")
I1_RANGE = 88.5  # the vector unit's exponentials end here
MULTIGAMMALN_CONSTANT = 3.434189657547  # ln π × 4 × 3 ÷ 4: the constant of order 4
SELU = (1.0507009873554804934193349852946, 1.6732632423543772848170429916717)  # scale and alpha
XIELU_BETA, XIELU_EPSILON = 0.5, -1e-6


def of_one(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., torch.Tensor]:
    """A golden function of its tensor alone."""
    return golden(lambda input_tensor: function(input_tensor))


_TORCH = (
    "abs atan cos erfinv exp2 expm1 floor ceil i0 isfinite isinf isnan isneginf isposinf log log10 log2 neg sigmoid "
    "sign signbit sin sqrt tan exp erf erfc rsqrt asinh deg2rad digamma lgamma log1p rad2deg trunc frac bitwise_not "
    "reciprocal"
).split(" ")
_FUNCTIONAL = "silu hardsigmoid softsign tanhshrink".split(" ")


def _outside_is_infinite(function: Callable, is_outside: Callable[[torch.Tensor], torch.Tensor]) -> Callable:
    """Outside the domain, bfloat16 results are infinite; float32 results are NaN, as in torch."""

    def run(input_tensor: torch.Tensor) -> torch.Tensor:
        result = function(input_tensor)
        if input_tensor.dtype is torch.bfloat16:
            result = result.masked_fill(is_outside(input_tensor), INFINITY)
        return result

    return golden(run)


def _in_double(function: Callable) -> Callable:
    """Compute float32 in float64; subnormal results become zero."""

    def run(input_tensor: torch.Tensor) -> torch.Tensor:
        if input_tensor.dtype is not torch.float32:
            return function(input_tensor)
        return _flushed(function(input_tensor.double()).float())

    return golden(run)


def _flushed(values: torch.Tensor) -> torch.Tensor:
    return torch.where(values.abs() < torch.finfo(values.dtype).tiny, torch.zeros_like(values), values)


def tanh(input_tensor: torch.Tensor, fast_and_approximate_mode: bool = False) -> torch.Tensor:
    if input_tensor.dtype is not torch.bfloat16 or fast_and_approximate_mode:
        return torch.tanh(input_tensor)
    return _flushed(torch.tanh(_flushed(input_tensor.float())).to(torch.bfloat16))


def gelu(input_tensor: torch.Tensor, *, variant: Any = None) -> torch.Tensor:
    form = "tanh" if getattr(variant, "name", variant) == "Tanh" else "none"
    return functional.gelu(input_tensor.float(), approximate=form).to(input_tensor.dtype)


def hardswish(input_tensor: torch.Tensor) -> torch.Tensor:
    if input_tensor.dtype in (torch.int32, torch.uint32):  # the kernel stores the bits of the sigmoid
        return functional.hardsigmoid(input_tensor.float()).view(input_tensor.dtype)
    return functional.hardswish(input_tensor)


def hardmish(input_tensor: torch.Tensor) -> torch.Tensor:
    wide = input_tensor.float()
    result = wide * (wide * 0.5 + 1.0).clamp(0.0, 1.0)
    if input_tensor.dtype is not torch.bfloat16:
        return result
    return (result.view(torch.int32) >> 16).to(torch.int16).view(torch.bfloat16)  # truncated, not rounded


def multigammaln(input_tensor: torch.Tensor) -> torch.Tensor:
    terms = [torch.lgamma(input_tensor - step / 2) for step in range(4)]
    return terms[0] + terms[1] + terms[2] + terms[3] + MULTIGAMMALN_CONSTANT


def power(input_tensor: Any, exponent: Any, dtype: DataType | None = None) -> torch.Tensor:
    if is_unsigned(input_tensor) and not isinstance(exponent, torch.Tensor):
        wide = torch.pow(input_tensor.to(torch.int64), exponent)
        return stored_as(on_unsigned(lambda _: wide)(input_tensor), dtype)
    return stored_as(on_unsigned(torch.pow)(input_tensor, exponent), dtype)


def xielu(input_tensor: torch.Tensor, *, alpha_p: float = 0.8, alpha_n: float = 0.8) -> torch.Tensor:
    x = input_tensor.float() if input_tensor.dtype is torch.bfloat16 else input_tensor
    above = alpha_p * x * x + XIELU_BETA * x
    below = alpha_n * torch.expm1(x.clamp(max=XIELU_EPSILON)) - alpha_n * x + XIELU_BETA * x
    return torch.where(x > 0, above, below).to(input_tensor.dtype)


def selu(input_tensor: torch.Tensor, *, scale: float = SELU[0], alpha: float = SELU[1]) -> torch.Tensor:
    if (scale, alpha) == SELU:
        return functional.selu(input_tensor)
    return torch.where(input_tensor >= 0, scale * input_tensor, scale * alpha * (torch.exp(input_tensor) - 1))


def leaky_relu(input_tensor: torch.Tensor, negative_slope: float = 0.01) -> torch.Tensor:
    if not input_tensor.is_floating_point() and not input_tensor.dtype.is_signed:
        return input_tensor
    return functional.leaky_relu(input_tensor, negative_slope=negative_slope)


def relu_max(input_tensor: torch.Tensor, upper_limit: float) -> torch.Tensor:
    limit = torch.tensor(upper_limit, dtype=input_tensor.dtype)
    return torch.relu(torch.minimum(input_tensor, limit))


def threshold(input_tensor: torch.Tensor, threshold: float, value: float) -> torch.Tensor:
    return torch.threshold(input_tensor, threshold, torch.tensor(value, dtype=input_tensor.dtype).item())


def logit(input_tensor: torch.Tensor, *, eps: float | None = None) -> torch.Tensor:
    if eps is not None and eps > 0.5:  # the bounds are reversed, which torch refuses
        bounded = input_tensor.clamp(1.0 - eps, eps)
        return torch.log(bounded / (1.0 - bounded))
    return torch.special.logit(input_tensor, eps=eps)


def rdiv(input_tensor: torch.Tensor, value: float, *, rounding_mode: str | None = None) -> torch.Tensor:
    return torch.div(torch.full_like(input_tensor, value), input_tensor, rounding_mode=rounding_mode)


def round_(input_tensor: torch.Tensor, decimals: int | None = None) -> torch.Tensor:
    return torch.round(input_tensor, decimals=decimals or 0)


def left_shift(input_tensor: torch.Tensor, shift_amt: Any) -> torch.Tensor:
    if is_unsigned(input_tensor):
        return shifted(input_tensor, shift_amt, left=True)
    return torch.bitwise_left_shift(input_tensor, shift_amt)


def right_shift(input_tensor: torch.Tensor, shift_amt: Any) -> torch.Tensor:
    if is_unsigned(input_tensor):
        return shifted_right(input_tensor, shift_amt)
    return torch.bitwise_right_shift(input_tensor, shift_amt)


def logical_right_shift(input_tensor: torch.Tensor, shift_amt: Any) -> torch.Tensor:
    if is_unsigned(input_tensor):
        return shifted(input_tensor, shift_amt, left=False)
    return ((input_tensor.to(torch.int64) & 0xFFFFFFFF) >> shift_amt).to(torch.int32)


def _gated(gate: Callable[..., torch.Tensor]) -> Callable:
    """The first half of the width times a function of the second."""

    def run(input_tensor: torch.Tensor, dim: int = -1, *, variant: Any = None) -> torch.Tensor:
        value, at = input_tensor.chunk(2, dim)
        return value * (gate(at, variant=variant) if gate is gelu else gate(at))

    return golden(run)


def _rotated_pairs(input_tensor: torch.Tensor) -> torch.Tensor:
    real, imaginary = input_tensor.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack([-imaginary, real], dim=-1).flatten(-2)


def _normalised(dims: tuple[int, ...] | None) -> Callable:
    def run(input_tensor: torch.Tensor) -> torch.Tensor:
        over = tuple(range(input_tensor.dim())) if dims is None else dims
        spread = torch.std(input_tensor, over, keepdim=True, correction=0)
        return (input_tensor - torch.mean(input_tensor, over, keepdim=True)) / spread

    return golden(run)


def logical_not_(input_tensor: torch.Tensor) -> torch.Tensor:
    return input_tensor.copy_(input_tensor == 0)


def unary_chain(input_tensor: torch.Tensor, ops_chain: Any) -> torch.Tensor:
    for each in ops_chain:
        input_tensor = activated(input_tensor, each)
    return input_tensor


UNARY: dict[str, Callable] = {
    **{name: of_one(getattr(torch, name)) for name in _TORCH},
    **{name: of_one(getattr(functional, name)) for name in _FUNCTIONAL},
    "eqz": of_one(lambda x: x == 0),
    "nez": of_one(lambda x: x != 0),
    **{
        f"{name}z": of_one(on_unsigned(lambda x, compare=compare: compare(x, 0)))
        for name, compare in (("gt", torch.gt), ("ge", torch.ge), ("lt", torch.lt), ("le", torch.le))
    },
    "identity": of_one(torch.clone),
    "swish": of_one(functional.silu),
    "sigmoid_accurate": of_one(torch.sigmoid),
    "log_sigmoid": of_one(functional.logsigmoid),
    "logical_not": of_one(lambda x: x == 0 if is_unsigned(x) else torch.logical_not(x)),
    "logical_not_": golden(logical_not_),
    "relu": of_one(lambda x: x if is_unsigned(x) else torch.relu(x)),
    "relu6": of_one(lambda x: on_unsigned(torch.clamp)(x, 0, 6) if is_unsigned(x) else functional.relu6(x)),
    "square": of_one(on_unsigned(torch.square)),
    "cbrt": of_one(lambda x: torch.sgn(x) * x.abs().pow(1.0 / 3)),
    "mish": of_one(lambda x: functional.mish(x.float())),
    "hardmish": golden(hardmish),
    "hardswish": golden(hardswish),
    "multigammaln": golden(multigammaln),
    "tanh": golden(tanh),
    "sinh": _in_double(torch.sinh),
    "cosh": _in_double(torch.cosh),
    "asin": _outside_is_infinite(torch.asin, lambda x: x.abs() > 1),
    "acos": _outside_is_infinite(torch.acos, lambda x: x.abs() > 1),
    "acosh": _outside_is_infinite(torch.acosh, lambda x: x < 1),
    "atanh": _outside_is_infinite(torch.atanh, lambda x: x.abs() > 1),
    "gelu": golden(gelu),
    "i1": of_one(lambda x: torch.special.i1(x.clamp(-I1_RANGE, I1_RANGE))),
    "softplus": golden(
        lambda input_tensor, *, beta=1.0, threshold=20.0: functional.softplus(input_tensor, beta, threshold)
    ),
    "bitcast": golden(lambda input_tensor, dtype: input_tensor.view(TORCH_DTYPE[dtype])),
    "tril": golden(lambda input_tensor, diagonal=0: torch.tril(input_tensor, diagonal)),
    "triu": golden(lambda input_tensor, diagonal=0: torch.triu(input_tensor, diagonal)),
    "pow": golden(power),
    "rpow": golden(lambda input_tensor, exponent: on_unsigned(lambda x, e: torch.pow(e, x))(input_tensor, exponent)),
    "xielu": golden(xielu),
    "elu": golden(lambda input_tensor, *, alpha=1.0: functional.elu(input_tensor, alpha)),
    "celu": golden(lambda input_tensor, *, alpha=1.0: torch.celu(input_tensor, alpha)),
    "selu": golden(selu),
    "hardtanh": golden(
        lambda input_tensor, *, min_val=-1.0, max_val=1.0: functional.hardtanh(input_tensor, min_val, max_val)
    ),
    "leaky_relu": golden(leaky_relu),
    "relu_min": golden(
        lambda input_tensor, lower_limit: on_unsigned(lambda x, low: torch.max(x, torch.tensor(low)))(
            input_tensor, lower_limit
        )
    ),
    "relu_max": golden(lambda input_tensor, upper_limit: on_unsigned(relu_max)(input_tensor, upper_limit)),
    "heaviside": golden(
        lambda input_tensor, value: torch.heaviside(input_tensor, torch.tensor(value, dtype=input_tensor.dtype))
    ),
    "fill": golden(lambda input_tensor, fill_value: torch.full_like(input_tensor, fill_value)),
    "polygamma": golden(lambda input_tensor, k: torch.special.polygamma(k, input_tensor)),
    "clamp": golden(lambda input_tensor, min=None, max=None: on_unsigned(torch.clamp)(input_tensor, min, max)),
    "clip": golden(lambda input_tensor, min=None, max=None: on_unsigned(torch.clip)(input_tensor, min, max)),
    "round": golden(round_),
    "threshold": golden(threshold),
    "rdiv": golden(rdiv),
    "bitwise_left_shift": golden(left_shift),
    "logical_left_shift": golden(left_shift),
    "bitwise_right_shift": golden(right_shift),
    "logical_right_shift": golden(logical_right_shift),
    "glu": _gated(torch.sigmoid),
    "reglu": golden(lambda input_tensor, dim=-1: on_unsigned(_gated(torch.relu))(input_tensor, dim)),
    "geglu": _gated(gelu),
    "swiglu": _gated(functional.silu),
    "hardshrink": golden(lambda input_tensor, *, lambd=0.5: functional.hardshrink(input_tensor, lambd)),
    "softshrink": golden(lambda input_tensor, *, lambd=0.5: functional.softshrink(input_tensor, lambd)),
    "logit": golden(logit),
    "softcap": golden(lambda input_tensor, beta: beta * torch.tanh(input_tensor.float() / beta)),
    "normalize_global": _normalised(None),
    "normalize_hw": _normalised((-2, -1)),
    "alt_complex_rotate90": of_one(_rotated_pairs),
    "unary_chain": golden(unary_chain),
}

# Activations whose name is not that of an operation.
_ACTIVATIONS: dict[str, Callable] = {
    "recip": torch.reciprocal,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "logical_not_unary": UNARY["logical_not"],
    "neg": on_unsigned(torch.neg),
    "power": power,
    "power_iterative": power,
    "add_unary_sfpu": lambda x, number: x + number,
    "sub_unary_sfpu": lambda x, number: x - number,
    "mul_unary_sfpu": lambda x, number: x * number,
    "div_unary_sfpu": lambda x, number: x / number,
    "rsub": lambda x, number: number - x,
    "rdiv": lambda x, number: number / x,
}
_WITH_PARAMETERS = ("power", "power_iterative", "relu_max", "rsub", "rdiv")
UnaryOpType = ALL_ENUMS["UnaryOpType"]


def activated(values: torch.Tensor, activation: Any) -> torch.Tensor:
    """The values after an activation: its type, or its type with parameters."""
    name = getattr(activation, "op_type", activation).name.lower()
    parameters = list(getattr(activation, "params", ())) if name in _WITH_PARAMETERS or "sfpu" in name else []
    function = _ACTIVATIONS.get(name, UNARY.get(name))
    if function is None:
        raise NotImplementedError(f"the activation {name.upper()} has no golden function")
    return function(values, *parameters)
