"""Storage of a tensor's values: on the host, or in device buffers that can be freed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from ttnn_emulator.enums import BufferType, DataType
from ttnn_emulator.errors import InvalidArgument, NotEmulated, UseAfterFree
from ttnn_emulator.execution import listeners
from ttnn_emulator.hardware.boards import Arch
from ttnn_emulator.hardware.core_grid import CoreRangeSet
from ttnn_emulator.tensors.shapes import round_up

if TYPE_CHECKING:
    from ttnn_emulator.hardware.allocator import BankedMemory
    from ttnn_emulator.hardware.device import MeshDevice
    from ttnn_emulator.tensors.spec import Spec

Values = list[torch.Tensor]


class Storage:
    """The values of one tensor, one entry per chip, and the buffer they occupy.

    `values` is None for a tensor that has only a spec. Several tensors share one storage when one is a view of
    another; the buffer is freed with the last of them, or by an explicit deallocation.
    """

    __slots__ = ("values", "device", "memory", "address", "placement", "freed_by", "__weakref__")

    def __init__(self, values: Values | None, device: MeshDevice | None = None) -> None:
        self.values = values
        self.device = device
        self.memory: BankedMemory | None = None
        self.address = 0
        self.placement: Placement | None = None
        self.freed_by = ""

    @classmethod
    def on_device(cls, spec: Spec, device: MeshDevice, values: Values | None = None) -> Storage:
        """Allocate `spec` on the device; raises OutOfMemory."""
        return cls.placed(Placement.of(spec, device), device, values)

    @classmethod
    def placed(cls, placement: Placement, device: MeshDevice, values: Values | None = None) -> Storage:
        """Allocate with a precomputed placement."""
        if not device.is_open:
            device.require_open()
        storage = cls(values, device)
        memory = placement.memory
        storage.address = memory.allocate(placement.total_bytes, placement.bytes_per_bank, placement.banks)
        storage.memory = memory
        storage.placement = placement
        if listeners.active:
            listeners.buffer_allocated(storage, placement)
        return storage

    @property
    def root(self) -> Storage:
        """The storage that holds the values: for a view, that of its source."""
        return self

    @property
    def is_allocated(self) -> bool:
        if self.device is None:
            return not self.freed_by
        return not self.freed_by and self.device.is_open

    def release(self, by: str) -> None:
        """Free the buffer; the error of a later use names the reason."""
        if self.freed_by:
            return
        self.freed_by = by
        self.values = None
        self.free_memory()

    def free_memory(self) -> None:
        """Free the buffer's memory. Its values remain readable until `release`."""
        memory = self.memory
        if memory is None:
            return
        self.memory = None
        memory.free(self.address)
        if listeners.active:
            listeners.buffer_freed(self)

    def require_allocated(self) -> None:
        if self.freed_by:
            raise UseAfterFree(f"the tensor is not allocated: it was freed by {self.freed_by}")
        if self.device is not None and not self.device.is_open:
            raise UseAfterFree("the tensor is not allocated: its device was closed")

    def __del__(self) -> None:
        self.free_memory()


class SpecStorage(Storage):
    """The storage of a tensor without values: neither it nor tensors computed from it occupy memory."""

    __slots__ = ()

    def __init__(self, device: MeshDevice | None) -> None:
        super().__init__(None, device)


@dataclass(frozen=True)
class Placement:
    """The size of a tensor in a memory. It depends on spec and device only, so a plan computes it once."""

    memory: BankedMemory
    total_bytes: int
    bytes_per_bank: int
    banks: int

    @classmethod
    def of(cls, spec: Spec, device: MeshDevice) -> Placement:
        config = spec.memory_config
        if config.per_core_allocation or config.range_lockstep_allocation:
            raise NotEmulated("buffers with a separate address per core are not emulated")
        if spec.dtype is DataType.FP8_E4M3 and device.board.arch is not Arch.BLACKHOLE:
            raise InvalidArgument(f"fp8_e4m3 is not supported by {device.board.arch.name}, only by BLACKHOLE")
        memory = device.memories[config.buffer_type]
        banks = _require_cores(spec, device) if config.is_sharded() else memory.banks
        alignment = page_alignment(device, config.buffer_type)
        page = round_up(spec.page_bytes, alignment)
        return cls(memory, spec.num_pages * page, spec.bytes_per_bank(memory.banks, alignment), banks)


def _require_cores(spec: Spec, device: MeshDevice) -> int:
    """The number of shard cores; refuses cores that the board does not have."""
    config = spec.memory_config
    shards = config.shard_spec or config.nd_shard_spec
    if shards is None:
        raise InvalidArgument(f"a tensor in {config.brief()} needs a shard spec")
    width, height = device.board.grid if config.is_l1 else (device.board.dram_banks, 1)
    box = shards.grid.bounding_box()
    if box.end.x >= width or box.end.y >= height:
        raise InvalidArgument(
            f"shard grid {shards.grid} exceeds the {width} x {height} {config.buffer_type.name} banks of "
            f"{device.board.name}{'' if config.is_l1 else ' (DRAM banks are 1D)'}",
            hint="Derive the shard grid from the device: compute_with_storage_grid_size() or dram_grid_size().",
        )
    return shards.num_cores()


def page_alignment(device: MeshDevice, buffer_type: BufferType) -> int:
    board = device.board
    return board.dram_alignment if buffer_type in (BufferType.DRAM, BufferType.TRACE) else board.l1_alignment


def cores_of(spec: Spec) -> CoreRangeSet | None:
    """The cores that hold shards of this tensor."""
    shards = spec.memory_config.shard_spec or spec.memory_config.nd_shard_spec
    return shards.grid if shards is not None else None
