"""One operation on views of storages as a functional ATen graph, as AOTAutograd captures a model.

The inputs of the graph are whole storages. Writes become new values of storages: a write through a view is a scatter
into its storage.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from torch_ttnn.compiler.errors import TorchTtnnError
from torch_ttnn.compiler.ir.arguments import mapped
from torch_ttnn.compiler.stages.capture import decompositions
from torch_ttnn.eager.device import registration
from torch_ttnn.eager.views import WHOLE, Chain, Geometry

aten = torch.ops.aten


class NotCaptured(TorchTtnnError):
    """An operation has no graph; the message is the reason."""


class View(NamedTuple):
    """A tensor among the arguments: a view of one of the graph's inputs."""

    slot: int
    chain: Chain = WHOLE


@dataclass
class Captured:
    """The graph; its outputs are the new results, then the new values of storages.

    inputs   fake tensors of its inputs, and their mode
    results  for each result that is new: the number of its tensors if it is a list, else None
    written  the indices of the inputs that the operation writes
    """

    graph_module: torch.fx.GraphModule
    inputs: list[Any]
    fake_mode: FakeTensorMode
    results: list[int | None]
    written: list[int]


def captured(
    function: Callable[..., Any], args: tuple, kwargs: dict[str, Any], inputs: Sequence[Geometry], new: Sequence[int]
) -> Captured:
    """The graph of a call whose arguments have a `View` for each tensor; `new` are the results that are new tensors."""
    results: list[int | None] = []

    def call(*storages: torch.Tensor) -> list[Any]:
        def tensor_of(item: Any) -> Any:
            return item.chain.of(storages[item.slot]) if isinstance(item, View) else item

        made = function(*mapped(args, tensor_of), **mapped(kwargs, tensor_of))
        made = made if isinstance(made, tuple) else (made,)
        results[:] = [len(made[number]) if isinstance(made[number], list) else None for number in new]
        return [leaf for number in new for leaf in _flat(made[number])]

    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with _outside_of_dispatch(), mode, torch.no_grad():
        fakes = [torch.empty_strided(each.size, each.stride, dtype=each.dtype, device="cpu") for each in inputs]
        functional = torch.func.functionalize(call, remove="mutations")
        try:
            graph_module = make_fx(functional, decomposition_table=decompositions(), tracing_mode="real")(*fakes)
        except Exception as error:  # the host runs it, and raises torch's error if it is one of the call
            raise NotCaptured(f"it cannot be captured ({type(error).__name__}: {_first_line(error)})") from error
    graph, written = _with_written_storages(graph_module.graph)
    return Captured(torch.fx.GraphModule(graph_module, graph), fakes, mode, results, written)


@contextlib.contextmanager
def _outside_of_dispatch() -> Iterator[None]:
    """Reset torch's dispatcher: within `__torch_dispatch__` it excludes keys that a capture needs."""
    with torch.inference_mode(False), torch._C._ForceDispatchKeyGuard(*registration.initial_keys()):
        yield


def _flat(made: Any) -> list[Any]:
    return made if isinstance(made, list) else [made]


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0]


def _with_written_storages(graph: torch.fx.Graph) -> tuple[torch.fx.Graph, list[int]]:
    """Return what `copy_` writes into inputs as further outputs."""
    placeholders = graph.find_nodes(op="placeholder")
    written: dict[int, Any] = {}
    for node in graph.find_nodes(op="call_function", target=aten.copy_.default):
        if node.args[0] in placeholders:
            written[placeholders.index(node.args[0])] = node.args[1]
            graph.erase_node(node)
    output = graph.output_node()
    output.args = ((*(output.args[0] or ()), *written.values()),)  # type: ignore[misc]
    return graph, list(written)
