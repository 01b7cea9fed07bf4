"""Binary operations in torch: exact for comparisons and selections, close and fast for large tensors."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ttnn_emulator.numerics.broadcasting import of_one_shape
from ttnn_emulator.numerics.formats.carriers import bits_of, flush, from_bits, round_bf16_nearest_even
from ttnn_emulator.numerics.kernels.broadcast_lines import join_closely
from ttnn_emulator.numerics.kernels.elementwise import ADD, DIVIDE, MULTIPLY, SUBTRACT, SUBTRACT_REVERSED

Values = torch.Tensor
LEAST = torch.finfo(torch.float32).tiny


def without_denormals(values: Values) -> Values:
    return torch.where(values.abs() < LEAST, 0.0, values)


def _order(values: Values) -> Values:
    """Integer keys that order floats by sign and magnitude, NaN beyond infinity."""
    raw = bits_of(values)
    return torch.where(raw < 0, raw ^ 0x7FFFFFFF, raw)


def _compare(relation: Callable[[Values, Values], Values]) -> Callable[[Values, Values], Values]:
    return lambda a, b: relation(without_denormals(a), without_denormals(b)).float()


def _choose(larger: bool) -> Callable[[Values, Values], Values]:
    def choose(a: Values, b: Values) -> Values:
        a, b = of_one_shape(a, b)
        first = _order(a) > _order(b)
        chosen = torch.where(first if larger else ~first, a, b)
        return torch.where(chosen.abs() < LEAST, chosen * 0.0, chosen)

    return choose


# Bit-exact results of the vector unit.
EXACT: dict[str, Callable[[Values, Values], Values]] = {
    "equals": _compare(torch.eq),
    "differs": _compare(torch.ne),
    "precedes": _compare(torch.lt),
    "follows": _compare(torch.gt),
    "not_after": _compare(torch.le),
    "not_before": _compare(torch.ge),
    "largest": _choose(larger=True),
    "smallest": _choose(larger=False),
}


def _close(function: Callable[..., Values]) -> Callable[..., Values]:
    """A torch function in place of a kernel: denormals count as zero, a 16-bit result is rounded."""

    def compute(a: Values, b: Values, *parameters: object, fp32: bool) -> Values:
        result = without_denormals(function(without_denormals(a), without_denormals(b), *parameters))
        return result if fp32 else flush(round_bf16_nearest_even(result))

    return compute


def _compiled(kind: int) -> Callable[..., Values]:
    """The same with a compiled loop."""

    def compute(a: Values, b: Values, *, fp32: bool) -> Values:
        result = join_closely(kind, a, b)
        return result if fp32 else flush(round_bf16_nearest_even(result))

    return compute


def _isclose(a: Values, b: Values, rtol: float, atol: float, equal_nan: bool) -> Values:
    return torch.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan).float()


def _nextafter(a: Values, b: Values, *, fp32: bool) -> Values:
    if fp32:
        return torch.nextafter(a, b)
    stepped = torch.where(a == b, b, from_bits(bits_of(a) + torch.where((b > a) == (a > 0), 0x10000, -0x10000)))
    return torch.where(a == 0, torch.copysign(torch.tensor(LEAST * 2.0**-7), b) * (b != 0), stepped)


CLOSE: dict[str, Callable[..., Values]] = {
    "addition": _compiled(ADD),
    "subtraction": _compiled(SUBTRACT),
    "reversed_subtraction": _compiled(SUBTRACT_REVERSED),
    "multiplication": _compiled(MULTIPLY),
    "division": _compiled(DIVIDE),
    "remainder": _close(torch.remainder),
    "fmod": _close(torch.fmod),
    "power": _close(torch.pow),
    "xlogy": _close(torch.xlogy),
    "logaddexp": _close(torch.logaddexp),
    "logaddexp2": _close(torch.logaddexp2),
    "atan2": _close(torch.atan2),
    "isclose": _close(_isclose),
    "nextafter": _nextafter,
}
