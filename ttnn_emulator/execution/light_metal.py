"""Light metal: buffer allocations and deallocations, as a binary that can be replayed on a device.

The released library records nothing else of its operations, so a replay only allocates and frees the same buffers. The
binary format is our own.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Sequence
from typing import Any

from ttnn_emulator.atomic_files import replacing
from ttnn_emulator.enums import BufferType
from ttnn_emulator.errors import EmulatorError, NotEmulated
from ttnn_emulator.execution import listeners
from ttnn_emulator.hardware.device import MeshDevice
from ttnn_emulator.tensors.storage import Placement, Storage

Command = list[Any]  # ["take", buffer, memory, bytes, bytes per bank, banks] or ["free", buffer]


# asked ttnn 0.81.1: the binary of an addition contains the allocation and deallocation of its buffers, no kernels
class LightMetalBinary:
    """The bytes of a capture."""

    def __init__(self) -> None:
        self._data = b""

    def get_data(self) -> list[int]:
        return list(self._data)

    def set_data(self, data: Sequence[int]) -> None:
        self._data = bytes(data)

    def size(self) -> int:
        return len(self._data)

    def is_empty(self) -> bool:
        return not self._data

    def save_to_file(self, filename: str) -> None:
        with replacing(filename) as temporary:
            temporary.write_bytes(self._data)

    @staticmethod
    def load_from_file(filename: str) -> LightMetalBinary:
        binary = LightMetalBinary()
        binary.set_data(pathlib.Path(filename).read_bytes())
        return binary


class _Capture(listeners.Listener):
    def __init__(self) -> None:
        self.commands: list[Command] = []
        self._numbers: dict[int, int] = {}  # id of a storage → its buffer

    def allocated(self, storage: Storage, placement: Placement) -> None:
        number = self._numbers[id(storage)] = len(self.commands)
        sizes = [placement.total_bytes, placement.bytes_per_bank, placement.banks]
        self.commands.append(["take", number, placement.memory.buffer_type.name, *sizes])

    def freed(self, storage: Storage) -> None:
        number = self._numbers.pop(id(storage), None)
        if number is not None:
            self.commands.append(["free", number])


_running: list[_Capture] = []


def light_metal_begin_capture() -> None:
    """Start a capture; a running capture is dropped."""
    _stop()
    _running.append(_Capture())
    listeners.add(_running[-1])


def light_metal_end_capture() -> LightMetalBinary:
    """End the capture; without one, the binary has no commands."""
    binary = LightMetalBinary()
    binary.set_data(json.dumps(_stop()).encode())
    return binary


def _stop() -> list[Command]:
    if not _running:
        return []
    capture = _running.pop()
    listeners.remove(capture)
    return capture.commands


class LightMetalReplay:
    """Replays the allocations and deallocations of a binary."""

    def __init__(self, binary: LightMetalBinary, device: MeshDevice) -> None:
        self._binary = binary
        self._device = device

    @staticmethod
    def create(binary: LightMetalBinary, device: MeshDevice | None = None) -> LightMetalReplay:
        if device is None:
            raise NotEmulated("ttnn.LightMetalReplay.create does not open a device: pass one")
        return LightMetalReplay(binary, device)

    def run(self) -> bool:
        """Replay; False if the binary is malformed or a buffer does not fit. Remaining buffers are freed at the end."""
        if self._binary.is_empty():
            return False
        taken: dict[int, tuple[BufferType, int]] = {}
        try:
            for kind, number, *facts in json.loads(bytes(self._binary.get_data())):
                if kind == "take":
                    memory = BufferType[facts[0]]
                    taken[number] = (memory, self._device.memories[memory].allocate(*facts[1:]))
                else:
                    self._free(*taken.pop(number))
        except (EmulatorError, ValueError):  # as in the library, a failed replay returns False
            return False
        finally:
            for memory, address in taken.values():
                self._free(memory, address)
        return True

    def _free(self, memory: BufferType, address: int) -> None:
        self._device.memories[memory].free(address)
