"""Records Python calls during a graph capture: names, arguments, input and output tensors, and source lines.

Captures to a file write these records to a second file. They are in `ttnn.graph._python_io_data`, as in the library:
tools and tests assign their own list to it.
"""

from __future__ import annotations

import datetime
import linecache
import os
import sys
import traceback
from typing import Any

import torch

from ttnn_emulator.execution import listeners
from ttnn_emulator.tensors.tensor import Tensor

Record = dict[str, Any]
RECORDS = "_python_io_data"
# Packages whose frames are left out: not the user's program.
LIBRARIES = frozenset(("ttnn_emulator", "torch_ttnn", "torch", "_pytest", "pytest", "pluggy", "contextlib", "runpy"))
FRAMES_OF = "__frames_of__"
DEEPEST = 4  # levels of nested lists that are searched for tensors

_state = {"recording": False, "stack traces": False, "traces end with the capture": False}


def _graph() -> Any:
    from ttnn_emulator.namespaces import namespace

    return namespace("ttnn.graph")


def records() -> list[Record]:
    return getattr(_graph(), RECORDS)


def clear_records() -> None:
    setattr(_graph(), RECORDS, [])


# -- what is recorded -------------------------------------------------------------------------------------------------


def enable_python_io_recording() -> None:
    """Record calls; captures enable it."""
    _state["recording"] = True


def disable_python_io_recording() -> None:
    _state["recording"] = False


def is_python_io_recording_enabled() -> bool:
    return _state["recording"]


def enable_python_stack_traces() -> None:
    """Record stack traces of calls, regardless of `ttnn.CONFIG`."""
    _state["stack traces"] = True


def disable_python_stack_traces() -> None:
    _state["stack traces"] = False


def is_python_stack_trace_enabled() -> bool:
    return _state["stack traces"]


def follow_config(library: Any) -> None:
    """At the start of an outermost capture: enable stack traces if the settings request them."""
    requested = any(
        getattr(library.CONFIG, name, False)
        for name in ("enable_graph_python_stack_traces", "enable_detailed_tensor_report")
    )
    _state["traces end with the capture"] = requested and not _state["stack traces"]
    if requested:
        enable_python_stack_traces()


def end_recording() -> None:
    """At the end of an outermost capture."""
    _state["recording"] = False
    if _state["traces end with the capture"]:
        _state["traces end with the capture"] = False
        disable_python_stack_traces()


# -- records ----------------------------------------------------------------------------------------------------------


def append_python_io_record(name: str) -> Record:
    """Append an empty record before the call starts."""
    record: Record = {"name": name, "arguments": {}, "input_tensor_ids": []}
    records().append(record)
    return record


def record_python_operation(
    name: str, function_args: Any, function_kwargs: dict[str, Any], *, record: Record | None = None
) -> Record:
    """Record a call: its arguments as text, positional ones by index, and their tensors."""
    entry = append_python_io_record(name) if record is None else record
    entry["arguments"] = {key: as_text(value) for key, value in function_kwargs.items()} | {
        str(number): as_text(value) for number, value in enumerate(function_args)
    }
    entry["input_tensor_ids"] = tensor_ids([*function_args, *function_kwargs.values()])
    if _state["stack traces"]:
        entry["python_stack_trace"] = callers()
    return entry


def record_python_operation_error(record: Record | None, error_type: str, error_message: str) -> None:
    """Add the error of this call; the first error is kept."""
    if record is not None:
        moment = datetime.datetime.now().isoformat(timespec="seconds")
        record.setdefault("error", {"type": error_type, "message": error_message, "timestamp": moment})


def store_output_tensor_ids(output_tensor_ids: list[int]) -> None:
    """Add the output tensors to the latest record."""
    if records():
        records()[-1]["output_tensor_ids"] = output_tensor_ids


def store_captured_graph(captured_graph_json: Any) -> None:
    """Add the graph of one call to the latest record."""
    if records():
        records()[-1]["captured_graph"] = captured_graph_json


