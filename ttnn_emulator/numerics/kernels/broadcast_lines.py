"""Compiled loops over two operands of different shapes, line by line, on all cores.

A smaller operand is never expanded in memory: each line of the result has the offset of the operand's line, and an
operand with one value per line is expanded into a few kilobytes that stay in the cache.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numba import njit

from ttnn_emulator.numerics.broadcasting import joined
from ttnn_emulator.numerics.kernels.elementwise import (
    HALF_DROPPED,
    MULTIPLY,
    SIGN,
    UPPER,
    add_mantissas,
    join_32bit,
    multiply_16bit,
    multiply_rounded,
)
from ttnn_emulator.numerics.native.addresses import address_of, words
from ttnn_emulator.numerics.native.threaded_copies import contiguous
from ttnn_emulator.numerics.native.worker_threads import cut, share

Values = torch.Tensor
MATRIX_UNIT, VECTOR_UNIT, ROUNDED, FLOAT32 = 0, 1, 2, 3  # how two values are combined
NO_ROUNDING = (np.int32(0), np.int32(0), np.int32(-1))
ONE_WORKER = 1 << 18  # elements below which waking another thread does not pay off
LONG = 1 << 13  # maximum elements per line
Lines = tuple[np.ndarray, int]  # offset of each line in an operand; its step: 0 if a line is one broadcast value
AS_THE_RESULT: Lines = (np.zeros(0, np.int64), 1)  # of an operand with the layout of the result


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
    """The matrix unit's sum or difference, in a 32- or 16-bit register."""
    return _over_lines(a, b, MATRIX_UNIT, rounding=_rounding(subtract, fp32))


def adding_exactly(a: Values, b: Values, *, subtract: bool, fp32: bool) -> tuple[Callable[[], Any], Values]:
    """`add_exactly` of contiguous fixed buffers: a function, and the buffer that it fills."""
    return joining(a, b, MATRIX_UNIT, rounding=_rounding(subtract, fp32))


def _rounding(subtract: bool, fp32: bool) -> tuple:
    half, kept = (np.int32(0), np.int32(-1)) if fp32 else (HALF_DROPPED, UPPER)
    return SIGN if subtract else np.int32(0), half, kept


def multiply_exactly(a: Values, b: Values) -> Values:
    """The vector unit's product, in a 16-bit register."""
    return _over_lines(a, b, VECTOR_UNIT)


def multiply_closely(a: Values, b: Values, *, fp32: bool) -> Values:
    """A product in float32, denormals as zero; for a 16-bit register rounded half away from zero."""
    return _over_lines(a, b, FLOAT32 if fp32 else ROUNDED, MULTIPLY)


def join_closely(kind: int, a: Values, b: Values) -> Values:
    """ADD, SUBTRACT, SUBTRACT_REVERSED, MULTIPLY or DIVIDE in float32, denormals as zero."""
    return _over_lines(a, b, FLOAT32, kind)


def _over_lines(a: Values, b: Values, unit: int, kind: int = 0, rounding: tuple = NO_ROUNDING) -> Values:
    a, b = contiguous(a), contiguous(b)
    run, out = joining(a, b, unit, kind, rounding)
    run()
    return out


def joining(
    a: Values, b: Values, unit: int, kind: int = 0, rounding: tuple = NO_ROUNDING
) -> tuple[Callable[[], Any], Values]:
    """A function that combines the current values of contiguous operands, and the buffer that it fills."""
    walk = _walk(a.shape, b.shape)
    out = torch.empty(walk.shape)
    if not walk.width:
        return _nothing, out
    operands = (address_of(a), *walk.left), (address_of(b), *walk.right)
    target, end = address_of(out), (unit, kind, rounding)
    pieces: list[tuple] = [(*part, operands, walk.width, target, *end) for part in walk.parts]
    if walk.rest:  # a shorter line at the end
        at = 4 * walk.lines * walk.width
        tail = tuple([(start + at * step, places, step) for start, places, step in operands])
        pieces.append((0, 1, tail, walk.rest, target + at, *end))
    if len(walk.parts) == 1:
        return functools.partial(_in_turn, pieces), out
    return functools.partial(share, _join_lines, pieces), out


def _in_turn(pieces: list[tuple]) -> None:
    for piece in pieces:
        _join_lines(*piece)


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Walk:
    """The lines of the result: their number and width, the length of a shorter last line, and the operands' lines."""

    shape: torch.Size
    lines: int
    width: int
    rest: int
    left: Lines
    right: Lines

    @functools.cached_property
    def parts(self) -> list[tuple[int, int]]:
        return cut(self.lines, max(ONE_WORKER // self.width, 1))


@functools.lru_cache(4096)
def _walk(one: torch.Size, other: torch.Size) -> Walk:
    shape = joined(one, other)
    count = shape.numel()
    sizes = one.numel(), other.numel()
    if not count:
        return Walk(shape, 0, 0, 0, AS_THE_RESULT, AS_THE_RESULT)
    if one == other or 1 in sizes or sizes == (count, count):
        width = min(count, LONG)
        lines = count // width
        left, right = (AS_THE_RESULT if size == count else (np.zeros(lines, np.int64), 0) for size in sizes)
        return Walk(shape, lines, width, count - lines * width, left, right)
    rank = len(shape)
    whole = list(shape)
    own = [[1] * (rank - len(each)) + list(each) for each in (one, other)]
    while whole[-1] == 1:
        for each in (whole, *own):
            each.pop()
    # A line is contiguous in both operands, or is a last dimension in which one of them has one value.
    kept = len(whole) - 1
    while kept and own[0][-1] == own[1][-1] and own[0][kept - 1] == own[1][kept - 1]:
        kept -= 1
    width = math.prod(whole[kept:])
    left, right = (_lines(each, whole, kept) for each in own)
    return Walk(shape, count // width, width, 0, left, right)


def _lines(own: list[int], whole: list[int], kept: int) -> Lines:
    """The lines of an operand in the order of the result; `kept`: number of dimensions before a line."""
    size = math.prod(own[kept:])
    begins = (np.arange(math.prod(own[:kept]), dtype=np.int64) * size).reshape(own[:kept])
    return np.ascontiguousarray(np.broadcast_to(begins, whole[:kept])).reshape(-1), int(own[-1] == whole[-1])
