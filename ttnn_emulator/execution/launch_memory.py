"""L1 allocations and deallocations of calls that launch several programs, program by program.

A convolution shards its input, gathers the halo, frees the input, reallocates the halo, and only then allocates its
result: whether it fits depends on that order. A plan with stages is allocated stage by stage. Stages refer to buffers
by name: a parameter of the call, an output, or the name of an intermediate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ttnn_emulator.enums import BufferType
from ttnn_emulator.errors import OutOfMemory
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.storage import Placement, Storage

if TYPE_CHECKING:
    from ttnn_emulator.hardware.device import MeshDevice


@dataclass(frozen=True)
class Take:
    """Allocate a tensor, or bytes of L1 on each of some cores."""

    name: str
    spec: Spec | None = None
    bytes_per_core: int = 0
    cores: int = 1

    def placement(self, device: MeshDevice) -> Placement:
        if self.spec is not None:
            return Placement.of(self.spec, device)
        memory = device.memory(BufferType.L1)
        return Placement(memory, self.bytes_per_core * self.cores, self.bytes_per_core, self.cores)


@dataclass(frozen=True)
class TakeOutput:
    """Allocate an output of the plan."""

    number: int = 0


@dataclass(frozen=True)
class Free:
    """Free a buffer, even if it is shared."""

    name: str


@dataclass(frozen=True)
class Move:
    """Free a buffer and allocate it again, which may defragment L1."""

    name: str


@dataclass(frozen=True)
class Launch:
    """A program with its circular buffers."""

    l1_bytes: int


Stage = Take | TakeOutput | Free | Move | Launch


class Rehearsal:
    """One pass through the stages of a call: allocates outputs and frees inputs as the stages require."""

    def __init__(self, device: MeshDevice) -> None:
        self.device = device
        self.outputs: dict[int, Storage] = {}
        self.freed: list[Storage] = []
        self._between: dict[str, Storage] = {}

    def run(self, stages: Sequence[Stage], inputs: dict[str, Storage], places: Sequence[Placement | None]) -> Rehearsal:
        try:
            for stage in stages:
                self._step(stage, inputs, places)
        except BaseException:
            self.end_inputs()
            for storage in self.outputs.values():
                storage.release("the end of a call that failed")
            raise
        finally:
            for storage in self._between.values():
                storage.release("the end of its call")
        return self

    def _step(self, stage: Stage, inputs: dict[str, Storage], places: Sequence[Placement | None]) -> None:
        if isinstance(stage, Take):
            self._between[stage.name] = Storage.placed(stage.placement(self.device), self.device)
        elif isinstance(stage, TakeOutput):
            place = places[stage.number]
            self.outputs[stage.number] = Storage(None) if place is None else Storage.placed(place, self.device)
        elif isinstance(stage, Launch):
            require_l1(stage.l1_bytes, self.device)
        elif stage.name in self._between:
            storage = self._between.pop(stage.name)
            storage.release("the call that allocated it")
            if isinstance(stage, Move):
                assert storage.placement is not None
                self._between[stage.name] = Storage.placed(storage.placement, self.device)
        else:
            root = inputs[stage.name].root
            root.free_memory()
            self.freed.append(root)

    def end_inputs(self) -> None:
        """Drop the values of inputs that the stages freed, after they were read."""
        for storage in self.freed:
            storage.release("the call that read it with deallocation requested")


def require_l1(l1_bytes: int, device: MeshDevice) -> None:
    """Circular buffers grow up from the base of L1 and must end below the lowest tensor there."""
    memory = device.memory(BufferType.L1)
    lowest = memory.lowest_used_address
    limit = lowest if lowest is not None else device.board.l1_bytes  # they may extend into an unused L1_SMALL
    if memory.base + l1_bytes > limit:
        where = "tensors in L1" if lowest is not None else "the end of L1"
        raise OutOfMemory(
            f"Statically allocated circular buffers need {l1_bytes} B of L1 per core and clash with {where}: "
            f"{limit - memory.base} B are free below address {limit}",
            hint="Move tensors from L1 to DRAM, deallocate them, or choose a program config with smaller blocks.",
        )
