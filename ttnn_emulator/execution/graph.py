"""`ttnn.graph`: capture calls as a graph of functions, tensors and buffers.

Nodes have the library's format (a list of dictionaries with counter, node_type, params and connections), so tools for
its captures read these, too. Functions are named after operations (`ttnn.softmax`); the library also records the
classes behind them (`SoftmaxDeviceOperation`).
"""

from __future__ import annotations

import json
import pathlib
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from ttnn_emulator.enums import ALL_ENUMS, BufferType
from ttnn_emulator.execution import listeners
from ttnn_emulator.execution.buffer_lives import BufferLives
from ttnn_emulator.execution.call_context import specs_only
from ttnn_emulator.execution.call_text import brief
from ttnn_emulator.execution.graph_file import REPORT_VERSION, write_report  # noqa: F401
from ttnn_emulator.hardware.core_grid import CoreRangeSet, num_cores_to_corerangeset
from ttnn_emulator.tensors.storage import Placement, Storage
from ttnn_emulator.tensors.tensor import Tensor, reading_unwritten

if TYPE_CHECKING:
    from ttnn_emulator.hardware.device import MeshDevice

RunMode = ALL_ENUMS["RunMode"]
Node = dict[str, Any]


# tt-metal v0.77.0: ttnn/core/graph/graph_processor.cpp, GraphProcessor::track_allocate
class GraphRecorder(listeners.Listener):
    """Records nodes while operations run."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.open: list[int] = []
        self.tensors: dict[int, int] = {}  # tensor id → its latest node
        self.buffers: dict[int, int] = {}  # id of a storage → its node
        self.lives = BufferLives()
        self.outermost: list[int] = []  # the nodes of outermost calls; the first is call 1
        self.began = time.perf_counter_ns()
        self.open.append(self.add("capture_start", None))

    @property
    def call_number(self) -> int:
        """The number of the outermost call that runs, or else of the next one."""
        return len(self.outermost) + (len(self.open) == 1)

    def add(self, kind: str, params: Any, connections: list[int] | None = None, **more: Any) -> int:
        node = {
            "counter": len(self.nodes),
            "node_type": kind,
            "params": params,
            "arguments": [],
            "connections": connections or [],
            "input_tensors": [],
            "stacking_level": max(len(self.open) - 1, 0),
            **more,
        }
        self.nodes.append(node)
        if kind not in ("tensor", "buffer", "capture_start") and self.open:
            self.nodes[self.open[-1]]["connections"].append(node["counter"])
        return node["counter"]

    def started(self, event: listeners.OperationEvent) -> None:
        self.lives.end_of_closed_devices(self.call_number)
        inputs = [self._tensor(tensor) for tensor in _tensors_in(event.arguments.values())]
        arguments = [brief(value) for value in event.arguments.values()]
        self.open_function(event.name, {"inputs": str(len(arguments))}, arguments, inputs)

    def ended(self, event: listeners.OperationEvent) -> None:
        self.program_ran(event)
        failed = {} if event.error is None else {"aborted": "true", "abort_reason": str(event.error)}
        self.close_function(failed, [event.result], duration_ns=int(event.seconds * 1e9))

    def open_function(self, name: str, params: Node, arguments: Sequence[str] = (), inputs: Sequence[int] = ()) -> None:
        """A function begins; what follows is inside it. `inputs` are nodes of tensors."""
        node = self.add(
            "function_start", {"name": name, **params}, arguments=list(arguments), input_tensors=list(inputs)
        )
        if len(self.open) == 1:
            self.outermost.append(node)
        for tensor in inputs:
            self.nodes[tensor]["connections"].append(node)
        self.open.append(node)

    def close_function(self, params: Node, results: Sequence[Any] = (), *, duration_ns: int = 0) -> None:
        """The innermost function ends, with these results."""
        start = self.nodes[self.open[-1]]
        level = start["stacking_level"]
        known = {"name": start["params"]["name"], "error": "", **params}
        end = self.add("function_end", known, duration_ns=duration_ns, stacking_level=level)
        self.open.pop()
        self.nodes[end]["connections"] = [self._tensor(tensor) for tensor in _tensors_in(results)]

    def program_ran(self, event: listeners.OperationEvent) -> None:
        """The circular buffers of an operation."""
        if event.l1_bytes and event.error is None and event.device is not None:
            self.circular_buffers(event.l1_bytes, event.device)

    def circular_buffers(self, size: int, device: MeshDevice, cores: CoreRangeSet | None = None) -> None:
        """The circular buffers of a program as one block, from the base of L1; by default on all cores."""
        grid = cores or num_cores_to_corerangeset(device.board.cores, device.board.grid, row_wise=True)
        params = {
            "size": size,
            "address": device.memory(BufferType.L1).base,
            "core_range_set": str(grid),
            "globally_allocated": "0",
            "device_id": self.number_of(device),
        }
        self.add("circular_buffer_allocate", params)
        self.add("circular_buffer_deallocate_all", {})

    def allocated(self, storage: Storage, placement: Placement) -> None:
        params = self._buffer(storage, placement)
        node = self.buffers[id(storage)] = self.add("buffer", dict(params))
        self.add("buffer_allocate", params, [node])
        self.lives.allocated(storage, self.call_number)

    def freed(self, storage: Storage) -> None:
        node = self.buffers.pop(id(storage), None)
        self.lives.freed(storage, self.call_number)
        placement, device = storage.placement, storage.device
        if placement is not None and (device is None or device.is_open):  # closing a device has freed it
            self.add("buffer_deallocate", self._buffer(storage, placement), [] if node is None else [node])

    def hold(self, tensor: Tensor) -> None:
        """A tensor's buffer exists."""
        root = tensor._storage.root
        if root is tensor._storage:
            self.lives.allocated(root, self.call_number, tensor._spec)
        else:  # a view has another spec than its buffer
            self.lives.allocated(root, self.call_number)

    def _tensor(self, tensor: Tensor) -> int:
        if tensor.tensor_id not in self.tensors:
            spec = tensor._spec
            self.hold(tensor)
            self.tensors[tensor.tensor_id] = self.add(
                "tensor",
                {
                    "tensor_id": tensor.tensor_id,
                    "shape": str(tensor.shape),
                    "dtype": f"DataType::{spec.dtype.name}",
                    "layout": f"Layout::{spec.layout.name}",
                    "memory_config": str(spec.memory_config),
                    "storage_type": tensor.storage_type().name,
                    "size": spec.num_pages * spec.page_bytes,
                    "type": spec.memory_config.buffer_type.name if spec.on_device else "HOST",
                    **self._residence(tensor),
                },
            )
        return self.tensors[tensor.tensor_id]

    def number_of(self, device: MeshDevice) -> int:
        """The number of a device in this graph."""
        return device.id()

    def chips_of(self, device: MeshDevice) -> list[dict[str, int]]:
        """The numbers of its chips."""
        return [{"device_id": chip, "mesh_device_id": device.id()} for chip in device.get_device_ids()]

    def _place(self, storage: Storage, placement: Placement) -> Node:
        """The memory kind and address of a buffer."""
        device = {} if storage.device is None else {"device_id": self.number_of(storage.device)}
        return {"address": storage.address, "buffer_type": placement.memory.buffer_type.value, **device}

    def _buffer(self, storage: Storage, placement: Placement) -> Node:
        """Where a buffer is, and its size."""
        return {
            **self._place(storage, placement),
            "size": placement.total_bytes,
            "type": placement.memory.buffer_type.name,
            "max_size_per_bank": placement.bytes_per_bank,
            "num_cores": placement.banks,
        }

    def _residence(self, tensor: Tensor) -> Node:
        """The addresses of a device tensor, per chip; they are the same on all chips."""
        device = tensor.device()
        root = tensor._storage.root
        if device is None or root.placement is None:
            return {}
        chips = [{"address": root.address, **chip} for chip in self.chips_of(device)]
        return {**self._place(root, root.placement), "device_tensors": json.dumps(chips, separators=(",", ":"))}


