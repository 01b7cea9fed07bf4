"""The calls of compiled programs, with the module and the line of the model that each comes from."""

from __future__ import annotations

import operator
from collections.abc import Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.fx

import torch_ttnn.capture
from torch_ttnn.compiler.ir.arguments import leaves, mapped
from torch_ttnn.compiler.ir.metadata import ORIGIN, PATH, SOURCE, SPEC
from torch_ttnn.compiler.ir.nodes import target_name
from torch_ttnn.compiler.ir.source_lines import module_path, source_line
from torch_ttnn.compiler.runtime.program import Program
from torch_ttnn.perf.calls import Call, Calls, OnHost, Ref, Step
from torch_ttnn.perf.program_walk import Kind, walked
from ttnn_emulator import DataType, Layout, MeshDevice, Tensor
from ttnn_emulator.execution.listeners import HostOperation, Transfer
from ttnn_emulator.profiling.recorder import Origin
from ttnn_emulator.tensors.spec import Spec

_CALLER = str(Path(torch_ttnn.capture.__file__).parent)  # it calls the model and is not part of it
_DTYPES = {
    torch.bfloat16: DataType.BFLOAT16,
    torch.float32: DataType.FLOAT32,
    torch.int32: DataType.INT32,
    torch.uint8: DataType.UINT8,
}


def calls_of(programs: Sequence[Program], device: MeshDevice) -> Calls:
    """The calls of one call of a model: all its programs, one after the other."""
    steps: list[Step] = []
    inputs: dict[Hashable, Spec] = {}
    for program in programs:
        for node, kind in walked(program):
            inputs.update(_inputs(node, kind))
            steps += _steps(node, kind, device)
    return Calls(device.board, steps, inputs, 'on a card with options={"trace": True}')


def _inputs(node: torch.fx.Node, kind: Kind) -> Iterator[tuple[Hashable, Spec]]:
    """Weights, and tensors that are uploaded."""
    if kind in (Kind.INPUT, Kind.UPLOAD):
        yield from ((node, tensor.spec) for tensor in _tensors(node))


def _steps(node: torch.fx.Node, kind: Kind, device: MeshDevice) -> Iterator[Step]:
    if kind is Kind.ON_HOST:
        yield OnHost(
            HostOperation(f"(torch) {target_name(node)}", _host_specs(node.all_input_nodes), _host_specs([node])),
            origin_of(node),
        )
    elif kind is Kind.UPLOAD:
        yield from (Transfer(tensor.spec, device, True) for tensor in _tensors(node))
    elif kind is Kind.DOWNLOAD:
        [read] = _tensors(node.args[0])
        yield Transfer(read.spec, device, False)
    elif kind is Kind.CALL:
        results = _results(SPEC.get(node), node)
        yield Call(PATH[node], mapped(node.args, _ref), mapped(dict(node.kwargs), _ref), results, origin_of(node))


def _tensors(node: Any) -> list[Tensor]:
    """The typed tensors of a node on the device."""
    return [leaf for leaf in leaves(SPEC.get(node)) if isinstance(leaf, Tensor)]


def _ref(leaf: Any) -> Any:
    return Ref(_key(leaf)) if isinstance(leaf, torch.fx.Node) else leaf


def _key(node: torch.fx.Node) -> Hashable:
    """A node, or for an element of a result its node and places."""
    if node.target is operator.getitem:
        return _key(node.args[0]), node.args[1]  # type: ignore[arg-type]
    return node


def _results(typed: Any, key: Hashable) -> Any:
    if isinstance(typed, list | tuple):
        return [_results(each, (key, place)) for place, each in enumerate(typed)]
    return Ref(key) if isinstance(typed, Tensor) else None


def _host_specs(nodes: Iterable[torch.fx.Node]) -> list[Spec]:
    values = [node.meta.get("val") for node in nodes]
    return [
        Spec.of(tuple(value.shape), _DTYPES.get(value.dtype, DataType.FLOAT32), Layout.ROW_MAJOR, on_device=False)
        for value in values
        if isinstance(value, torch.Tensor)
    ]


def origin_of(node: torch.fx.Node) -> Origin:
    """The operation, the line and the module of the model that a node was written for."""
    name = PATH.get(node) or target_name(node)
    origin = ORIGIN.get(node)
    if origin is None:
        return Origin(name, SOURCE.get(node) or "")
    line = source_line(origin)
    return Origin(name, "" if line.startswith(_CALLER) else line, module_path(origin))
