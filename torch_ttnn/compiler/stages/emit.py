"""Emits a program as plain Python: `ttnn` calls, one per line, each value deleted after its last use."""

from __future__ import annotations

import enum
import functools
import itertools
import linecache
import operator
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
import torch.fx

import ttnn_emulator
from torch_ttnn.compiler.errors import CompileError
from torch_ttnn.compiler.frontend.higher_order import CALLS, HigherOrderCall
from torch_ttnn.compiler.fusion import composites
from torch_ttnn.compiler.fusion.composites import is_composite
from torch_ttnn.compiler.ir.arguments import DeviceMarker
from torch_ttnn.compiler.ir.metadata import NUMBER, ORIGIN, PATH
from torch_ttnn.compiler.ir.source_lines import module_path, stack_frames
from ttnn_emulator.library.graph.call_records import FRAMES_OF

INDENT = "    "


def forward_source(graph: torch.fx.Graph, weights: dict[torch.fx.Node, int], comments: bool = False) -> str:
    """The source of the function that runs on every call.

    It takes the library, the device, and the prepared weights and inputs as lists, and returns the outputs.
    """
    return function_source("forward(ttnn, device, weights, inputs)", list(graph.nodes), weights, comments)


def function_source(
    signature: str,
    nodes: Sequence[torch.fx.Node],
    weights: dict[torch.fx.Node, int],
    comments: bool = False,
    kept: Sequence[torch.fx.Node] = (),
) -> str:
    """These nodes as a function. Values of other nodes are assumed to be in scope; those in `kept` are not deleted."""
    lines = [f"def {signature}:"]
    last_use = last_uses(nodes)
    module = ""
    for node in nodes:
        if comments and node.op == "call_function":
            origin = ORIGIN.get(node)
            path = module_path(origin) if origin is not None else ""
            if path and path != module:
                module = path
                lines.append(f"{INDENT}# {path}")
        line = statement(node, weights)
        if line:
            lines.append(INDENT + line)
        dead = [each.name for each in last_use.get(node, ()) if each is not node and each not in kept]
        if dead and node.op != "output":
            lines.append(f"{INDENT}del {', '.join(dead)}")
    return "\n".join(lines) + "\n"


def statement(node: torch.fx.Node, weights: dict[torch.fx.Node, int]) -> str:
    if node.op == "placeholder":
        if node in weights:
            return f"{node.name} = weights[{weights[node]}]"
        return f"{node.name} = inputs[{NUMBER[node]}]"
    if node.op == "output":
        return f"return {literal(tuple(node.args[0]))}"  # type: ignore[arg-type]
    if node.op == "call_function":
        return f"{node.name} = {call(node)}"
    raise CompileError(f"a program has no {node.op} node")


def call(node: torch.fx.Node) -> str:
    if node.target is operator.getitem:
        return f"{literal(node.args[0])}[{node.args[1]!r}]"
    return call_text(function_name(node), node.args, node.kwargs)


def call_text(
    function: str, args: Iterable[Any], kwargs: Mapping[str, Any], write: Callable[[Any], str] | None = None
) -> str:
    """A call as Python source; `write` formats the arguments, by default as literals."""
    write = write or literal
    arguments = [write(item) for item in args]
    arguments += [f"{name}={write(item)}" for name, item in kwargs.items()]
    return f"{function}({', '.join(arguments)})"


def function_name(node: torch.fx.Node) -> str:
    path = PATH.get(node)
    if path:
        return path
    if isinstance(node.target, torch._ops.OpOverload):
        return f"torch.ops.{node.target}"
    if is_composite(node.target):
        return f"composites.{node.target.__name__}"  # type: ignore[union-attr]
    if isinstance(node.target, HigherOrderCall):
        return f"higher_order[{node.target.number}]"
    if isinstance(node.target, torch._ops.HigherOrderOperator):
        raise CompileError(
            f"{node.target} cannot be written as source: its arguments are graphs, or it writes to its arguments"
        )
    raise CompileError(f"no name is known for {node.target!r}")


def last_uses(nodes: Sequence[torch.fx.Node]) -> dict[torch.fx.Node, list[torch.fx.Node]]:
    """For each node, the values whose last use it is."""
    seen: set[torch.fx.Node] = set()
    last: dict[torch.fx.Node, list[torch.fx.Node]] = {}
    own = set(nodes)
    for node in reversed(nodes):
        for used in node.all_input_nodes:
            if used not in seen and used in own:
                seen.add(used)
                last.setdefault(node, []).append(used)
    return last


_numbers = itertools.count(1)


def compiled(source: str, name: str, nodes: Iterable[torch.fx.Node] = ()) -> Callable[..., Any]:
    """Compile a source and return its function `name`; tracebacks show its lines.

    Profilers of the device show the lines of the model that its `nodes` come from.
    """
    path = f"<torch_ttnn program {next(_numbers)}>"
    linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)
    namespace: dict[str, Any] = {"torch": torch, "composites": composites, "higher_order": CALLS}
    namespace[FRAMES_OF] = functools.partial(_frames, source.splitlines(), {node.name: node for node in nodes})
    exec(compile(source, path, "exec"), namespace)
    return namespace[name]


def _frames(lines: Sequence[str], nodes: Mapping[str, torch.fx.Node], _: Any, number: int) -> list[str]:
    """The frames of the model that a line of a compiled source was written for."""
    node = nodes.get(lines[number - 1].partition(" = ")[0].strip())
    origin = None if node is None else ORIGIN.get(node)
    return [] if origin is None else stack_frames(origin)


