"""Compiles every graph of one call of a model with the backend itself; torch computes the inputs of later graphs.

`explain`, `check` and `export_code` use this, so they see the same programs as `torch.compile`.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.fx
from torch._dynamo.pgo import get_code_state
from torch._functorch import config as functorch_config

from torch_ttnn.backend import GraphCompiler
from torch_ttnn.capture.meta_tensors import addressed, addressed_like
from torch_ttnn.capture.model_call import ModelCall
from torch_ttnn.compiler.errors import TorchTtnnError
from torch_ttnn.compiler.frontend.dynamo_rules import traces_recurrent_modules
from torch_ttnn.compiler.frontend.graph_breaks import DynamoWatch, Missed
from torch_ttnn.compiler.frontend.kept_on_host import overloads_of
from torch_ttnn.compiler.runtime.program import Program
from torch_ttnn.compiler.runtime.specialisation import Specialised
from torch_ttnn.compiler.stages.capture import compile_captured
from torch_ttnn.eager.compiled.device_graph import DeviceGraph
from torch_ttnn.eager.compiled.graphs import is_of_device
from torch_ttnn.options import TorchTtnnOption

FORWARD, BACKWARD, INFERENCE = "forward", "backward", "inference"
UNKNOWN_VALUES = (
    "The model has no values and was captured as several graphs: zeros replaced the results of each graph, "
    "so branches that depend on values may differ."
)
NOTHING = "nothing was compiled: the model has no operation on tensors that torch.compile captures"


@traces_recurrent_modules
class Captured:
    """A backend that compiles every graph, records programs with the inputs of their calls, and runs with torch."""

    def __init__(self, options: TorchTtnnOption, from_host: bool = False) -> None:
        self.options = options
        self.from_host = from_host
        self.without_values = False
        self.found: list[tuple[str, Program]] = []
        self.calls: list[tuple[str, Program, list[Any]]] = []
        self.graphs = 0
        self.left_to_torch: list[Missed] = []  # graphs without a program
        self.watch = DynamoWatch()

    @property
    def missed(self) -> list[Missed]:
        """What has no program: code that Dynamo left to Python, and graphs that torch runs."""
        return [*self.watch.missed, *self.left_to_torch]

    @property
    def notes(self) -> list[str]:
        return [UNKNOWN_VALUES] if self.without_values and self.graphs > 1 else []

    def __call__(self, graph_module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        self.watch.update()
        self.graphs += 1
        number = f" {self.graphs}" if self.graphs > 1 else ""
        return compile_captured(
            graph_module,
            inputs,
            forward=_Collecting(self, f"{FORWARD}{number}").forward,
            backward=_Collecting(self, f"{BACKWARD}{number}").backward,
            inference=_Collecting(self, f"{INFERENCE}{number}").inference,
            whole=overloads_of(self.options.host_ops),
            writes=is_of_device(graph_module),
        )


def capture_call(call: ModelCall, from_host: bool = False) -> Captured:
    """Compile every graph of a call; `from_host`: tensors on the device as if they were on the CPU."""
    options = dataclasses.replace(call.options, cache_dir="", bypass_compile=False, export_code=None, warn=False)
    captured = Captured(options, from_host)
    stand_ins = addressed(call.model, call.args, call.kwargs)
    with stand_ins as (args, kwargs, captured.without_values), _separate_history(), captured.watch:
        torch.compile(_fresh_caller(), backend=captured, **_isolation())(call.model, args, kwargs)
    if not captured.found:
        raise TorchTtnnError("\n".join([NOTHING, *[f"  {each}" for each in captured.missed]]))
    return captured


def capture(
    model: Any,
    args: tuple = (),
    kwargs: dict[str, Any] | None = None,
    options: Any = None,
    from_host: bool = False,
) -> Captured:
    """Compile every graph of a call of this model."""
    return capture_call(ModelCall.of(model, args=args, kwargs=kwargs, options=options), from_host)


@contextmanager
def backward_compiled() -> Iterator[None]:
    """Within this block, backward graphs are compiled with their forward graphs, before any gradient is computed."""
    with functorch_config.patch(force_non_lazy_backward_lowering=True):
        yield


def _isolation() -> dict[str, Any]:
    """Settings for a separate recompile limit, in versions of torch that have one."""
    return {"isolate_recompiles": True} if "isolate_recompiles" in inspect.signature(torch.compile).parameters else {}


@contextmanager
def _separate_history() -> Iterator[None]:
    """Hide the sizes of other calls from Dynamo, which would make sizes symbolic, and this call's sizes from others."""
    state = get_code_state()
    saved = dict(state)
    state.clear()
    try:
        yield
    finally:
        state.clear()
        state.update(saved)


def _fresh_caller() -> Callable[..., Any]:
    """A function with a new code object: Dynamo caches by code object, and must find nothing."""

    def call(model: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        return model(*args, **kwargs)

    return types.FunctionType(call.__code__.replace(), call.__globals__, "call")


class _Collecting(GraphCompiler):
    """Compiles like the backend, but runs with torch."""

    def __init__(self, captured: Captured, name: str) -> None:
        super().__init__(captured.options)
        self.captured = captured
        self.name = name

    def tell(self, left: Missed) -> None:
        self.captured.left_to_torch.append(left)

    def device_runner(self, graph: DeviceGraph) -> Callable[[list[Any]], Any]:
        captured, name = self.captured, self.name
        graph.from_host = captured.from_host

        def run(inputs: list[Any]) -> Any:
            entry = graph.program_for(inputs)
            if not any(entry.program is each for _, each in captured.found):
                captured.found.append((name, entry.program))
            captured.calls.append((name, entry.program, [_on_cpu(each) for each in inputs]))
            return entry.on_host(inputs)

        return run

    def runner(self, specialised: Specialised) -> Callable[[list[Any]], Any]:
        captured, name = self.captured, self.name
        if specialised.only is not None:
            captured.found.append((name, specialised.only))

        def run(given: list[Any]) -> Any:
            program = specialised.program_for(given)
            if not any(program is each for _, each in captured.found):
                captured.found.append((name, program))
            arguments = list(specialised.arguments(given))
            captured.calls.append((name, program, arguments))
            outputs = _outputs_without_values(program) if captured.without_values else program.on_host(arguments)
            return specialised.results(given, outputs)

        return run


def _on_cpu(item: Any) -> Any:
    return item.cpu() if isinstance(item, torch.Tensor) else item


def _outputs_without_values(program: Program) -> list[Any]:
    outputs: Any = program.captured.graph.output_node().args[0]
    return [addressed_like(each.meta["val"]) if _is_tensor(each) else each for each in outputs]


def _is_tensor(item: Any) -> bool:
    return isinstance(item, torch.fx.Node) and isinstance(item.meta.get("val"), torch.Tensor)
