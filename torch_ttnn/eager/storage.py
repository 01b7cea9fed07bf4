"""The memory of a tensor and of all its views: a tensor on the device or, for what the device cannot hold, on the host.

The rule: the device holds what it holds exactly. float32 and float16 are float32 there, bfloat16 is bfloat16, integers
are int32, booleans are 0 and 1 in bfloat16. The host holds all other values: float64, complex numbers, integers beyond
32 bits, tensors with NaN, empty tensors.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Sequence
from typing import Any

import torch

from torch_ttnn.compiler.analysis.index_bounds import INT32, Bounds
from torch_ttnn.compiler.analysis.nan_inputs import has_nan
from torch_ttnn.compiler.ir.resident import Resident
from torch_ttnn.compiler.ir.storage_order import Form, Shape
from torch_ttnn.compiler.ir.tile_padding import is_mostly_padding
from torch_ttnn.eager.device.boards import Board
from torch_ttnn.eager.quiet import quiet
from ttnn_emulator import ROW_MAJOR_LAYOUT, TILE_LAYOUT, DataType
from ttnn_emulator.tensors.spec import Spec

# The device's dtype of each torch dtype that it holds, and the torch dtype of an upload and of a download.
HELD: dict[torch.dtype, tuple[DataType, torch.dtype]] = {
    torch.float32: (DataType.FLOAT32, torch.float32),
    torch.float16: (DataType.FLOAT32, torch.float32),
    torch.bfloat16: (DataType.BFLOAT16, torch.bfloat16),
    torch.bool: (DataType.BFLOAT16, torch.bfloat16),
    torch.int64: (DataType.INT32, torch.int32),
    torch.int32: (DataType.INT32, torch.int32),
    torch.int16: (DataType.INT32, torch.int32),
    torch.int8: (DataType.INT32, torch.int32),
    torch.uint8: (DataType.INT32, torch.int32),
}
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


class Place(enum.Enum):
    """Where the values of a storage are."""

    NOWHERE = "nowhere"  # uninitialised
    DEVICE = "device"
    HOST = "host"  # what the device cannot hold
    EMPTY = "empty"  # no elements


def why_not_held(tensor: torch.Tensor) -> str:
    """Why the device cannot hold a tensor of the host; an empty string if it can."""
    if tensor.dtype not in HELD:
        return f"{str(tensor.dtype).removeprefix('torch.')} has no counterpart on the device"
    if tensor.dtype is torch.int64 and not INT32.hold(tensor):
        return "it has integers beyond the device's 32 bits"
    if tensor.dtype.is_floating_point and has_nan(tensor):
        return "it has NaN, which the device does not preserve"
    return ""


_keys: dict[Any, int] = {}
_numbers = itertools.count()


def key_of(*facts: Any) -> int:
    """A number for these facts, which programs are looked up by."""
    found = _keys.get(facts)
    if found is None:
        found = _keys[facts] = next(_numbers)
    return found


class Storage:
    """The values of one tensor, which all its views share.

    size, stride  the geometry of the whole, as torch has it; dense
    dtype         torch's
    version       grows with every change of the values
    """

    __slots__ = (
        "version",
        "size",
        "stride",
        "dtype",
        "board",
        "place",
        "payload",
        "resident",
        "key",
        "reason",
        "_bounds",
        "__weakref__",
    )

    def __init__(self, size: Sequence[int], stride: Sequence[int], dtype: torch.dtype, board: Board) -> None:
        self.size: Shape = tuple(size)
        self.stride: Shape = tuple(stride)
        self.dtype = dtype
        self.board = board
        self.place = Place.EMPTY if 0 in self.size else Place.NOWHERE
        self.payload: Any = None
        self.resident: Resident | None = None
        self.version = 0
        self.reason = ""  # why the host holds it
        self.key = -1
        self._bounds: Bounds | None = None  # of integers, once they are known
        if self.place is Place.EMPTY:
            self.payload = torch.empty_strided(self.size, self.stride, dtype=dtype, device="cpu")
            self.key = key_of(self.size, self.stride, dtype, "host", board.index)

    @classmethod
    def of(cls, tensor: torch.Tensor, board: Board) -> Storage:
        """A storage with the values of a tensor of the host."""
        storage = cls(tensor.shape, dense_strides(tensor), tensor.dtype, board)
        storage.upload(tensor)
        return storage

    # -- writing ----------------------------------------------------------------------------------------------------

    def keep(self, payload: Any, resident: Resident, bounds: Bounds | None = None) -> None:
        """Take a tensor of the device as the values."""
        self.payload, self.place, self._bounds = payload, Place.DEVICE, bounds
        self.version += 1
        if resident is not self.resident:
            self.resident = resident
            self.key = key_of(self.size, self.stride, self.dtype, resident, self.board.index)

    def upload(self, tensor: torch.Tensor) -> None:
        """Take values of the host, of this shape and dtype; they are copied."""
        if self.place is Place.EMPTY:
            return
        with quiet():
            self.reason = why_not_held(tensor)
            if self.reason:
                self._hold_on_host(tensor)
            else:
                self.keep(*self._uploaded(tensor))
            if self.dtype in INTEGERS:
                self._bounds = _bounds_of(tensor)

    def _hold_on_host(self, tensor: torch.Tensor) -> None:
        held = torch.empty_strided(self.size, self.stride, dtype=self.dtype, device="cpu")
        held.copy_(tensor)
        self.payload, self.place, self.resident = held, Place.HOST, None
        self.version += 1
        self.key = key_of(self.size, self.stride, self.dtype, "host", self.board.index)

    def _uploaded(self, tensor: torch.Tensor) -> tuple[Any, Resident]:
        dtype, moved = HELD[self.dtype]
        resident = resident_of(self.size, dtype)
        border = self.board.target.border
        payload = border.ttnn.from_torch(
            tensor.detach().to(moved).contiguous(),
            dtype=border.argument(dtype),
            layout=border.argument(resident.spec.layout),
            device=border.device,
        )
        return payload, resident

    def note_written(self, bounds: Bounds | None = None) -> None:
        """A program has written new values into the tensor of the device."""
        self._bounds = bounds
        self.version += 1

    def keep_bounds(self, bounds: Bounds) -> None:
        self._bounds = bounds

    def define(self) -> None:
        """Give uninitialised memory its values: zeros."""
        if self.place is Place.NOWHERE:
            self.upload(torch.zeros(self.size, dtype=self.dtype, device="cpu"))

    # -- reading ----------------------------------------------------------------------------------------------------

    def host(self) -> torch.Tensor:
        """The values on the host, with this geometry. A copy, except of what the host holds."""
        self.define()
        if self.place is not Place.DEVICE:
            return self.payload
        assert self.resident is not None
        with quiet():
            form = self.resident.form
            stored = downloaded(self.board, self.payload, HELD[self.dtype][1])
            whole = stored.view(form.stored_shape).permute(form.axes) if not form.is_plain else stored.view(self.size)
            result = torch.empty_strided(self.size, self.stride, dtype=self.dtype, device="cpu")
            return result.copy_(whole)

    def bounds(self) -> Bounds:
        """The smallest and the largest of its integers; read from the device if they are not known."""
        if self._bounds is None:
            with quiet():
                self._bounds = _bounds_of(self.host())
        return self._bounds

    @property
    def known_bounds(self) -> Bounds | None:
        """The same, if they are known without reading."""
        return self._bounds

    @property
    def nbytes(self) -> int:
        """The bytes that its tensor takes on the device."""
        if self.place is not Place.DEVICE or self.resident is None:
            return 0
        return self.resident.spec.volume * self.dtype.itemsize


def downloaded(board: Board, payload: Any, dtype: torch.dtype) -> torch.Tensor:
    """A tensor of the device as a torch tensor."""
    result = board.target.border.ttnn.to_torch(payload)
    return result if result.dtype is dtype else result.to(dtype)


def resident_of(size: Shape, dtype: DataType) -> Resident:
    """How an upload is stored: tiles, or rows where tiles would be mostly padding."""
    layout = ROW_MAJOR_LAYOUT if is_mostly_padding(size) else TILE_LAYOUT
    found = _residents.get((size, dtype))
    if found is None:
        found = _residents[size, dtype] = Resident(Spec.of(size, dtype, layout), Form.plain(size))
    return found


_residents: dict[tuple[Shape, DataType], Resident] = {}


def _bounds_of(tensor: torch.Tensor) -> Bounds:
    if not tensor.numel():
        return Bounds(0, 0)
    low, high = torch.aminmax(tensor)
    return Bounds(low.item(), high.item())  # type: ignore[arg-type]  # floats of a tensor of floats


def dense_strides(tensor: torch.Tensor) -> Shape:
    """The strides of a tensor if it is dense, such as channels-last; else those of a contiguous one."""
    reach = 1
    for stride, size in sorted((stride, size) for stride, size in zip(tensor.stride(), tensor.shape) if size != 1):
        if stride != reach:
            return contiguous_strides(tensor.shape)
        reach *= size
    return tuple(tensor.stride())


def contiguous_strides(size: Sequence[int]) -> Shape:
    """
    >>> contiguous_strides((2, 3, 4))
    (12, 4, 1)
    """
    strides, reach = [], 1
    for each in reversed(size):
        strides.append(reach)
        reach *= max(each, 1)
    return tuple(reversed(strides))