def failing_line(error: BaseException) -> str:
    """The line of a compiled source in the traceback of an error, or an empty string."""
    found = ""
    for frame, number in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename.startswith("<torch_ttnn program"):
            found = linecache.getline(frame.f_code.co_filename, number)
    return found


# -- literals ---------------------------------------------------------------------------------------------------------

_NAMED_DTYPES = {member: f"ttnn.{member.name.lower()}" for member in ttnn_emulator.DataType}
_NAMED_LAYOUTS = {
    ttnn_emulator.TILE_LAYOUT: "ttnn.TILE_LAYOUT",
    ttnn_emulator.ROW_MAJOR_LAYOUT: "ttnn.ROW_MAJOR_LAYOUT",
}


def literal(item: Any) -> str:
    """An argument as Python source."""
    if isinstance(item, torch.fx.Node):
        return item.name
    if isinstance(item, tuple):
        inner = _joined(item)
        return f"({inner},)" if len(item) == 1 else f"({inner})"
    if isinstance(item, list):
        return f"[{_joined(item)}]"
    if isinstance(item, dict):
        return "{" + ", ".join(f"{key!r}: {literal(each)}" for key, each in item.items()) + "}"
    if isinstance(item, float):
        return _float(item)
    if isinstance(item, complex):
        return f"complex({_float(item.real)}, {_float(item.imag)})"
    if item is None or isinstance(item, bool | int | str | DeviceMarker):
        return repr(item)
    if isinstance(item, torch.dtype | torch.layout | torch.memory_format):
        return str(item)
    if isinstance(item, torch.device):
        return f'torch.device("{item}")'
    if isinstance(item, slice):
        return f"slice({literal(item.start)}, {literal(item.stop)}, {literal(item.step)})"
    for kind, write in _WRITERS:
        if isinstance(item, kind):
            return write(item)
    raise CompileError(f"{type(item).__name__} cannot be written as source: {item!r}")


def _joined(items: Iterable[Any]) -> str:
    return ", ".join([literal(item) for item in items])


def _float(number: float) -> str:
    if number != number or number in (float("inf"), float("-inf")):
        return f'float("{number}")'
    return repr(number)


def _memory_config(config: Any) -> str:
    for name in ("DRAM_MEMORY_CONFIG", "L1_MEMORY_CONFIG"):
        if config == getattr(ttnn_emulator, name):
            return f"ttnn.{name}"
    kind, buffer_type = (
        f"ttnn.{type(each).__name__}.{each.name}" for each in (config.memory_layout, config.buffer_type)
    )
    shards = config.shard_spec
    if shards is None:
        return f"ttnn.MemoryConfig({kind}, {buffer_type})"
    ranges = ", ".join(_core_range(each) for each in shards.grid.ranges())
    orientation = f"ttnn.ShardOrientation.{shards.orientation.name}"
    spec = f"ttnn.ShardSpec(ttnn.CoreRangeSet([{ranges}]), {list(shards.shape)}, {orientation})"
    return f"ttnn.MemoryConfig({kind}, {buffer_type}, {spec})"


def _core_range(cores: Any) -> str:
    corners = (f"ttnn.CoreCoord({each.x}, {each.y})" for each in (cores.start, cores.end))
    return f"ttnn.CoreRange({', '.join(corners)})"


def _compute_config(config: Any) -> str:
    fields = ("math_fidelity", "math_approx_mode", "fp32_dest_acc_en", "packer_l1_acc")
    arguments = ", ".join(f"{name}={literal(getattr(config, name))}" for name in fields)
    return f"ttnn.WormholeComputeKernelConfig({arguments})"


def _unary(operation: Any) -> str:
    return f"ttnn.UnaryWithParam({_joined([operation.op_type, *operation.params])})"


def _record(record: Any) -> str:
    """A configuration record, without the fields that have their default values."""
    kind = type(record)
    plain = kind()
    names = [name for name in record._fields if getattr(record, name) != getattr(plain, name)]
    arguments = ", ".join(f"{name}={literal(getattr(record, name))}" for name in names)
    return f"ttnn.{kind.__name__}({arguments})"


def _attention_config(config: Any) -> str:
    grid = config.compute_with_storage_grid_size
    chunks = f"q_chunk_size={config.q_chunk_size}, k_chunk_size={config.k_chunk_size}"
    return (
        f"ttnn.SDPAProgramConfig(compute_with_storage_grid_size=ttnn.CoreCoord({grid.x}, {grid.y}), {chunks}, "
        f"exp_approx_mode={config.exp_approx_mode})"
    )


_WRITERS: list[tuple[type, Callable[[Any], str]]] = [
    (ttnn_emulator.DataType, _NAMED_DTYPES.__getitem__),
    (ttnn_emulator.Layout, _NAMED_LAYOUTS.__getitem__),
    (enum.Enum, lambda item: f"ttnn.{type(item).__name__}.{item.name}"),
    (ttnn_emulator.MemoryConfig, _memory_config),
    (ttnn_emulator.WormholeComputeKernelConfig, _compute_config),
    (ttnn_emulator.UnaryWithParam, _unary),
    (ttnn_emulator.Conv2dConfig, _record),
    (ttnn_emulator.SDPAProgramConfig, _attention_config),
]
