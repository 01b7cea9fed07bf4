"""Traced graphs as Python: one function per module of a model, and one for the code around them."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from typing import Any, TextIO

import networkx

from ttnn_emulator.library.tracer.nodes import (
    InputTensorIndex,
    Node,
    Pairs,
    PositionalArgumentName,
    TorchFunction,
    TorchModule,
    TorchParameter,
    TorchTensor,
    TTNNOperation,
    TTNNTensor,
)
from ttnn_emulator.library.tracer.torch_tracer import duration_to_string
from ttnn_emulator.library.tracer.ttnn_tracer import get_graph

logger = logging.getLogger(__name__)
SHOWN_VALUES = 8  # of a tensor without another source


def get_module_input_nodes(module_operation: TorchModule) -> list[Node]:
    return [each.node for each in module_operation.inputs]


def get_module_output_nodes(module_operation: TorchModule) -> list[Node]:
    return [each.node for each in module_operation.outputs]


def get_module_input_tensor_names(module_operation: TorchModule) -> list[str]:
    """Names of the `forward` parameters that take tensors."""
    nodes = module_operation.graph.nodes
    return [f"{nodes[node]['operation'].name}" for node in get_module_input_nodes(module_operation)]


def _text(value: Any, inputs: list[str] | None) -> str:
    if isinstance(value, InputTensorIndex):
        return f"{value}" if inputs is None else inputs[value.index]
    if isinstance(value, list | tuple):
        return f"[{', '.join(_text(item, inputs) for item in value)}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_text(item, inputs)}" for key, item in value.items()) + "}"
    return f"{value}"


def extract_args_and_kwargs_from_arg_name_value_pairs(
    arg_name_value_pairs: Pairs, inputs: list[str] | None = None
) -> tuple[list[str], list[str]]:
    """Arguments as code: positional and keyword."""
    by_place = [_text(value, inputs) for name, value in arg_name_value_pairs if _is_place(name)]
    by_name = [f"{name}={_text(value, inputs)}" for name, value in arg_name_value_pairs if not _is_place(name)]
    return by_place, by_name


def _is_place(name: Any) -> bool:
    return isinstance(name, PositionalArgumentName)


def _arguments(pairs: Pairs, inputs: list[str]) -> str:
    by_place, by_name = extract_args_and_kwargs_from_arg_name_value_pairs(pairs, inputs)
    return ", ".join([*by_place, *by_name])


def _below(name: str, prefix: str) -> str:
    """The name of a parameter or module relative to the module `prefix`."""
    return name.replace(f"{prefix}.", "", 1) if prefix else name


def _expression(operation: Any, inputs: list[str], prefix: str) -> str:
    if isinstance(operation, TorchParameter):
        return f"parameters.{_below(getattr(operation.parameter, '__ttnn_tracer_name__', ''), prefix)}"
    if isinstance(operation, TorchTensor):
        tensor = operation.tensor
        values = f"{tensor.flatten().tolist()[:SHOWN_VALUES]}, ..."
        return f"torch.as_tensor({values}).reshape({tuple(tensor.shape)}).to({tensor.dtype})"
    if isinstance(operation, TorchFunction):
        return f"{operation}({_arguments(operation.arg_name_value_pairs, inputs)})"
    if isinstance(operation, TTNNOperation):
        return f"{operation.pretty_name}({_arguments(operation.arg_name_value_pairs, inputs)})"
    if isinstance(operation, TTNNTensor):
        return f"{operation}"
    if isinstance(operation, TorchModule):
        where = _below(str(operation.module.__ttnn_tracer_name__), prefix)
        parameters = f"parameters.{where}" if where else "parameters"
        arguments = _arguments(operation.arg_name_value_pairs, inputs)
        return f"{type(operation.module).__name__}(config, {arguments}, parameters={parameters})"
    raise ValueError(f"no code can be written for {operation}")


def node_to_statement(
    string_io: TextIO, graph: networkx.MultiDiGraph, node: Node, variable: str, input_variables: list[str], prefix: str
) -> None:
    """Write the statement of one node."""
    attributes = graph.nodes[node]
    string_io.write(f"    {variable} = {_expression(attributes['operation'], input_variables, prefix)}")
    shapes, dtypes = (each[0] if len(each) == 1 else each for each in (attributes["shapes"], attributes["dtypes"]))
    duration = attributes.get("duration")
    took = "" if duration is None else f"; duration: {duration_to_string(duration)}"
    string_io.write(f"    # shapes: {shapes}, dtypes: {dtypes}{took}\n")


def _inputs(graph: networkx.MultiDiGraph, node: Node) -> list[Node]:
    edges = sorted(graph.in_edges(node, data=True), key=lambda edge: edge[2]["sink_input_index"])
    return [source for source, *_ in edges]


def _body(graph: networkx.MultiDiGraph, named: dict[Node, str], keep: list[Node], prefix: str) -> str:
    """Statements for all nodes without a name. A value with a single reader passes its name on to it."""
    lines, count = io.StringIO(), 0
    for node in networkx.topological_sort(graph):
        if node in named:
            continue
        sources = _inputs(graph, node)
        only = sources[0] if len(sources) == 1 and node not in keep else None
        if only is not None and len(list(graph.successors(only))) == 1:
            named[node] = named[only]
        else:
            named[node] = f"variable_{count}"
            count += 1
        node_to_statement(lines, graph, node, named[node], [named[source] for source in sources], prefix)
    return lines.getvalue()


def module_to_source_code(module_operation: TorchModule, prefix: str = "") -> str:
    """The function of one module."""
    names = get_module_input_tensor_names(module_operation)
    named = dict(zip(get_module_input_nodes(module_operation), names))
    outputs = get_module_output_nodes(module_operation)
    body = _body(module_operation.graph, named, outputs, prefix)
    head = f"def {type(module_operation.module).__name__}(config, {', '.join(names)}, *, parameters):\n"
    return f"{head}{body}    return {', '.join(named[node] for node in outputs)}\n"


def codegen_submodules(graph: networkx.MultiDiGraph) -> Iterator[str]:
    """The functions of the modules of a graph, innermost first."""
    for node in networkx.topological_sort(graph):
        operation = graph.nodes[node]["operation"]
        if isinstance(operation, TorchModule):
            yield from codegen_submodules(operation.graph)
            yield module_to_source_code(operation, str(operation.module.__ttnn_tracer_name__))


def codegen_top_level_module(graph: networkx.MultiDiGraph) -> str:
    """The function of the code outside modules; every value has its own name."""
    return "def top_level_module():\n" + _body(graph, {}, list(graph.nodes), "")


def codegen(output: Any) -> str:
    """The program that computed `output`, as Python: a starting point that may not run unchanged."""
    logger.warning("generated code is a starting point and may not run unchanged")
    graph = get_graph(output)
    return "".join(f"{code}\n\n" for code in codegen_submodules(graph)) + codegen_top_level_module(graph)
