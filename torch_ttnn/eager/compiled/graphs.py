"""Captured graphs of tensors on `ttnn`, rewritten as graphs of the CPU, which the compiler's stages work on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_map

aten = torch.ops.aten
HOST = torch.device("cpu")


@dataclass
class Rewritten:
    """A graph on the CPU, and what it was on the device.

    inputs   whether each input is on `ttnn`
    results  whether each result is, in front of the new values of inputs
    written  the indices of the inputs whose new values are the last outputs
    """

    graph_module: torch.fx.GraphModule
    inputs: list[bool]
    results: list[bool]
    written: list[int]


def is_of_device(graph_module: torch.fx.GraphModule) -> bool:
    """Whether a graph has a value on `ttnn`, before or after AOTAutograd."""
    for node in graph_module.graph.nodes:
        val = node.meta.get("val", node.meta.get("example_value"))
        for each in val if isinstance(val, tuple | list) else (val,):
            if isinstance(each, torch.Tensor) and each.device.type == "ttnn":
                return True
    return False


def on_host(graph_module: torch.fx.GraphModule, mode: FakeTensorMode) -> Rewritten:
    """Rewrite a graph with concrete sizes. Writes into inputs become outputs."""
    graph = torch.fx.Graph()
    copies: dict[torch.fx.Node, torch.fx.Node] = {}
    result = graph.graph_copy(graph_module.graph, copies)
    placeholders = graph_module.graph.find_nodes(op="placeholder")
    outputs = tuple(graph_module.graph.output_node().args[0])  # type: ignore[arg-type]
    graph.output(result)
    annotated = _Vals(mode)
    for node, copy in copies.items():
        copy.meta = {**node.meta}
        if "val" in node.meta:
            copy.meta["val"] = annotated.of(node.meta["val"])
        copy.args, copy.kwargs = tree_map(_without_device, (copy.args, copy.kwargs), is_leaf=_is_node)
    graph.output_node().meta = {**graph_module.graph.output_node().meta}
    made = Rewritten(
        torch.fx.GraphModule(graph_module, graph),
        [_is_on_device(node.meta.get("val")) for node in placeholders],
        [isinstance(node, torch.fx.Node) and _is_on_device(node.meta.get("val")) for node in outputs],
        [],
    )
    made.written = _writes_as_outputs(graph)
    made.graph_module.graph = graph
    return made


def _is_node(item: Any) -> bool:
    return isinstance(item, torch.fx.Node)


def _without_device(item: Any) -> Any:
    return HOST if isinstance(item, torch.device) else item


def _is_on_device(val: Any) -> bool:
    return isinstance(val, torch.Tensor) and val.device.type == "ttnn"


def written_inputs(graph: torch.fx.Graph) -> dict[int, list[torch.fx.Node]]:
    """The writes into inputs, by the index of the input."""
    placeholders = graph.find_nodes(op="placeholder")
    found: dict[int, list[torch.fx.Node]] = {}
    for node in graph.find_nodes(op="call_function", target=aten.copy_.default):
        if node.args[0] in placeholders:
            found.setdefault(placeholders.index(node.args[0]), []).append(node)
    return found


def _writes_as_outputs(graph: torch.fx.Graph) -> list[int]:
    """Append what is written into inputs to the outputs, in place of the writes."""
    written: dict[int, Any] = {}
    for number, nodes in written_inputs(graph).items():
        for node in nodes:
            written[number] = node.args[1]
            node.replace_all_uses_with(node.args[1])  # type: ignore[arg-type]
            graph.erase_node(node)
    output = graph.output_node()
    output.args = ((*output.args[0], *written.values()),)  # type: ignore[misc]
    return list(written)


class _Vals:
    """Fake tensors of the CPU in place of those on the device; those that shared storage still do."""

    def __init__(self, mode: FakeTensorMode) -> None:
        self._mode = mode
        self._storages: dict[Any, torch.Tensor] = {}
        self._kept: list[torch.Tensor] = []  # an address identifies a storage only while it lives

    def of(self, val: Any) -> Any:
        with self._mode:
            return tree_map(self._of_tensor, val)

    def _of_tensor(self, val: Any) -> Any:
        if not isinstance(val, torch.Tensor) or val.device.type != "ttnn":
            return val
        storage = val.untyped_storage()
        key = storage._cdata, val.dtype
        whole = self._storages.get(key)
        if whole is None:
            self._kept.append(val)
            length = _reach(val)
            whole = self._storages[key] = torch.empty(
                max(length, storage.nbytes() // val.itemsize), dtype=val.dtype, device=HOST
            )
        return whole.as_strided(val.shape, val.stride(), val.storage_offset())


def _reach(val: torch.Tensor) -> int:
    if not val.numel():
        return 0
    return 1 + int(val.storage_offset()) + sum((size - 1) * stride for size, stride in zip(val.shape, val.stride()))
