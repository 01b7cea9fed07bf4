"""`ttnn.create_global_circular_buffer`: a buffer in L1 through which cores send data to other cores across programs."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from ttnn_emulator.enums import BufferType
from ttnn_emulator.errors import require
from ttnn_emulator.hardware.core_grid import CoreRange, CoreRangeSet
from ttnn_emulator.hardware.device import MeshDevice
from ttnn_emulator.tensors.shapes import round_up
from ttnn_emulator.tensors.spec import Spec

# tt-metal v0.77.0: tt_metal/impl/buffers/global_circular_buffer.cpp, num_config_elements
_CONFIG_WORDS = 8


class global_circular_buffer:
    """The cores and the L1 allocated on each of them during the lifetime of this object."""

    def __init__(self, device: MeshDevice, mapping: Sequence[Any], size: int, buffer_type: BufferType) -> None:
        senders = [CoreRange(sender, sender) for sender, _ in mapping]
        receivers = [each for _, cores in mapping for each in cores.ranges()]
        taken = [(core.x, core.y) for each in (*senders, *receivers) for core in CoreRangeSet([each]).cores()]
        require(len(set(taken)) == len(taken), "Duplicate cores found")
        self._senders, self._receivers, self._size = CoreRangeSet(senders), CoreRangeSet(receivers), size
        self.mapping = list(mapping)
        self.pending: deque[tuple[int, Spec]] = deque()  # addresses and specs of weights sent to receivers but not read
        self._memory = device.memory(buffer_type)
        self._addresses: list[int] = []
        alignment, most = device.board.l1_alignment, max(cores.num_cores() for _, cores in mapping)
        # Settings, and two coordinates and two counters per receiver of a sender.
        settings = round_up(4 * (_CONFIG_WORDS + 2 * most), alignment) + 2 * most * alignment
        for room in (size, settings):
            self._addresses.append(self._memory.allocate(room * len(taken), room, len(taken)))

    def size(self) -> int:
        return self._size

    def sender_cores(self) -> CoreRangeSet:
        return self._senders

    def receiver_cores(self) -> CoreRangeSet:
        return self._receivers

    def sender_core_type(self) -> str:
        return "worker"

    def __del__(self) -> None:
        for address in getattr(self, "_addresses", ()):
            self._memory.free(address)


def create_global_circular_buffer(
    mesh_device: MeshDevice,
    sender_receiver_core_mapping: Sequence[Any],
    size: int,
    buffer_type: BufferType = BufferType.L1,
) -> global_circular_buffer:
    """Allocate `size` bytes on each core."""
    return global_circular_buffer(mesh_device, sender_receiver_core_mapping, size, buffer_type)
