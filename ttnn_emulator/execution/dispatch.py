"""Runs a call: binds arguments, finds its plan, allocates, computes, notifies listeners."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

from ttnn_emulator.api.binding import Overload
from ttnn_emulator.errors import DeviceMismatch, EmulatorError, InvalidArgument, NotEmulated
from ttnn_emulator.execution import listeners
from ttnn_emulator.execution.call_context import context
from ttnn_emulator.execution.call_text import describe
from ttnn_emulator.execution.computation import NO_VALUES, carrier_of, execute
from ttnn_emulator.execution.launch_memory import Free, Launch, Rehearsal, require_l1
from ttnn_emulator.execution.operation_table import Operation
from ttnn_emulator.execution.prepared_calls import PreparedCall, find_plan
from ttnn_emulator.execution.views import view
from ttnn_emulator.hardware.device import MeshDevice
from ttnn_emulator.tensors import padding_values
from ttnn_emulator.tensors.storage import SpecStorage, Storage
from ttnn_emulator.tensors.tensor import Tensor


def call_composite(op: Operation, args: tuple, kwargs: dict[str, Any]) -> Any:
    if not op.overloads:
        result = _observed(op, lambda: op.function(*args, **kwargs), args, kwargs)
        return _own_handle(result, (*args, *kwargs.values()))
    overload, values = op.bind(args, kwargs)
    named = op.arguments(overload.names, values)
    try:
        return _own_handle(_observed(op, lambda: op.function(**named), (), named), values)
    except EmulatorError as error:
        raise _with_call(error, op, overload, values) from None
    except Exception as error:
        raise _as_refusal(error, op, overload, values) from error


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
        prepared = find_plan(op, overload, values, device)
        prepared.record.count += 1
        if not listeners.active:
            return _run(prepared, values, device)
        with listeners.device_operation(op.name, overload.names, values) as event:
            event.l1_bytes = prepared.plan.l1_bytes
            event.l1_of_stages = tuple(stage.l1_bytes for stage in prepared.plan.stages if stage.__class__ is Launch)
            event.record, event.device = prepared.record, device
            event.result = _run(prepared, values, device)
            return event.result
    except EmulatorError as error:
        raise _with_call(error, op, overload, values) from None
    except Exception as error:
        raise _as_refusal(error, op, overload, values) from error


def _as_refusal(error: Exception, op: Operation, overload: Overload, values: tuple) -> EmulatorError:
    """An error of torch or Python inside an operation, raised as the operation's error."""
    return _with_call(InvalidArgument(f"{type(error).__name__}: {error}"), op, overload, values)


def _with_call(error: EmulatorError, op: Operation, overload: Overload, values: tuple) -> EmulatorError:
    """The error with its call; errors of programs without a public name get the name of the launching operation."""
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
            f"tensors are on two devices, {device!r} #{device.id()} and {other!r} #{other.id()}",
            hint="Move one with ttnn.from_device and ttnn.to_device.",
        )
    return other


def _run(prepared: PreparedCall, values: tuple, device: MeshDevice | None) -> Any:
    plan = prepared.plan
    if prepared.shares is not None:
        return view(plan, prepared.outputs[0], values[prepared.shares])
    inputs = [values[slot] for slot in prepared.reads]
    if context.specs_only or _any_spec_only(inputs):
        if prepared.is_single and not plan.stages and not listeners.active:
            return Tensor.of(
                prepared.outputs[0], SpecStorage(device), device if prepared.outputs[0].on_device else None
            )
        return _run_on_specs(prepared, values, device)
    if plan.stages:
        return _run_staged(prepared, inputs, values, device)  # type: ignore[arg-type]
    if plan.l1_bytes and device is not None:
        require_l1(plan.l1_bytes, device)
    if prepared.is_plain and device.capturing is None and not _has_passed_output(prepared, values):  # type: ignore[union-attr]
        return _run_plain(prepared, inputs, device)  # type: ignore[arg-type]
    return _run_general(prepared, inputs, values, device)


def _run_on_specs(prepared: PreparedCall, values: tuple, device: MeshDevice | None) -> Any:
    """Tensors without values: nothing is allocated or computed, but listeners are notified and inputs are freed."""
    if listeners.active:
        for placement in prepared.placements:
            if placement is not None:
                listeners.buffer_allocated(SpecStorage(device), placement)
    storages = [_passed_storage(prepared, n, values) or SpecStorage(device) for n in range(len(prepared.outputs))]
    if prepared.plan.stages and not context.specs_only:
        _free_specs(prepared, values)
    return _wrap(prepared, storages, values, device)


