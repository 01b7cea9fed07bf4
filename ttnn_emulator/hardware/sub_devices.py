"""Sub-devices: parts of a chip's grid that run programs independently (`ttnn.SubDevice`).

The emulator runs one program at a time, so sub-devices never wait for each other. They only affect memory: a loaded
manager reserves the lowest bytes of every core's L1.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ttnn_emulator.enums import BufferType
from ttnn_emulator.errors import require
from ttnn_emulator.hardware.core_grid import CoreCoord, CoreRange, CoreRangeSet
from ttnn_emulator.tensors.shapes import round_up

if TYPE_CHECKING:
    from ttnn_emulator.hardware.allocator import BankedMemory
    from ttnn_emulator.hardware.boards import Board

_ids = itertools.count(1)


class SubDeviceManagerId:
    """The handle of a set of sub-devices, returned by `MeshDevice.create_sub_device_manager`."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SubDeviceManagerId) and self._number == other._number

    def __hash__(self) -> int:
        return hash(self._number)


class SubDevices:
    """The device methods for sub-devices."""

    board: Board
    memories: dict[BufferType, BankedMemory]

    def _managers(self) -> dict[SubDeviceManagerId, tuple[list[CoreRangeSet], int]]:
        return vars(self).setdefault("_sub_device_managers", {})

    # tt-metal v0.77.0: tt_metal/impl/sub_device/sub_device_manager.cpp, SubDeviceManager::validate_sub_devices
    def create_sub_device_manager(self, sub_devices: Sequence[Any], local_l1_size: int) -> SubDeviceManagerId:
        """Register disjoint sub-devices and the L1 bytes that each reserves."""
        columns, rows = self.board.grid
        whole = CoreRange(CoreCoord(0, 0), CoreCoord(columns - 1, rows - 1))
        parts = [sub_device.cores[0] for sub_device in sub_devices]
        for part in parts:
            inside = all(whole.contains(each) for each in part.ranges())
            require(inside, f"Tensix cores {part} specified in sub device must be within device grid {whole}")
        taken = [(core.x, core.y) for part in parts for core in part.cores()]
        require(len(set(taken)) == len(taken), "SubDevices specified for SubDeviceManager intersect")
        manager = SubDeviceManagerId(next(_ids))
        self._managers()[manager] = parts, round_up(local_l1_size, self.board.l1_alignment)
        return manager

    def load_sub_device_manager(self, sub_device_manager_id: SubDeviceManagerId) -> None:
        require(sub_device_manager_id in self._managers(), "Sub device manager does not exist")
        self.clear_loaded_sub_device_manager()
        _, local = self._managers()[sub_device_manager_id]
        self.memories[BufferType.L1].reserve_lowest(local)
        vars(self)["_loaded_sub_devices"] = sub_device_manager_id

    def clear_loaded_sub_device_manager(self) -> None:
        if vars(self).pop("_loaded_sub_devices", None) is not None:
            self.memories[BufferType.L1].release_lowest()

    # tt-metal v0.77.0: tt_metal/impl/sub_device/sub_device_manager_tracker.cpp,
    #     SubDeviceManagerTracker::remove_sub_device_manager
    def remove_sub_device_manager(self, sub_device_manager_id: SubDeviceManagerId) -> None:
        require(sub_device_manager_id in self._managers(), "Sub device manager does not exist")
        loaded = vars(self).get("_loaded_sub_devices") == sub_device_manager_id
        require(not loaded, "Cannot remove active sub device manager")
        del self._managers()[sub_device_manager_id]

    def set_sub_device_stall_group(self, sub_device_ids: Sequence[Any]) -> None:
        """The sub-devices that later commands wait for; emulated calls are synchronous."""
        require(len(sub_device_ids) > 0, "sub_device_ids to stall must not be empty")
        for number in map(int, sub_device_ids):
            self.require_sub_device(number)

    def require_sub_device(self, number: int) -> None:
        """Refuse a sub-device index that the loaded manager does not have."""
        loaded = vars(self).get("_loaded_sub_devices")
        parts = 1 if loaded is None else len(self._managers()[loaded][0])
        require(0 <= number < parts, f"SubDevice index {number} out of bounds {parts}")

    def worker_ranges(self, part: Any = None) -> list[CoreRange]:
        """The core ranges of a sub-device, by default the first; of the whole device if no manager is loaded."""
        loaded = vars(self).get("_loaded_sub_devices")
        if loaded is None:
            columns, rows = self.board.grid
            return [CoreRange(CoreCoord(0, 0), CoreCoord(columns - 1, rows - 1))]
        return self._managers()[loaded][0][0 if part is None else int(part)].ranges()

    def reset_sub_device_stall_group(self) -> None:
        """Wait for all sub-devices again."""
