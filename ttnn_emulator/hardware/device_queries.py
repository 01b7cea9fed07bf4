"""Queries on the board, its architecture and the memory of a device."""

from __future__ import annotations

from ttnn_emulator.enums import Arch, BufferType
from ttnn_emulator.hardware.allocator import MemoryView
from ttnn_emulator.hardware.boards import default_board_name, find_board
from ttnn_emulator.hardware.device import MeshDevice


def GetNumAvailableDevices() -> int:
    return find_board(default_board_name()).chips


GetNumPCIeDevices = GetNumAvailableDevices


def GetPCIeDeviceID(device_id: int) -> int:
    return device_id


def get_arch_name() -> str:
    return find_board(default_board_name()).arch.name.lower()


def is_wormhole_b0(device: MeshDevice | None = None) -> bool:
    return (device.arch() if device is not None else find_board(default_board_name()).arch) is Arch.WORMHOLE_B0


def is_blackhole(device: MeshDevice | None = None) -> bool:
    return (device.arch() if device is not None else find_board(default_board_name()).arch) is Arch.BLACKHOLE


def get_memory_view(device: MeshDevice, buffer_type: BufferType) -> MemoryView:
    """Bank size, allocated and free bytes, the largest free block, and the peak."""
    return device.memory(buffer_type).view()


def get_allocator_base_address(device: MeshDevice, buffer_type: BufferType) -> int:
    return device.memory(buffer_type).base


def get_l1_alignment() -> int:
    return find_board(default_board_name()).l1_alignment


def get_dram_alignment() -> int:
    return find_board(default_board_name()).dram_alignment


def get_max_worker_l1_unreserved_size() -> int:
    return find_board(default_board_name()).l1_max_unreserved


def ReadDeviceProfiler(device: MeshDevice) -> None:
    """Flush the device profiler; the emulator has nothing to flush."""


def get_device_time(device: MeshDevice) -> float:
    """Predicted nanoseconds that a card would have worked and waited since the device was opened.

    `ttnn_emulator.timing.clock.device_time` has its parts. It is not a time of this machine.
    """
    from ttnn_emulator.timing import clock  # loaded only if somebody asks for time

    return clock.get_device_time(device)
