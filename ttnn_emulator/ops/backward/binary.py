"""Gradients of arithmetic on two tensors, or on a tensor and a number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import composite, ttnn
from ttnn_emulator.ops.backward.registration import NAN, both, either, function, signed_infinity
from ttnn_emulator.ops.backward.unary import LN2, ROUNDING_MODES, prepared
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.tensor import Tensor

Required = Sequence[bool]


def pair_prepared(
    required: Required,
    grads: tuple[Tensor | None, Tensor | None],
    inputs: tuple[Tensor, Tensor],
    memory_config: MemoryConfig | None,
) -> tuple[Tensor | None, Tensor | None]:
    """Tensors for the requested gradients: preallocated ones, or new ones like the inputs."""
    require(len(required) >= 2, f"are_required_outputs names two outputs, not {len(required)}")
    require(required[0] or required[1], "at least one gradient must be requested")
    first, second = (
        prepared(given, like, memory_config) if wanted else None for wanted, given, like in zip(required, grads, inputs)
    )
    return first, second


def pair(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register f(grad, a, b, memory_config=…) → two tensors as the gradients of a function of two tensors."""

    def wrap(compute: Callable[..., Any]) -> Callable[..., Any]:
        def run(
            grad_tensor: Tensor,
            input_tensor_a: Tensor,
            input_tensor_b: Tensor,
            *,
            memory_config: MemoryConfig | None = None,
        ) -> list:
            return list(compute(grad_tensor, input_tensor_a, input_tensor_b, memory_config=memory_config))

        run.__doc__ = compute.__doc__
        composite(f"ttnn.{name}_bw")(run)
        return compute

    return wrap


# -- sums -------------------------------------------------------------------------------------------------------------


def copied(grad: Tensor, out: Tensor | None) -> Tensor:
    """The gradient, copied into a preallocated tensor."""
    return ttnn.assign(grad, out)


def sum_gradients(
    grad: Tensor,
    inputs: tuple[Tensor, Tensor],
    alpha: float,
    required: Required,
    memory_config: MemoryConfig | None,
    grads: tuple[Tensor | None, Tensor | None],
) -> list:
    """g and α g."""
    first, second = pair_prepared(required, grads, inputs, memory_config)
    if first is not None:
        copied(grad, first)
    if second is not None:
        ttnn.multiply(grad, alpha, memory_config=memory_config, output_tensor=second)
    return [first, second]


def difference_gradients(
    grad: Tensor,
    inputs: tuple[Tensor, Tensor],
    alpha: float,
    required: Required,
    memory_config: MemoryConfig | None,
    grads: tuple[Tensor | None, Tensor | None],
) -> list:
    """g and -α g."""
    first, second = pair_prepared(required, grads, inputs, memory_config)
    if first is not None:
        copied(grad, first)
    if second is not None:
        ttnn.neg(grad, memory_config=memory_config, output_tensor=second)
        ttnn.multiply(second, alpha, memory_config=memory_config, output_tensor=second)
    return [first, second]


@composite("ttnn.addalpha_bw")
def addalpha_bw(
    grad_tensor: Tensor,
    input_tensor_a: Tensor,
    input_tensor_b: Tensor,
    alpha: float = 1.0,
    *,
    are_required_outputs: Required = (True, True),
    memory_config: MemoryConfig | None = None,
    input_a_grad: Tensor | None = None,
    input_b_grad: Tensor | None = None,
) -> list:
    """Of a + α b."""
    inputs, grads = (input_tensor_a, input_tensor_b), (input_a_grad, input_b_grad)
    return sum_gradients(grad_tensor, inputs, alpha, are_required_outputs, memory_config, grads)


@composite("ttnn.subalpha_bw")
def subalpha_bw(
    grad_tensor: Tensor,
    input_tensor_a: Tensor,
    input_tensor_b: Tensor,
    alpha: float = 1.0,
    *,
    are_required_outputs: Required = (True, True),
    memory_config: MemoryConfig | None = None,
    input_grad: Tensor | None = None,
    other_grad: Tensor | None = None,
) -> list:
    """Of a - α b."""
    inputs, grads = (input_tensor_a, input_tensor_b), (input_grad, other_grad)
    return difference_gradients(grad_tensor, inputs, alpha, are_required_outputs, memory_config, grads)


