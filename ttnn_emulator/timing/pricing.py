"""The price of a call: the programs that it launches, with their times."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.calls import PRICERS, Call
from ttnn_emulator.timing.generic import generic
from ttnn_emulator.timing.launches import Launch

if TYPE_CHECKING:
    from ttnn_emulator.hardware.activity import CallRecord
    from ttnn_emulator.hardware.boards import Board


@functools.cache
def load_families() -> None:
    """Import all modules that register pricers."""
    from ttnn_emulator.timing import families

    for module in pkgutil.walk_packages(families.__path__, f"{families.__name__}."):
        importlib.import_module(module.name)


def launches_of(call: Call) -> tuple[Launch, ...]:
    """The programs that a call launches; none for views. Operations that no family models are one generic program."""
    load_families()
    return tuple(PRICERS.get(call.name, generic)(call))


def launches_of_record(record: CallRecord, board: Board) -> tuple[Launch, ...]:
    """The programs of a call that a device made; priced once per kind of call."""
    if record.launches is None:
        record.launches = launches_of(call_of_record(record, board)) if record.runs_program else ()
    return record.launches


def call_of_record(record: CallRecord, board: Board) -> Call:
    inputs: list[tuple[str, Spec]] = []
    arguments: dict[str, Any] = {}
    for name, value in record.arguments.items():
        if value.__class__ is Spec:
            inputs.append((name, value))
        elif value.__class__ is tuple and value and value[0].__class__ is Spec:
            inputs += [(name, item) for item in value if item.__class__ is Spec]
        else:
            arguments[name] = value
    return Call(record.operation, tuple(inputs), tuple(record.outputs), arguments, board, record.work)
