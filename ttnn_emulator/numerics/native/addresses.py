"""Addresses of torch tensors for compiled loops.

Wrapping a torch tensor in a numpy array takes longer than a loop over a small tensor; an address costs next to nothing.
The caller keeps the tensor alive while the loop runs.
"""

from __future__ import annotations

import numpy as np
import torch
from numba import carray, njit
from numba.core import cgutils, types
from numba.extending import intrinsic


def address_of(values: torch.Tensor) -> int:
    """The address of contiguous float32 values; anything else is rejected, since a loop would read past its end."""
    if values.dtype is not torch.float32 or not values.is_contiguous():
        raise TypeError(f"a loop needs contiguous float32 values, not {values.dtype} with strides {values.stride()}")
    return values.data_ptr()


@intrinsic
def _pointer(context, address):
    """An integer as a pointer."""

    def generate(target, builder, signature, arguments):
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(address), generate


@njit(cache=True, nogil=True, inline="always")
def words(address, count):
    """The 32-bit words at an address."""
    return carray(_pointer(address), (count,), np.int32)


@njit(cache=True, nogil=True, inline="always")
def floats(address, count):
    """The 32-bit floats at an address."""
    return carray(_pointer(address), (count,), np.float32)


@njit(cache=True, nogil=True, inline="always")
def halves(address, count):
    """The 16-bit words at an address."""
    return carray(_pointer(address), (count,), np.uint16)


@njit(cache=True, nogil=True, inline="always")
def longs(address, count):
    """The 64-bit words at an address."""
    return carray(_pointer(address), (count,), np.int64)
