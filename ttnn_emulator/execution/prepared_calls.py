"""Prepares calls: looks up the plan of a call in the program cache, or has the operation create one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from ttnn_emulator.api.binding import Overload
from ttnn_emulator.errors import InvalidArgument
from ttnn_emulator.execution.call_context import context
from ttnn_emulator.execution.operation_table import NO_PROGRAM, Operation, Plan
from ttnn_emulator.execution.rare_dtypes import require_emulated_inputs, require_emulated_outputs
from ttnn_emulator.hardware.activity import CallRecord
from ttnn_emulator.hardware.device import MeshDevice
from ttnn_emulator.hardware.program_cache import ProgramCache
from ttnn_emulator.numerics.formats.carriers import CARRIER
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.storage import Placement
from ttnn_emulator.tensors.tensor import Tensor

PLAIN = frozenset({type(None), bool, int, float, str})  # arguments that need no conversion

_host_cache = ProgramCache()


class PreparedCall:
    """A plan with the names of its parameters resolved to positions."""

    __slots__ = (
        "plan",
        "names",
        "reads",
        "into",
        "shares",
        "outputs",
        "wrap",
        "placements",
        "is_plain",
        "is_single",
        "launches",
        "record",
    )

    def __init__(
        self,
        op: Operation,
        arguments: Mapping[str, Any],
        plan: Plan,
        overload: Overload,
        device: MeshDevice | None,
    ) -> None:
        names = overload.names
        self.plan = plan
        self.names = names
        written = {name for name in plan.into if name is not None}
        reads = plan.reads
        if reads is None:
            reads = tuple(names[slot] for slot in overload.tensor_slots if names[slot] not in written)
        self.reads = tuple(names.index(name) for name in reads)
        self.into = tuple(None if name is None else names.index(name) for name in plan.into)
        self.shares = None if plan.shares is None else names.index(plan.shares)
        outputs = plan.outputs
        if outputs is None:
            self.outputs: tuple[Spec, ...] = ()
            self.wrap: Any = None
        elif isinstance(outputs, Spec):
            self.outputs, self.wrap = (outputs,), Tensor
        else:
            self.outputs, self.wrap = tuple(outputs), plan.wrap or type(outputs)
        computes = plan.compute is not None and plan.shares is None
        is_empty = True
        for spec in self.outputs:
            if spec.volume:
                is_empty = False
                break
        if is_empty and computes and self.outputs and not plan.across:
            self.plan = plan = dataclasses.replace(plan, compute=_empty_results(self.outputs))
        self.placements = [
            Placement.of(spec, device) if device is not None and spec.on_device else None for spec in self.outputs
        ]
        # Whether the library launches a program for it.
        self.launches = computes and not is_empty and plan.program is not NO_PROGRAM and any(self.placements)
        self.record = CallRecord(op.name, arguments, self.outputs, plan.work, self.launches)
        self.is_single = self.wrap is Tensor and not self.into and plan.padding is None  # one tensor, a new one
        # One new tensor on one chip: the common case, and the fast path of `dispatch._run`.
        self.is_plain = (
            self.wrap is Tensor
            and self.shares is None
            and self.placements[0] is not None
            and len(self.into) <= 1
            and plan.compute is not None
            and not plan.across
            and plan.padding is None
            and plan.padded is None
            and device is not None
            and device.num_devices == 1
            and device.holds_values
        )


def _empty_results(specs: Sequence[Spec]) -> Callable[..., list[torch.Tensor]]:
    """A computation whose results have no elements."""
    return lambda *_: [torch.empty(tuple(spec.shape), dtype=CARRIER[spec.dtype]) for spec in specs]


def find_plan(op: Operation, overload: Overload, values: tuple, device: MeshDevice | None) -> PreparedCall:
    """The prepared call from the device's program cache; on a miss it is prepared and added."""
    cache = device.program_cache if device is not None else _host_cache
    key = (op, overload, overload.key(values))
    try:
        found = cache.plans.get(key)
    except TypeError:  # an unhashable argument: prepare on every call
        return _prepare(op, overload, values, device)
    if found is not None:
        cache.hits += 1
        return found
    if device is not None and device.capturing is not None:
        raise InvalidArgument(
            "cannot load a new program during trace capture",
            hint="Run the same calls once before begin_trace_capture, with the program cache enabled.",
        )
    prepared = _prepare(op, overload, values, device)
    if prepared.launches and not cache.has_program(prepared.plan.program):
        if not cache.misses_allowed:
            raise InvalidArgument("this call is not in the program cache, and misses are not allowed on this device")
        if cache.enabled:
            cache.add_program(prepared.plan.program)
    cache.misses += 1
    if cache.enabled:
        cache.keep(key, prepared, is_seeded=prepared.plan.is_seeded)
    return prepared


def _prepare(op: Operation, overload: Overload, values: tuple, device: MeshDevice | None) -> PreparedCall:
    seen = [value if value.__class__ in PLAIN else _as_spec(value) for value in values]
    require_emulated_inputs(op.name, [seen[slot] for slot in overload.tensor_slots])
    named = op.arguments(overload.names, seen)
    before, context.device = context.device, device
    try:
        prepared = PreparedCall(op, named, op.function(**named), overload, device)
    finally:
        context.device = before
    require_emulated_outputs(op.name, prepared.outputs)
    if device is not None:
        device.activity.add(prepared.record)
    return prepared


def _as_spec(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value._spec
    if value.__class__ is tuple:
        return tuple([_as_spec(item) for item in value])
    snapshot = getattr(value, "snapshot", None)
    return snapshot() if snapshot is not None else value