def _run_general(prepared: PreparedCall, inputs: list, values: tuple, device: MeshDevice | None) -> Any:
    """A call of any number of outputs and chips: passed outputs, padding and traces are taken into account."""
    plan = prepared.plan
    storages = []
    for number, placement in enumerate(prepared.placements):
        passed = _passed_output(prepared, number, values)
        if passed is not None:
            storages.append(passed._storage)
        else:
            storages.append(Storage(None) if placement is None else Storage.placed(placement, device))  # type: ignore[arg-type]
    if plan.padded is not None and plan.compute is not None and padding_values.is_unread():
        zero_padded = functools.partial(padding_values.zero_padded, plan.compute, plan.padded)
        plan = dataclasses.replace(plan, compute=zero_padded, padded=None)
    if device is not None and device.capturing is not None:
        if plan.padded is not None:
            raise NotEmulated("traces of operations that read tile padding are not emulated")
        if plan.compute is not None:
            device.capturing.record(plan, inputs, storages, prepared.record)
    elif plan.compute is not None and (device is None or device.holds_values):
        execute(plan, inputs, storages, device)
    return _wrap(prepared, storages, values, device)


def _run_staged(prepared: PreparedCall, inputs: list, values: tuple, device: MeshDevice) -> Any:
    """A call of several programs: memory is allocated and freed in their order."""
    plan, names = prepared.plan, prepared.names
    sources = {names[slot]: values[slot]._storage for slot in prepared.reads if isinstance(values[slot], Tensor)}
    rehearsal = Rehearsal(device).run(plan.stages, sources, prepared.placements)
    storages = []
    for number, placement in enumerate(prepared.placements):
        storage = _passed_storage(prepared, number, values) or rehearsal.outputs.get(number)
        if storage is None:
            storage = Storage(None) if placement is None else Storage.placed(placement, device)
        storages.append(storage)
    try:
        if device.capturing is not None:
            device.capturing.record(plan, inputs, storages, prepared.record)
        elif plan.compute is not None and device.holds_values:
            execute(plan, inputs, storages, device)
    finally:
        rehearsal.end_inputs()
    return _wrap(prepared, storages, values, device)


def _free_specs(prepared: PreparedCall, values: tuple) -> None:
    """Free tensors without values, which occupy no memory."""
    freed = {stage.name for stage in prepared.plan.stages if isinstance(stage, Free)}
    for slot in prepared.reads:
        if prepared.names[slot] in freed and isinstance(values[slot], Tensor):
            values[slot]._storage.release("the call that read it with deallocation requested")


def _has_passed_output(prepared: PreparedCall, values: tuple) -> bool:
    """Whether the caller passed a tensor for the single output."""
    into = prepared.into
    return bool(into) and into[0] is not None and values[into[0]] is not None


def _run_plain(prepared: PreparedCall, inputs: list, device: MeshDevice) -> Tensor:
    storage = Storage.placed(prepared.placements[0], device)  # type: ignore[arg-type]
    arguments = [carrier_of(value, 0, prepared.plan.narrow) for value in inputs]
    if not any(each is NO_VALUES for each in arguments):
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


def _passed_storage(prepared: PreparedCall, number: int, values: tuple) -> Storage | None:
    passed = _passed_output(prepared, number, values)
    return passed._storage if passed is not None else None


def _passed_output(prepared: PreparedCall, number: int, values: tuple) -> Tensor | None:
    """The tensor passed for an output: the parameter itself, or its element in a sequence of outputs."""
    slot = prepared.into[number] if number < len(prepared.into) else None
    passed = None if slot is None else values[slot]
    return passed[number] if passed.__class__ is tuple else passed  # type: ignore[index]


def _wrap(prepared: PreparedCall, storages: Sequence[Storage], values: tuple, device: MeshDevice | None) -> Any:
    if prepared.wrap is None:
        return None
    tensors = []
    for number, (spec, storage) in enumerate(zip(prepared.outputs, storages)):
        tensor = _passed_output(prepared, number, values)
        if tensor is None:
            tensor = Tensor.of(spec, storage, device if spec.on_device else None)
        else:
            padding_values.forget(storage)
            tensor = tensor.another_handle()
        if prepared.plan.padding is not None:
            padding_values.note(storage, prepared.plan.padding)
        tensors.append(tensor)
    return tensors[0] if prepared.wrap is Tensor else prepared.wrap(tensors)
