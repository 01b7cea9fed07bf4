"""Writes parts of a report to its database: devices, calls, tensors, buffers, comparisons."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict, deque
from collections.abc import Iterator
from typing import Any

from ttnn_emulator.library.reports.buffer_rows import buffer_row, import_buffers
from ttnn_emulator.library.reports.database_schema import DEVICE_COLUMNS, insert, save_metadata
from ttnn_emulator.library.reports.memory_texts import for_visualizer
from ttnn_emulator.library.reports.stack_sources import SourceFiles, innermost_frame

DEALLOCATES = ("ttnn.deallocate", "Tensor::deallocate")

Node = dict[str, Any]
Row = tuple[Any, ...]


def import_devices(cursor: sqlite3.Cursor, devices: list[Node], rank: int = 0) -> set[int]:
    """Add devices and return their ids."""
    rows = [(*(device.get(column) for column in DEVICE_COLUMNS), rank) for device in devices]
    insert(cursor, "devices", rows)
    return {device["device_id"] for device in devices}


def import_metadata(cursor: sqlite3.Cursor, metadata: dict[str, Any]) -> None:
    """Add facts about the host and the capture."""
    save_metadata(cursor, metadata)


def import_tensor_comparison_records(
    cursor: sqlite3.Cursor, comparison_data: dict[str, Any], rank: int = 0
) -> dict[str, int]:
    """Add comparisons with golden values and return how many of each kind there are."""
    counts = {}
    for table in ("local_tensor_comparison_records", "global_tensor_comparison_records"):
        names = ("tensor_id", "golden_tensor_id", "matches", "desired_pcc", "actual_pcc")
        rows = [(*(record.get(name) for name in names), rank) for record in comparison_data.get(table, ())]
        insert(cursor, table, rows)
        counts[table] = len(rows)
    tensors = comparison_data.get("tensors", ())
    insert(cursor, "tensors", [_tensor_row(tensor, rank) for tensor in tensors])
    counts["tensors"] = len(tensors)
    return counts


def _tensor_row(params: Node, rank: int) -> Row:
    def known(name: str) -> Any:
        value = params.get(name)
        if name in ("dtype", "layout") and value is not None:
            return str(value).replace("::", ".")
        return for_visualizer(value) if name == "memory_config" and value is not None else value

    names = ("tensor_id", "shape", "dtype", "layout", "memory_config", "device_id", "address", "buffer_type")
    on_device = params.get("storage_type") != "HOST"
    values = [known(name) if on_device or name not in names[4:] else None for name in names]
    return (*values, rank, params.get("storage_type"))


def outermost_calls(graph: list[Node]) -> Iterator[tuple[Node, Node | None, list[Node]]]:
    """The outermost calls: the first node, the last node and all nodes of each."""
    start, depth, between = None, 0, []  # type: ignore[var-annotated]
    for node in graph:
        if node["node_type"] == "function_start":
            start, depth = (node, 1) if depth == 0 else (start, depth + 1)
            between = [] if depth == 1 else between
        if depth:
            between.append(node)
        if node["node_type"] == "function_end" and depth:
            depth -= 1
            if depth == 0:
                assert start is not None
                yield start, node, between
    if depth and start is not None:
        yield start, None, between


def import_graph(
    cursor: sqlite3.Cursor,
    graph: list[Node],
    base_operation_id: int = 0,
    devices: list[Node] | None = None,
    python_io: list[Node] | None = None,
    per_operation_buffers: dict[str, list[Node]] | None = None,
    rank: int = 0,
    record_tensor_lifetime: bool = False,
    sources: SourceFiles | None = None,
) -> dict[str, Any]:
    """Add a graph: its calls, with their arguments, tensors, buffers and errors."""
    calls: dict[str, deque[Node]] = defaultdict(deque)
    for record in python_io or ():
        calls[record["name"]].append(record)
    rows: dict[str, list[Row]] = defaultdict(list)
    by_counter = {node["counter"]: node for node in graph}
    tensors = [node["params"] for node in graph if node["node_type"] == "tensor"]
    rows["tensors"] = [_tensor_row(params, rank) for params in tensors]
    for params in tensors:
        for chip in json.loads(params.get("device_tensors", "[]")):
            number = chip.get("mesh_device_id", chip["device_id"])
            rows["device_tensors"].append((params["tensor_id"], number, chip["address"], rank))
    started = operations_by_node(graph, base_operation_id)
    sources = sources or SourceFiles(cursor)
    for start, end, between in outermost_calls(graph):
        number = started[start["counter"]]
        record = calls[start["params"]["name"]].popleft() if calls[start["params"]["name"]] else {}
        _add_call(sources, rows, number, start, end, record, by_counter, rank)
        _add_graph(rows, number, start, between, by_counter, record, rank)
    if record_tensor_lifetime:
        known = {params["tensor_id"] for params in tensors}
        kept = compute_tensor_lifetime_records(
            rows["operations"], rows["input_tensors"], rows["output_tensors"], rows["stack_traces"], known
        )
        rows["tensor_lifetime"] = [(*record.values(), rank) for record in kept]
    for table, content in rows.items():
        insert(cursor, table, content)
    buffers = {int(node): each for node, each in (per_operation_buffers or {}).items()}
    after_each = ((started[node], map(buffer_row, each)) for node, each in buffers.items() if node in started)
    import_buffers(cursor, after_each, rank)
    return {"operations": len(rows["operations"]), "tensors": len(tensors), "warnings": []}


def operations_by_node(graph: list[Node], base_operation_id: int = 0) -> dict[int, int]:
    """The id of every operation by the node that it starts with."""
    calls = enumerate(outermost_calls(graph), base_operation_id + 1)
    return {start["counter"]: number for number, (start, _, _) in calls}


def _add_call(
    sources: SourceFiles,
    rows: dict[str, list[Row]],
    number: int,
    start: Node,
    end: Node | None,
    record: Node,
    nodes: dict[int, Node],
    rank: int,
) -> None:
    name = start["params"]["name"]
    duration = None if end is None else end.get("duration_ns", 0) / 1e9
    rows["operations"].append((number, name, duration, rank))
    arguments = record.get("arguments") or {str(place): text for place, text in enumerate(start.get("arguments", ()))}
    rows["operation_arguments"] += [(number, key, for_visualizer(text), rank) for key, text in arguments.items()]
    inputs = record.get("input_tensor_ids") or _tensors(start.get("input_tensors", ()), nodes)
    outputs = record.get("output_tensor_ids") or _tensors([] if end is None else end["connections"], nodes)
    rows["input_tensors"] += [(number, place, tensor, rank) for place, tensor in enumerate(inputs)]
    rows["tensor_consumers"] += [(tensor, number, place, rank) for place, tensor in enumerate(inputs)]
    rows["output_tensors"] += [(number, place, tensor, rank) for place, tensor in enumerate(outputs)]
    rows["tensor_producers"] += [(tensor, number, place, rank) for place, tensor in enumerate(outputs)]
    trace = "".join(record.get("python_stack_trace", ()))
    if trace:
        rows["stack_traces"].append((number, trace, sources.id_of(trace), rank))
    if "error" in record:
        error = record["error"]
        rows["errors"].append((number, name, error["type"], error["message"], trace, error.get("timestamp", ""), rank))


def _tensors(counters: Any, nodes: dict[int, Node]) -> list[int]:
    found = [nodes[counter] for counter in counters if counter in nodes]
    return [node["params"]["tensor_id"] for node in found if node["node_type"] == "tensor"]


def _add_graph(
    rows: dict[str, list[Row]],
    number: int,
    start: Node,
    between: list[Node],
    nodes: dict[int, Node],
    record: Node,
    rank: int,
) -> None:
    captured = record.get("captured_graph")
    if captured is None:
        captured = _cut_out(between, nodes)
    is_text = isinstance(captured, str)
    text = captured if is_text else json.dumps(captured, separators=(",", ":"))
    rows["captured_graph"].append((number, text, rank))
    rows["nodes"].append((number, start["counter"], number, start["params"]["name"], rank))
    for node in () if is_text else captured:
        for key, other in enumerate(node["connections"]):
            rows["edges"].append((number, node["counter"], other, key, 0, key, rank))


def _cut_out(between: list[Node], by_counter: dict[int, Node]) -> list[Node]:
    """The nodes of one call as a separate graph, numbered from 1 after a start node, with its input tensors."""
    inside = {node["counter"] for node in between}
    used = {other for node in between for other in node.get("input_tensors", ())} - inside
    nodes = [by_counter[other] for other in sorted(used)] + between
    numbers = {node["counter"]: number for number, node in enumerate(nodes, 1)}
    begin: Node = {
        "node_type": "capture_start",
        "params": {},
        "arguments": [],
        "input_tensors": [],
        "stacking_level": 0,
    }
    graph = [{**begin, "counter": 0, "id": 0, "connections": [numbers[between[0]["counter"]]]}]
    for node in nodes:
        own = numbers[node["counter"]]
        inner = {
            name: [numbers[other] for other in node.get(name, ()) if other in numbers]
            for name in ("connections", "input_tensors")
        }
        graph.append({**node, **inner, "params": _with_known_config(node["params"]), "counter": own, "id": own})
    return graph


def _with_known_config(params: Any) -> Any:
    if params and "memory_config" in params:
        return {**params, "memory_config": for_visualizer(params["memory_config"])}
    return params


def compute_tensor_lifetime_records(
    operations_batch: list[Row],
    input_tensors_batch: list[Row],
    output_tensors_batch: list[Row],
    stack_traces_batch: list[Row],
    tensor_ids: set[int],
) -> list[dict[str, Any]]:
    """Per tensor: the calls that produced, last read and freed it, with their source lines."""
    names = {row[0]: row[1] for row in operations_batch}
    traces = {row[0]: row[1] for row in stack_traces_batch}
    producers: dict[int, list[int]] = defaultdict(list)
    readers: dict[int, list[int]] = defaultdict(list)
    freed: dict[int, list[int]] = defaultdict(list)
    for operation, _, tensor, *_ in output_tensors_batch:
        producers[tensor].append(operation)
    for operation, _, tensor, *_ in input_tensors_batch:
        (freed if names.get(operation) in DEALLOCATES else readers)[tensor].append(operation)
    records = []
    for tensor in sorted(tensor_ids):
        producer, last = min(producers[tensor], default=None), max(readers[tensor], default=None)
        (made_in, made_at), (read_in, read_at) = (innermost_frame(traces.get(each)) for each in (producer, last))
        records.append(
            {
                "tensor_id": tensor,
                "producer_operation_id": producer,
                "last_use_operation_id": last,
                "deallocate_operation_id": min(freed[tensor], default=None),
                "producer_source_file": made_in,
                "producer_source_line": made_at,
                "last_use_source_file": read_in,
                "last_use_source_line": read_at,
            }
        )
    return records
