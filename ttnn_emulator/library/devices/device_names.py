"""Names of `ttnn.device` and `ttnn._ttnn.device` for dispatch, profiling and memory."""

from __future__ import annotations

import gc
import os
from typing import Any

from ttnn_emulator.enums import BufferType
from ttnn_emulator.errors import NotEmulated, require
from ttnn_emulator.hardware.device import MeshDevice
from ttnn_emulator.hardware.device_queries import get_allocator_base_address, get_memory_view
from ttnn_emulator.hardware.mesh_coordinates import MeshCoordinate
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.storage import Storage
from ttnn_emulator.tensors.tensor import Tensor

DEFAULT_WORKER_L1_SIZE = 0
SLOW_DISPATCH = "TT_METAL_SLOW_DISPATCH_MODE"


def setup_fast_dispatch(*args: Any, **kwargs: Any) -> None:
    """Unset the variable of slow dispatch; the emulator has one kind of dispatch."""
    os.environ.pop(SLOW_DISPATCH, None)


def IsProgramRealtimeProfilerActive(*args: Any) -> bool:
    """The emulator has no kernels to time."""
    return False


def RegisterProgramRealtimeProfilerCallback(*args: Any, **kwargs: Any) -> Any:
    raise NotEmulated("ttnn.device.RegisterProgramRealtimeProfilerCallback: there are no kernels to time")


def UnregisterProgramRealtimeProfilerCallback(*args: Any, **kwargs: Any) -> Any:
    raise NotEmulated("ttnn.device.UnregisterProgramRealtimeProfilerCallback: there are no kernels to time")


def dump_device_memory_state(device: MeshDevice, prefix: str = "") -> None:
    """Print the allocation state of every memory of the device."""
    for kind in (BufferType.DRAM, BufferType.L1, BufferType.L1_SMALL, BufferType.TRACE):
        view = get_memory_view(device, kind)
        print(
            f"{prefix}{kind.name}: {view.total_bytes_allocated_per_bank} B of {view.total_bytes_per_bank} B per bank "
            f"in use, largest free block {view.largest_contiguous_bytes_free_per_bank} B"
        )


def DeallocateBuffers(device: MeshDevice) -> None:
    """Free all memory of the device. Tensors stay readable; on a card, later tensors overwrite them."""
    if not isinstance(device, MeshDevice):
        raise TypeError(f"DeallocateBuffers takes a device, not {device!r}")
    for each in gc.get_objects():  # keeping a list of buffers would cost time on every call
        if issubclass(type(each), Storage) and each.device is device:
            each.free_memory()


deallocate_buffers = DeallocateBuffers
GetMemoryView, GetAllocatorBaseAddress = get_memory_view, get_allocator_base_address


def experimental_to_single_device(
    host_tensor: Tensor, mesh_device: MeshDevice, coord: MeshCoordinate, memory_config: MemoryConfig
) -> Tensor:
    """Move a host tensor to one chip of a mesh, with a separate address per core."""
    require(not host_tensor._spec.on_device, "experimental_to_single_device takes a tensor on the host")
    require(memory_config.per_core_allocation, "experimental_to_single_device needs per_core_allocation")
    raise NotEmulated("buffers with a separate address per core are not emulated")
