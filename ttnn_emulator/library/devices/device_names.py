"""Names of `ttnn.device` and `ttnn._ttnn.device` that are about the card's own machinery."""

from __future__ import annotations

import gc
import os
from typing import Any

from ttnn_emulator.enums import BufferType
from ttnn_emulator.errors import NotEmulated, require
from ttnn_emulator.hardware.device import MeshCoordinate, MeshDevice, get_allocator_base_address, get_memory_view
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.storage import Storage
from ttnn_emulator.tensors.tensor import Tensor

DEFAULT_WORKER_L1_SIZE = 0
SLOW_DISPATCH = "TT_METAL_SLOW_DISPATCH_MODE"


def setup_fast_dispatch(*args: Any, **kwargs: Any) -> None:
    """Commands reach the emulated card in one way only."""
    os.environ.pop(SLOW_DISPATCH, None)


def IsProgramRealtimeProfilerActive(*args: Any) -> bool:
    """Kernels are timed by a card; here there are none."""
    return False


def RegisterProgramRealtimeProfilerCallback(*args: Any, **kwargs: Any) -> Any:
    raise NotEmulated("ttnn.device.RegisterProgramRealtimeProfilerCallback: there are no kernels to time")


def UnregisterProgramRealtimeProfilerCallback(*args: Any, **kwargs: Any) -> Any:
    raise NotEmulated("ttnn.device.UnregisterProgramRealtimeProfilerCallback: there are no kernels to time")


def dump_device_memory_state(device: MeshDevice, prefix: str = "") -> None:
    """Print what every memory of the device holds."""
    for kind in (BufferType.DRAM, BufferType.L1, BufferType.L1_SMALL, BufferType.TRACE):
        view = get_memory_view(device, kind)
        print(
            f"{prefix}{kind.name}: {view.total_bytes_allocated_per_bank} B of {view.total_bytes_per_bank} B a bank "
            f"in use, largest free block {view.largest_contiguous_bytes_free_per_bank} B"
        )


def DeallocateBuffers(device: MeshDevice) -> None:
    """Give all room on the device back. Tensors stay usable, until what is made later takes their place on a card."""
    if not isinstance(device, MeshDevice):
        raise TypeError(f"DeallocateBuffers takes a device, not {device!r}")
    for each in gc.get_objects():  # nobody keeps a list of buffers, for the sake of speed
        if issubclass(type(each), Storage) and each.device is device:
            each.give_room_back()


deallocate_buffers = DeallocateBuffers
GetMemoryView, GetAllocatorBaseAddress = get_memory_view, get_allocator_base_address


def experimental_to_single_device(
    host_tensor: Tensor, mesh_device: MeshDevice, coord: MeshCoordinate, memory_config: MemoryConfig
) -> Tensor:
    """Put a host tensor onto one chip of a mesh, with an address of its own on every core."""
    require(not host_tensor._spec.on_device, "experimental_to_single_device takes a tensor on the host")
    require(memory_config.per_core_allocation, "experimental_to_single_device needs shards placed core by core")
    raise NotEmulated("buffers with an address of their own on every core are not emulated")