@composite("ttnn.rsub_bw")
def rsub_bw(
    grad_tensor: Tensor,
    input_tensor_a: Tensor,
    input_tensor_b: Tensor,
    *,
    are_required_outputs: Required = (True, True),
    memory_config: MemoryConfig | None = None,
    input_grad: Tensor | None = None,
    other_grad: Tensor | None = None,
) -> list:
    """Of b - a: -g and g."""
    likes, grads = (grad_tensor, grad_tensor), (input_grad, other_grad)
    first, second = pair_prepared(are_required_outputs, grads, likes, memory_config)
    if first is not None:
        ttnn.neg(grad_tensor, memory_config=memory_config, output_tensor=first)
    if second is not None:
        copied(grad_tensor, second)
    return [first, second]


@composite("ttnn.assign_bw")
def assign_bw(
    grad_tensor: Tensor,
    input_tensor: Tensor | None = None,
    input_tensor_a: Tensor | None = None,
    input_tensor_b: Tensor | None = None,
    *,
    are_required_outputs: Required = (True, True),
    memory_config: MemoryConfig | None = None,
    input_a_grad: Tensor | None = None,
    input_b_grad: Tensor | None = None,
) -> list:
    """Of a copy: the gradient, for one tensor or for two."""
    if input_tensor is not None:
        return [grad_tensor if input_a_grad is None else copied(grad_tensor, input_a_grad)]
    assert input_tensor_a is not None and input_tensor_b is not None
    grads = pair_prepared(
        are_required_outputs, (input_a_grad, input_b_grad), (input_tensor_a, input_tensor_b), memory_config
    )
    for out in grads:
        if out is not None:
            copied(grad_tensor, out)
    return list(grads)


@pair("squared_difference")
def squared_difference(g: Tensor, a: Tensor, b: Tensor, **m: Any) -> Any:
    """2 g (a - b) and its negative."""
    first = ttnn.multiply(ttnn.multiply(g, ttnn.subtract(a, b), **m), 2, **m)
    return first, ttnn.multiply(first, -1, **m)


# -- quotients --------------------------------------------------------------------------------------------------------


def quotient_by_number(
    grad: Tensor,
    source: Tensor,
    scalar: float,
    rounding_mode: str | None,
    memory_config: MemoryConfig | None,
    input_grad: Tensor | None,
) -> list:
    """g ÷ s; zeros if the quotient was rounded."""
    require(rounding_mode in ROUNDING_MODES, f"there is no rounding mode {rounding_mode!r}")
    m, s = {"memory_config": memory_config}, np.float32(scalar)
    out = prepared(input_grad, source, memory_config)
    if rounding_mode is not None:
        ttnn.zeros_like(grad, optional_tensor=out, **m)
    elif s == 0.0:
        ttnn.where(ttnn.eqz(grad, **m), NAN, signed_infinity(grad, memory_config=memory_config), output_tensor=out, **m)
    else:
        ttnn.multiply(grad, float(np.float32(1.0) / s), output_tensor=out, **m)
    return [out]


def quotient_gradients(
    grad: Tensor,
    inputs: tuple[Tensor, Tensor],
    rounding_mode: str | None,
    required: Required,
    memory_config: MemoryConfig | None,
    grads: tuple[Tensor | None, Tensor | None],
) -> list:
    """g ÷ b and -g a ÷ b²; zeros if the quotient was rounded."""
    first, second = pair_prepared(required, grads, inputs, memory_config)
    require(rounding_mode in ROUNDING_MODES, f"there is no rounding mode {rounding_mode!r}")
    m, (a, b) = {"memory_config": memory_config}, inputs
    if rounding_mode is not None:
        for out in (first, second):
            if out is not None:
                ttnn.zeros_like(grad, optional_tensor=out, **m)
        return [first, second]
    if first is not None:
        ttnn.multiply(grad, ttnn.reciprocal(b, **m), output_tensor=first, **m)
    if second is not None:
        negated, inverse = ttnn.neg(grad, **m), ttnn.reciprocal(b, **m)
        slope = ttnn.multiply(ttnn.multiply(a, inverse, **m), inverse, **m)
        ttnn.multiply(negated, slope, output_tensor=second, **m)
    return [first, second]


def _of_remainder(name: str, rounding_mode: str) -> None:
    def run(
        grad_tensor: Tensor,
        input_tensor_a: Tensor,
        input_tensor_b: Tensor | None = None,
        scalar: float | None = None,
        *,
        memory_config: MemoryConfig | None = None,
    ) -> list:
        if input_tensor_b is None:
            return [grad_tensor]
        m = {"memory_config": memory_config}
        quotient = ttnn.div(input_tensor_a, input_tensor_b, rounding_mode=rounding_mode, **m)
        return [grad_tensor, ttnn.multiply(ttnn.neg(grad_tensor), quotient, **m)]

    run.__doc__ = "The gradient, and its negative times the whole quotient."
    composite(f"ttnn.{name}_bw")(run)


