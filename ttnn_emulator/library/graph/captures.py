"""`ttnn.graph`: captures of `execution.graph` with the recorded Python calls, as text and as diagrams."""

from __future__ import annotations

import json
import pathlib
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from ttnn_emulator.atomic_files import replacing
from ttnn_emulator.execution import graph as native
from ttnn_emulator.execution import listeners
from ttnn_emulator.execution.graph import Node, RunMode
from ttnn_emulator.library.comparison import records
from ttnn_emulator.library.comparison.records import (  # noqa: F401
    has_comparison_records,
    record_tensor_comparison_data,
    reset_comparison_records_data,
)
from ttnn_emulator.library.graph import call_records
from ttnn_emulator.library.graph.call_records import (  # noqa: F401  (names of ttnn.graph)
    append_python_io_record,
    disable_python_io_recording,
    disable_python_stack_traces,
    enable_python_io_recording,
    enable_python_stack_traces,
    is_python_io_recording_enabled,
    is_python_stack_trace_enabled,
    record_python_operation,
    record_python_operation_error,
    store_captured_graph,
    store_output_tensor_ids,
)

COMPARISON_RECORDS_SIDECAR_SUFFIX = ".comparison_records.json"
PYTHON_IO_SIDECAR_SUFFIX = ".python_io.json"
PICTURES = (".svg", ".png", ".pdf")
# Colours of nested functions, half transparent.
LEVEL_COLORS = ("#4e79a780", "#f28e2b80", "#59a14f80", "#edc94880", "#b07aa180", "#76b7b280")

# Private names that the library's tests use.
LIBRARY_PRIVATE = (
    "_python_io_data",
    "_safe_arg_str",
    "_configure_python_stack_traces_for_outer_graph_capture",
    "_cpp_begin_graph_capture",
    "_cpp_end_graph_capture",
    "_cpp_end_graph_capture_to_file",
)
_python_io_data: list[call_records.Record] = []
_safe_arg_str = call_records.as_text
_configure_python_stack_traces_for_outer_graph_capture = call_records.follow_config
_cpp_begin_graph_capture = native.begin_graph_capture
_cpp_end_graph_capture = native.end_graph_capture
_cpp_end_graph_capture_to_file = native.end_graph_capture_to_file

_recorders: list[listeners.Listener] = []


def begin_graph_capture(run_mode: Any = None, *, _internal: bool = False) -> None:
    """Start recording. In mode NO_DISPATCH operations only check and infer: nothing is allocated or computed."""
    if not native.is_graph_capture_active():
        call_records.clear_records()
        if not _internal:
            records.reset_comparison_records_data()
        enable_python_io_recording()
        call_records.follow_config(sys.modules["ttnn_emulator"])
        recorder = call_records.CallRecorder()
        listeners.add(recorder)
        _recorders.append(recorder)
    native.begin_graph_capture(run_mode)


def _end_recording() -> None:
    if not native.is_graph_capture_active():
        while _recorders:
            listeners.remove(_recorders.pop())
        call_records.end_recording()


def end_graph_capture() -> list[Node]:
    """Stop recording and return the graph."""
    captured = native.end_graph_capture()
    _end_recording()
    return captured


def end_graph_capture_to_file(report_path: str | pathlib.Path) -> list[Node]:
    """Stop recording, write the graph and the Python calls to two JSON files, and return the graph."""
    captured = call_records._graph()._cpp_end_graph_capture_to_file(report_path)
    path = pathlib.Path(report_path)
    if call_records.records():
        _write(path.with_suffix(PYTHON_IO_SIDECAR_SUFFIX), call_records.records())
    if has_comparison_records():
        _write(path.with_suffix(COMPARISON_RECORDS_SIDECAR_SUFFIX), records.all_records())
        reset_comparison_records_data()
    _end_recording()
    return json.loads(captured)


def _write(path: pathlib.Path, content: Any) -> None:
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content), encoding="utf-8")


