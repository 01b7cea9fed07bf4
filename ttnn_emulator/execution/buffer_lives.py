"""The buffers of a capture: where each is, and after which calls it exists."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ttnn_emulator.enums import BufferType
from ttnn_emulator.tensors.storage import Placement, Storage

if TYPE_CHECKING:
    from ttnn_emulator.hardware.device import MeshDevice
    from ttnn_emulator.tensors.spec import Spec


@dataclass(slots=True, eq=False)
class BufferLife:
    """One buffer.

    first  the first call after which it exists; calls are numbered from 1
    end    the first call after which it does not exist any more; None while it exists
    spec   of a tensor in it; None if no tensor of it was seen, as for buffers inside an operation
    """

    device: MeshDevice
    address: int
    placement: Placement
    first: int
    end: int | None = None
    spec: Spec | None = None

    @property
    def buffer_type(self) -> BufferType:
        return self.placement.memory.buffer_type

    @property
    def outlives_its_call(self) -> bool:
        """Whether it exists after any call."""
        return self.end is None or self.end > self.first

    @property
    def is_in_l1(self) -> bool:
        return self.buffer_type in (BufferType.L1, BufferType.L1_SMALL)

    @property
    def layout(self) -> int:
        """The number of its `TensorMemoryLayout`; interleaved if no tensor of it was seen."""
        return 0 if self.spec is None else self.spec.memory_config.memory_layout.value

    def facts(self) -> dict[str, Any]:
        """The buffer as reports of captured graphs describe it."""
        return {
            "address": self.address,
            "buffer_type": self.buffer_type.value,
            "device_id": self.device.id(),
            "buffer_layout": self.layout,
            "max_size_per_bank": self.placement.bytes_per_bank,
        }


class BufferLives:
    """All buffers seen during a capture, in the order in which they were seen."""

    def __init__(self) -> None:
        self.all: list[BufferLife] = []
        self.devices: dict[int, MeshDevice] = {}  # by id, also of tensors without a buffer
        self._alive: dict[int, BufferLife] = {}  # by the id of the storage, which lives as long as the buffer

    def allocated(self, storage: Storage, call: int, spec: Spec | None = None) -> None:
        """A buffer exists from this call on; that of a storage which is known gets the spec of its first tensor."""
        device, placement = storage.device, storage.placement
        if device is None or placement is None or storage.memory is None or not device.is_open:
            return
        self.devices[device.id()] = device
        known = self._alive.get(id(storage))
        if known is None:
            known = self._alive[id(storage)] = BufferLife(device, storage.address, placement, call)
            self.all.append(known)
        if known.spec is None:
            known.spec = spec

    def freed(self, storage: Storage, call: int) -> None:
        """A buffer does not exist after this call."""
        life = self._alive.pop(id(storage), None)
        if life is not None:
            life.end = call

    def end_of_closed_devices(self, call: int) -> None:
        """Closing a device frees everything on it."""
        closed = [number for number, life in self._alive.items() if not life.device.is_open]
        for number in closed:
            self._alive.pop(number).end = call

    def after_each(self, calls: int) -> Iterator[tuple[int, Collection[BufferLife]]]:
        """Every call with the buffers that exist after it."""
        begins: dict[int, list[BufferLife]] = defaultdict(list)
        ends: dict[int, list[BufferLife]] = defaultdict(list)
        for life in self.all:
            if life.outlives_its_call:
                begins[life.first].append(life)
                if life.end is not None:
                    ends[life.end].append(life)
        alive: dict[int, BufferLife] = {}
        for call in range(1, calls + 1):
            for life in ends.get(call, ()):
                del alive[id(life)]
            for life in begins.get(call, ()):
                alive[id(life)] = life
            yield call, alive.values()
