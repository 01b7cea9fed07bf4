"""`ttnn.torch_tracer`: torch computations as a graph: one node per call, modules as nodes with their own graphs.

Tensors created during tracing belong to a subclass that refers to their node; `__torch_function__` traces every call
that takes one. Module calls are traced by replacing `torch.nn.Module.__call__`.
"""

from __future__ import annotations

import dataclasses
import inspect
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import networkx
import torch

from ttnn_emulator.library.tracer.nodes import (  # noqa: F401  (names of ttnn.torch_tracer)
    TAG_TRACEDTENSOR,
    InputTensorIndex,
    ModuleIOTensor,
    Node,
    Pairs,
    PositionalArgumentName,
    TorchFunction,
    TorchModule,
    TorchModuleInput,
    TorchParameter,
    TorchTensor,
    get_unique_id,
    is_traced,
    new_node,
    source_of,
)

# Functions that create tensors without taking one: `__torch_function__` does not see them.
TORCH_CREATION_OPERATION_NAMES = (
    "arange as_tensor bernoulli complex empty empty_like eye from_numpy full full_like heaviside linspace logspace "
    "multinomial normal ones ones_like poisson rand rand_like randint randint_like randn randn_like randperm range "
    "zeros zeros_like"
).split()
TORCH_CREATION_OPERATIONS = [getattr(torch, name) for name in TORCH_CREATION_OPERATION_NAMES]
_MODULE_CALL = torch.nn.Module.__call__

GRAPH_STACK: list[networkx.MultiDiGraph] | None = None
UNIQUE_ID = 0
_stack: list[networkx.MultiDiGraph] = []
_paused: list[bool] = []


def _publish() -> None:
    from ttnn_emulator.namespaces import namespace

    for name in ("ttnn.torch_tracer", "ttnn.tracer"):
        vars(namespace(name))["GRAPH_STACK"] = _stack or None


def enable_tracing() -> None:
    """Start tracing."""
    if _stack:
        raise RuntimeError("tracing is already enabled and cannot be nested")
    torch.nn.Module.__call__ = traced_module_forward  # type: ignore[method-assign]
    for name, function in zip(TORCH_CREATION_OPERATION_NAMES, TORCH_CREATION_OPERATIONS):
        setattr(torch, name, wrap_create_function(function))
    _stack.append(networkx.MultiDiGraph())
    _publish()


def disable_tracing() -> None:
    """Stop tracing; traced tensors keep their graphs."""
    torch.nn.Module.__call__ = _MODULE_CALL  # type: ignore[method-assign]
    for name, function in zip(TORCH_CREATION_OPERATION_NAMES, TORCH_CREATION_OPERATIONS):
        setattr(torch, name, function)
    _stack.clear()
    _publish()


def is_tracing_enabled() -> bool:
    return bool(_stack)


@contextmanager
def trace() -> Iterator[None]:
    """Trace the block."""
    enable_tracing()
    try:
        yield
    finally:
        disable_tracing()


@contextmanager
def paused() -> Iterator[None]:
    """Disable tracing within the block: torch calls inside a ttnn operation are not part of the graph."""
    _paused.append(True)
    try:
        with torch._C.DisableTorchFunctionSubclass():
            yield
    finally:
        _paused.pop()


@contextmanager
def pushed_graph() -> Iterator[networkx.MultiDiGraph]:
    """Use a separate graph within the block."""
    _stack.append(networkx.MultiDiGraph())
    try:
        yield _stack[-1]
    finally:
        _stack.pop()


# -- traced tensors ---------------------------------------------------------------------------------------------------


