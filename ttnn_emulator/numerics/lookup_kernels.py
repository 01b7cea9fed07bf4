"""Compiled loops of `lookup`."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def look_up(table, source, target):
    for index in range(source.size):
        target[index] = table[np.uint32(source[index]) >> np.uint32(16)]
