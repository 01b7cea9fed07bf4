"""Compiled loops over two operands of different shapes, line by line, on all cores.

A smaller operand is never spread out in memory: for each line of the result there is the place where the line of the
operand begins, and an operand with one value a line is spread into a few kilobytes that stay in the cache.
"""

from __future__ import annotations

import functools

import numpy as np
import torch
from numba import njit

from ttnn_emulator.numerics.addresses import address_of, words
from ttnn_emulator.numerics.broadcasting import shape_of
from ttnn_emulator.numerics.elementwise_kernels import (
    HALF_DROPPED,
    MULTIPLY,
    SIGN,
    UPPER,
    add_mantissas,
    join_32bit,
    multiply_16bit,
    multiply_rounded,
)
from ttnn_emulator.numerics.workers import cut, share

Values = torch.Tensor
MATRIX_UNIT, VECTOR_UNIT, ROUNDED, FLOAT32 = 0, 1, 2, 3  # what joins two values
NO_ROUNDING = (np.int32(0), np.int32(0), np.int32(-1))
ONE_WORKER = 1 << 16  # elements below which threads cost more than they save
LONG = 1 << 13  # elements of a line at the most
WHOLE = np.zeros(0, np.int64)  # the places of an operand whose lines follow each other as the result's do


@njit(cache=True, nogil=True, inline="always")
def _line(start, places, step, index, width, spread):
    """Line `index` of an operand."""
    at = start + 4 * (places[index] if places.size else index * width)
    if step:
        return words(at, width)
    spread[:width] = words(at, 1)[0]
    return spread[:width]


@njit(cache=True, nogil=True)
def _join_lines(first, last, operands, width, out, unit, kind, rounding):
    (a, a_places, a_step), (b, b_places, b_step) = operands
    spread = np.empty((2, width), np.int32)
    for index in range(first, last):
        left = _line(a, a_places, a_step, index, width, spread[0])
        right = _line(b, b_places, b_step, index, width, spread[1])
        line = words(out + 4 * index * width, width)
        if unit == MATRIX_UNIT:
            add_mantissas(left, right, rounding[0], rounding[1], rounding[2], line)
        elif unit == VECTOR_UNIT:
            multiply_16bit(left, right, line)
        elif unit == ROUNDED:
            multiply_rounded(left, right, line)
        else:
            join_32bit(left, right, kind, line)


def add_exactly(a: Values, b: Values, *, subtract: bool, fp32: bool) -> Values:
    """The matrix unit's sum or difference, into a register of 32 or 16 bits."""
    half, kept = (np.int32(0), np.int32(-1)) if fp32 else (HALF_DROPPED, UPPER)
    return _over_lines(a, b, MATRIX_UNIT, rounding=(SIGN if subtract else np.int32(0), half, kept))


def multiply_exactly(a: Values, b: Values) -> Values:
    """The vector unit's product, into a register of 16 bits."""
    return _over_lines(a, b, VECTOR_UNIT)


def multiply_closely(a: Values, b: Values, *, fp32: bool) -> Values:
    """A product in float32, denormals as zero; rounded half away from zero for a register of 16 bits."""
    return _over_lines(a, b, FLOAT32 if fp32 else ROUNDED, MULTIPLY)


def join_closely(kind: int, a: Values, b: Values) -> Values:
    """ADD, SUBTRACT, SUBTRACT_REVERSED or MULTIPLY in float32, denormals as zero."""
    return _over_lines(a, b, FLOAT32, kind)


def _over_lines(a: Values, b: Values, unit: int, kind: int = 0, rounding: tuple = NO_ROUNDING) -> Values:
    shape = shape_of(a, b)
    out = torch.empty(shape)
    count = out.numel()
    if not count:
        return out
    flat = a.shape == b.shape or 1 in (a.numel(), b.numel())
    lines, width = _lines_of(count) if flat else (count // shape[-1], shape[-1])
    a, b = a.contiguous(), b.contiguous()
    operands = _operand(a, shape, lines if flat else 0), _operand(b, shape, lines if flat else 0)
    target, end = address_of(out), (unit, kind, rounding)
    least = max(ONE_WORKER // width, 1)
    share(_join_lines, [(*part, operands, width, target, *end) for part in cut(lines, least)])
    if lines * width < count:  # what is left over is a shorter line
        at = 4 * lines * width
        rest = tuple([(start + at * step, places, step) for start, places, step in operands])
        _join_lines(0, 1, rest, count - lines * width, target + at, *end)
    return out


@functools.lru_cache(4096)
def _lines_of(count: int) -> tuple[int, int]:
    """Elements that follow one another as lines of one length."""
    return (1, count) if count <= LONG else (count // LONG, LONG)


def _operand(values: Values, shape: torch.Size, flat_lines: int) -> tuple[int, np.ndarray, int]:
    """Where it begins, the places of its lines, and 0 if each has one value only."""
    start = address_of(values)
    if values.shape == shape or values.numel() == shape.numel():
        return start, WHOLE, 1
    if flat_lines:
        return start, _zeros(flat_lines), 0
    return start, _places(values.shape, shape), int(values.shape[-1] == shape[-1])


@functools.lru_cache(256)
def _zeros(count: int) -> np.ndarray:
    return np.zeros(count, np.int64)


@functools.lru_cache(256)
def _places(own: torch.Size, shape: torch.Size) -> np.ndarray:
    """For every line of the result, where the line of an operand begins."""
    size = int(np.prod(own[:-1], dtype=np.int64))
    begins = (np.arange(size, dtype=np.int64) * own[-1]).reshape(own[:-1])
    return np.ascontiguousarray(np.broadcast_to(begins, shape[:-1])).reshape(-1)
