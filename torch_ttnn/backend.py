"""What `torch.compile(model, backend="ttnn")` calls."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.fx
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition

from torch_ttnn import devices
from torch_ttnn.compiler.capture import decompositions, static_inputs
from torch_ttnn.compiler.specialise import Specialised
from torch_ttnn.options import TorchTtnnOption

log = logging.getLogger("torch_ttnn")


def backend(
    graph_module: torch.fx.GraphModule, example_inputs: Sequence[Any], *, options: Any = None, **unused: Any
) -> Callable[..., Any]:
    """Compile a captured graph for Tenstorrent hardware; given to `torch.compile(model, backend=...)`.

    >>> import torch, torch_ttnn
    >>> model = torch.compile(torch.nn.Linear(8, 4), backend=torch_ttnn.backend)
    >>> with torch.no_grad():
    ...     model(torch.ones(2, 8)).shape
    torch.Size([2, 4])
    """
    chosen = TorchTtnnOption.of(options)
    if chosen.bypass_compile:
        return graph_module.forward
    compiler = GraphCompiler(chosen)
    return aot_autograd(
        fw_compiler=compiler.forward,
        bw_compiler=compiler.backward,
        inference_compiler=compiler.forward,
        decompositions=decompositions(),
        partition_fn=min_cut_rematerialization_partition,
    )(graph_module, example_inputs)


def compile(model: Any, *, options: Any = None, **settings: Any) -> Callable[..., Any]:
    """`torch.compile(model, backend="ttnn")` for a module, a function, or a program of `torch.export`."""
    if isinstance(model, torch.export.ExportedProgram):
        model = model.module()
    return torch.compile(model, backend=backend, options=options, **settings)


class GraphCompiler:
    """Compiles the graphs of one `torch.compile` region with the same options."""

    def __init__(self, options: TorchTtnnOption) -> None:
        self.options = options

    def forward(self, graph_module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
        return self._compile(graph_module, inputs, static_inputs())

    def backward(self, graph_module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
        return self._compile(graph_module, inputs, [])  # its inputs are activations and weights as they were then

    def _compile(
        self, graph_module: torch.fx.GraphModule, inputs: Sequence[Any], statics: Sequence[int]
    ) -> Callable[[list[Any]], Any]:
        target = devices.resolve(self.options.device)
        runner = Specialised(graph_module, inputs, statics, target, self.options)

        def run(args: list[Any]) -> Any:
            inputs = list(args)
            args.clear()
            return runner(inputs)

        run._boxed_call = True  # type: ignore[attr-defined]
        return run
