"""Compiled loops of softmax and norms for tensors too large for bit-exact emulation; see `programs.normalization`.

They round where the chip's kernels round and compute the rest in float32. Each processes a range of rows.
"""

from __future__ import annotations

import math

import numpy as np
from numba import float32, int32, njit

from ttnn_emulator.numerics.kernels.rows import (
    cut,
    exponentials,
    float_of,
    largest,
    rounded,
    rounded_even,
    total,
)

# tt-metal v0.81.1: tt_metal/hw/ckernels/wormhole_b0/metal/llk_api/llk_sfpu/ckernel_sfpu_exp.h, exp_init
SLOPE = np.float32(369.329925537109375)  # 2⁸ ÷ ln 2 …
OFFSET = np.float32(32500.818359375 + 0.5)  # … 127 × 2⁸ - 11.2, which reduces the error, plus ½ to round
LEAST = np.float32(-88.5)


@njit(cache=True, nogil=True)
def _round_all(line, wide):
    """Round values as in an intermediate buffer."""
    if wide:
        for i in range(line.size):
            line[i] = cut(line[i])
    else:
        for i in range(line.size):
            line[i] = rounded(line[i])


@njit(cache=True, nogil=True, inline="always")
def _kept(value, wide):
    return cut(value) if wide else rounded(value)


@njit(cache=True, nogil=True)
def _approximate_powers(source, less, target):
    for i in range(source.size):
        argument = max(source[i] - less, LEAST)
        bits = max(int32(argument * SLOPE + OFFSET), int32(0))
        target[i] = float_of(int32(int32(bits + int32(1)) >> int32(1)) << int32(16))


@njit(cache=True, nogil=True, error_model="numpy")
def softmax_rows(first, last, x, out, stable, to_bf16):
    """softmax with the approximate exponential: its bits are nearly linear in the argument."""
    for row in range(first, last):
        line = out[row]
        less = largest(x[row]) if stable else float32(0.0)
        _approximate_powers(x[row], less, line)
        inverse = cut(float32(1.0) / total(line))
        for i in range(line.size):
            line[i] *= inverse
        if to_bf16:
            _round_all(line, False)


@njit(cache=True, nogil=True, error_model="numpy")
def accurate_softmax_rows(first, last, x, out, to_bf16):
    """softmax in float32, rounded at the end to nearest even.

    A row of only -inf is uniform, as on the chip; a row whose maximum is +inf or NaN is NaN.
    """
    for row in range(first, last):
        line = out[row]
        most = largest(x[row])
        if not math.isfinite(most):
            line[:] = float32(1.0 / line.size) if most == -np.inf else np.nan
            if to_bf16:
                _round_all(line, False)
            continue
        line[:] = x[row]
        exponentials(line, most, float32(1.0))
        inverse = float32(1.0) / total(line)
        if to_bf16:
            for i in range(line.size):
                line[i] = rounded_even(line[i] * inverse)
        else:
            for i in range(line.size):
                line[i] *= inverse


@njit(cache=True, nogil=True)
def sum_rows(first, last, x, out):
    """The sum of each row, in float32."""
    for row in range(first, last):
        out[row] = total(x[row])


@njit(cache=True, nogil=True, error_model="numpy")
def norm_rows(first, last, x, residual, weight, bias, out, epsilon, centred, wide, to_bf16):
    """The norm of rows, after adding `residual`; `residual`, `weight` and `bias` may be empty."""
    width = x.shape[1]
    share = float32(1.0 / width)
    squares = np.empty(width, np.float32)
    for row in range(first, last):
        source, line = x[row], out[row]
        if residual.size:
            other = residual[row]
            for i in range(width):
                line[i] = cut(cut(source[i]) + cut(other[i]))
        elif wide:
            for i in range(width):
                line[i] = cut(source[i])
        else:
            line[:] = source
        if centred:
            mean = _kept(total(line) * share, wide)
            for i in range(width):
                line[i] -= mean
            _round_all(line, wide)
        for i in range(width):
            squares[i] = line[i] * line[i]
        _round_all(squares, wide)
        variance = _kept(total(squares) * share, wide)
        inverse = _kept(float32(1.0) / float32(math.sqrt(variance + epsilon)), wide)
        for i in range(width):
            line[i] *= inverse
        if weight.size:
            _round_all(line, wide)
            for i in range(width):
                line[i] *= weight[i]
        if bias.size:
            _round_all(line, wide)
            for i in range(width):
                line[i] += bias[i]
        if to_bf16:
            _round_all(line, False)
