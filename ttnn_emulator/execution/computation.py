"""Computes plans: reads the carriers of the inputs, chip by chip, and stores the results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ttnn_emulator.execution.operation_table import Plan
from ttnn_emulator.hardware.device import MeshDevice
from ttnn_emulator.numerics.formats.carriers import wide
from ttnn_emulator.tensors import padding_values
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.storage import Storage
from ttnn_emulator.tensors.tensor import Tensor

NO_VALUES = object()  # the carrier of a tensor without values


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
        arguments = [carrier_of(value, 0, plan.narrow) for value in inputs]
        if not any(argument is NO_VALUES for argument in arguments):
            result = plan.compute(*arguments)
            storages[0].values = [result[0] if result.__class__ in (tuple, list) else result]
        return
    results: list[list[Any]] = []
    for chip in range(chips):
        arguments = [carrier_of(value, chip, plan.narrow) for value in inputs]
        if any(argument is NO_VALUES for argument in arguments):
            return
        result = plan.compute(*arguments)
        results.append(list(result) if isinstance(result, tuple | list) else [result])
    for number, storage in enumerate(storages):
        storage.values = [result[number] for result in results]


def _execute_across(plan: Plan, inputs: Sequence[Any], storages: Sequence[Storage], chips: int) -> None:
    assert plan.compute is not None
    arguments = [[carrier_of(value, chip, plan.narrow) for chip in range(chips)] for value in inputs]
    if any(carrier is NO_VALUES for argument in arguments for carrier in argument):
        return
    results = plan.compute(*arguments)
    if len(storages) == 1:
        results = [results]
    for storage, values in zip(storages, results):
        storage.values = list(values)


def carrier_of(value: Any, chip: int, narrow: bool) -> Any:
    """The carrier of a tensor on a chip, or `NO_VALUES`; sequences become lists, other arguments stay."""
    if value.__class__ is Tensor:
        return _stored_carrier(value._storage, chip, narrow)
    if value.__class__ is tuple:
        items = [carrier_of(item, chip, narrow) for item in value]
        return NO_VALUES if any(item is NO_VALUES for item in items) else items
    if isinstance(value, Storage):  # in a trace
        return _stored_carrier(value, chip, narrow)
    if value.__class__ is _PaddedCarriers:
        return value.of(chip)
    return value


class _PaddedCarriers:
    """A tensor whose padding is read, too."""

    def __init__(self, source: Tensor, spec: Spec) -> None:
        values = source._storage.values
        self.carriers = None if values is None else padding_values.padded_carriers(source._storage, spec, values)

    def of(self, chip: int) -> Any:
        if self.carriers is None:
            return NO_VALUES
        return wide(self.carriers[chip] if len(self.carriers) > chip else self.carriers[0])


def _stored_carrier(storage: Storage, chip: int, narrow: bool) -> Any:
    stored = storage.values
    if stored is None:
        return NO_VALUES
    carrier = stored[chip] if len(stored) > chip else stored[0]
    return carrier if narrow else wide(carrier)