_of_remainder("remainder", "floor")
_of_remainder("fmod", "trunc")


# -- functions of two tensors -----------------------------------------------------------------------------------------


def _either_extreme(name: str, *, largest: bool) -> None:
    @pair(name)
    def extreme(g: Tensor, a: Tensor, b: Tensor, **m: Any) -> Any:
        half = ttnn.multiply(g, 0.5, **m)
        gap = ttnn.subtract(b, a, **m)
        above, equal, below = ttnn.gtz(gap, **m), ttnn.eqz(gap, **m), ttnn.ltz(gap, **m)
        shared = ttnn.where(equal, half, 0.0, **m)
        lower, upper = ttnn.where(below, g, shared, **m), ttnn.where(above, g, shared, **m)
        return (lower, upper) if largest else (upper, lower)


_either_extreme("max", largest=True)
_either_extreme("min", largest=False)


@pair("atan2")
def atan2(g: Tensor, a: Tensor, b: Tensor, **m: Any) -> Any:
    """g b ÷ (a² + b²) and -g a ÷ (a² + b²)."""
    inverse = ttnn.unary_chain(ttnn.hypot(a, b, **m), [function("SQUARE"), function("RECIP")], **m)
    scaled = ttnn.multiply(g, inverse, **m)
    first = ttnn.multiply(b, scaled, **m)
    at_origin = both(ttnn.eqz(a, **m), ttnn.eqz(b, **m))
    first = ttnn.where(at_origin, NAN, first, **m)
    second = ttnn.multiply(ttnn.neg(a), scaled, **m)
    return first, ttnn.where(at_origin, NAN, second, **m)


@pair("hypot")
def hypot(g: Tensor, a: Tensor, b: Tensor, memory_config: MemoryConfig | None) -> Any:
    """g a ÷ h and g b ÷ h with h = √(a² + b²)."""
    m = {"memory_config": memory_config if memory_config is not None else a.memory_config()}
    inverse = ttnn.reciprocal(ttnn.hypot(a, b, **m), **m)
    return tuple(ttnn.multiply(g, ttnn.multiply(x, inverse, **m), **m) for x in (a, b))


@pair("ldexp")
def ldexp(g: Tensor, a: Tensor, b: Tensor, memory_config: MemoryConfig | None) -> Any:
    """g 2ᵇ and g a 2ᵇ ln 2."""
    m = {"memory_config": memory_config if memory_config is not None else a.memory_config()}
    first = ttnn.multiply(g, ttnn.rpow(b, 2.0, **m), **m)
    return first, ttnn.multiply(a, ttnn.multiply(first, LN2, **m), **m)


def _of_log_of_sum(name: str, power: Callable[..., Tensor], *, in_place_of_a: bool) -> None:
    @pair(name)
    def log_of_sum(g: Tensor, a: Tensor, b: Tensor, memory_config: MemoryConfig | None) -> Any:
        for tensor in (g, a, b):
            require(tensor.dtype not in BLOCK_FLOAT_DTYPES, f"the gradient of {name} does not support {tensor.dtype}")
        m = {"memory_config": a.memory_config() if memory_config is None and in_place_of_a else memory_config}
        shares = []
        for x, y in ((b, a), (a, b)):
            ratio = ttnn.add(power(ttnn.subtract(x, y, **m), m), 1, **m)
            shares.append(ttnn.multiply(g, ttnn.reciprocal(ratio, **m), **m))
        return shares


_of_log_of_sum("logaddexp", lambda x, m: ttnn.exp(x, **m), in_place_of_a=False)
_of_log_of_sum("logaddexp2", lambda x, m: ttnn.rpow(x, 2.0, **m), in_place_of_a=True)


@pair("xlogy")
def xlogy(g: Tensor, a: Tensor, b: Tensor, **m: Any) -> Any:
    """g ln b and g a ÷ b."""
    log = ttnn.log(b, **m)
    vanishing = either(ttnn.eqz(a, **m), ttnn.eqz(g, **m), **m)
    nothing = both(vanishing, ttnn.le(b, 0.0, **m), **m)
    log = ttnn.where(nothing, 0.0, ttnn.where(ttnn.ltz(b, **m), NAN, log, **m), **m)
    first = ttnn.multiply(g, log, **m)
    quotient = ttnn.multiply(a, b, input_tensor_b_activations=[function("RECIP")], **m)
    return first, ttnn.multiply(g, quotient, **m)
