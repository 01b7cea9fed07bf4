"""Traced graphs as graphviz diagrams: one table per node with its tensors, one box per module."""

from __future__ import annotations

import html
import logging
import pathlib
import shutil
from collections.abc import Callable
from typing import Any

import networkx

from ttnn_emulator.library.tracer.nodes import Node, TorchModule
from ttnn_emulator.library.tracer.torch_tracer import duration_to_string, flatten_graph
from ttnn_emulator.library.tracer.ttnn_tracer import get_graph, layout_to_string, memory_config_to_string

logger = logging.getLogger(__name__)
PICTURES = (".svg", ".png", ".pdf")
LEVEL_COLORS = ["#4e79a780", "#f28e2b80", "#59a14f80", "#edc94880", "#b07aa180", "#76b7b280"]


def _goes_into(operation: Any, level: int, max_depth: int | None) -> bool:
    return isinstance(operation, TorchModule) and (max_depth is None or level + 1 < max_depth)


def get_source(
    graph: networkx.MultiDiGraph, node: Node, source_output_index: int, level: int, max_depth: int | None = None
) -> tuple[Node, int, dict[str, Any]]:
    """The producer of a value: for a module, the node inside it."""
    operation = graph.nodes[node]["operation"]
    if not _goes_into(operation, level, max_depth):
        return node, source_output_index, graph.nodes[node]
    output = operation.outputs[source_output_index]
    return get_source(operation.graph, output.node, output.output_index, level + 1, max_depth)


def get_sink(
    graph: networkx.MultiDiGraph, node: Node, sink_input_index: int, level: int, max_depth: int | None = None
) -> tuple[Node, int, dict[str, Any]]:
    """The consumer of a value: for a module, its input node."""
    operation = graph.nodes[node]["operation"]
    if not _goes_into(operation, level, max_depth):
        return node, sink_input_index, graph.nodes[node]
    return get_sink(operation.graph, operation.inputs[sink_input_index].node, 0, level + 1, max_depth)


def _lines(text: str) -> str:
    return html.escape(text).replace("\n", "<BR/>")


def _cells(kind: str, port: str, tensors: list[tuple[Any, ...]]) -> str:
    cells = ""
    for index, (shape, dtype, layout, config) in enumerate(tensors):
        facts = [f"{kind} {index}", f"{shape}", f"{dtype}", layout_to_string(layout), memory_config_to_string(config)]
        cells += f'<TD PORT="{port}{index}">{_lines(chr(10).join(fact for fact in facts if fact))}</TD>'
    return cells


def _tensor(attributes: dict[str, Any], index: int) -> tuple[Any, ...]:
    def fact(name: str) -> Any:
        return attributes[name][index] if name in attributes else None

    return fact("shapes"), fact("dtypes"), fact("layouts"), fact("memory_configs")


def _table(graph: networkx.MultiDiGraph, node: Node, label: str) -> str:
    attributes = graph.nodes[node]
    edges = sorted(graph.in_edges(node, data=True), key=lambda edge: edge[2]["sink_input_index"])
    inputs = [_tensor(graph.nodes[source], facts["source_output_index"]) for source, _, facts in edges]
    outputs = [_tensor(attributes, index) for index in range(len(attributes["shapes"]))]
    rows = [_cells("Input", "$", inputs), _cells("Output", "#", outputs)]
    rows = [f"<TR>{row}</TR>" for row in rows if row]
    head = f"<TR><TD>{_lines(label)}</TD></TR>"
    inner = '<TABLE BORDER="0" CELLBORDER="1" CELLSPACING="1" CELLPADDING="1">'
    nested = "".join(f"<TR><TD>{inner}{row}</TABLE></TD></TR>" for row in rows)
    return f'<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0">{head}{nested}</TABLE>>'


def visualize_node(
    graphviz_graph: Any,
    graph: networkx.MultiDiGraph,
    node: Node,
    max_depth: int | None,
    visualize_node: Callable,
    visualize_edge: Callable,
    level: int,
    verbose: bool,
) -> None:
    """Draw a node, or a module as a box around its own graph."""
    attributes = graph.nodes[node]
    operation = attributes["operation"]
    label = operation.to_string(verbose=verbose)
    if attributes.get("duration") is not None:
        label = f"{label}\nduration: {duration_to_string(attributes['duration'])}"
    colour = LEVEL_COLORS[level % len(LEVEL_COLORS)]
    if not _goes_into(operation, level, max_depth):
        fill = colour if isinstance(operation, TorchModule) else "#DCDCDC"
        graphviz_graph.node(node.name, label=_table(graph, node, label), fillcolor=fill)
        return
    with graphviz_graph.subgraph(name=node.name) as inside:
        inside.attr(fontcolor="black", bgcolor=colour, cluster="true", label=label)
        _draw(inside, operation.graph, max_depth, visualize_node, visualize_edge, verbose, level + 1)


def visualize_edge(
    graphviz_graph: Any, graph: networkx.MultiDiGraph, edge: Any, max_depth: int | None, level: int
) -> None:
    """Draw the edge of a tensor, into modules that are expanded."""
    source, sink, _, facts = edge
    source, output, _ = get_source(graph, source, facts["source_output_index"], level, max_depth)
    sink, number, _ = get_sink(graph, sink, facts["sink_input_index"], level, max_depth)
    graphviz_graph.edge(f"{source.name}:#{output}", f"{sink.name}:${number}")


def _draw(
    picture: Any,
    graph: networkx.MultiDiGraph,
    max_depth: int | None,
    draw_node: Callable,
    draw_edge: Callable,
    verbose: bool,
    level: int = 0,
) -> None:
    for node in graph:
        draw_node(picture, graph, node, max_depth, draw_node, draw_edge, level, verbose)
    for edge in graph.edges(data=True, keys=True):
        draw_edge(picture, graph, edge, max_depth, level)


def visualize(
    *function_args: Any,
    show_modules: bool = True,
    max_depth: int | None = None,
    file_name: pathlib.Path | str | None = None,
    visualize_node: Callable = visualize_node,
    visualize_edge: Callable = visualize_edge,
    verbose: bool = False,
    **function_kwargs: Any,
) -> Any:
    """Draw the graph of tensors as a `graphviz.Digraph`; None if graphviz is not installed."""
    if shutil.which("dot") is None:
        logger.warning("graphviz is not installed: the graph is not drawn")
        return None
    import graphviz

    graph = get_graph(*function_args, **function_kwargs)
    path = None if file_name is None else pathlib.Path(file_name)
    if path is not None and path.suffix not in PICTURES:
        raise ValueError(f"a picture ends in {', '.join(PICTURES)}, not in {path.suffix!r}")
    if max_depth is not None and max_depth < 1:
        raise RuntimeError(f"max_depth must be at least 1, not {max_depth}")
    picture = graphviz.Digraph(
        engine="dot",
        graph_attr={"ordering": "in", "rankdir": "TB"},
        node_attr={"style": "filled", "fontsize": "10", "height": "0.2", "margin": "0", "shape": "box"},
        edge_attr={"fontsize": "10"},
    )
    shown = graph if show_modules else flatten_graph(graph)
    _draw(picture, shown, max_depth, visualize_node, visualize_edge, verbose)
    if path is not None:
        picture.render(path.with_suffix(""), format=path.suffix[1:])
    return picture
