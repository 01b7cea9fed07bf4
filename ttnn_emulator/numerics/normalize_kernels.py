"""Compiled loops of softmax and norms for tensors too large to be followed bit for bit; see `normalize`.

They round where the card's kernels round, and leave the rest to float32.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

SLOPE = np.float32(369.329925537109375)  # 2⁸ ÷ ln 2 …
OFFSET = np.float32(32500.818359375 + 0.5)  # … and 127 × 2⁸ less what makes the error small, plus a half to round
LEAST = np.float32(-88.5)


@njit(cache=True, inline="always")
def _rounded(value):
    """Half away from zero to bfloat16; what is too small becomes zero."""
    bits = np.float32(value).view(np.int32)
    bits = np.int32(np.int32(bits + np.int32(0x8000)) & np.int32(-0x10000))
    return np.float32(0.0) if bits & np.int32(0x7F800000) == np.int32(0) else bits.view(np.float32)


@njit(cache=True, inline="always")
def _cut(value):
    """The 11 bits that a source register holds."""
    return np.int32(np.float32(value).view(np.int32) & np.int32(-0x2000)).view(np.float32)


@njit(cache=True, inline="always")
def _kept(value, wide):
    """A result on its way through an intermediate buffer."""
    return _cut(value) if wide else _rounded(value)


@njit(cache=True, parallel=True)
def softmax_rows(x, out, stable, to_bf16):
    """softmax with the approximate exponential: its bits are nearly linear in the argument."""
    width = x.shape[1]
    for row in prange(x.shape[0]):
        largest = np.float32(0.0)
        if stable:
            largest = x[row, 0]
            for i in range(1, width):
                largest = max(largest, x[row, i])
        total = np.float32(0.0)
        for i in range(width):
            argument = max(x[row, i] - largest, LEAST)
            bits = max(np.int32(argument * SLOPE + OFFSET), np.int32(0))
            power = np.int32(np.int32(np.int32(bits + np.int32(1)) >> np.int32(1)) << np.int32(16)).view(np.float32)
            out[row, i] = power
            total += power
        inverse = _cut(np.float32(1.0) / total)
        for i in range(width):
            product = out[row, i] * inverse
            out[row, i] = _rounded(product) if to_bf16 else product


@njit(cache=True, parallel=True)
def norm_rows(x, weight, bias, out, epsilon, centred, wide, to_bf16):
    """A norm of rows; `weight` and `bias` may be empty."""
    width = x.shape[1]
    share = np.float32(1.0 / width)
    for row in prange(x.shape[0]):
        mean = np.float32(0.0)
        if centred:
            for i in range(width):
                mean += x[row, i]
            mean = _kept(mean * share, wide)
        squares = np.float32(0.0)
        for i in range(width):
            value = x[row, i]
            if centred:
                value = _kept(value - mean, wide)
            out[row, i] = value
            squares += _kept(value * value, wide)
        variance = _kept(squares * share, wide)
        inverse = _kept(np.float32(1.0) / np.float32(math.sqrt(variance + epsilon)), wide)
        for i in range(width):
            value = out[row, i] * inverse
            if weight.size:
                value = _kept(value, wide) * weight[i]
            if bias.size:
                value = _kept(value, wide) + bias[i]
            out[row, i] = _rounded(value) if to_bf16 else value
