"""Bound replays of small traces: everything that does not depend on values is computed once, on fixed buffers.

A program of a trace reads and writes the same buffers in every replay. For a small model, looking up operands,
reshaping them and allocating memory takes longer than computing. So a trace with small results gets private memory for
every buffer that it writes, and each program becomes a nullary function: a `Bindable` computation supplies it, any
other runs as usual and its result is copied.

The private memory is not visible outside: results are copied out, and inputs that the host changes are copied in.
Buffers that have not changed so far, such as weights, are read in place; changes are detected.
"""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from ttnn_emulator.execution.operation_table import Bindable
from ttnn_emulator.numerics import mode
from ttnn_emulator.numerics.formats.carriers import version_of, wide
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.storage import Storage

if TYPE_CHECKING:
    from ttnn_emulator.execution.trace import Program
    from ttnn_emulator.hardware.device import MeshDevice

MOST_VALUES = 1 << 21  # of all results: 8 MB, beyond which compute time dominates
Run = Callable[[], Any]


@dataclass(frozen=True)
class Outside:
    """A buffer that the trace reads but does not write: its last values, and the copy that the programs read."""

    storage: Storage
    seen: torch.Tensor
    version: int
    copy: torch.Tensor | None = None

    def is_current(self) -> bool:
        """Whether the programs see the buffer's current values, after copying them if necessary."""
        values, copy = self.storage.values, self.copy
        if values is None:
            return False
        now = values[0]
        if copy is None:
            return now is self.seen and version_of(now) == self.version
        if now.shape != copy.shape or now.dtype is not copy.dtype:
            return False
        copy.copy_(now)
        return True


@dataclass(frozen=True)
class BufferMemory:
    """The memory of a buffer; a `constant` one is written neither by the trace nor, so far, by the host."""

    values: torch.Tensor
    constant: bool


@dataclass
class BoundTrace:
    """A trace's programs as nullary functions, for one numerics mode."""

    mode: str
    outside: list[Outside]
    memory: dict[int, BufferMemory]  # by buffer; must outlive the compiled loops, which only know addresses
    runs: list[Run] = field(default_factory=list)
    results: list[tuple[Storage, torch.Tensor]] = field(default_factory=list)

    def replay(self) -> None:
        for run in self.runs:
            run()
        self.copy_out()

    def is_unchanged(self) -> bool:
        """Whether the buffers that were constant so far are unchanged."""
        return all(each.copy is not None or each.is_current() for each in self.outside)

    def copy_out(self) -> None:
        """Copy results that are visible outside to their storages."""
        for storage, values in self.results:
            storage.values = [values.clone()]


class Replays:
    """Decides, replay by replay, whether a trace can run bound, and binds it."""

    def __init__(self, programs: Sequence[Program]) -> None:
        self._programs = programs
        self.lock = threading.Lock()  # held during a replay
        self._changing: set[int] = set()  # buffers from outside that the host has changed
        self.bound: BoundTrace | None = None

    @functools.cached_property
    def _is_possible(self) -> bool:
        specs = [spec for program in self._programs for spec in _specs(program.plan.outputs)]
        return (
            sum(math.prod(spec.shape) for spec in specs) <= MOST_VALUES
            and not any(program.plan.across for program in self._programs)
            and _writes_once(self._programs)
        )

    def run(self, device: MeshDevice) -> bool:
        """Replay the trace bound; whether that was possible."""
        if device.num_devices != 1 or not device.holds_values or not self._is_possible:
            return False
        if not self.lock.acquire(blocking=False):  # another thread is replaying
            return False
        try:
            bound = self.bound
            if bound is not None and bound.mode == mode.current() and self._are_current(bound):
                bound.replay()
                return True
            self.bound = None
            self.bound = self._bind()
            return self.bound is not None
        finally:
            self.lock.release()

    def _are_current(self, bound: BoundTrace) -> bool:
        for each in bound.outside:
            if not each.is_current():
                self._changing.update([id(other.storage) for other in bound.outside if not other.is_current()])
                return False
        return True

    def _bind(self) -> BoundTrace | None:
        """Run the programs one by one and record how they are bound."""
        outside = list(self._outside())
        if any(each.storage.values is None for each in outside):
            return None
        memory = {
            id(each.storage): BufferMemory(each.seen if each.copy is None else each.copy, each.copy is None)
            for each in outside
        }
        bound = BoundTrace(mode.current(), outside, memory)
        for program in self._programs:
            arguments = [_argument(value, memory) for value in program.inputs]
            targets = _bound(program, arguments, bound.runs)
            for storage, target in zip(program.outputs, targets):
                memory[id(storage)] = BufferMemory(target, False)
                if not storage.freed_by:
                    bound.results.append((storage, target))
        bound.copy_out()
        return bound

    def _outside(self) -> Iterator[Outside]:
        written = {id(storage) for program in self._programs for storage in program.outputs}
        known: set[int] = set()
        for storage in storages_in([program.inputs for program in self._programs]):
            root = storage.root
            if id(root) in written or id(root) in known:
                continue
            known.add(id(root))
            values = root.values
            seen = values[0] if values is not None else torch.empty(0)
            copy = seen.clone() if id(root) in self._changing else None
            yield Outside(root, seen, version_of(seen), copy)


