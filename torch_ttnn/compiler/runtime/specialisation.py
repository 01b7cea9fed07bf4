"""Programs of one captured graph, one per set of concrete shapes, in a bounded cache."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from torch_ttnn.compiler.frontend.symbolic_numbers import Numbers
from torch_ttnn.compiler.pipeline import Compilation, compile_graph
from torch_ttnn.compiler.runtime.announce import announce
from torch_ttnn.compiler.runtime.program import Program
from torch_ttnn.devices import Target
from torch_ttnn.options import TorchTtnnOption

log = logging.getLogger("torch_ttnn")

Key = tuple


class Specialised:
    """Runs a graph with the program for the shapes of the inputs."""

    def __init__(
        self,
        graph_module: torch.fx.GraphModule,
        inputs: Sequence[Any],
        statics: Sequence[int],
        target: Target,
        options: TorchTtnnOption,
        traced: Callable[[Program], None] | None = None,
        kind: str = "inference",
    ) -> None:
        self.graph_module = graph_module
        self.statics = statics
        self.target = target
        self.options = options
        self.traced = traced  # called for every program
        self.kind = kind  # "inference" or, in training, "forward" or "backward"
        self.recompiles = 0
        self._programs: OrderedDict[Key, Program] = OrderedDict()
        self._lock = threading.Lock()
        self.is_dynamic = any(is_symbolic(each) for each in inputs)
        self.only: Program | None = None  # the one program of a graph whose shapes do not change
        if self.is_dynamic:
            self.numbers = Numbers(graph_module)
        else:
            self.only = self._compile(graph_module, inputs)

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        if self.only is not None:
            return self.only(inputs)
        return self.results(inputs, self.program_for(inputs)(self.arguments(inputs)))

    def arguments(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """The arguments of the program for these inputs: symbolic numbers are appended as tensors."""
        return inputs if self.only is not None else [*inputs, *self.numbers.operands(inputs)]

    def results(self, inputs: Sequence[Any], outputs: list[Any]) -> list[Any]:
        """The outputs of the graph from those of its program: symbolic numbers are computed here."""
        return outputs if self.only is not None else self.numbers.results(inputs, outputs)

    def program_for(self, inputs: Sequence[Any]) -> Program:
        """The program for the shapes of these inputs, compiled at their first use."""
        if self.only is not None:
            return self.only
        key = tuple([self._key(number, each) for number, each in enumerate(inputs)])
        with self._lock:
            found = self._programs.get(key)
            if found is not None:
                self._programs.move_to_end(key)
                return found
            found = self._programs[key] = self._compile(*concrete(self.numbers.graph_module, self.arguments(inputs)))
            self.recompiles += 1
            if len(self._programs) > self.options.max_programs:
                self.options.forget(self._programs.popitem(last=False)[1])  # also frees its weights on the device
                log.warning(
                    "a graph was compiled %d times for different shapes, and only %d programs are kept: pad inputs to "
                    "a few sizes, or raise the option max_programs",
                    self.recompiles,
                    self.options.max_programs,
                )
            return found

    def _key(self, number: int, item: Any) -> Any:
        if isinstance(item, torch.Tensor):
            return tuple(item.shape)
        return type(item) if number in self.numbers.places else item

    def _compile(self, graph_module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Program:
        fake_mode = next((each.fake_mode for each in inputs if hasattr(each, "fake_mode")), None)
        compilation = Compilation(graph_module, self.statics, self.target, self.options, fake_mode or FakeTensorMode())
        program = compile_graph(compilation)
        program.kind = self.kind
        self.options.keep(program)
        announce(program, self.options.compiled, self.options)
        if self.traced is not None:
            self.traced(program)
        return program


def is_symbolic(item: Any) -> bool:
    if isinstance(item, torch.Tensor):
        return any(isinstance(size, torch.SymInt) for size in (*item.shape, *item.stride(), item.storage_offset()))
    return isinstance(item, torch.SymInt | torch.SymFloat | torch.SymBool)


def concrete(graph_module: torch.fx.GraphModule, inputs: Sequence[Any]) -> tuple[torch.fx.GraphModule, list[Any]]:
    """The graph, retraced for the concrete sizes of these inputs."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    fakes = [mode.from_tensor(each.detach()) if isinstance(each, torch.Tensor) else each for each in inputs]
    with mode, torch.no_grad():
        traced = make_fx(torch.fx.Interpreter(graph_module).run, tracing_mode="real")(*fakes)
    return traced, fakes