def _tensors_in(values: Any) -> list[Tensor]:
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, list | tuple):
            found += _tensors_in(value)
    return found


_capture: list[tuple[GraphRecorder, ExitStack]] = []


def begin_graph_capture(run_mode: Any = None) -> None:
    """Start a capture. In mode NO_DISPATCH, operations only check and infer; nothing is allocated or computed."""
    stack = ExitStack()
    recorder = GraphRecorder()
    stack.enter_context(listeners.listening(recorder))
    if run_mode is not None and run_mode.name == "NO_DISPATCH":
        stack.enter_context(specs_only())
        stack.enter_context(reading_unwritten())
    _capture.append((recorder, stack))


def _ended() -> GraphRecorder:
    if not _capture:
        raise RuntimeError("no graph is being captured: call ttnn.graph.begin_graph_capture first")
    recorder, stack = _capture.pop()
    stack.close()
    recorder.add("capture_end", None, duration_ns=time.perf_counter_ns() - recorder.began)
    return recorder


def end_graph_capture() -> list[Node]:
    """End the capture and return the graph."""
    return _ended().nodes


def end_graph_capture_to_file(report_path: str | pathlib.Path) -> str:
    """End the capture, write the report to a file, and return the graph as JSON."""
    recorder = _ended()
    write_report(report_path, recorder, pages=is_detailed_buffer_tracing_enabled())
    return json.dumps(recorder.nodes)


def track_function_start(function_name: str) -> None:
    """Begin a user-defined function in the current capture, if any."""
    if _capture:
        _capture[-1][0].open_function(function_name, {"inputs": "0"})


def track_function_end() -> None:
    """End the function that `track_function_start` began."""
    if _capture:
        _close(_capture[-1][0])


def unwind_open_functions(reason: str = "") -> None:
    """End all open functions as aborted, with this reason."""
    while _capture and len(_capture[-1][0].open) > 1:
        _close(_capture[-1][0], {"aborted": reason})


def _close(recorder: GraphRecorder, why: Node | None = None) -> None:
    if len(recorder.open) > 1:
        recorder.close_function(why or {})


def is_graph_capture_active() -> bool:
    return bool(_capture)


_tracing = {"detailed buffers": False}


def enable_detailed_buffer_tracing() -> None:
    """Include buffer pages in reports; captures record every buffer in any case."""
    _tracing["detailed buffers"] = True


def disable_detailed_buffer_tracing() -> None:
    _tracing["detailed buffers"] = False


def is_detailed_buffer_tracing_enabled() -> bool:
    return _tracing["detailed buffers"]