# -- programs ---------------------------------------------------------------------------------------------------------


def _bound(program: Program, arguments: Sequence[Any], runs: list[Run]) -> list[torch.Tensor]:
    """Run a program, record how to run it again, and return the memory that it fills."""
    plan = program.plan
    if isinstance(plan.compute, Bindable) and all(_can_be_bound(each, plan.narrow) for each in arguments):
        bound = plan.compute.bind(
            [None if each is None else each.values for each in arguments],
            [each is None or each.constant for each in arguments],
        )
        if bound is not None:
            run, target = bound
            if run is not None:
                run()
                runs.append(run)
            return [target]
    assert plan.compute is not None
    calculate = functools.partial(_calculated, plan.compute, arguments, plan.narrow)
    results = zip(program.outputs, calculate())
    targets = [result.clone(memory_format=torch.contiguous_format) for _, result in results]
    runs.append(functools.partial(_calculate_into, calculate, targets))
    return targets


def _can_be_bound(argument: Any, narrow: bool) -> bool:
    if argument.__class__ is not BufferMemory:
        return argument is None
    return argument.values.is_contiguous() and (narrow or argument.values.dtype is not torch.bfloat16)


def _calculated(compute: Callable[..., Any], arguments: Sequence[Any], narrow: bool) -> Sequence[torch.Tensor]:
    result = compute(*[_carrier(each, narrow) for each in arguments])
    return result if result.__class__ in (tuple, list) else (result,)


def _calculate_into(calculate: Callable[[], Sequence[torch.Tensor]], targets: Sequence[torch.Tensor]) -> None:
    for target, result in zip(targets, calculate()):
        target.copy_(result)


def _carrier(argument: Any, narrow: bool) -> Any:
    """The carrier for a computation. A changing tensor is a new object each time: some are cached by identity."""
    if argument.__class__ is BufferMemory:
        values = argument.values if argument.constant else argument.values.detach()
        return values if narrow else wide(values)
    if argument.__class__ is Reshaped:
        return argument.reshape(_carrier(argument.of, narrow))
    if argument.__class__ is tuple:
        return [_carrier(item, narrow) for item in argument]
    return argument


# -- arguments --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reshaped:
    """A view of a buffer that torch cannot express without a copy."""

    of: Any
    reshape: Callable[[torch.Tensor], torch.Tensor]


def _argument(value: Any, memory: dict[int, BufferMemory]) -> Any:
    """An argument of a program with buffers replaced by their memory."""
    if isinstance(value, tuple):
        return tuple([_argument(item, memory) for item in value])
    if not isinstance(value, Storage):
        return value
    if value.root is value:
        return memory[id(value)]
    owner, reshape = _argument(value.owner, memory), value.reshape  # type: ignore[attr-defined]
    if reshape is None:
        return owner
    if owner.__class__ is BufferMemory:
        view = reshape(owner.values)
        if _shares_memory(view, owner.values):
            return BufferMemory(view, owner.constant)
    return Reshaped(owner, reshape)


def memory_of(storage: Storage, bound: BoundTrace) -> BufferMemory | None:
    """The memory of a buffer, or of a view, in a bound trace; None if it has none."""
    if id(storage.root) not in bound.memory:
        return None
    found = _argument(storage, bound.memory)
    return found if found.__class__ is BufferMemory and found.values.is_contiguous() else None


def _shares_memory(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


def storages_in(value: Any) -> Iterator[Storage]:
    """The buffers in an argument."""
    if isinstance(value, tuple | list):
        for item in value:
            yield from storages_in(item)
    elif isinstance(value, Storage):
        yield value


def _specs(outputs: Any) -> Sequence[Spec]:
    if outputs is None:
        return ()
    return (outputs,) if isinstance(outputs, Spec) else outputs


def _writes_once(programs: Sequence[Program]) -> bool:
    """Whether every buffer is written by at most one program, before any reads it, and is not a view."""
    met: set[int] = set()
    for program in programs:
        met.update(id(storage.root) for storage in storages_in(program.inputs))
        for storage in program.outputs:
            if storage.root is not storage or id(storage) in met:
                return False
            met.add(id(storage))
    return True
