"""Queries on captured graphs: calls, memory, outputs, durations."""

from __future__ import annotations

import json
import warnings
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from ttnn_emulator.enums import BufferType
from ttnn_emulator.tensors.shapes import Shape

# Buffers that live as long as a program runs; all end with the node circular_buffer_deallocate_all.
# tt-metal v0.77.0: ttnn/api/ttnn/graph/graph_consts.hpp, kNodeCBAllocate
PROGRAM_BUFFERS = ("circular_buffer_allocate", "dataflow_buffer_allocate", "scratchpad_allocate")

Node = dict[str, Any]


@dataclass(frozen=True)
class TensorInfo:
    """Shape, size and memory of an output tensor of a captured graph."""

    shape: Shape
    size: int
    type: BufferType

    def __repr__(self) -> str:
        return f"TensorInfo(shape={self.shape}, size={self.size}, type={self.type.name})"


@dataclass(frozen=True)
class PeakMemoryUsagePerCore:
    """Peak L1 bytes of one core: in circular buffers, in tensors, and in total."""

    peak_cb: int
    peak_l1: int
    peak_total: int
    peak_dataflow_buffer: int = 0
    peak_scratchpad: int = 0

    def __repr__(self) -> str:
        return (
            f"PeakMemoryUsagePerCore(peak_cb={self.peak_cb}, peak_l1={self.peak_l1}, "
            f"peak_dataflow_buffer={self.peak_dataflow_buffer}, peak_scratchpad={self.peak_scratchpad}, "
            f"peak_total={self.peak_total})"
        )

    def __str__(self) -> str:
        lines = {
            "CB": self.peak_cb,
            "L1": self.peak_l1,
            "DFB": self.peak_dataflow_buffer,
            "Scratchpad": self.peak_scratchpad,
            "Total": self.peak_total,
        }
        return "\n".join(
            ["Peak Memory Usage Per Core:", *(f"  {name + ':':<11} {size} bytes" for name, size in lines.items())]
        )


def extract_calltrace(trace: list[Node]) -> list[str]:
    """Function names in call order, callees after their caller."""
    return [node["params"]["name"] for node in trace if node["node_type"] == "function_start"]


# tt-metal v0.77.0: ttnn/core/graph/graph_trace_utils.cpp, extract_peak_L1_memory_usage
def extract_peak_L1_memory_usage(trace: list[Node]) -> int:
    """Peak L1: tensors over all cores plus the program buffers of a core."""
    tensors = program = peak = 0
    for node in trace:
        kind, params = node["node_type"], node["params"] or {}
        tensors = _after(node, tensors, "size")
        if kind in PROGRAM_BUFFERS and not _is_borrowed(params):
            program += int(params["size"])
        elif kind == "circular_buffer_deallocate_all":
            program = 0
        peak = max(peak, tensors + program)
    return peak


# tt-metal v0.77.0: ttnn/core/graph/graph_trace_utils.cpp, extract_resource_usage_per_core
def extract_resource_usage_per_core(
    trace: list[Node], interleaved_storage_cores: int | None = None
) -> PeakMemoryUsagePerCore:
    """Peak L1 of one core: per kind of program buffer, of tensors, and in total."""
    if interleaved_storage_cores is not None:
        warnings.warn(
            "interleaved_storage_cores has no effect: the captured buffers say how many banks they use",
            DeprecationWarning,
            stacklevel=2,
        )
    tensors = peak_tensors = both = 0
    current = dict.fromkeys(PROGRAM_BUFFERS, 0)
    peaks = dict(current)
    for node in trace:
        kind, params = node["node_type"], node["params"] or {}
        tensors = _after(node, tensors, "max_size_per_bank")
        if kind in current and not _is_borrowed(params) and int(params.get("globally_allocated", 0)) == 0:
            current[kind] += int(params["size"])
            peaks[kind] = max(peaks[kind], current[kind])
        elif kind == "circular_buffer_deallocate_all":
            current = dict.fromkeys(PROGRAM_BUFFERS, 0)
        peak_tensors = max(peak_tensors, tensors)
        both = max(both, tensors + sum(current.values()))
    circular, dataflow, scratchpad = (peaks[kind] for kind in PROGRAM_BUFFERS)
    return PeakMemoryUsagePerCore(circular, peak_tensors, both, dataflow, scratchpad)


