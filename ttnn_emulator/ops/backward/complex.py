"""Gradients of functions of complex tensors, and of those that take both complex and real ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ttnn_emulator.errors import SignatureError
from ttnn_emulator.execution.operation_table import composite, ttnn
from ttnn_emulator.ops.backward.binary import (
    copied,
    difference_gradients,
    quotient_by_number,
    quotient_gradients,
    sum_gradients,
)
from ttnn_emulator.ops.backward.product import gradients_of_product, product_by_number
from ttnn_emulator.ops.backward.registration import NAN, both, chain, function
from ttnn_emulator.ops.backward.unary import abs_of_real, prepared, reciprocal_of_real
from ttnn_emulator.ops.elementwise.complex.functions import (
    conjugated,
    from_polar,
    inverted,
    magnitude,
    multiplied,
    negated,
)
from ttnn_emulator.ops.elementwise.complex.tensor import ComplexTensor
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.tensor import Tensor

Either = Tensor | ComplexTensor


def _is_zero(z: ComplexTensor, **m: Any) -> Tensor:
    return both(ttnn.eqz(z.real, **m), ttnn.eqz(z.imag, **m), **m)


def _unless(condition: Tensor, value: float, z: ComplexTensor, **m: Any) -> ComplexTensor:
    """z, but `value` in both parts where the condition holds."""
    return ComplexTensor(*(ttnn.where(condition, value, part, **m) for part in (z.real, z.imag)))


def _given(memory_config: MemoryConfig | None) -> MemoryConfig:
    """Some signatures have a default that the library does not accept."""
    if memory_config is None:
        raise SignatureError("complex tensors need a memory_config here")
    return memory_config


# -- functions of one tensor ------------------------------------------------------------------------------------------


@composite("ttnn.abs_bw")
def abs_bw(grad_tensor: Tensor, input_tensor: Either, *, memory_config: MemoryConfig | None = None) -> list:
    """g times the sign of x, or of a complex number g z ÷ |z|."""
    m, z = {"memory_config": memory_config}, input_tensor
    if not isinstance(z, ComplexTensor):
        return [abs_of_real(grad_tensor, z, **m)]
    size = magnitude(z, **m)
    parts = []
    for part in (z.real, z.imag):
        at_zero = ttnn.eqz(size, **m)
        share = ttnn.multiply(part, ttnn.reciprocal(size, **m), **m)
        parts.append(ttnn.where(at_zero, 0.0, ttnn.multiply(grad_tensor, share, **m), **m))
    return [ComplexTensor(*parts)]


@composite("ttnn.reciprocal_bw")
def reciprocal_bw(grad_tensor: Either, input_tensor: Either, *, memory_config: MemoryConfig | None = None) -> list:
    """-g ÷ x², or of complex numbers -g conj(1 ÷ z²)."""
    m, g, z = {"memory_config": memory_config}, grad_tensor, input_tensor
    if isinstance(z, Tensor) and isinstance(g, Tensor):
        return [reciprocal_of_real(g, z, **m)]
    assert isinstance(z, ComplexTensor) and isinstance(g, ComplexTensor)
    unknown = _is_zero(z, **m)
    minus_g, inverse = negated(g, **m), inverted(z, **m)
    return [_unless(unknown, NAN, multiplied(minus_g, conjugated(multiplied(inverse, inverse, **m), **m), **m), **m)]


@composite("ttnn.conj_bw")
def conj_bw(grad_tensor: ComplexTensor, input_tensor: ComplexTensor, *, memory_config: MemoryConfig) -> list:
    """The gradient, conjugated."""
    return [conjugated(grad_tensor, memory_config=memory_config)]


@composite("ttnn.real_bw")
def real_bw(grad_tensor: Tensor, input_tensor: ComplexTensor, *, memory_config: MemoryConfig) -> list:
    """The gradient as the real part."""
    return [ComplexTensor(grad_tensor, ttnn.zeros_like(input_tensor.real, memory_config=memory_config))]


@composite("ttnn.imag_bw")
def imag_bw(grad_tensor: Tensor, input_tensor: ComplexTensor, *, memory_config: MemoryConfig) -> list:
    """The gradient as the imaginary part."""
    return [ComplexTensor(ttnn.zeros_like(input_tensor.real, memory_config=memory_config), grad_tensor)]


@composite("ttnn.angle_bw")
def angle_bw(grad_tensor: Tensor, input_tensor: ComplexTensor, *, memory_config: MemoryConfig) -> list:
    """g (-b + a i) ÷ (a² + b²) for z = a + b i."""
    m, g, z = {"memory_config": memory_config}, grad_tensor, input_tensor
    at_zero = _is_zero(z, **m)
    inverse = ttnn.reciprocal(ttnn.add(ttnn.square(z.real, **m), ttnn.square(z.imag, **m), **m), **m)
    parts = []
    for turned in (lambda: ttnn.neg(z.imag, **m), lambda: z.real):
        slope = ttnn.multiply(g, ttnn.multiply(turned(), inverse, **m), **m)
        parts.append(ttnn.where(at_zero, 0.0, slope, **m))
    return [ComplexTensor(*parts)]


@composite("ttnn.polar_bw")
def polar_bw(grad_tensor: ComplexTensor, input_tensor: ComplexTensor, *, memory_config: MemoryConfig) -> list:
    """The real parts of conj(g) z ÷ |z| and of conj(g) z i, for the z of this magnitude and angle."""
    m, g = {"memory_config": memory_config}, grad_tensor
    z = from_polar(input_tensor, **m)
    size = magnitude(z, **m)
    signs = []
    for part in (z.real, z.imag):
        at_zero = ttnn.eqz(size, **m)
        signs.append(ttnn.where(at_zero, 0.0, ttnn.multiply(part, ttnn.reciprocal(size, **m), **m), **m))
    of_size = multiplied(conjugated(g, **m), ComplexTensor(*signs), **m).real
    turn = ComplexTensor(ttnn.zeros_like(input_tensor.real, **m), ttnn.ones_like(input_tensor.imag))
    of_angle = multiplied(conjugated(g, **m), multiplied(z, turn, **m), **m).real
    return [ComplexTensor(of_size, of_angle)]


# -- arithmetic -------------------------------------------------------------------------------------------------------


def _of_real_operands(
    gradients: Callable[..., list],
    grad: Tensor,
    pair: tuple[Tensor | None, Tensor | None],
    operand: Either | None,
    required: Sequence[bool],
    memory_config: MemoryConfig | None,
    grads: tuple[Tensor | None, Tensor | None],
) -> list:
    """The gradients of two tensors, or of one `operand` and a number, which is the gradient of the result."""
    first, second = pair
    if second is None:
        assert isinstance(operand, Tensor)
        return [copied(grad, prepared(grads[0], operand, memory_config))]
    assert first is not None
    return gradients(grad, (first, second), 1.0, required, memory_config, grads)


@composite("ttnn.add_bw")
def add_bw(
    grad_tensor: Either,
    input_tensor: Tensor | None = None,
    other_tensor: Tensor | None = None,
    input_tensor_a: Either | None = None,
    input_tensor_b: ComplexTensor | None = None,
    scalar: float | None = None,
    alpha: float = 1.0,
    *,
    are_required_outputs: Sequence[bool] = (True, True),
    memory_config: MemoryConfig | None = None,
    input_grad: Tensor | None = None,
    other_grad: Tensor | None = None,
) -> list:
    """Of a + b: g and g; of a + α b of complex numbers: g and α g."""
    if isinstance(grad_tensor, ComplexTensor):
        m = {"memory_config": memory_config}
        parts = (ttnn.multiply(part, alpha, **m) for part in (grad_tensor.real, grad_tensor.imag))
        return [grad_tensor, ComplexTensor(*parts)]
    pair, grads = (input_tensor, other_tensor), (input_grad, other_grad)
    settings = (are_required_outputs, memory_config, grads)
    return _of_real_operands(sum_gradients, grad_tensor, pair, input_tensor_a, *settings)


@composite("ttnn.sub_bw")
def sub_bw(
    grad_tensor: Either,
    input_tensor: Tensor | None = None,
    other_tensor: Tensor | None = None,
    input_tensor_a: Either | None = None,
    input_tensor_b: ComplexTensor | None = None,
    scalar: float | None = None,
    alpha: float = 1.0,
    *,
    are_required_outputs: Sequence[bool] = (True, True),
    memory_config: MemoryConfig | None = None,
    input_grad: Tensor | None = None,
    other_grad: Tensor | None = None,
) -> list:
    """Of a - b: g and -g; of a - α b of complex numbers: g and -α g."""
    if isinstance(grad_tensor, ComplexTensor):
        functions = (function("NEG"), function("MUL_UNARY_SFPU", alpha))
        parts = (chain(part, *functions, memory_config=memory_config) for part in (grad_tensor.real, grad_tensor.imag))
        return [grad_tensor, ComplexTensor(*parts)]
    pair, grads = (input_tensor, other_tensor), (input_grad, other_grad)
    settings = (are_required_outputs, memory_config, grads)
    return _of_real_operands(difference_gradients, grad_tensor, pair, input_tensor_a, *settings)


@composite("ttnn.mul_bw")
def mul_bw(
    grad_tensor: Either,
    input_tensor: Tensor | None = None,
    other_tensor: Tensor | None = None,
    input_tensor_a: Either | None = None,
    input_tensor_b: ComplexTensor | None = None,
    scalar: float | None = None,
    *,
    are_required_outputs: Sequence[bool] = (True, True),
    memory_config: MemoryConfig | None = None,
    input_grad: Tensor | None = None,
    other_grad: Tensor | None = None,
) -> list:
    """Of a b: g b and g a; of complex numbers: g times the conjugates."""
    if isinstance(grad_tensor, ComplexTensor):
        m = {"memory_config": _given(memory_config)}
        assert isinstance(input_tensor_a, ComplexTensor) and isinstance(input_tensor_b, ComplexTensor)
        return [multiplied(grad_tensor, conjugated(x, **m), **m) for x in (input_tensor_b, input_tensor_a)]
    if other_tensor is None:
        assert isinstance(input_tensor_a, Tensor) and scalar is not None
        return product_by_number(grad_tensor, input_tensor_a, scalar, memory_config, input_grad)
    assert input_tensor is not None
    inputs, grads = (input_tensor, other_tensor), (input_grad, other_grad)
    return gradients_of_product(grad_tensor, inputs, are_required_outputs, memory_config, grads)


@composite("ttnn.div_bw")
def div_bw(
    grad_tensor: Either,
    input_tensor: Tensor | None = None,
    other_tensor: Tensor | None = None,
    input_tensor_a: Either | None = None,
    input_tensor_b: ComplexTensor | None = None,
    scalar: float | None = None,
    rounding_mode: str | None = None,
    *,
    are_required_outputs: Sequence[bool] = (True, True),
    memory_config: MemoryConfig | None = None,
    input_grad: Tensor | None = None,
    other_grad: Tensor | None = None,
) -> list:
    """Of a ÷ b: g ÷ b and -g a ÷ b²; of complex numbers the same with conjugates."""
    if isinstance(grad_tensor, ComplexTensor):
        return _complex_quotient(grad_tensor, input_tensor_a, input_tensor_b, memory_config=_given(memory_config))
    if other_tensor is None:
        assert isinstance(input_tensor_a, Tensor) and scalar is not None
        return quotient_by_number(grad_tensor, input_tensor_a, scalar, rounding_mode, memory_config, input_grad)
    assert input_tensor is not None
    inputs, grads = (input_tensor, other_tensor), (input_grad, other_grad)
    return quotient_gradients(grad_tensor, inputs, rounding_mode, are_required_outputs, memory_config, grads)


def _complex_quotient(g: ComplexTensor, a: Any, b: Any, **m: Any) -> list:
    unknown = ttnn.logical_and(
        b.real,
        b.imag,
        input_tensor_a_activations=[function("EQZ")],
        input_tensor_b_activations=[function("EQZ")],
        **m,
    )
    inverse = inverted(b, **m)
    first = _unless(unknown, NAN, multiplied(g, conjugated(inverse, **m), **m), **m)
    minus_g = negated(g, **m)
    slope = multiplied(multiplied(a, inverse, **m), inverse, **m)
    return [first, _unless(unknown, NAN, multiplied(minus_g, conjugated(slope, **m), **m), **m)]