def tensor_ids(value: Any) -> list[int]:
    """Ids of the tensors in an argument, including nested lists and tuples."""
    if isinstance(value, Tensor | torch.Tensor):
        number = getattr(value, "tensor_id", None)
        return [] if number is None else [int(number)]
    if isinstance(value, list | tuple):
        return [number for item in value for number in tensor_ids(item)]
    return []


def as_text(value: Any, depth: int = 0) -> str:
    """An argument on one line; tensors without their values."""
    if isinstance(value, Tensor):
        return _described(value)
    if isinstance(value, torch.Tensor):
        return f"torch.Tensor(shape={list(value.shape)}, dtype={value.dtype})"
    if isinstance(value, list | tuple) and depth < DEEPEST and _holds_tensor(value, depth):
        inside = ", ".join(as_text(item, depth + 1) for item in value)
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    if isinstance(value, dict) and depth < DEEPEST and _holds_tensor(list(value.values()), depth):
        return "{" + ", ".join(f"{key}: {as_text(item, depth + 1)}" for key, item in value.items()) + "}"
    return str(value)


def _holds_tensor(values: Any, depth: int) -> bool:
    return depth < DEEPEST and any(
        isinstance(item, Tensor | torch.Tensor)
        or (isinstance(item, list | tuple) and _holds_tensor(item, depth + 1))
        or (isinstance(item, dict) and _holds_tensor(list(item.values()), depth + 1))
        for item in values
    )


def _described(tensor: Tensor) -> str:
    facts: dict[str, Any] = {
        "shape": tensor.shape,
        "dtype": tensor.dtype,
        "layout": tensor.layout,
        "memory_config": tensor.memory_config(),
        "storage_type": tensor.storage_type(),
        "tensor_id": tensor.tensor_id,
        "is_allocated": tensor.is_allocated(),
    }
    device = tensor.device()
    if device is not None:
        facts |= {"device_id": device.id(), "mesh_shape": device.shape}
    return f"ttnn.Tensor({', '.join(f'{name}={fact}' for name, fact in facts.items())})"


def callers() -> list[str]:
    """The stack trace of a call, innermost frame first, without frames of libraries.

    A module, or the globals of generated code, may have a function `__frames_of__`, which takes a frame and its line
    and returns the frames that it stands for, in the same order.
    """
    shown: list[str] = []
    for frame, line in traceback.walk_stack(sys._getframe(1)):
        origins = frame.f_globals.get(FRAMES_OF)
        if origins is not None:
            shown += [each for each in origins(frame, line) if each not in shown]
        elif not _is_library(frame.f_globals):
            code = frame.f_code
            text = linecache.getline(code.co_filename, line, frame.f_globals).strip()
            shown.append(frame_text(os.path.abspath(code.co_filename), line, code.co_name, text))
    return shown


def frame_text(file: str, line: int, function: str, text: str) -> str:
    """One frame of a stack trace, as the library writes it."""
    return f'  File "{file}", line {line}, in {function}\n    {text}\n'


def _is_library(module: dict[str, Any]) -> bool:
    """Whether the globals of a frame are not the user's: those of a library, or of generated code without a name."""
    spec = module.get("__spec__")  # that of `python -m package` has its name; the module is called __main__
    name = spec.name if spec is not None else module.get("__name__")
    return name is None or name.partition(".")[0] in LIBRARIES


class CallRecorder(listeners.Listener):
    """Records the calls that the program makes, not those inside an operation."""

    def __init__(self) -> None:
        self._open: Record | None = None

    def started(self, event: listeners.OperationEvent) -> None:
        if _state["recording"] and event.depth == 0:
            named = {name: value for name, value in event.arguments.items() if value is not None}
            self._open = record_python_operation(event.name, (), named)

    def ended(self, event: listeners.OperationEvent) -> None:
        if self._open is None or event.depth != 0:
            return
        if event.error is not None:
            record_python_operation_error(self._open, type(event.error).__name__, str(event.error))
        else:
            self._open["output_tensor_ids"] = tensor_ids(event.result)
        self._open = None
