"""Compiled loops of `functions.lookup_tables`."""

from __future__ import annotations

import numpy as np
from numba import njit

from ttnn_emulator.numerics.native.addresses import floats, words


@njit(cache=True, nogil=True)
def look_up(table, source, target):
    for index in range(source.size):
        target[index] = table[np.uint32(source[index]) >> np.uint32(16)]


@njit(cache=True, nogil=True)
def look_up_at(table, source, target, count):
    """`look_up` over memory by its address."""
    look_up(table, words(source, count), floats(target, count))
