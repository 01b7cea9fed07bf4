"""Compiled loop of attention for a few queries, such as those of one token: keys and values are read once, in place."""

from __future__ import annotations

import math

import numpy as np
from numba import float32, int32, njit

from ttnn_emulator.numerics.kernels.attention import _powers, _write
from ttnn_emulator.numerics.kernels.few_row_products import _add_lines, _dot_columns, _left
from ttnn_emulator.numerics.kernels.packed_panels import NARROW
from ttnn_emulator.numerics.kernels.rows import bits_of, float_of, total
from ttnn_emulator.numerics.native.addresses import floats, halves, words

MOST = 2  # queries; with more, packing the keys pays off


@njit(cache=True, nogil=True)
def _scores(x, key, shift, mask, stride, line):
    reach = (line.size - 1) * stride + x.size
    if shift == int32(NARROW):
        _dot_columns(x, halves(key, reach), shift, mask, stride, 0, line)
    else:
        _dot_columns(x, words(key, reach), shift, mask, stride, 0, line)


@njit(cache=True, nogil=True)
def _weighted(line, value, shift, mask, stride, sums):
    reach = (line.size - 1) * stride + sums.size
    sums[:] = float32(0.0)
    if shift == int32(NARROW):
        _add_lines(line, halves(value, reach), shift, mask, stride, 0, sums)
    else:
        _add_lines(line, words(value, reach), shift, mask, stride, 0, sums)


@njit(cache=True, nogil=True)
def attend_few(
    first,
    last,
    addresses,
    item_steps,
    head_steps,
    heads,
    queries,
    sink,
    out,
    sizes,
    steps,
    shifts,
    masks,
    causal,
    offset,
    exp,
    packing,
):
    """Heads `first` to `last`, counted over all items of the batch; arguments as of `attention.attend`.

    addresses   of queries, keys, values and the mask (0 for none)
    item_steps  bytes from one item of the batch to the next, of each
    head_steps  bytes from one head of the queries to the next, and how many share one, of each
    """
    keys, depth, width = sizes
    scale, slope, shift, function = exp
    x, sums, scores = np.empty(depth, np.float32), np.empty(width, np.float32), np.empty(keys, np.float32)
    for number in range(first, last):
        item, head = number // heads, number % heads
        query, key, value, mask = [
            addresses[k] + item * item_steps[k] + head // head_steps[k][1] * head_steps[k][0] for k in range(4)
        ]
        for row in range(queries):
            size = 2 if shifts[0] == int32(NARROW) else 4
            _left(query + size * row * steps[0], shifts[0], masks[0], depth, 1, x)
            line = scores[: min(keys, row + 1 + offset) if causal else keys]
            _scores(x, key, shifts[1], masks[2], steps[1], line)
            if addresses[3]:
                mask_line = floats(mask + row * steps[3], line.size)
                for k in range(line.size):
                    line[k] += mask_line[k]
            most = _powers(line, scale, slope, shift, function)
            share = total(line)
            if sink.size:
                share += float32(math.exp((sink[number, row] - most) * scale))
            for k in range(line.size):
                line[k] = float_of(bits_of(line[k]) & masks[1])
            _weighted(line, value, shifts[2], masks[2], steps[2], sums)
            _write(sums, share, floats(out + 4 * (number * queries + row) * width, width), packing)
