"""Calls of a model or a script as data: tensors are references, so calls can be repeated, as they were or changed.

Repeating takes place on a device without values: every call is checked and planned by the emulator's table of
operations, so the timing model sees the programs that the library would choose, and nothing is computed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch_ttnn.compiler.ir.arguments import DeviceMarker, leaves, mapped
from torch_ttnn.perf.planned_operations import PlannedOperations
from ttnn_emulator import EmulatorError, MeshDevice, MeshShape, Tensor, specs_only
from ttnn_emulator.execution.listeners import HostOperation, Transfer, listening
from ttnn_emulator.execution.operation_table import OPERATIONS
from ttnn_emulator.hardware.activity import CallRecord
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.profiling.recorder import Origin
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.storage import SpecStorage
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.pricing import launches_of_record


@dataclass(frozen=True, slots=True)
class Ref:
    """A tensor that no call returned, or the result of an earlier call."""

    key: Hashable


@dataclass(frozen=True)
class Call:
    """A call of an operation of the library.

    results  references to its results, nested as it returns them
    times    how often it ran: more than once if a trace repeats it
    ran      what it launched when it ran, if it did: for calls that cannot be repeated
    outputs  the specs of its results when it ran
    """

    name: str
    args: tuple
    kwargs: Mapping[str, Any]
    results: Any
    origin: Origin
    times: int = 1
    ran: tuple[CallRecord, ...] = ()
    outputs: Mapping[Hashable, Spec] = field(default_factory=dict)


@dataclass(frozen=True)
class OnHost:
    """An operation that the host runs."""

    operation: HostOperation
    origin: Origin


Step = Call | OnHost | Transfer


@dataclass
class Calls:
    """What a model or a script does, in order.

    inputs     the tensors that no call returned
    trace_how  how a user has its calls captured as a trace
    """

    board: Board
    steps: list[Step] = field(default_factory=list)
    inputs: dict[Hashable, Spec] = field(default_factory=dict)
    trace_how: str = "ttnn.begin_trace_capture, ttnn.execute_trace"

    @property
    def calls(self) -> list[Call]:
        return [step for step in self.steps if isinstance(step, Call)]


@dataclass(frozen=True)
class PlannedCall:
    """A call that was repeated, and what it launches.

    outputs   specs of its results by reference
    l1_bytes  the most that circular buffers take in the L1 of a core
    changed   whether the changed call was accepted
    """

    call: Call
    records: tuple[CallRecord, ...]
    outputs: Mapping[Hashable, Spec]
    l1_bytes: int = 0
    changed: bool = False

    def launches(self, board: Board) -> list[Launch]:
        return [launch for record in self.records for launch in launches_of_record(record, board)]


# Maps the arguments of a call, with specs in place of references, to changed ones, or to None to leave it alone.
Change = Callable[[Call, tuple, dict[str, Any]], tuple[tuple, dict[str, Any]] | None]


def spec_only_device(board: Board, like: MeshDevice | None = None) -> MeshDevice:
    """A device without values: one chip of a board, or as many as `like` has."""
    return MeshDevice(
        board,
        shape=like.shape if like is not None else MeshShape(1, 1),
        device_ids=like.get_device_ids() if like is not None else [0],
        l1_small_size=like.l1_small_size if like is not None else 32768,
        holds_values=False,
    )


def repeated(
    calls: Calls, device: MeshDevice, change: Change | None = None, before: Sequence[PlannedCall] = ()
) -> Iterator[PlannedCall]:
    """Repeat all calls; `before` is what they were without the change.

    A call whose change is refused is repeated as it was. If a call refuses results of changed calls, its operands are
    converted back to what they were, and the conversions are part of it.
    """
    known: dict[Hashable, Spec] = dict(calls.inputs)
    originals = calls.inputs | {key: spec for each in before for key, spec in each.outputs.items()}
    previous = {id(each.call): each for each in before}
    operations = PlannedOperations()
    for call in calls.calls:
        args, kwargs = (mapped(each, lambda leaf: _known(leaf, known)) for each in (call.args, dict(call.kwargs)))
        planned = None
        changed = change(call, args, kwargs) if change is not None else None
        if changed is not None:
            planned = _planned(call, *changed, device, operations, is_changed=True)
        if planned is None:
            planned = _planned(call, args, kwargs, device, operations, is_changed=False)
        if planned is None:
            restored = _restored(call, known, originals, device, operations)
            earlier = previous.get(id(call)) or PlannedCall(call, call.ran, call.outputs)
            planned = dataclasses.replace(earlier, records=(*restored, *earlier.records))
        known.update(planned.outputs)
        yield planned


def _restored(
    call: Call,
    known: Mapping[Hashable, Spec],
    originals: Mapping[Hashable, Spec],
    device: MeshDevice,
    operations: PlannedOperations,
) -> list[CallRecord]:
    """Conversions of a call's operands to the memory in which they were without a change."""
    found: list[CallRecord] = []
    for ref in [leaf for leaf in leaves((call.args, dict(call.kwargs))) if isinstance(leaf, Ref)]:
        now, then = known.get(ref.key), originals.get(ref.key)
        if now is None or then is None or now == then or not then.on_device:
            continue
        conversion = Call("ttnn.to_memory_config", (ref,), {"memory_config": then.memory_config}, None, call.origin)
        planned = _planned(conversion, (now,), dict(conversion.kwargs), device, operations, is_changed=True)
        found += planned.records if planned is not None else ()
    return found


def kernels_ns(planned: Iterable[PlannedCall], board: Board) -> float:
    """Predicted time of all programs of these calls."""
    return sum(launch.kernel_ns * each.call.times for each in planned for launch in each.launches(board))


def _known(leaf: Any, known: Mapping[Hashable, Spec]) -> Any:
    return known.get(leaf.key, leaf) if isinstance(leaf, Ref) else leaf


def _planned(
    call: Call,
    args: tuple,
    kwargs: dict[str, Any],
    device: MeshDevice,
    operations: PlannedOperations,
    *,
    is_changed: bool,
) -> PlannedCall | None:
    """The call with these arguments; None if it is refused."""

    def placed(leaf: Any) -> Any:
        if isinstance(leaf, Spec):
            where = device if leaf.on_device else None
            return Tensor.of(leaf, SpecStorage(where), where)
        return device if isinstance(leaf, DeviceMarker) else leaf

    try:
        with specs_only(), listening(operations):
            result = OPERATIONS[call.name](*mapped(args, placed), **mapped(kwargs, placed))
    except (EmulatorError, TypeError, ValueError):
        operations.taken()
        return None
    records, l1_bytes = operations.taken()
    programs = tuple([record for record in records if record.runs_program])
    return PlannedCall(call, programs, dict(_outputs(call.results, result)), l1_bytes, is_changed)


def _outputs(refs: Any, result: Any) -> Iterator[tuple[Hashable, Spec]]:
    if isinstance(refs, Ref):
        if isinstance(result, Tensor):
            yield refs.key, result.spec
    elif isinstance(refs, list | tuple) and isinstance(result, list | tuple):
        for ref, each in zip(refs, result):
            yield from _outputs(ref, each)