def _is_borrowed(params: Node) -> bool:
    """A view of a tensor's L1, which the tensor reports itself."""
    return int(params.get("borrows_memory", 0)) != 0


def _after(node: Node, current: int, size: str) -> int:
    """L1 bytes of tensors after this node."""
    params = node["params"] or {}
    if str(params.get("type", "")) not in (BufferType.L1.name, BufferType.L1_SMALL.name):
        return current
    if node["node_type"] == "buffer_allocate":
        return current + int(params[size])
    return max(current - int(params[size]), 0) if node["node_type"] == "buffer_deallocate" else current


def extract_output_tensors(trace: list[Node]) -> set[int]:
    """Nodes of the output tensors of the last function."""
    ends = [node for node in trace if node["node_type"] == "function_end" and node["connections"]]
    return set(ends[-1]["connections"]) if ends else set()


def extract_output_info(trace: list[Node]) -> list[TensorInfo]:
    """Shape, size and memory of the output tensors of the last function."""
    nodes = [trace[number]["params"] for number in sorted(extract_output_tensors(trace))]
    nodes = [params for params in nodes if params["type"] != "HOST"]
    return [TensorInfo(_shape(params["shape"]), params["size"], BufferType[params["type"]]) for params in nodes]


def _shape(text: str) -> Shape:
    return Shape(json.loads(text.removeprefix("Shape(").removesuffix(")")))


def count_intermediate_and_output_tensors(trace: list[Node]) -> tuple[int, int]:
    """The numbers of intermediate and of output tensors."""
    outputs = extract_output_tensors(trace)
    returned = {number for node in trace if node["node_type"] == "function_end" for number in node["connections"]}
    return len(returned - outputs), len(outputs)


def extract_levelized_graph(trace: list[Node], max_level: int = 1) -> list[Node]:
    """Functions down to `max_level`, with edges from the producers of their inputs."""
    made_by: dict[int, int] = {}
    functions: list[Node] = []
    open_functions: list[Node] = []
    edges: dict[int, list[int]] = defaultdict(list)
    for node in trace:
        if node["node_type"] == "function_start":
            sources = [made_by[tensor] for tensor in node["input_tensors"] if tensor in made_by]
            entry = {
                "counter": len(functions),
                "name": node["params"]["name"],
                "arguments": node["arguments"],
                "in_edges": sorted(set(sources)),
                "out_edges": edges[len(functions)],
                "stacking_level": node["stacking_level"] + 1,
                "output_shape": [],
                "internals": [],
            }
            open_functions.append(entry)
            if len(open_functions) <= max_level:
                for source in entry["in_edges"]:
                    edges[source].append(entry["counter"])
                functions.append(entry)
        elif node["node_type"] == "function_end":
            entry = open_functions.pop()
            if len(open_functions) < max_level:
                entry["output_shape"] = [trace[number]["params"]["shape"] for number in node["connections"]]
                made_by.update(dict.fromkeys(node["connections"], entry["counter"]))
    return functions


def extract_operation_durations(graph: list[Node]) -> dict[str, float]:
    """Seconds that every function took on this host, by name; of several calls the last."""
    return {node["params"]["name"]: node["duration_ns"] / 1e9 for node in graph if node["node_type"] == "function_end"}


def extract_total_duration_from_graph(graph: list[Node]) -> float:
    """Seconds from the beginning of the capture to its end."""
    return next(
        (node.get("duration_ns", 0) / 1e9 for node in reversed(graph) if node["node_type"] == "capture_end"), 0.0
    )
