"""The backend `ttnn` of `torch.compile`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
import torch.fx

from torch_ttnn import devices
from torch_ttnn.compiler.frontend import data_dependent
from torch_ttnn.compiler.frontend.dynamo_rules import traces_recurrent_modules
from torch_ttnn.compiler.frontend.kept_on_host import overloads_of
from torch_ttnn.compiler.runtime.announce import warn_of_breaks
from torch_ttnn.compiler.runtime.specialisation import Specialised
from torch_ttnn.compiler.stages.capture import boxed, compile_captured, static_inputs
from torch_ttnn.eager.compiled import dynamo
from torch_ttnn.eager.compiled.device_graph import DeviceGraph
from torch_ttnn.eager.compiled.graphs import is_of_device
from torch_ttnn.options import TorchTtnnOption

if TYPE_CHECKING:
    from torch_ttnn.compiler.frontend.graph_breaks import Missed
    from torch_ttnn.compiler.runtime.program import Program
    from torch_ttnn.tracer.recording import ProgramTracer

dynamo.register()


@traces_recurrent_modules
def backend(
    graph_module: torch.fx.GraphModule, example_inputs: Sequence[Any], *, options: Any = None, **unused: Any
) -> Callable[..., Any]:
    """Compile a captured graph for Tenstorrent hardware; an argument of `torch.compile(model, backend=...)`.

    >>> import torch, torch_ttnn
    >>> model = torch.compile(torch.nn.Linear(8, 4), backend=torch_ttnn.backend)
    >>> with torch.no_grad():
    ...     model(torch.ones(2, 8)).shape
    torch.Size([2, 4])
    """
    chosen = TorchTtnnOption.of(options)
    if chosen.bypass_compile:
        return graph_module.forward
    if chosen.warn:
        warn_of_breaks(graph_module)
    compiler = GraphCompiler(chosen, _tracer(chosen, graph_module))
    return compile_captured(
        graph_module,
        example_inputs,
        forward=compiler.forward,
        backward=compiler.backward,
        inference=compiler.inference,
        whole=overloads_of(chosen.host_ops),
        writes=is_of_device(graph_module),
    )


def _tracer(options: TorchTtnnOption, graph_module: torch.fx.GraphModule) -> ProgramTracer | None:
    """The tracer that records the programs of a graph, if `tracer_option` is set."""
    if options.tracer_option is None:
        return None
    from torch_ttnn.tracer.graphs import model_name
    from torch_ttnn.tracer.recording import ProgramTracer

    return ProgramTracer(options.tracer_option, model_name(graph_module))


def compile(model: Any, *, options: Any = None, **settings: Any) -> Callable[..., Any]:
    """`torch.compile(model, backend="ttnn")` for a module, a function, or an exported program."""
    if isinstance(model, torch.export.ExportedProgram):
        model = model.module()
    return torch.compile(model, backend=backend, options=options, **settings)


class GraphCompiler:
    """Compiles the graphs of one `torch.compile` region with the same options."""

    def __init__(self, options: TorchTtnnOption, tracer: ProgramTracer | None = None) -> None:
        self.options = options
        self.tracer = tracer
        self.device_graphs: list[DeviceGraph] = []

    def inference(self, graph_module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
        return self._compile(graph_module, inputs, static_inputs(), "inference")

    def forward(self, graph_module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
        return self._compile(graph_module, inputs, static_inputs(), "forward")

    def backward(self, graph_module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
        # no static inputs: these are saved activations and weights
        return self._compile(graph_module, inputs, [], "backward")

    def _compile(
        self, graph_module: torch.fx.GraphModule, inputs: Sequence[Any], statics: Sequence[int], kind: str
    ) -> Callable[[list[Any]], Any]:
        if is_of_device(graph_module):
            graph = DeviceGraph(graph_module, inputs, statics, self.options, self._traced(kind, statics), kind)
            self.device_graphs.append(graph)
            graph.release_with_model = self.release
            return boxed(self.device_runner(graph))
        left = data_dependent.left_to_torch(graph_module.graph)
        if left is not None:
            self.tell(left)
            return boxed(data_dependent.run_by_torch(graph_module))
        target = devices.resolve(self.options.device)
        traced = self._traced(kind, statics)
        return boxed(self.runner(Specialised(graph_module, inputs, statics, target, self.options, traced, kind)))

    def _traced(self, kind: str, statics: Sequence[int]) -> Callable[[Program], None] | None:
        if self.tracer is None:
            return None
        return functools.partial(self.tracer.program, "bw" if kind == "backward" else "fw", statics=statics)

    def tell(self, left: Missed) -> None:
        """Tell the user that torch runs a graph, and why."""
        if self.options.warn:
            data_dependent.warn_of(left)

    def release(self) -> None:
        """Free what the programs of this region keep on the device: its model is gone, or has other tensors."""
        for graph in self.device_graphs:
            graph.release()

    def device_runner(self, graph: DeviceGraph) -> Callable[[list[Any]], Any]:
        """The function that runs a graph of tensors on the device."""
        return graph

    def runner(self, specialised: Specialised) -> Callable[[list[Any]], Any]:
        """The function that runs the compiled graph: here the program for its shapes."""
        return specialised
