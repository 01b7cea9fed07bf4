"""The backend `torch_stat` of `torch.compile`: records every graph and runs it with torch."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
import torch.fx
from torch._decomp import core_aten_decompositions
from torch._functorch.partitioners import default_partition
from torch.fx.graph import _BoxedCodeGen

from torch_ttnn.compiler.stages.capture import compile_captured, static_inputs
from torch_ttnn.tracer.calls import UnknownSize
from torch_ttnn.tracer.graphs import model_name
from torch_ttnn.tracer.options import TracerOption
from torch_ttnn.tracer.recording import Recording
from torch_ttnn.tracer.records import BACKWARD, FORWARD

TABLES: dict[str, Callable[[], dict[Any, Callable[..., Any]]]] = {"none": dict, "core": core_aten_decompositions}


def backend(
    graph_module: torch.fx.GraphModule | None = None,
    example_inputs: Sequence[Any] = (),
    *,
    options: Any = None,
    mode: Any = None,
    **fields: Any,
) -> Callable[..., Any]:
    """Record the operations of a captured graph and run it with torch; a backend of `torch.compile`.

    Called with fields of `TracerOption` only, it returns a backend with these options:

    >>> import tempfile, torch, torch_ttnn
    >>> folder = tempfile.TemporaryDirectory()
    >>> traced = torch_ttnn.tracer.backend(model_name="linear", out_folder=folder.name)
    >>> model = torch.compile(torch.nn.Linear(8, 4), backend=traced)
    >>> model(torch.ones(2, 8)).sum().backward()
    >>> import os; sorted(os.listdir(f"{folder.name}/raw"))
    ['bw_linear_0.json', 'fw_linear_0.json']

    A graph is recorded when it first runs, so a backward graph that never runs is not recorded.
    """
    if fields:
        if options is not None:
            raise TypeError("pass either `options` or its fields, not both")
        options = fields
    chosen = TracerOption.of(options)
    if graph_module is None:
        return functools.partial(backend, options=chosen)
    _require_original(chosen)
    traced = TracedGraph(chosen, Recording(chosen, model_name(graph_module)))
    return compile_captured(
        graph_module,
        example_inputs,
        forward=traced.forward,
        backward=traced.backward,
        inference=traced.forward,
        table=TABLES[chosen.decompositions](),
        partition=default_partition,  # as in eager torch: no recomputation
    )


def _require_original(option: TracerOption) -> None:
    if option.trace_modi or not option.trace_orig:
        raise ValueError(
            "trace_modi records compiled programs, and torch_stat does not compile: use "
            "torch.compile(model, backend='ttnn', options={'tracer_option': {'trace_modi': True}}); "
            "with torch_stat leave trace_orig=True and trace_modi=False"
        )


class TracedGraph:
    """One Dynamo graph: its forward and, once that has run, its backward."""

    def __init__(self, option: TracerOption, recording: Recording) -> None:
        self.option = option
        self.recording = recording

    def forward(self, graph_module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
        return recorded(graph_module, self.recording, FORWARD, static_inputs())

    def backward(self, graph_module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
        return recorded(graph_module, self.recording, BACKWARD, ())


def recorded(
    graph_module: torch.fx.GraphModule, recording: Recording, phase: str, statics: Iterable[int]
) -> Callable[[list[Any]], Any]:
    """Runs a graph with torch and records it on the first run."""
    run = _boxed(graph_module)
    lock = threading.Lock()
    is_recorded = False

    def run_recorded(args: list[Any]) -> Any:
        nonlocal is_recorded
        with lock:
            if not is_recorded:
                _record(graph_module, recording, phase, statics, args)
                is_recorded = True
        return run(args)

    run_recorded._boxed_call = True  # type: ignore[attr-defined]
    return run_recorded


def _boxed(graph_module: torch.fx.GraphModule) -> Callable[[list[Any]], Any]:
    """The graph as a function of a list that it empties while it runs: activations are freed at their last use."""
    graph_module.graph.set_codegen(_BoxedCodeGen())
    graph_module.recompile()
    return graph_module.forward


def _record(
    graph_module: torch.fx.GraphModule, recording: Recording, phase: str, statics: Iterable[int], args: Sequence[Any]
) -> None:
    try:
        recording.graph(phase, graph_module, statics)
    except UnknownSize:
        _Measuring(graph_module).measure(args)
        recording.graph(phase, graph_module, statics)


class _Measuring(torch.fx.Interpreter):
    """Runs a graph to determine sizes that depend on values, such as that of `nonzero`."""

    def measure(self, args: Sequence[Any]) -> None:
        state = torch.random.get_rng_state()  # the actual run draws the same random numbers
        try:
            with torch.no_grad():
                self.run(*args, enable_io_processing=False)
        finally:
            torch.random.set_rng_state(state)

    def run_node(self, node: torch.fx.Node) -> Any:
        result = super().run_node(node)
        if node.op != "output":
            node.meta["val"] = torch.utils._pytree.tree_map_only(torch.Tensor, _without_values, result)
        return result


def _without_values(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
