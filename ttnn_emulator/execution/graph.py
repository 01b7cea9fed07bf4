"""`ttnn.graph`: capture calls as a graph of functions, tensors and buffers.

Nodes have the library's format (a list of dictionaries with counter, node_type, params and connections), so tools for
its captures read these, too. Functions are named after operations (`ttnn.softmax`); the library also records the
classes behind them (`SoftmaxDeviceOperation`).
"""

from __future__ import annotations

import json
import pathlib
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from ttnn_emulator.enums import ALL_ENUMS
from ttnn_emulator.execution import listeners
from ttnn_emulator.execution.call_context import specs_only
from ttnn_emulator.execution.call_text import brief
from ttnn_emulator.execution.graph_file import REPORT_VERSION, write_report  # noqa: F401
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
        self.devices: dict[int, MeshDevice] = {}  # devices of recorded tensors and buffers
        self.live_buffers: dict[int, Node] = {}  # id of a storage → its buffer, for live recorded buffers
        self.buffers_after: dict[str, list[Node]] = {}  # node of an outermost call → buffers after it
        self.began = time.perf_counter_ns()
        self.open.append(self.add("capture_start", None))

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
        inputs = [self._tensor(tensor) for tensor in _tensors_in(event.arguments.values())]
        arguments = [brief(value) for value in event.arguments.values()]
        node = self.add(
            "function_start",
            {"name": event.name, "inputs": str(len(arguments))},
            arguments=arguments,
            input_tensors=inputs,
        )
        for tensor in inputs:
            self.nodes[tensor]["connections"].append(node)
        self.open.append(node)

    def ended(self, event: listeners.OperationEvent) -> None:
        start = self.open.pop()
        if event.l1_bytes and event.error is None:
            self.add("circular_buffer_allocate", {"size": event.l1_bytes, "address": 0, "globally_allocated": "0"})
            self.add("circular_buffer_deallocate_all", {})
        end = self.add(
            "function_end",
            {"name": event.name, "error": "" if event.error is None else str(event.error)},
            duration_ns=int(event.seconds * 1e9),
        )
        self.nodes[end]["connections"] = [self._tensor(tensor) for tensor in _tensors_in([event.result])]
        if event.depth == 0:
            self.buffers_after[str(start)] = list(self.live_buffers.values())

    def allocated(self, storage: Storage, placement: Placement) -> None:
        params = {
            **_place(storage, placement),
            "size": placement.total_bytes,
            "type": placement.memory.buffer_type.name,
            "max_size_per_bank": placement.bytes_per_bank,
            "num_cores": placement.banks,
        }
        node = self.buffers[id(storage)] = self.add("buffer", dict(params))
        self.add("buffer_allocate", params, [node])
        self._hold(storage)

    def freed(self, storage: Storage) -> None:
        node = self.buffers.pop(id(storage), None)
        self.live_buffers.pop(id(storage), None)
        placement = storage.placement
        if placement is not None:
            params = {
                **_place(storage, placement),
                "size": placement.total_bytes,
                "type": placement.memory.buffer_type.name,
                "max_size_per_bank": placement.bytes_per_bank,
            }
            self.add("buffer_deallocate", params, [] if node is None else [node])

    def _hold(self, storage: Storage, layout: int = 0) -> None:
        if storage.device is not None and storage.placement is not None and storage.memory is not None:
            self.devices[storage.device.id()] = storage.device
            self.live_buffers[id(storage)] = {
                **_place(storage, storage.placement),
                "buffer_layout": layout,
                "max_size_per_bank": storage.placement.bytes_per_bank,
            }

    def _tensor(self, tensor: Tensor) -> int:
        if tensor.tensor_id not in self.tensors:
            spec = tensor._spec
            self._hold(tensor._storage.root, spec.memory_config.memory_layout.value)
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
                    **_residence(tensor),
                },
            )
        return self.tensors[tensor.tensor_id]


def _place(storage: Storage, placement: Placement) -> Node:
    """The memory kind and address of a buffer."""
    device = {} if storage.device is None else {"device_id": storage.device.id()}
    return {"address": storage.address, "buffer_type": placement.memory.buffer_type.value, **device}


def _residence(tensor: Tensor) -> Node:
    """The addresses of a device tensor, per chip; they are the same on all chips."""
    device = tensor.device()
    root = tensor._storage.root
    if device is None or root.placement is None:
        return {}
    chips = [
        {"address": root.address, "device_id": chip, "mesh_device_id": device.id()} for chip in device.get_device_ids()
    ]
    return {**_place(root, root.placement), "device_tensors": json.dumps(chips, separators=(",", ":"))}


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
        recorder = _capture[-1][0]
        recorder.open.append(recorder.add("function_start", {"name": function_name, "inputs": "0"}))


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
        name = recorder.nodes[recorder.open.pop()]["params"]["name"]
        recorder.add("function_end", {"name": name, **(why or {})}, duration_ns=0)


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
