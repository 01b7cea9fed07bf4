"""Numbers of the chips of a run, from 0; two open devices never share one, even if both are of the same chip."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ttnn_emulator.hardware.device import MeshDevice


class DeviceNumbers:
    """A chip has its own number, unless another open device has a memory of its own for that chip."""

    def __init__(self) -> None:
        self._owners: dict[int, MeshDevice] = {}  # number → the latest device with it
        self._numbers: dict[int, tuple[int, ...]] = {}  # id of a device → numbers of its chips
        self.devices: dict[int, MeshDevice] = {}  # number → the first device with it

    def of(self, device: MeshDevice) -> tuple[int, ...]:
        """The numbers of a device's chips."""
        if device.id() not in self._numbers:
            self._numbers[device.id()] = tuple(self._take(chip, device) for chip in device.get_device_ids())
        return self._numbers[device.id()]

    def _take(self, chip: int, device: MeshDevice) -> int:
        number = chip
        while number in self._owners and self._owners[number].is_open:
            number = max(self._owners) + 1
        self._owners[number] = device
        self.devices.setdefault(number, device)
        return number
