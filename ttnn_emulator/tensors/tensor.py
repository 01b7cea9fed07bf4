"""`ttnn.Tensor`: a spec, a storage and a device."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ttnn_emulator.enums import DataType, Layout, StorageType
from ttnn_emulator.errors import InvalidArgument, require
from ttnn_emulator.execution import listeners
from ttnn_emulator.numerics.formats import carriers
from ttnn_emulator.tensors import printing
from ttnn_emulator.tensors.buffer_facts import TensorFacts
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from ttnn_emulator.tensors.shapes import Shape, Tile, round_up
from ttnn_emulator.tensors.spec import ROW_MAJOR_BYTES, Spec
from ttnn_emulator.tensors.storage import SpecStorage, Storage, page_alignment

if TYPE_CHECKING:
    from ttnn_emulator.hardware.device import MeshDevice

_tensor_ids = itertools.count(1)


class Tensor(TensorFacts):
    """A tensor on the host or on a device. Created by `from_torch` and by operations."""

    __slots__ = ("_spec", "_storage", "_device", "_id", "topology", "__weakref__")

    _spec: Spec
    _storage: Storage
    _device: MeshDevice | None
    topology: Any

    def __init__(self, tensor: Any = None, data_type: DataType | None = None, *args: Any, **kwargs: Any) -> None:
        from ttnn_emulator.tensors.host_transfer import tensor_from_arguments

        source = tensor_from_arguments(tensor, data_type, *args, **kwargs)
        self._set(source._spec, source._storage, source._device)
        self.topology = source.topology

    @classmethod
    def of(cls, spec: Spec, storage: Storage, device: MeshDevice | None) -> Tensor:
        tensor = cls.__new__(cls)
        tensor._spec = spec
        tensor._storage = storage
        tensor._device = device
        tensor._id = 0
        tensor.topology = None
        return tensor

    def _set(self, spec: Spec, storage: Storage, device: MeshDevice | None) -> None:
        self._spec, self._storage, self._device, self._id, self.topology = spec, storage, device, 0, None

    # -- what it is -----------------------------------------------------------------------------------------------

    @property
    def shape(self) -> Shape:
        return Shape(self._spec.shape)

    @property
    def padded_shape(self) -> Shape:
        return Shape(self._spec.padded_shape)

    @property
    def dtype(self) -> DataType:
        return self._spec.dtype

    @property
    def layout(self) -> Layout:
        return self._spec.layout

    @property
    def tile(self) -> Tile:
        return self._spec.tile

    @property
    def spec(self) -> Spec:
        return self._spec

    @property
    def tensor_id(self) -> int:
        if not self._id:
            self._id = next(_tensor_ids)
        return self._id

    def get_dtype(self) -> DataType:
        return self._spec.dtype

    def get_layout(self) -> Layout:
        return self._spec.layout

    def get_tile(self) -> Tile:
        return self._spec.tile

    def memory_config(self) -> MemoryConfig:
        return self._spec.memory_config.thawed()

    def storage_type(self) -> StorageType:
        return StorageType.DEVICE if self._spec.on_device else StorageType.HOST

    def device(self) -> MeshDevice | None:
        return self._device

    def devices(self) -> list[MeshDevice]:
        return [] if self._device is None else [self._device]

    def is_sharded(self) -> bool:
        return self._spec.is_sharded

    def is_allocated(self) -> bool:
        return self._storage.is_allocated

    def volume(self) -> int:
        return math.prod(self._spec.padded_shape)

    def logical_volume(self) -> int:
        return self._spec.volume

    def element_size(self) -> int:
        if self.dtype in carriers.MANTISSA_BITS:
            raise ValueError(f"a value of {self.dtype} has no separate size: 16 values share an exponent")
        return ROW_MAJOR_BYTES[self.dtype]

    # -- its buffer -----------------------------------------------------------------------------------------------

    def buffer_address(self) -> int:
        self._storage.require_allocated()
        return self._storage.address

    def buffer_page_size(self) -> int:
        return self._spec.page_bytes

    def buffer_num_pages(self) -> int:
        return self._spec.num_pages

    def buffer_aligned_page_size(self) -> int:
        require(self._device is not None, "a host tensor has no device buffer")
        assert self._device is not None
        alignment = page_alignment(self._device, self._spec.memory_config.buffer_type)
        return round_up(self._spec.page_bytes, alignment)

    def deallocate(self, force: bool = False) -> None:
        """Free the buffer now. Without `force`, only if no other tensor shares it."""
        from ttnn_emulator.tensors.buffer_ownership import release_buffer

        release_buffer(self, force)

    def another_handle(self) -> Tensor:
        """A second tensor over the same buffer, with the same id: an operation never returns its argument itself."""
        handle = Tensor.of(self._spec, self._storage, self._device)
        handle._id = self.tensor_id
        handle.topology = self.topology
        return handle

    # -- moving ---------------------------------------------------------------------------------------------------

    def to(self, *args: Any, **kwargs: Any) -> Tensor:
        """`to(device, mem_config, cq_id)` or `to(target_layout)`."""
        from ttnn_emulator.execution.operation_table import ttnn

        name = (
            "target_layout" if isinstance(args[0] if args else None, Layout) or "target_layout" in kwargs else "device"
        )
        names = ("target_layout",) if name == "target_layout" else ("device", "mem_config", "cq_id")
        arguments = dict(zip(names, args), **kwargs)
        target = arguments.get(name)
        if len(args) > len(names) or set(arguments) - set(names) or isinstance(target, DataType) or target is None:
            raise TypeError(f"Tensor.to takes (device, mem_config, cq_id) or (target_layout), not {args} and {kwargs}")
        if isinstance(target, Layout):
            return ttnn.to_layout(self, target)
        config = arguments.get("mem_config") or self._spec.memory_config
        return ttnn.to_device(self, target, memory_config=config, cq_id=arguments.get("cq_id"))

    def cpu(self, blocking: bool = True, cq_id: Any = None) -> Tensor:
        from ttnn_emulator.execution.operation_table import ttnn

        return ttnn.from_device(self, cq_id=cq_id)

    def to_torch(self, dtype: Any = None, *, mesh_composer: Any = None, **_: Any) -> torch.Tensor:
        from ttnn_emulator.tensors.host_transfer import to_torch

        return to_torch(self, dtype, mesh_composer=mesh_composer)

    def to_numpy(self, mesh_composer: Any = None) -> np.ndarray:
        result = self.to_torch(mesh_composer=mesh_composer)
        return (result.float() if result.dtype is torch.bfloat16 else result).numpy()

    def to_list(self) -> list:
        return self.to_torch().tolist()

    def item(self) -> Any:
        require(
            self._spec.volume == 1,
            f"tensor.item() requires tensor to have exactly one element, but got {self._spec.volume} elements",
        )
        return self.to_torch().reshape(()).item()

    def reshape(self, *shape: Any) -> Tensor:
        from ttnn_emulator.execution.operation_table import ttnn

        dims = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        return ttnn.reshape(self, list(dims))

    def pad(self, output_tensor_shape: Sequence[int], input_tensor_start: Sequence[int], pad_value: float, /) -> Tensor:
        """Pad a row-major host tensor. Its logical shape stays and covers the first elements of the padded buffer."""
        from ttnn_emulator.tensors.host_padding import pad_host

        return pad_host(self, output_tensor_shape, input_tensor_start, pad_value)

    def unpad(self, output_tensor_start: Sequence[int], output_tensor_end: Sequence[int], /) -> Tensor:
        """Slice a row-major host tensor."""
        from ttnn_emulator.tensors.host_padding import unpad_host

        return unpad_host(self, output_tensor_start, output_tensor_end)

    def pad_to_tile(self, pad_value: float, /) -> Tensor:
        """A row-major host tensor padded to full tiles; its logical shape stays. Tiled tensors are unchanged."""
        from ttnn_emulator.tensors.host_padding import pad_host_to_tile

        return pad_host_to_tile(self, pad_value)

    def unpad_from_tile(self, output_tensor_shape: Sequence[int], /) -> Tensor:
        """A row-major host tensor without the tile padding of its last two dimensions."""
        from ttnn_emulator.tensors.host_padding import unpad_host_from_tile

        return unpad_host_from_tile(self, output_tensor_shape)

    def to_torch_with_padded_shape(self) -> torch.Tensor:
        """The values with their padding, where it is known."""
        from ttnn_emulator.tensors.host_padding import to_torch_padded

        return to_torch_padded(self)

    def device_coords(self) -> list[Any]:
        """The coordinates of the chips that hold it, row by row."""
        from ttnn_emulator.hardware.mesh_coordinates import MeshCoordinate

        columns = self._device.shape[1] if self._device is not None else 1
        chips = self._device.num_devices if self._device is not None else 1
        return [MeshCoordinate(*divmod(chip, columns)) for chip in range(chips)]

    # -- operators ------------------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Tensor:
        return _operator("add", self, other)

    def __radd__(self, other: Any) -> Tensor:
        return _operator("add", self, other)

    def __sub__(self, other: Any) -> Tensor:
        return _operator("subtract", self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return _operator("rsub", self, other)

    def __mul__(self, other: Any) -> Tensor:
        return _operator("multiply", self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return _operator("multiply", self, other)

    def __truediv__(self, other: Any) -> Tensor:
        return _operator("divide", self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return _operator("rdiv", self, other)

    def __matmul__(self, other: Any) -> Tensor:
        return _operator("matmul", self, other)

    def __eq__(self, other: Any) -> Tensor:  # type: ignore[override]
        return _operator("eq", self, other)

    def __ne__(self, other: Any) -> Tensor:  # type: ignore[override]
        return _operator("ne", self, other)

    def __gt__(self, other: Any) -> Tensor:
        return _operator("gt", self, other)

    def __ge__(self, other: Any) -> Tensor:
        return _operator("ge", self, other)

    def __lt__(self, other: Any) -> Tensor:
        return _operator("lt", self, other)

    def __le__(self, other: Any) -> Tensor:
        return _operator("le", self, other)

    __hash__ = object.__hash__

    def __getitem__(self, slices: Any) -> Tensor:
        from ttnn_emulator.tensors.host_transfer import get_item

        return get_item(self, slices)

    def __repr__(self) -> str:
        return printing.tensor_text(self)

    def brief(self) -> str:
        """For messages: shape, dtype, layout, memory config."""
        return f"Tensor({self._spec.brief()})"


def _operator(name: str, left: Any, right: Any) -> Tensor:
    from ttnn_emulator.execution.operation_table import ttnn

    return getattr(ttnn, name)(left, right)


def caller() -> str:
    """File and line of the first frame outside this package."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("ttnn_emulator"):
        frame = frame.f_back  # type: ignore[assignment]
    return "unknown" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


