"""Writes graphs before and after a stage, to debug the compiler: `TORCH_TTNN_DEBUG=lower,simplify`."""

from __future__ import annotations

import html
import logging
import operator
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.fx

from torch_ttnn.compiler.analysis.memory import specs_of
from torch_ttnn.compiler.errors import CompileError
from torch_ttnn.compiler.ir.describe import shape_and_dtype
from torch_ttnn.compiler.ir.metadata import MOVE, ORIGIN, PATH, REASON
from torch_ttnn.compiler.ir.source_lines import module_path, source_line
from torch_ttnn.compiler.ir.verifier import graphs_of
from torch_ttnn.compiler.stages import emit
from torch_ttnn.options import TorchTtnnOption
from ttnn_emulator.atomic_files import replacing

log = logging.getLogger("torch_ttnn")

ALL = "all"
COLOURS = {"host": "#cf3b3b", "move": "#d98b1a", "device": "#2f7ed8", "": "#7d8790"}


@contextmanager
def dumped(compilation: Any, number: int, stage: str, last: bool = False) -> Iterator[None]:
    """Write the graphs before and after a stage, if the options ask for it.

    `number` is the stage's position in the pipeline, from 1; `last` is true for the last one, whose graphs are drawn
    when only `gen_graphviz` is set.
    """
    options: TorchTtnnOption = compilation.options
    chosen = stage in options.debug or ALL in options.debug
    drawn = options.gen_graphviz and (chosen or (last and not options.debug))
    if not chosen and not drawn:
        yield
        return
    folder = _folder(options)
    if chosen:
        write(compilation, folder, f"{number:02}_{stage}_before", draw=drawn)
    yield
    write(compilation, folder, f"{number:02}_{stage}_after", draw=drawn)


def _folder(options: TorchTtnnOption) -> Path:
    """The folder of the graph being compiled; each further graph of the same options has its own."""
    folder = graph_folder(options.debug_dir, options.compiled + 1)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def graph_folder(folder: str | Path, number: int) -> Path:
    """The folder for the files of the graph with this number, counted from 1."""
    return Path(folder) / f"graph_{number}" if number > 1 else Path(folder)


def write(compilation: Any, folder: Path, name: str, draw: bool = False) -> Path:
    """Write the graphs of a compilation or a program as text; with `draw` also as pictures."""
    graphs = graphs_of(compilation)
    path = folder / f"{name}.txt"
    with replacing(path) as temporary:
        temporary.write_text("\n".join(f"# {kind}\n{text(graph)}" for kind, graph in graphs.items()), encoding="utf-8")
    if draw:
        draw_svg(next(iter(graphs.values())), folder / f"{name}.svg")
    return path


def text(graph: torch.fx.Graph) -> str:
    """One line per node: its call, its result, and the line of the model that it comes from."""
    lines = []
    module = None
    for node in graph.nodes:
        origin = _origin(node)
        here = module_path(origin)
        if node.op == "call_function" and here != module:
            module = here
            lines.append(f"  # {module or 'the model'}")
        parts = [f"%{node.name} = {_call(node)}", _result(node)]
        if REASON.get(node):
            parts.append(f"on the host: {REASON[node]}")
        source = source_line(origin) if node.op == "call_function" else ""
        lines.append("  " + "  :: ".join(part for part in parts if part) + (f"    # {source}" if source else ""))
    return "\n".join(lines) + "\n"


def _origin(node: torch.fx.Node) -> torch.fx.Node:
    """The captured node that a node was written for; for a captured node, itself."""
    origin = ORIGIN.get(node)
    return origin if isinstance(origin, torch.fx.Node) else node


def _call(node: torch.fx.Node) -> str:
    if node.op in ("placeholder", "get_attr"):
        return f"{node.op} {node.target}"
    return emit.call_text(_name(node), node.args, node.kwargs, write=_argument)


def _name(node: torch.fx.Node) -> str:
    if node.op == "output":
        return "output"
    if node.target is operator.getitem:
        return "getitem"
    if PATH.on(node):
        return PATH[node]
    return str(node.target) if isinstance(node.target, torch._ops.OpOverload) else getattr(node.target, "__name__", "?")


def _argument(item: Any) -> str:
    if isinstance(item, torch.fx.Node):
        return f"%{item.name}"
    if isinstance(item, list | tuple):
        return f"[{', '.join(map(_argument, item))}]"
    try:
        return emit.literal(item)
    except CompileError:
        return repr(item)


def _result(node: torch.fx.Node) -> str:
    specs = specs_of(node)
    if specs:
        return "; ".join(spec.brief() for spec in specs)
    val = node.meta.get("val")
    vals = val if isinstance(val, list | tuple) else [val]
    return "; ".join(shape_and_dtype(each) for each in vals if isinstance(each, torch.Tensor))


# -- pictures ---------------------------------------------------------------------------------------------------------


def dot(graph: torch.fx.Graph) -> str:
    """The graph in graphviz's DOT language."""
    lines = ["digraph {", '  node [shape=box, style="rounded,filled", fontname="sans-serif", fontsize=10];']
    for node in graph.nodes:
        label = html.escape(f"{_name(node) if node.op == 'call_function' else node.name}\n{_result(node)}")
        colour = COLOURS[_kind(node)]
        lines.append(f'  "{node.name}" [label="{label}", color="{colour}", fillcolor="{colour}22"];')
        lines += [f'  "{used.name}" -> "{node.name}";' for used in node.all_input_nodes]
    return "\n".join([*lines, "}"]) + "\n"


def _kind(node: torch.fx.Node) -> str:
    if REASON.on(node):
        return "host"
    path = PATH.get(node)
    if path in ("ttnn.from_torch", "ttnn.to_torch", "ttnn.to_layout") or MOVE.on(node):
        return "move"
    return "device" if path else ""


def draw_svg(graph: torch.fx.Graph, path: Path) -> bool:
    """Draw a graph with graphviz; logs a warning if that is not installed."""
    program = shutil.which("dot")
    if program is None:
        log.warning("gen_graphviz: graphviz (the program dot) was not found, so %s is not drawn", path)
        return False
    with replacing(path) as temporary:
        subprocess.run([program, "-Tsvg", "-o", str(temporary)], input=dot(graph), text=True, check=True)
    return True