@contextmanager
def full_graph_capture(report_path: str, *, run_mode: Any = None, slow_dispatch: bool = True) -> Iterator[None]:
    """Capture the block to a file with all details: stack traces, buffer pages, slow runtime mode."""
    config = sys.modules["ttnn_emulator"].CONFIG
    fast, traces = config.enable_fast_runtime_mode, is_python_stack_trace_enabled()
    pages = native.is_detailed_buffer_tracing_enabled()
    enable_python_stack_traces()
    native.enable_detailed_buffer_tracing()
    if slow_dispatch:
        config.enable_fast_runtime_mode = False
    try:
        begin_graph_capture(run_mode if run_mode is not None else RunMode.NORMAL)
        yield
        end_graph_capture_to_file(report_path)
    finally:
        if native.is_graph_capture_active():
            end_graph_capture()
        if not pages:
            native.disable_detailed_buffer_tracing()
        if not traces:
            disable_python_stack_traces()
        config.enable_fast_runtime_mode = fast


# -- as text ----------------------------------------------------------------------------------------------------------


def pretty_format(captured_graph: list[Node]) -> str:
    """The graph as indented text: functions with their arguments and outputs."""
    lines = []
    for node in captured_graph:
        indent = "    " * node["stacking_level"]
        if node["node_type"] == "function_start":
            lines.append(f"{indent}{node['params']['name']}({', '.join(node['arguments'])})")
        elif node["node_type"] == "function_end":
            shapes = [captured_graph[number]["params"]["shape"] for number in node["connections"]]
            lines.append(f"{indent}    → {', '.join(shapes) or 'nothing'}  [{node['duration_ns'] / 1e3:.0f} µs]")
    return "\n".join(lines)


def pretty_print(captured_graph: list[Node]) -> None:
    print(pretty_format(captured_graph))


# -- as a picture -----------------------------------------------------------------------------------------------------


class ExitStackWithPop(ExitStack):
    """An exit stack that can exit its latest context alone."""

    def pop(self) -> None:
        _, leave = self._exit_callbacks.pop()  # type: ignore[attr-defined]
        leave(None, None, None)


def visualize_node(graphviz_graph: Any, node: Node) -> None:
    """Draw one node: its kind, and the name of a function or the id of a tensor."""
    params = node["params"] or {}
    more = params.get("name", params.get("tensor_id"))
    label = node["node_type"] if more is None else f"{node['node_type']}\n{more}"
    graphviz_graph.node(f"node_{node['counter']}", label, fillcolor="#DCDCDC")


def visualize_edge(graphviz_graph: Any, source_node_id: int, sink_node_id: int) -> None:
    graphviz_graph.edge(f"node_{source_node_id}", f"node_{sink_node_id}")


def visualize(
    captured_graph: list[Node],
    *,
    file_name: pathlib.Path | str | None = None,
    visualize_node: Callable[[Any, Node], None] = visualize_node,
    visualize_edge: Callable[[Any, int, int], None] = visualize_edge,
) -> Any:
    """Draw the graph as a `graphviz.Digraph`, functions as boxes around their contents."""
    import graphviz

    path = None if file_name is None else pathlib.Path(file_name)
    if path is not None and path.suffix not in PICTURES:
        raise ValueError(f"a picture ends in {', '.join(PICTURES)}, not in {path.suffix!r}")
    node_style = {"style": "filled", "fontsize": "10", "height": "0.2", "margin": "0", "shape": "box"}
    picture = graphviz.Digraph(
        engine="dot",
        graph_attr={"ordering": "in", "rankdir": "TB"},
        node_attr=node_style,
        edge_attr={"fontsize": "10"},
    )
    with ExitStackWithPop() as stack:
        around = [picture]
        for node in captured_graph:
            if node["node_type"] == "function_start":
                inner = stack.enter_context(around[-1].subgraph(name=f"subgraph_{node['counter']}"))
                colour = LEVEL_COLORS[len(around) % len(LEVEL_COLORS)]
                inner.attr(cluster="true", label=node["params"]["name"], bgcolor=colour, fontcolor="black")
                around.append(inner)
            visualize_node(around[-1], node)
            if node["node_type"] == "function_end":
                stack.pop()
                around.pop()
    for node in captured_graph:
        for other in node["connections"]:
            visualize_edge(picture, node["counter"], other)
    if path is not None:
        picture.render(path.with_suffix(""), format=path.suffix[1:])
    return picture