_unwritten_reads: list[None] = []


@contextmanager
def reading_unwritten() -> Iterator[None]:
    """Within this block, unwritten tensors read as zeros, as on a card that runs nothing."""
    _unwritten_reads.append(None)
    try:
        yield
    finally:
        _unwritten_reads.pop()


def values_of(tensor: Tensor) -> list[torch.Tensor]:
    """The carriers of an allocated tensor, one per chip."""
    storage = tensor._storage
    storage.require_allocated()
    if storage.values is None:
        if _unwritten_reads:
            return [torch.zeros(tensor._spec.shape, dtype=carriers.CARRIER[tensor._spec.dtype])]
        raise InvalidArgument(
            f"{tensor.brief()} has a spec but no values",
            hint="It was created without values, or in a trace that has not been executed yet.",
        )
    return storage.values


def read_back(tensor: Tensor) -> list[torch.Tensor]:
    """The values that the host reads, one carrier per chip: zeros from a device without values."""
    device, storage = tensor._device, tensor._storage
    if device is not None:
        device.activity.downloaded(tensor._spec.total_bytes)
        if listeners.active:
            listeners.transferred(tensor._spec, device, is_upload=False)
    if device is None or device.holds_values or storage.values is not None or storage.__class__ is SpecStorage:
        return values_of(tensor)
    storage.require_allocated()
    device.note_reading_zeros()
    spec = tensor._spec
    return [torch.zeros(spec.shape, dtype=carriers.CARRIER[spec.dtype]) for _ in range(device.num_devices)]


def spec_tensor(
    shape: Sequence[int],
    dtype: DataType,
    layout: Layout = Layout.TILE,
    *,
    device: MeshDevice | None = None,
    memory_config: MemoryConfig = DRAM_MEMORY_CONFIG,
) -> Tensor:
    """A tensor with a spec but no values. Operations on it check and infer in microseconds, and allocate no memory.

    >>> import ttnn_emulator as ttnn
    >>> with ttnn.open_device(device_id=0) as device:
    ...     x = ttnn.spec_tensor((8192, 8192), ttnn.bfloat16, device=device)
    ...     print(ttnn.sum(x, dim=-1).shape)
    Shape([8192])
    """
    spec = Spec.of(tuple(shape), dtype, layout, memory_config, on_device=device is not None)
    return Tensor.of(spec, SpecStorage(device), device)
