"""Functions of complex tensors, and what their gradients share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ttnn_emulator.enums import DataType, Layout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import Plan, composite, operation, ttnn
from ttnn_emulator.numerics.formats.carriers import round_bf16_nearest_even
from ttnn_emulator.numerics.programs.elementwise import binary as elementwise
from ttnn_emulator.ops.elementwise.complex.tensor import ComplexTensor
from ttnn_emulator.ops.support.common_checks import require_on_device
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.tensor import Tensor

Parts = Callable[..., Any]


def multiplied(a: ComplexTensor, b: ComplexTensor, **m: Any) -> ComplexTensor:
    """(a + bi)(c + di) = (ac - bd) + (ad + bc) i."""
    real = ttnn.subtract(ttnn.multiply(a.real, b.real, **m), ttnn.multiply(a.imag, b.imag, **m), **m)
    imag = ttnn.add(ttnn.multiply(a.real, b.imag, **m), ttnn.multiply(a.imag, b.real, **m), **m)
    return ComplexTensor(real, imag)


def negated(z: ComplexTensor, **m: Any) -> ComplexTensor:
    return ComplexTensor(ttnn.neg(z.real, **m), ttnn.neg(z.imag, **m))


def magnitude(z: ComplexTensor, **m: Any) -> Tensor:
    return ttnn.hypot(z.real, z.imag, **m)


def inverted(z: ComplexTensor, **m: Any) -> ComplexTensor:
    """1 ÷ z = conj(z) ÷ |z|². The sum and the difference of the parts are unused, but may be refused."""
    ttnn.add(z.real, z.imag, **m)
    ttnn.subtract(z.real, z.imag, **m)
    inverse = ttnn.reciprocal(ttnn.add(ttnn.square(z.real, **m), ttnn.square(z.imag, **m), **m), **m)
    imag = ttnn.multiply(ttnn.neg(z.imag, **m), inverse, **m)
    return ComplexTensor(ttnn.multiply(z.real, inverse, **m), imag)


def conjugated(z: ComplexTensor, **m: Any) -> ComplexTensor:
    return ComplexTensor(z.real, ttnn.neg(z.imag, **m))


def from_polar(z: ComplexTensor, **m: Any) -> ComplexTensor:
    """r (cos φ + i sin φ) of a pair (r, φ)."""
    real = ttnn.multiply(z.real, ttnn.cos(z.imag, **m), **m)
    return ComplexTensor(real, ttnn.multiply(z.real, ttnn.sin(z.imag, **m), **m))


def _placed(part: Tensor, memory_config: MemoryConfig | None) -> Tensor:
    """The tensor itself, or a copy in another memory config."""
    if memory_config is None or memory_config == part.memory_config():
        return part
    return ttnn.to_memory_config(part, memory_config)


# Name → function of a complex tensor and a memory config.
FUNCTIONS: dict[str, tuple[Parts, str]] = {
    "real": (lambda z, **m: _placed(z.real, **m), "The real part."),
    "imag": (lambda z, **m: _placed(z.imag, **m), "The imaginary part."),
    "angle": (lambda z, **m: ttnn.atan2(z.imag, z.real, **m), "The angle to the positive real axis."),
    "is_real": (lambda z, **m: ttnn.eqz(z.imag, **m), "One where the imaginary part is zero."),
    "is_imag": (lambda z, **m: ttnn.eqz(z.real, **m), "One where the real part is zero."),
    "conj": (conjugated, "The imaginary part negated."),
    "polar": (from_polar, "Magnitude and angle as a complex number."),
}


def _register(name: str, function: Parts, text: str) -> None:
    @composite(f"ttnn.{name}")
    def compute(input_tensor: ComplexTensor, *, memory_config: MemoryConfig | None = None) -> Any:
        if memory_config is None and name not in ("real", "imag"):
            memory_config = input_tensor.real.memory_config()
        return function(input_tensor, memory_config=memory_config)

    compute.__doc__ = text


for _name, (_function, _text) in FUNCTIONS.items():
    _register(_name, _function, _text)


# -- in one program ---------------------------------------------------------------------------------------------------

# asked ttnn 0.81.1: limits of complex_mul
LARGEST_RANK, WIDEST_ROW = 4, 1024
FLOAT32 = DataType.FLOAT32
JOIN = {
    kind: elementwise.prepare(kind, elementwise.Setting(FLOAT32, FLOAT32, FLOAT32, vector=True))
    for kind in ("MUL", "SUB", "ADD")
}


@operation("ttnn.experimental.complex_mul")
def complex_mul(a_real: Spec, a_imag: Spec, b_real: Spec, b_imag: Spec) -> Plan:
    """A product of complex numbers in float32, given and returned as real and imaginary parts."""
    for part in (a_real, a_imag, b_real, b_imag):
        require_on_device(part, "every part")
        require(part.dtype in (FLOAT32, DataType.BFLOAT16), f"parts are float32 or bfloat16, not {part.dtype}")
        require(part.dtype is a_real.dtype, f"parts must have the same dtype, not {a_real.dtype} and {part.dtype}")
        require(part.layout is Layout.ROW_MAJOR, f"parts are in ROW_MAJOR layout, not in {part.layout}")
        require(part.shape == a_real.shape, f"parts must have the same shape, not {a_real.shape} and {part.shape}")
    require(1 <= a_real.rank <= LARGEST_RANK, f"parts have 1 to {LARGEST_RANK} dimensions, not shape {a_real.shape}")
    require(a_real.volume > 0, "an empty tensor cannot be multiplied")
    width = a_real.shape[-1]
    require(width <= WIDEST_ROW, f"rows are of {WIDEST_ROW} elements at most, not of {width}")
    narrow = a_real.dtype is DataType.BFLOAT16

    def compute(*parts: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        ar, ai, br, bi = parts
        real = JOIN["SUB"](JOIN["MUL"](ar, br), JOIN["MUL"](ai, bi))
        imag = JOIN["ADD"](JOIN["MUL"](ar, bi), JOIN["MUL"](ai, br))
        return (round_bf16_nearest_even(real), round_bf16_nearest_even(imag)) if narrow else (real, imag)

    return Plan([a_real, a_real], compute)
