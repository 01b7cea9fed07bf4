"""Bound replays of small traces: everything that does not depend on values is computed once, on fixed buffers.

A program of a trace reads and writes the same buffers in every replay. For a small model, looking up operands,
reshaping them and allocating memory takes longer than computing. So a trace with small results gets private memory for
every buffer that it writes, and each program becomes a nullary function: a `Bindable` computation supplies it, any
other runs as usual and its result is copied.

The private memory is not visible outside: results are copied out, and inputs that the host changes are copied in.
Buffers that have not changed so far, such as weights, are read in place; changes are detected.

A buffer that a program updates in part, such as a cache that gets a row, is neither copied in nor out: the program
writes the row into its values. They belong to the buffer alone, which every replay checks.
"""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from ttnn_emulator.enums import DataType
from ttnn_emulator.execution.operation_table import Bindable, Updating
from ttnn_emulator.numerics import mode
from ttnn_emulator.numerics.formats.carriers import version_of, wide
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.storage import Storage

if TYPE_CHECKING:
    from ttnn_emulator.execution.operation_table import Plan
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
class Updated:
    """A buffer whose values the trace updates in place, and how many tensors share their memory."""

    storage: Storage
    values: torch.Tensor
    sharing: int

    def is_current(self) -> bool:
        """Whether the values are the same tensor, and no other buffer has come to share them."""
        held = self.storage.values
        return held is not None and held[0] is self.values and _sharing(self.values) == self.sharing


def _sharing(values: torch.Tensor) -> int:
    return torch._C._storage_Use_Count(values.untyped_storage()._cdata)


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
    updated: list[Updated] = field(default_factory=list)

    def replay(self) -> None:
        for run in self.runs:
            run()
        self.copy_out()

    def is_unchanged(self) -> bool:
        """Whether the buffers that were constant so far are unchanged."""
        return self.updates_in_place and all(each.copy is not None or each.is_current() for each in self.outside)

    @property
    def updates_in_place(self) -> bool:
        """Whether the buffers that are updated in place still have the values that the programs write to."""
        return all(each.is_current() for each in self.updated)

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
        new = [program for program in self._programs if id(program) not in self._updating]
        specs = [spec for program in new for spec in _specs(program.plan.outputs)]
        return (
            sum(math.prod(spec.shape) for spec in specs) <= MOST_VALUES
            and not any(program.plan.across for program in self._programs)
            and not any(storage.root is not storage for program in self._programs for storage in program.outputs)
        )

    @functools.cached_property
    def _updating(self) -> set[int]:
        """The programs that update a buffer from outside in place: no program before them has read or written it."""
        met: set[int] = set()
        found: set[int] = set()
        for program in self._programs:
            if isinstance(program.plan.compute, Updating) and not any(id(each) in met for each in program.outputs):
                found.add(id(program))
            met.update(id(storage.root) for storage in storages_in([program.inputs, program.outputs]))
        return found

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
        if not bound.updates_in_place:
            return False
        for each in bound.outside:
            if not each.is_current():
                self._changing.update([id(other.storage) for other in bound.outside if not other.is_current()])
                return False
        return True

    def _bind(self) -> BoundTrace | None:
        """Run the programs one by one and record how they are bound."""
        updated = self._updated()
        outside = list(self._outside(set(updated)))
        read = [storage for storage, _ in updated.values()] + [each.storage for each in outside]
        if any(storage.values is None for storage in read):
            return None
        memory = {
            id(each.storage): BufferMemory(each.seen if each.copy is None else each.copy, each.copy is None)
            for each in outside
        }
        for storage, spec in updated.values():
            storage.values = [_own(storage.values[0], spec)]  # type: ignore[index]
            memory[id(storage)] = BufferMemory(storage.values[0], False)
        bound = BoundTrace(mode.current(), outside, memory)
        written: dict[int, tuple[Storage, torch.Tensor]] = {}
        for program in self._programs:
            arguments = [_argument(value, memory) for value in program.inputs]
            bind = _updating if id(program) in self._updating else _bound
            targets = bind(program, arguments, bound.runs)
            for storage, target in zip(program.outputs, targets):
                memory[id(storage)] = BufferMemory(target, False)
                if id(program) not in self._updating:
                    written[id(storage)] = storage, target
        bound.results = [(storage, target) for storage, target in written.values() if not storage.freed_by]
        bound.copy_out()
        del arguments, targets
        for storage, _ in updated.values():
            held = storage.values[0]  # type: ignore[index]
            bound.updated.append(Updated(storage, held, _sharing(held)))
        return bound

    def _updated(self) -> dict[int, tuple[Storage, Spec]]:
        """The buffers that programs update in place, with their specs."""
        updating = [program for program in self._programs if id(program) in self._updating]
        return {id(each.outputs[0]): (each.outputs[0], _specs(each.plan.outputs)[0]) for each in updating}

    def _outside(self, updated: set[int]) -> Iterator[Outside]:
        """The buffers that are read before any program writes them, without those that are updated in place."""
        written = {id(storage) for program in self._programs for storage in program.outputs}
        known = set(updated)
        for program in self._programs:
            for storage in storages_in(program.inputs):
                root = storage.root
                if id(root) in known:
                    continue
                known.add(id(root))
                values = root.values
                seen = values[0] if values is not None else torch.empty(0)
                copy = seen.clone() if id(root) in self._changing or id(root) in written else None
                yield Outside(root, seen, version_of(seen), copy)
            known.update(id(storage) for storage in program.outputs)


