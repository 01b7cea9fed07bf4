"""The stage `fuse`: replaces chains of ATen operations by fewer ones, after normalisation and before lowering.

Each fusion is data: a pattern, a replacement, and a condition. They are in tables by family. The families run in the
order of `FAMILIES`, which states what must run before what. Each visits the nodes that its patterns end in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch.fx

from torch_ttnn.compiler.fusion.families import FAMILIES
from torch_ttnn.compiler.fusion.matcher import closed_matches
from torch_ttnn.compiler.fusion.rewriting import Rewriter
from torch_ttnn.compiler.fusion.rule import Fusion
from torch_ttnn.compiler.ir.source_lines import source_line

Node = torch.fx.Node


@dataclass(frozen=True)
class FusionRecord:
    """One applied fusion."""

    name: str
    nodes: tuple[str, ...]  # names of the replaced calls, the last first
    result: str  # the name of the new call
    root: Node = field(repr=False, compare=False)

    @property
    def source(self) -> str:
        """The line of the model."""
        return source_line(self.root)


def fuse(graph_module: torch.fx.GraphModule, static: Iterable[Node] | Callable[[Node], bool]) -> list[FusionRecord]:
    """Apply all fusions in place; `static` are the parameters and buffers, or a function that says so."""
    rewriter = Rewriter(graph_module, static)
    records: list[FusionRecord] = []
    for family in FAMILIES:
        records += run_family(rewriter, family.fusions)
    if records:
        graph_module.recompile()
    return records


def run_family(rewriter: Rewriter, family: Iterable[Fusion]) -> list[FusionRecord]:
    """One pass over the nodes that these fusions can end in; the first fusion that matches a node is applied."""
    by_root: dict[Any, list[Fusion]] = {}
    for fusion in family:
        for target in fusion.pattern.roots:
            by_root.setdefault(target, []).append(fusion)
    records = []
    find = rewriter.graph.find_nodes
    for node in sorted([node for target in by_root for node in find(op="call_function", target=target, sort=False)]):
        if node._erased or rewriter.is_static(node):
            continue
        for fusion in by_root[node.target]:
            record = apply(rewriter, fusion, node)
            if record is not None:
                records.append(record)
                break
    return records


def apply(rewriter: Rewriter, fusion: Fusion, root: Node) -> FusionRecord | None:
    rewriter.anchor = root
    for match in closed_matches(fusion.pattern, root):
        if fusion.when is None or fusion.when(rewriter, match):
            break
    else:
        return None
    names = tuple([node.name for node in match.nodes])
    new = fusion.build(rewriter, match)
    if new is None:
        return None
    if not root._erased and new is not root:
        rewriter.replace(root, new)
    return FusionRecord(fusion.name, names, new.name, root)
