"""Tensors that programs return."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from torch_ttnn.compiler.ir.resident import Resident
from torch_ttnn.eager.device.boards import Board
from torch_ttnn.eager.storage import Storage, dense_strides, key_of
from torch_ttnn.eager.tensor import TtnnTensor, tensor_of
from torch_ttnn.eager.views import Geometry


class Result(NamedTuple):
    """A tensor that a program returns: its geometry, and how it stays on the device, if it does."""

    geometry: Geometry
    resident: Resident | None
    key: int

    @classmethod
    def of(cls, val: torch.Tensor, resident: Resident | None, board: Board) -> Result:
        geometry = Geometry(tuple(val.shape), dense_strides(val), 0, val.dtype)
        return cls(geometry, resident, key_of(geometry.size, geometry.stride, val.dtype, resident, board.index))

    def tensor(self, payload: Any, board: Board) -> TtnnTensor:
        """The tensor with these values, in a storage of its own."""
        geometry = self.geometry
        held = Storage(geometry.size, geometry.stride, geometry.dtype, board)
        self.write(held, payload)
        return tensor_of(geometry, held)

    def write(self, held: Storage, payload: Any) -> None:
        """Take the values into a storage."""
        if self.resident is None:
            held.upload(payload)
        else:
            held.keep(payload, self.resident)
