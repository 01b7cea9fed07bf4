"""Writes parts of a report to its database: devices, calls, tensors, buffers, comparisons."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict, deque
from collections.abc import Iterator
from typing import Any

from ttnn_emulator.library.reports.database_schema import DEVICE_COLUMNS, insert, save_metadata
from ttnn_emulator.library.reports.stack_sources import (
    get_source_file_id,
    innermost_frame,
    normalize_source_path_from_stack_trace,
    read_source_file,
)

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
        return None if value is None else str(value).replace("::", ".") if name in ("dtype", "layout") else value

    names = ("tensor_id", "shape", "dtype", "layout", "memory_config", "device_id", "address", "buffer_type")
    on_device = params.get("storage_type") != "HOST"
    values = [known(name) if on_device or name not in names[4:] else None for name in names]
    return (*values, rank, params.get("storage_type"))


def _outermost(graph: list[Node]) -> Iterator[tuple[Node, Node | None, list[Node]]]:
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
    for number, (start, end, between) in enumerate(_outermost(graph), base_operation_id + 1):
        record = calls[start["params"]["name"]].popleft() if calls[start["params"]["name"]] else {}
        _add_call(cursor, rows, number, start, end, record, by_counter, rank)
        _add_graph(rows, number, start, between, record, rank)
        for buffer in (per_operation_buffers or {}).get(str(start["counter"]), ()):
            names = ("device_id", "address", "max_size_per_bank", "buffer_type", "buffer_layout")
            rows["buffers"].append((number, *(buffer.get(name) for name in names), rank))
    if record_tensor_lifetime:
        known = {params["tensor_id"] for params in tensors}
        kept = compute_tensor_lifetime_records(
            rows["operations"], rows["input_tensors"], rows["output_tensors"], rows["stack_traces"], known
        )
        rows["tensor_lifetime"] = [(*record.values(), rank) for record in kept]
    for table, content in rows.items():
        insert(cursor, table, content)
    return {"operations": len(rows["operations"]), "tensors": len(tensors), "warnings": []}


def _add_call(
    cursor: sqlite3.Cursor,
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
    rows["operation_arguments"] += [(number, key, text, rank) for key, text in arguments.items()]
    inputs = record.get("input_tensor_ids") or _tensors(start.get("input_tensors", ()), nodes)
    outputs = record.get("output_tensor_ids") or _tensors([] if end is None else end["connections"], nodes)
    rows["input_tensors"] += [(number, place, tensor, rank) for place, tensor in enumerate(inputs)]
    rows["tensor_consumers"] += [(tensor, number, place, rank) for place, tensor in enumerate(inputs)]
    rows["output_tensors"] += [(number, place, tensor, rank) for place, tensor in enumerate(outputs)]
    rows["tensor_producers"] += [(tensor, number, place, rank) for place, tensor in enumerate(outputs)]
    trace = "".join(record.get("python_stack_trace", ()))
    if trace:
        path = normalize_source_path_from_stack_trace(trace)
        contents = None if path is None else read_source_file(path)
        file = None if path is None or contents is None else get_source_file_id(cursor, path, contents)
        rows["stack_traces"].append((number, trace, file, rank))
    if "error" in record:
        error = record["error"]
        rows["errors"].append((number, name, error["type"], error["message"], trace, None, rank))


def _tensors(counters: Any, nodes: dict[int, Node]) -> list[int]:
    found = [nodes[counter] for counter in counters if counter in nodes]
    return [node["params"]["tensor_id"] for node in found if node["node_type"] == "tensor"]


def _add_graph(
    rows: dict[str, list[Row]], number: int, start: Node, between: list[Node], record: Node, rank: int
) -> None:
    captured = record.get("captured_graph")
    text = (
        captured if isinstance(captured, str) else json.dumps(captured if captured is not None else _cut_out(between))
    )
    rows["captured_graph"].append((number, text, rank))
    rows["nodes"].append((number, start["counter"], number, start["params"]["name"], rank))
    rows["edges"].append((number, 0, start["counter"], 0, 0, 0, rank))
    for node in between:
        for key, other in enumerate(node["connections"]):
            rows["edges"].append((number, node["counter"], other, key, 0, key, rank))


def _cut_out(between: list[Node]) -> list[Node]:
    """The nodes of one call as a separate graph, numbered from 1 after a start node."""
    numbers = {node["counter"]: number for number, node in enumerate(between, 1)}
    begin: Node = {
        "node_type": "capture_start",
        "params": {},
        "arguments": [],
        "input_tensors": [],
        "stacking_level": 0,
    }
    graph = [{**begin, "counter": 0, "id": 0, "connections": [1]}]
    for node in between:
        own = numbers[node["counter"]]
        inner = {
            name: [numbers[other] for other in node.get(name, ()) if other in numbers]
            for name in ("connections", "input_tensors")
        }
        graph.append({**node, **inner, "counter": own, "id": own})
    return graph


def _chunks(operation: int, pages: list[Node], rank: int) -> list[Row]:
    """Pages of a buffer; contiguous pages of a core are one chunk."""
    rows: list[Row] = []
    order = ("device_id", "address", "bank_id", "core_x", "core_y", "page_address")
    for page in sorted(pages, key=lambda page: tuple(page[name] for name in order)):
        place, size = tuple(page[name] for name in order[:-1]), page["page_size"]
        if rows and rows[-1][1:6] == place and rows[-1][6] + rows[-1][7] == page["page_address"]:
            *_, at, length, _, count, kind, _ = rows.pop()
            rows.append((operation, *place, at, length + size, size, count + 1, kind, rank))
        else:
            rows.append((operation, *place, page["page_address"], size, size, 1, page["buffer_type"], rank))
    return rows


def import_chunks(cursor: sqlite3.Cursor, report: Node, rank: int, base: int) -> None:
    """Add the locations of buffer pages, for every call after which the buffer exists."""
    by_buffer: dict[tuple[int, int], list[Node]] = defaultdict(list)
    for page in report.get("buffer_pages", ()):
        by_buffer[page["device_id"], page["address"]].append(page)
    for number, (start, _, _) in enumerate(_outermost(report["graph"]), base + 1):
        for buffer in report.get("per_operation_buffers", {}).get(str(start["counter"]), ()):
            pages = by_buffer.get((buffer.get("device_id"), buffer["address"]), [])
            pages = [page for page in pages if page["buffer_type"] == buffer["buffer_type"]]
            insert(cursor, "buffer_chunks", _chunks(number, pages, rank))


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