class TracedTorchTensor(torch.Tensor):
    """A tensor with the node that produced it."""

    TRACEDTENSOR = None
    graph: networkx.MultiDiGraph
    node: Node
    output_index: int

    @staticmethod
    def __new__(cls: Any, tensor: torch.Tensor, *, graph: Any, node: Node, output_index: int) -> Any:
        if tensor.is_leaf:  # stays a leaf, so that it can become a parameter
            return torch.Tensor._make_subclass(cls, tensor, tensor.requires_grad)
        return tensor.as_subclass(cls)

    def __init__(self, tensor: torch.Tensor, *, graph: Any, node: Node, output_index: int) -> None:
        self.graph, self.node, self.output_index = graph, node, output_index

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.node.name

    @classmethod
    def __torch_function__(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not _stack or _paused:
            return super().__torch_function__(func, types, args, kwargs)
        args, kwargs = preprocess_args_and_kwargs(*args, **kwargs)
        began = time.time()
        result = super().__torch_function__(func, types, args, kwargs)
        seconds = time.time() - began
        with paused():
            tensors = preprocess_return_value(result)
            if not tensors:
                return result
            pairs = get_arg_name_value_pairs(func, function_args=args, function_kwargs=kwargs)
            inputs = get_input_tensors([args, kwargs])
            outputs = add_call(new_node(func.__name__), TorchFunction(func, pairs), inputs, tensors, duration=seconds)
            return postprocess_return_value(result, outputs)


def add_call(node: Node, operation: Any, inputs: list[Any], outputs: list[torch.Tensor], **facts: Any) -> list[Any]:
    """Add a node for a call with edges from its inputs, and return the outputs as traced tensors."""
    graph = join_graphs(inputs)
    graph.add_node(
        node,
        operation=operation,
        shapes=tuple(tuple(tensor.shape) for tensor in outputs),
        dtypes=tuple(tensor.dtype for tensor in outputs),
        **facts,
    )
    add_edges(graph, node, inputs)
    return [
        TracedTorchTensor(tensor, graph=graph, node=node, output_index=index) for index, tensor in enumerate(outputs)
    ]


def join_graphs(inputs: list[Any]) -> networkx.MultiDiGraph:
    """The current graph merged with the graphs of the inputs."""
    for tensor in inputs:
        if tensor.graph is not _stack[-1]:
            _stack[-1] = networkx.compose(_stack[-1], tensor.graph)
    return _stack[-1]


def add_edges(graph: networkx.MultiDiGraph, node: Node, inputs: list[Any]) -> None:
    for index, tensor in enumerate(inputs):
        graph.add_edge(tensor.node, node, source_output_index=tensor.output_index, sink_input_index=index)


def create_input_tensor(
    tensor: torch.Tensor,
    function: Callable | None = None,
    arg_name_value_pairs: Pairs | None = None,
    duration: float | None = None,
) -> TracedTorchTensor:
    """A tensor from outside, or one that `function` created, as an input node of a graph."""
    if not isinstance(tensor, torch.Tensor):
        raise RuntimeError(f"a torch tensor is expected, not {type(tensor)}")
    operation: Any = TorchTensor(tensor)
    if isinstance(tensor, torch.nn.Parameter):
        operation = TorchParameter(tensor)
    elif function is not None:
        operation = TorchFunction(function, arg_name_value_pairs or [])
    kind = "torch_parameter" if isinstance(tensor, torch.nn.Parameter) else "torch_input"
    with paused():
        return add_call(new_node(kind), operation, [], [tensor], duration=duration)[0]


def wrap_create_function(function: Callable) -> Callable:
    """Wrap a function that creates tensors, so that it is traced."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not _stack or _paused:
            return function(*args, **kwargs)
        pairs = get_arg_name_value_pairs(function, function_args=args, function_kwargs=kwargs)
        began = time.time()
        tensor = function(*args, **kwargs)
        return create_input_tensor(tensor, function, pairs, time.time() - began)

    return wrapper


# -- arguments and results --------------------------------------------------------------------------------------------


def _mapped(value: Any, change: Callable[[Any], Any], is_one: Callable[[Any], bool]) -> Any:
    """Apply a function to all `is_one` elements of nested lists, tuples, dictionaries and dataclasses."""
    if is_one(value):
        return change(value)
    if isinstance(value, torch.Size):
        return value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_mapped(item, change, is_one) for item in value))
    if isinstance(value, list | tuple):
        return type(value)(_mapped(item, change, is_one) for item in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
        return type(value)(**{name: _mapped(item, change, is_one) for name, item in fields.items()})
    if isinstance(value, dict):
        return {name: _mapped(item, change, is_one) for name, item in value.items()}
    return value


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def preprocess_args_and_kwargs(*function_args: Any, **function_kwargs: Any) -> tuple[list[Any], dict[str, Any]]:
    """Arguments with every torch tensor traced."""

    def traced(tensor: torch.Tensor) -> Any:
        return tensor if is_traced(tensor) else create_input_tensor(tensor)

    args = [_mapped(arg, traced, _is_tensor) for arg in function_args]
    return args, {name: _mapped(arg, traced, _is_tensor) for name, arg in function_kwargs.items()}


def get_input_tensors(object: Any) -> list[Any]:
    """The traced tensors of an argument, in order; ttnn tensors as their sources."""
    found: list[Any] = []
    _mapped(object, lambda value: found.append(source_of(value)), is_traced)
    return found


def preprocess_return_value(return_value: Any) -> list[Any]:
    """The tensors of a result, in order."""
    found: list[Any] = []
    _mapped(return_value, found.append, _is_tensor)
    return found


def postprocess_return_value(return_value: Any, output_tensors: list[Any]) -> Any:
    """A result with its tensors replaced, in order."""
    return _mapped(return_value, lambda _: output_tensors.pop(0), _is_tensor)


def get_arg_names(function: Callable, *, function_args: Any, function_kwargs: dict[str, Any]) -> list[Any]:
    """Names of the arguments; positions where the signature is unknown."""
    count = len(function_args) + len(function_kwargs)
    if not inspect.isbuiltin(function) and not inspect.ismethoddescriptor(function):
        names = [*(["self"] if inspect.ismethod(function) else []), *inspect.signature(function).parameters]
        if len(names) >= count:
            return names
    return [*(PositionalArgumentName(index) for index in range(len(function_args))), *function_kwargs]


def get_arg_name_value_pairs(function: Callable, *, function_args: Any, function_kwargs: dict[str, Any]) -> Pairs:
    """Arguments by name, without those equal to their defaults; tensors as edge numbers."""
    names = get_arg_names(function, function_args=function_args, function_kwargs=function_kwargs)
    try:
        parameters: Any = inspect.signature(function).parameters
    except (TypeError, ValueError):
        parameters = {}
    arguments = [*zip(names, function_args)]
    arguments += [(name, function_kwargs[name]) for name in names[len(function_args) :] if name in function_kwargs]
    edges = iter(range(len(get_input_tensors([value for _, value in arguments]))))
    pairs = []
    for name, value in arguments:
        default = parameters[name].default if name in parameters else inspect.Parameter.empty
        is_default = default is not inspect.Parameter.empty and (value is default or _equal(value, default))
        if not is_default:
            pairs.append((name, _mapped(value, lambda _: InputTensorIndex(next(edges)), is_traced)))
    return pairs


def _equal(value: Any, default: Any) -> bool:
    return isinstance(value, bool | int | float | str | type(None)) and value == default


# -- modules ----------------------------------------------------------------------------------------------------------


def set___ttnn_tracer_name__(module: torch.nn.Module, name: str) -> None:
    """Set the qualified names of a module, its children and its parameters."""
    if hasattr(module, "__ttnn_tracer_name__"):
        return
    module.__ttnn_tracer_name__ = name  # type: ignore[assignment]
    for child_name, child in module.named_children():
        set___ttnn_tracer_name__(child, f"{name}.{child_name}" if name else child_name)
    for parameter_name, parameter in module.named_parameters():
        parameter.__ttnn_tracer_name__ = parameter_name  # type: ignore[attr-defined]


def create_module_input(name: str, tensor: torch.Tensor) -> TracedTorchTensor:
    """A tensor as an input node of the module's own graph."""
    with paused():
        return add_call(new_node("module_input"), TorchModuleInput(name), [], [tensor])[0]


def convert_to_module_args_and_kwargs(
    module: torch.nn.Module, *function_args: Any, **function_kwargs: Any
) -> tuple[list[Any], dict[str, Any]]:
    """Arguments of a module with traced tensors replaced by its inputs; the first argument is the module."""
    names = get_arg_names(module.forward, function_args=function_args, function_kwargs=function_kwargs)

    def inside(name: Any, value: Any) -> Any:
        return _mapped(value, lambda tensor: create_module_input(str(name), tensor), is_traced)

    args = [inside(name, value) for name, value in zip(names, function_args)]
    return args, {name: inside(name, value) for name, value in function_kwargs.items()}


def create_module(
    module: torch.nn.Module, module_input_tensors: list[Any], module_output_tensors: list[Any], pairs: Pairs
) -> TorchModule:
    """The node content of a module whose graph is the current one."""
    inputs = [ModuleIOTensor.from_traced_tensor(tensor) for tensor in module_input_tensors]
    outputs = [ModuleIOTensor.from_traced_tensor(tensor) for tensor in module_output_tensors]
    return TorchModule(module, _stack[-1], inputs, outputs, pairs)


def traced_module_forward(*function_args: Any, **function_kwargs: Any) -> Any:
    """Call a module and add it to the graph."""
    if not _stack or _paused:
        return _MODULE_CALL(*function_args, **function_kwargs)
    module = function_args[0]
    set___ttnn_tracer_name__(module, "")
    args, kwargs = preprocess_args_and_kwargs(*function_args, **function_kwargs)
    inputs = get_input_tensors([args, kwargs])
    with pushed_graph():
        own_args, own_kwargs = convert_to_module_args_and_kwargs(module, *args, **kwargs)
        began = time.time()
        result = _MODULE_CALL(*own_args, **own_kwargs)
        seconds = time.time() - began
        results = preprocess_return_value(result)
        results = [tensor if is_traced(tensor) else create_input_tensor(tensor) for tensor in results]
        pairs = get_arg_name_value_pairs(module.forward, function_args=args, function_kwargs=kwargs)[1:]
        operation = create_module(module, get_input_tensors([own_args, own_kwargs]), results, pairs)
    with paused():
        node = new_node(str(module.__ttnn_tracer_name__))
        outputs = add_call(node, operation, inputs, results, duration=seconds)
        return postprocess_return_value(result, outputs)


# -- graphs -----------------------------------------------------------------------------------------------------------


def process_output(output: Any) -> list[Any]:
    """The traced tensors of a model's output."""
    return get_input_tensors(output)


def flatten_graph(graph: networkx.MultiDiGraph) -> networkx.MultiDiGraph:
    """The graph with modules replaced by their graphs."""
    flat = networkx.MultiDiGraph()
    _copy_nodes(graph, flat)
    return flat


def _copy_nodes(graph: networkx.MultiDiGraph, flat: networkx.MultiDiGraph, outside: dict | None = None) -> None:
    """Copy a graph; `outside` maps each input of its module to a node and output."""
    outside = outside or {}
    stands_for: dict[tuple[Node, int], tuple[Node, int]] = {}
    for node in networkx.topological_sort(graph):
        attributes = graph.nodes[node]
        if node in outside:
            stands_for[node, 0] = outside[node]
            continue
        sources = _sources(graph, node, stands_for)
        operation = attributes["operation"]
        if isinstance(operation, TorchModule):
            sources_of = {each.node: source for each, source in zip(operation.inputs, sources)}
            inner = _copy_nodes_of(operation, flat, sources_of)
            stands_for |= {(node, index): source for index, source in enumerate(inner)}
            continue
        flat.add_node(node, **attributes)
        for index, (source, output) in enumerate(sources):
            flat.add_edge(source, node, source_output_index=output, sink_input_index=index)
    graph.graph["stands for"] = stands_for


def _copy_nodes_of(operation: TorchModule, flat: networkx.MultiDiGraph, sources_of: dict) -> list[tuple[Node, int]]:
    _copy_nodes(operation.graph, flat, sources_of)
    stands_for = operation.graph.graph.pop("stands for")
    return [
        stands_for.get((each.node, each.output_index), (each.node, each.output_index)) for each in operation.outputs
    ]


def _sources(graph: networkx.MultiDiGraph, node: Node, stands_for: dict) -> list[tuple[Node, int]]:
    edges = sorted(graph.in_edges(node, data=True), key=lambda edge: edge[2]["sink_input_index"])
    found = [(source, facts["source_output_index"]) for source, _, facts in edges]
    return [stands_for.get(each, each) for each in found]


def get_graph(*function_args: Any, flatten: bool = False, **function_kwargs: Any) -> networkx.MultiDiGraph:
    """The graph of the tensors; `flatten` expands modules."""
    graph = networkx.MultiDiGraph()
    for tensor in process_output([list(function_args), function_kwargs]):
        if tensor.graph is not graph:
            graph = networkx.compose(graph, tensor.graph)
    return flatten_graph(graph) if flatten else graph


def duration_to_string(duration: float) -> str:
    """Seconds in a suitable unit."""
    for unit, size in (("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3)):
        if duration < size * 1e3:
            return f"{duration / size:.1f} {unit}"
    return f"{duration:.1f} s"
