"""`ttnn.tracer`: torch and ttnn calls as one graph, in the library's slow runtime mode.

Operations are traced by `execution.call_hooks`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from ttnn_emulator.enums import BufferType, Layout
from ttnn_emulator.execution import call_hooks
from ttnn_emulator.execution.operation_table import Operation
from ttnn_emulator.library.tracer import torch_tracer
from ttnn_emulator.library.tracer.nodes import (
    Source,
    TracedTTNNTensor,
    TTNNOperation,
    TTNNTensor,
    new_node,
    source_of,
)
from ttnn_emulator.library.tracer.torch_tracer import (  # noqa: F401  (names of ttnn.tracer)
    TAG_TRACEDTENSOR,
    InputTensorIndex,
    PositionalArgumentName,
    TorchFunction,
    TorchModule,
    TorchModuleInput,
    TorchParameter,
    TorchTensor,
    TracedTorchTensor,
    duration_to_string,
    get_arg_name_value_pairs,
    get_graph,
    get_input_tensors,
)
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.tensor import Tensor

ENABLE_TRACER = False


def create_ttnn_input_tensor(tensor: Tensor) -> Tensor:
    """A ttnn tensor from outside, as an input node of a graph."""
    node, graph = new_node("ttnn_input"), torch_tracer._stack[-1]
    graph.add_node(node, operation=TTNNTensor(), **_facts([tensor]))
    return TracedTTNNTensor(tensor, graph=graph, node=node, output_index=0)  # type: ignore[return-value]


def _facts(tensors: list[Any]) -> dict[str, tuple]:
    return {
        "shapes": tuple(tuple(tensor.shape) for tensor in tensors),
        "dtypes": tuple(tensor.dtype for tensor in tensors),
        "layouts": tuple(tensor.layout for tensor in tensors),
        "memory_configs": tuple(tensor.memory_config() if isinstance(tensor, Tensor) else None for tensor in tensors),
    }


# -- arguments and results --------------------------------------------------------------------------------------------


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor | torch.Tensor)


def preprocess_args_and_kwargs(*function_args: Any, **function_kwargs: Any) -> tuple[list[Any], dict[str, Any]]:
    """Arguments with every tensor traced, ttnn tensors as their sources."""

    def traced(tensor: Any) -> Any:
        if isinstance(tensor, Tensor):
            return source_of(tensor if isinstance(tensor, TracedTTNNTensor) else create_ttnn_input_tensor(tensor))
        return tensor if torch_tracer.is_traced(tensor) else torch_tracer.create_input_tensor(tensor)

    args = [torch_tracer._mapped(arg, traced, _is_tensor) for arg in function_args]
    return args, {name: torch_tracer._mapped(arg, traced, _is_tensor) for name, arg in function_kwargs.items()}


def preprocess_return_value(return_value: Any) -> list[Any]:
    """The tensors of a result, in order."""
    found: list[Any] = []
    torch_tracer._mapped(return_value, found.append, _is_tensor)
    return found


def postprocess_return_value(return_value: Any, output_tensors: list[Any]) -> Any:
    """A result with its tensors replaced, in order."""
    return torch_tracer._mapped(return_value, lambda _: output_tensors.pop(0), _is_tensor)


def _plain(value: Any) -> Any:
    """An argument as operations take it."""
    if isinstance(value, Source):
        return value.tensor
    return value.as_subclass(torch.Tensor) if isinstance(value, TracedTorchTensor) else value


def trace_ttnn_operation(pretty_operation_name: str, operation: Any) -> Any:
    """Wrap an operation so that its calls are added to the graph."""

    def call_wrapper(*function_args: Any, **function_kwargs: Any) -> Any:
        if not ENABLE_TRACER or torch_tracer._paused:
            return operation(*function_args, **function_kwargs)
        args, kwargs = preprocess_args_and_kwargs(*function_args, **function_kwargs)
        inputs = get_input_tensors([args, kwargs])
        with torch_tracer.paused():
            made_of = [_given(arg) for arg in args], {name: _given(arg) for name, arg in kwargs.items()}
            result = operation(*made_of[0], **made_of[1])
            results = preprocess_return_value(result)
            pairs = _pairs(operation, args, kwargs)
            node, graph = new_node(pretty_operation_name), torch_tracer.join_graphs(inputs)
            graph.add_node(node, operation=TTNNOperation(pretty_operation_name, operation, pairs), **_facts(results))
            torch_tracer.add_edges(graph, node, inputs)
            outputs = [
                (TracedTTNNTensor if isinstance(tensor, Tensor) else TracedTorchTensor)(  # type: ignore[operator]
                    tensor, graph=graph, node=node, output_index=index
                )
                for index, tensor in enumerate(results)
            ]
            return postprocess_return_value(result, outputs)

    return call_wrapper


def _given(argument: Any) -> Any:
    return torch_tracer._mapped(argument, _plain, torch_tracer.is_traced)


def _pairs(operation: Any, args: list[Any], kwargs: dict[str, Any]) -> torch_tracer.Pairs:
    edges = iter(range(len(get_input_tensors([args, kwargs]))))

    def numbered(value: Any) -> Any:
        return torch_tracer._mapped(value, lambda _: InputTensorIndex(next(edges)), torch_tracer.is_traced)

    pairs: torch_tracer.Pairs = [(PositionalArgumentName(index), numbered(arg)) for index, arg in enumerate(args)]
    return [*pairs, *((name, numbered(arg)) for name, arg in kwargs.items())]


def _traced_call(operation: Operation, proceed: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    return trace_ttnn_operation(operation.name, proceed)(*args, **kwargs)


# -- on and off -------------------------------------------------------------------------------------------------------


def _set_enabled(enabled: bool) -> None:
    global ENABLE_TRACER
    from ttnn_emulator.namespaces import namespace

    ENABLE_TRACER = enabled
    vars(namespace("ttnn.tracer"))["ENABLE_TRACER"] = enabled
    (call_hooks.add if enabled else call_hooks.remove)(_traced_call)


def enable_tracing() -> None:
    """Start tracing, which the library refuses in its fast runtime mode."""
    if sys.modules["ttnn_emulator"].CONFIG.enable_fast_runtime_mode:
        raise ValueError("Tracing is not supported in fast runtime mode.")
    if ENABLE_TRACER:
        raise ValueError("Tracing is already enabled.")
    torch_tracer.enable_tracing()
    _set_enabled(True)


def disable_tracing() -> None:
    """Stop tracing; no error if it was not enabled."""
    _set_enabled(False)
    torch_tracer.disable_tracing()


def is_tracing_enabled() -> bool:
    return ENABLE_TRACER and torch_tracer.is_tracing_enabled()


@contextmanager
def trace() -> Iterator[None]:
    """Trace the block."""
    enable_tracing()
    try:
        yield
    finally:
        disable_tracing()


# -- graphs -----------------------------------------------------------------------------------------------------------


def layout_to_string(layout: Any) -> str:
    """A layout for a diagram; empty without one."""
    if layout is None:
        return ""
    return f"Layout: {layout.name}" if isinstance(layout, Layout) else str(layout)


def memory_config_to_string(memory_config: MemoryConfig | None) -> str:
    """A memory config for a diagram; empty without one."""
    if memory_config is None:
        return ""
    if memory_config.buffer_type not in (BufferType.DRAM, BufferType.L1):
        raise ValueError(f"a tensor cannot be in {memory_config.buffer_type}")
    lines = [f"Memory: {memory_config.buffer_type.name}, {memory_config.memory_layout.name}"]
    shards = memory_config.shard_spec
    if shards is not None:
        lines += [
            f"Shard Grid: {shards.grid}",
            f"Shard Shape: {list(shards.shape)}",
            f"Shard Orientation: {shards.orientation.name}",
        ]
    return "\n".join(lines)
