"""Torch functions that prepare weights and constants, once and not per call."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from torch_ttnn.compiler.errors import BeyondBounds
from ttnn_emulator.numerics.native.large_pages import in_large_pages

# By the names stored in cached programs. ATen operators may also prepare weights, and need no entry.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": torch.add,
    "broadcast_to": torch.broadcast_to,
    "constant_pad_nd": torch.constant_pad_nd,
    "flip": torch.flip,
    "mul": torch.mul,
    "neg": torch.neg,
    "permute": torch.permute,
    "repeat_interleave": torch.repeat_interleave,
    "reshape": torch.reshape,
    "rsqrt": torch.rsqrt,
    "tile": torch.tile,
    "to": torch.Tensor.to,
}
NAMES: dict[Callable[..., Any], str] = {function: name for name, function in FUNCTIONS.items()}


def prepares(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Register a function that computes a program's constants from weights and constants."""
    name = function.__name__
    if name in FUNCTIONS:
        raise ValueError(f"{name} is registered twice")
    FUNCTIONS[name], NAMES[function] = function, name
    return function


LARGEST = torch.finfo(torch.bfloat16).max


@prepares
def saturated(tensor: torch.Tensor) -> torch.Tensor:
    """Keeps finite values finite in bfloat16: masks are often filled with the lowest float32, which rounds to -inf."""
    if isinstance(tensor, FakeTensor) or tensor.is_meta or not tensor.numel():
        return tensor
    # Not by `abs`, which would allocate a second tensor of the size of the weight.
    if float(tensor.amin()) >= -LARGEST and float(tensor.amax()) <= LARGEST:
        return tensor
    return torch.where(tensor.isinf(), tensor, tensor.clamp(-LARGEST, LARGEST))


@prepares
def within_32_bits(tensor: torch.Tensor) -> torch.Tensor:
    """Returns integers that fit into 32 bits unchanged; refuses others, and the program runs with torch."""
    if isinstance(tensor, FakeTensor) or tensor.is_meta or not tensor.numel():
        return tensor
    low, high = torch.aminmax(tensor)
    if int(low) < -(2**31) or int(high) >= 2**31:
        raise BeyondBounds(f"a weight contains integers from {int(low)} to {int(high)}, beyond the device's 32 bits")
    return tensor


def selected(matrix: torch.Tensor, dim: int, index: torch.Tensor) -> torch.Tensor:
    """`torch.index_select`; of a column-major matrix, whole columns are copied."""
    if _is_column_major(matrix):
        return matrix.mT.index_select(1 - dim % 2, index).mT
    return matrix.index_select(dim, index)


def _is_column_major(tensor: torch.Tensor) -> bool:
    return tensor.dim() == 2 and tensor.mT.is_contiguous() and not tensor.is_contiguous()


class Room:
    """Scratch memory for concatenating weights, reused from one weight to the next.

    The first touch of fresh memory takes longer than the copy.
    """

    def __init__(self) -> None:
        self._held = torch.empty(0)
        self._used = 0

    def clear(self) -> None:
        """Release everything concatenated so far for reuse."""
        self._used = 0

    def joined(self, tensors: Sequence[torch.Tensor], dim: int = 0) -> torch.Tensor:
        """`torch.cat`."""
        if all(_is_column_major(each) for each in tensors):
            return self.joined([each.mT for each in tensors], 1 - dim % 2).mT
        first = tensors[0]
        if any(each.dtype is not torch.float32 or each.dim() != first.dim() for each in tensors):
            return torch.cat(list(tensors), dim)
        shape = list(first.shape)
        shape[dim] = sum(each.shape[dim] for each in tensors)
        return torch.cat(list(tensors), dim, out=self._taken(math.prod(shape)).view(shape))

    def _taken(self, count: int) -> torch.Tensor:
        if self._used + count > self._held.numel():
            if self._used:
                return torch.empty(count)
            self._held = in_large_pages(torch.empty(count))
        self._used += count
        return self._held[self._used - count : self._used]

    def moved_out(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor, copied out of the scratch memory."""
        inside = self._held.numel() and tensor.untyped_storage().data_ptr() == self._held.untyped_storage().data_ptr()
        return tensor.clone() if inside else tensor
