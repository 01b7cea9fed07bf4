"""Runs a call: binds arguments, looks up or prepares the plan, allocates, computes, notifies listeners."""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from ttnn_emulator.api.binding import Overload
from ttnn_emulator.enums import BufferType, DataType
from ttnn_emulator.errors import DeviceMismatch, EmulatorError, InvalidArgument, NotEmulated, OutOfMemory
from ttnn_emulator.execution import listeners
from ttnn_emulator.execution.launch_memory import Free, Rehearsal
from ttnn_emulator.execution.operation_table import NO_PROGRAM, Operation, Plan
from ttnn_emulator.hardware.boards import Board, default_board_name, find_board
from ttnn_emulator.hardware.device import MeshDevice, ProgramCache
from ttnn_emulator.numerics.formats.carriers import CARRIER, wide
from ttnn_emulator.tensors import padding_values
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.storage import Placement, SpecStorage, Storage
from ttnn_emulator.tensors.tensor import Tensor


class _State(threading.local):
    """The dispatch state of a thread."""

    device: MeshDevice | None = None  # whose call is being prepared
    specs_only: bool = False  # infer specs only: no allocation, no computation


state = _State()
_host_cache = ProgramCache()


class _Prepared:
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
    )

    def __init__(self, plan: Plan, overload: Overload, device: MeshDevice | None) -> None:
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
            self.plan = plan = dataclasses.replace(plan, compute=_nothing_in(self.outputs))
        self.placements = [
            Placement.of(spec, device) if device is not None and spec.on_device else None for spec in self.outputs
        ]
        # Whether the library launches a program for it.
        self.launches = computes and not is_empty and plan.program is not NO_PROGRAM and any(self.placements)
        self.is_single = self.wrap is Tensor and not self.into and plan.padding is None  # one tensor, a new one
        # One new tensor on one chip: the common case, and the fast path of `_run`.
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


def _nothing_in(specs: Sequence[Spec]) -> Callable[..., list[torch.Tensor]]:
    """Computes results without values."""
    return lambda *_: [torch.empty(tuple(spec.shape), dtype=CARRIER[spec.dtype]) for spec in specs]


def current_board() -> Board:
    """The board that the call being prepared will run on."""
    device = state.device
    return device.board if device is not None else find_board(default_board_name())


def current_device() -> MeshDevice | None:
    """The device that the call being prepared will run on."""
    return state.device


@contextmanager
def specs_only():
    """Within this block, operations check and infer, but neither allocate nor compute."""
    before, state.specs_only = state.specs_only, True
    try:
        yield
    finally:
        state.specs_only = before


def call_composite(op: Operation, args: tuple, kwargs: dict[str, Any]) -> Any:
    if not op.overloads:
        result = _observed(op, lambda: op.function(*args, **kwargs), args, kwargs)
        return _own_handle(result, (*args, *kwargs.values()))
    overload, values = op.bind(args, kwargs)
    named = op.arguments(overload.names, values)
    try:
        return _own_handle(_observed(op, lambda: op.function(**named), (), named), values)
    except EmulatorError as error:
        raise _placed(error, op, overload, values) from None
    except Exception as error:
        raise _refused(error, op, overload, values) from error


def _own_handle(result: Any, values: Sequence[Any]) -> Any:
    """A no-op returns a second handle, never the argument itself."""
    if result.__class__ is Tensor:
        for value in values:
            if value is result:
                return result.another_handle()
    elif result.__class__ is list or result.__class__ is tuple:
        return result.__class__([_own_handle(item, values) for item in result])
    return result