def _own(values: torch.Tensor, spec: Spec) -> torch.Tensor:
    """A copy of the values of a buffer, as small as its dtype allows; torch's cast does not keep the bits of NaN."""
    is_narrow = spec.dtype is DataType.BFLOAT16 and not bool(values.isnan().any())
    dtype = torch.bfloat16 if is_narrow else values.dtype
    return values.to(dtype, copy=True, memory_format=torch.contiguous_format)


# -- programs ---------------------------------------------------------------------------------------------------------


def _bound(program: Program, arguments: Sequence[Any], runs: list[Run]) -> list[torch.Tensor]:
    """Run a program, record how to run it again, and return the memory that it fills."""
    plan = program.plan
    if isinstance(plan.compute, Bindable) and not isinstance(plan.compute, Updating):
        target = _run_bindable(plan, arguments, runs)
        if target is not None:
            return [target]
    assert plan.compute is not None
    calculate = functools.partial(_calculated, plan.compute, arguments, plan.narrow)
    results = zip(program.outputs, calculate())
    targets = [result.clone(memory_format=torch.contiguous_format) for _, result in results]
    runs.append(functools.partial(_calculate_into, calculate, targets))
    return targets


def _run_bindable(plan: Plan, arguments: Sequence[Any], runs: list[Run]) -> torch.Tensor | None:
    """The memory that a bound computation fills, after running it once; None if it cannot be bound."""
    if not all(_can_be_bound(each, plan.narrow) for each in arguments):
        return None
    bound = plan.compute.bind(  # type: ignore[union-attr]
        [None if each is None else each.values for each in arguments],
        [each is None or each.constant for each in arguments],
    )
    if bound is None:
        return None
    run, target = bound
    if run is not None:
        run()
        runs.append(run)
    return target


def _updating(program: Program, arguments: Sequence[Any], runs: list[Run]) -> list[torch.Tensor]:
    """The same for a program that updates its first argument: it fills the memory of that."""
    plan, memory = program.plan, arguments[0].values
    if _run_bindable(plan, arguments, runs) is None:
        assert plan.compute is not None
        run = functools.partial(
            _calculate_into, functools.partial(_calculated, plan.compute, arguments, plan.narrow), [memory]
        )
        run()
        runs.append(run)
    return [memory]


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