def _observed(op: Operation, run: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    if not listeners.active:
        return run()
    with listeners.composite(op.name, args, kwargs) as event:
        event.result = run()
        return event.result


def call_device_operation(op: Operation, args: tuple, kwargs: dict[str, Any]) -> Any:
    overload, values = op.bind(args, kwargs)
    try:
        device = _device_of(overload, values)
        prepared = _find_plan(op, overload, values, device)
        if not listeners.active:
            return _run(prepared, values, device)
        with listeners.device_operation(op.name, overload.names, values) as event:
            event.l1_bytes = prepared.plan.l1_bytes
            event.result = _run(prepared, values, device)
            return event.result
    except EmulatorError as error:
        raise _placed(error, op, overload, values) from None
    except Exception as error:
        raise _refused(error, op, overload, values) from error


def _refused(error: Exception, op: Operation, overload: Overload, values: tuple) -> EmulatorError:
    """An error of torch or Python inside an operation, raised as the operation's error."""
    return _placed(InvalidArgument(f"{type(error).__name__}: {error}"), op, overload, values)


def _placed(error: EmulatorError, op: Operation, overload: Overload, values: tuple) -> EmulatorError:
    """The error with its call; the launching operation names errors of programs without a public name."""
    return error.at(op.name, describe(overload.names, values)) if op.is_public else error


def _device_of(overload: Overload, values: tuple) -> MeshDevice | None:
    """The one device of all tensors; freed tensors and tensors of two devices are refused here."""
    device: MeshDevice | None = None
    if overload.device_slot is not None:
        device = values[overload.device_slot]
        if device is not None and not device.is_open:
            device.require_open()
    for slot in overload.tensor_slots:
        value = values[slot]
        if value.__class__ is Tensor:
            storage = value._storage
            if storage.freed_by or storage.device is not None:
                storage.require_allocated()
            if value._device is not None and value._device is not device:
                device = _same(device, value._device)
        elif value.__class__ is tuple:
            for item in value:
                if isinstance(item, Tensor):
                    item._storage.require_allocated()
                    if item._device is not None and item._device is not device:
                        device = _same(device, item._device)
    return device


def _same(device: MeshDevice | None, other: MeshDevice) -> MeshDevice:
    if device is not None and device is not other:
        raise DeviceMismatch(
            f"tensors live on two devices, {device!r} #{device.id()} and {other!r} #{other.id()}",
            hint="Move one with ttnn.from_device and ttnn.to_device.",
        )
    return other


def _find_plan(op: Operation, overload: Overload, values: tuple, device: MeshDevice | None) -> _Prepared:
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


HOST_CAST = "ttnn.to_dtype"  # takes int8: it never reaches the device
HOST_MOVES = ("ttnn.to_layout",)  # take int8 on the host


# Operations that support fp8_e4m3; every other one refuses it.
TAKE_FP8 = frozenset(
    {"ttnn.typecast", HOST_CAST}
    | {
        f"ttnn.experimental.deepseek_prefill.{name}"
        for name in (
            "update_padded_kv_cache",
            "zero_padded_kv_cache",
            "per_token_cast_to_fp8",
            "per_token_cast_back",
            "pack_scaled_fp8_kv_cache",
        )
    }
)

MAKE_FP8 = TAKE_FP8 | {"ttnn.empty"}
RARE_DTYPES = frozenset({DataType.INT8, DataType.FP8_E4M3})


def _rare(values: Iterable[Any]) -> list[Spec]:
    """Specs of the dtypes that few operations are emulated for."""
    found: list[Spec] = []
    for value in values:
        if value.__class__ is Spec:
            if value.dtype in RARE_DTYPES:
                found.append(value)
        elif value.__class__ is tuple:
            found += _rare(value)
    return found


def _require_emulated(op: Operation, specs: list[Spec]) -> None:
    for spec in specs:
        if spec.dtype is DataType.FP8_E4M3:
            if op.name not in TAKE_FP8:
                raise NotEmulated(f"{op.name} of fp8_e4m3 is not emulated")
        elif op.name != HOST_CAST and (op.name not in HOST_MOVES or spec.on_device):
            raise NotEmulated(
                "tensors of int8 can be made, moved and read back; no operation on the device is emulated"
            )


def _prepare(op: Operation, overload: Overload, values: tuple, device: MeshDevice | None) -> _Prepared:
    seen = [value if value.__class__ in PLAIN else _as_spec(value) for value in values]
    rare = _rare([seen[slot] for slot in overload.tensor_slots])
    if rare:
        _require_emulated(op, rare)
    named = op.arguments(overload.names, seen)
    before, state.device = state.device, device
    try:
        prepared = _Prepared(op.function(**named), overload, device)
    finally:
        state.device = before
    for spec in prepared.outputs:
        if spec.dtype is DataType.FP8_E4M3 and op.name not in MAKE_FP8:
            raise NotEmulated(f"{op.name} to fp8_e4m3 is not emulated")
    return prepared


PLAIN = frozenset({type(None), bool, int, float, str})  # arguments that need no conversion


def _as_spec(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value._spec
    if value.__class__ is tuple:
        return tuple([_as_spec(item) for item in value])
    snapshot = getattr(value, "snapshot", None)
    return snapshot() if snapshot is not None else value


def _run(prepared: _Prepared, values: tuple, device: MeshDevice | None) -> Any:
    plan = prepared.plan
    if prepared.shares is not None:
        return _view(prepared, values[prepared.shares])
    inputs = [values[slot] for slot in prepared.reads]
    if state.specs_only or _any_spec_only(inputs):
        if listeners.active:
            for placement in prepared.placements:
                if placement is not None:
                    listeners.buffer_allocated(SpecStorage(device), placement)
        if prepared.is_single and not plan.stages:
            return Tensor.of(
                prepared.outputs[0], SpecStorage(device), device if prepared.outputs[0].on_device else None
            )
        storages = [_target(prepared, n, values) or SpecStorage(device) for n in range(len(prepared.outputs))]
        if plan.stages and not state.specs_only:
            _free_specs(prepared, values)
        return _wrap(prepared, storages, values, device)
    if plan.stages:
        return _run_staged(prepared, inputs, values, device)  # type: ignore[arg-type]
    if plan.l1_bytes and device is not None:
        _require_l1(plan.l1_bytes, device)
    if prepared.is_plain and device.capturing is None and not _is_given(prepared, values):  # type: ignore[union-attr]
        return _run_plain(prepared, inputs, device)  # type: ignore[arg-type]
    storages = []
    for number, placement in enumerate(prepared.placements):
        storage = _target(prepared, number, values)
        if storage is None:
            storage = Storage(None) if placement is None else Storage.placed(placement, device)  # type: ignore[arg-type]
        storages.append(storage)
    if plan.padded is not None and plan.compute is not None and padding_values.is_unread():
        blind = functools.partial(padding_values.zero_padded, plan.compute, plan.padded)
        plan = dataclasses.replace(plan, compute=blind, padded=None)
    if device is not None and device.capturing is not None:
        if plan.padded is not None:
            raise NotEmulated("what lies in the padding of tiles is not followed in traces")
        if plan.compute is not None:
            device.capturing.record(plan, inputs, storages)
    elif plan.compute is not None and (device is None or device.holds_values):
        execute(plan, inputs, storages, device)
    return _wrap(prepared, storages, values, device)


def _run_staged(prepared: _Prepared, inputs: list, values: tuple, device: MeshDevice) -> Any:
    """A call of several programs: memory is allocated and freed in their order."""
    plan, names = prepared.plan, prepared.names
    sources = {names[slot]: values[slot]._storage for slot in prepared.reads if isinstance(values[slot], Tensor)}
    rehearsal = Rehearsal(device, _require_l1).run(plan.stages, sources, prepared.placements)
    storages = []
    for number, placement in enumerate(prepared.placements):
        storage = _target(prepared, number, values) or rehearsal.outputs.get(number)
        if storage is None:
            storage = Storage(None) if placement is None else Storage.placed(placement, device)
        storages.append(storage)
    try:
        if device.capturing is not None:
            device.capturing.record(plan, inputs, storages)
        elif plan.compute is not None and device.holds_values:
            execute(plan, inputs, storages, device)
    finally:
        rehearsal.end_inputs()
    return _wrap(prepared, storages, values, device)


def _free_specs(prepared: _Prepared, values: tuple) -> None:
    """Tensors without values take no memory, yet are freed as others are."""
    freed = {stage.name for stage in prepared.plan.stages if isinstance(stage, Free)}
    for slot in prepared.reads:
        if prepared.names[slot] in freed and isinstance(values[slot], Tensor):
            values[slot]._storage.release("the call that took it as its input and was told to free it")


def _is_given(prepared: _Prepared, values: tuple) -> bool:
    """Whether the caller passed a tensor for the single output."""
    into = prepared.into
    return bool(into) and into[0] is not None and values[into[0]] is not None


def _run_plain(prepared: _Prepared, inputs: list, device: MeshDevice) -> Tensor:
    storage = Storage.placed(prepared.placements[0], device)  # type: ignore[arg-type]
    arguments = [_carrier(value, 0, prepared.plan.narrow) for value in inputs]
    if not any(each is _NO_VALUES for each in arguments):
        result = prepared.plan.compute(*arguments)  # type: ignore[misc]
        storage.values = [result[0]] if result.__class__ in (tuple, list) else [result]
    return Tensor.of(prepared.outputs[0], storage, device if prepared.outputs[0].on_device else None)


def _any_spec_only(inputs: Sequence[Any]) -> bool:
    for value in inputs:
        if value.__class__ is Tensor:
            if value._storage.__class__ is SpecStorage:
                return True
        elif value.__class__ is tuple and _any_spec_only(value):
            return True
    return False


def execute(plan: Plan, inputs: Sequence[Any], storages: Sequence[Storage], device: MeshDevice | None) -> None:
    """Compute a plan chip by chip and put the results into the storages."""
    assert plan.compute is not None
    chips = device.num_devices if device is not None else 1
    if plan.padded is not None:
        inputs = [_PaddedCarriers(inputs[0], plan.padded)]
    if plan.across:
        _execute_across(plan, inputs, storages, chips)
        return
    if chips == 1 and len(storages) == 1:
        arguments = [_carrier(value, 0, plan.narrow) for value in inputs]
        if not any(argument is _NO_VALUES for argument in arguments):
            result = plan.compute(*arguments)
            storages[0].values = [result[0] if result.__class__ in (tuple, list) else result]
        return
    results: list[list[Any]] = []
    for chip in range(chips):
        arguments = [_carrier(value, chip, plan.narrow) for value in inputs]
        if any(argument is _NO_VALUES for argument in arguments):
            return
        result = plan.compute(*arguments)
        results.append(list(result) if isinstance(result, tuple | list) else [result])
    for number, storage in enumerate(storages):
        storage.values = [result[number] for result in results]


def _execute_across(plan: Plan, inputs: Sequence[Any], storages: Sequence[Storage], chips: int) -> None:
    assert plan.compute is not None
    arguments = [[_carrier(value, chip, plan.narrow) for chip in range(chips)] for value in inputs]
    if any(carrier is _NO_VALUES for argument in arguments for carrier in argument):
        return
    results = plan.compute(*arguments)
    if len(storages) == 1:
        results = [results]
    for storage, values in zip(storages, results):
        storage.values = list(values)


_NO_VALUES = object()


def _carrier(value: Any, chip: int, narrow: bool) -> Any:
    if value.__class__ is Tensor:
        return _held(value._storage, chip, narrow)
    if value.__class__ is tuple:
        items = [_carrier(item, chip, narrow) for item in value]
        return _NO_VALUES if any(item is _NO_VALUES for item in items) else items
    if isinstance(value, Storage):  # in a trace
        return _held(value, chip, narrow)
    if value.__class__ is _PaddedCarriers:
        return value.of(chip)
    return None if value is None else value


class _PaddedCarriers:
    """A tensor whose padding is read, too."""

    def __init__(self, source: Tensor, spec: Spec) -> None:
        values = source._storage.values
        self.carriers = None if values is None else padding_values.padded_carriers(source._storage, spec, values)

    def of(self, chip: int) -> Any:
        if self.carriers is None:
            return _NO_VALUES
        return wide(self.carriers[chip] if len(self.carriers) > chip else self.carriers[0])


def _held(storage: Storage, chip: int, narrow: bool) -> Any:
    stored = storage.values
    if stored is None:
        return _NO_VALUES
    carrier = stored[chip] if len(stored) > chip else stored[0]
    return carrier if narrow else wide(carrier)


def _target(prepared: _Prepared, number: int, values: tuple) -> Storage | None:
    target = _given(prepared, number, values)
    return target._storage if target is not None else None


def _given(prepared: _Prepared, number: int, values: tuple) -> Tensor | None:
    """The tensor passed for an output: the parameter itself, or its element in a sequence of outputs."""
    slot = prepared.into[number] if number < len(prepared.into) else None
    given = None if slot is None else values[slot]
    return given[number] if given.__class__ is tuple else given  # type: ignore[index]


def _wrap(prepared: _Prepared, storages: Sequence[Storage], values: tuple, device: MeshDevice | None) -> Any:
    if prepared.wrap is None:
        return None
    tensors = []
    for number, (spec, storage) in enumerate(zip(prepared.outputs, storages)):
        given = _given(prepared, number, values)
        if given is None:
            given = Tensor.of(spec, storage, device if spec.on_device else None)
        else:
            padding_values.forget(storage)
            given = given.another_handle()
        if prepared.plan.padding is not None:
            padding_values.note(storage, prepared.plan.padding)
        tensors.append(given)
    return tensors[0] if prepared.wrap is Tensor else prepared.wrap(tensors)


def _view(prepared: _Prepared, source: Tensor) -> Tensor:
    """A tensor over the same buffer; the carrier is reshaped without a copy."""
    spec, storage = prepared.outputs[0], source._storage
    if storage.__class__ is SpecStorage:
        return Tensor.of(spec, SpecStorage(storage.device), source._device)
    reshape, padded = prepared.plan.compute, prepared.plan.padded
    if padded is not None and reshape is not None:
        view = _SharedStorage.of(storage, functools.partial(_uncovered, reshape, storage, padded))
    else:
        view = _SharedStorage.of(storage, reshape)
    if prepared.plan.padding is not None:
        padding_values.note(storage, prepared.plan.padding)
        padding_values.note(view, prepared.plan.padding)
    return Tensor.of(spec, view, source._device)


def _uncovered(reshape: Callable[..., Any], storage: Storage, spec: Spec, values: torch.Tensor) -> Any:
    """A view that shows some padding: the number that fills it where that is known."""
    return reshape(padding_values.with_known(storage, spec, values))


class _SharedStorage(Storage):
    """A view's storage: another shape over the buffer of `owner`, which stays alive as long as the view."""

    __slots__ = ("owner", "reshape")

    owner: Storage
    reshape: Any

    @classmethod
    def of(cls, owner: Storage, reshape: Any) -> _SharedStorage:
        made = cls(None, owner.device)
        made.owner = owner
        made.reshape = reshape
        made.address = owner.address
        made.placement = owner.placement
        return made

    @property
    def root(self) -> Storage:
        return self.owner.root

    @property
    def values(self) -> Any:  # type: ignore[override]
        stored = self.owner.values
        if stored is None or self.reshape is None:
            return stored
        return [self.reshape(item) for item in stored]

    @values.setter
    def values(self, new: Any) -> None:
        if new is not None:
            self.owner.values = [item.reshape(old.shape) for item, old in zip(new, self.owner.values or new)]

    @property
    def freed_by(self) -> str:  # type: ignore[override]
        owner = getattr(self, "owner", None)
        return owner.freed_by if owner is not None else ""

    @freed_by.setter
    def freed_by(self, by: str) -> None:
        if by:
            self.owner.freed_by = by

    def release(self, by: str) -> None:
        self.owner.release(by)


def _require_l1(l1_bytes: int, device: MeshDevice) -> None:
    """Circular buffers grow up from the base of L1 and must end below the lowest tensor there."""
    memory = device.memory(BufferType.L1)
    lowest = memory.lowest_used_address
    limit = lowest if lowest is not None else device.board.l1_bytes  # they may reach into an unused L1_SMALL
    if memory.base + l1_bytes > limit:
        where = "tensors in L1" if lowest is not None else "the end of L1"
        raise OutOfMemory(
            f"Statically allocated circular buffers need {l1_bytes} B of L1 a core and clash with {where}: "
            f"{limit - memory.base} B are free below address {limit}",
            hint="Move tensors from L1 to DRAM, deallocate them, or choose a program config with smaller blocks.",
        )


def describe(names: Sequence[str], values: Sequence[Any]) -> str:
    """The explicit arguments of a call for an error message, tensors by their specs."""
    shown = []
    for name, value in zip(names, values):
        if value is None or value is False or (value.__class__ is tuple and not value):
            continue
        shown.append(f"{name}={_brief(value)}")
    return ", ".join(shown)


def _brief(value: Any) -> str:
    if isinstance(value, Tensor | Spec):
        return value.brief()
    if isinstance(value, tuple):
        return "[" + ", ".join(_brief(item) for item in value) + "]"
    brief = getattr(value, "brief", None)
    return brief() if brief is not None else repr(value)
