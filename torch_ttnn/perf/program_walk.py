"""The nodes of a compiled program in order, by what a call of the program does there."""

from __future__ import annotations

import enum
import operator
from collections.abc import Iterator

import torch.fx

from torch_ttnn.compiler.ir.metadata import PATH, REASON, is_download, is_upload
from torch_ttnn.compiler.runtime.program import Program


class Kind(enum.Enum):
    """`ELEMENT` takes one tensor out of a call that returns several."""

    INPUT = enum.auto()
    UPLOAD = enum.auto()
    DOWNLOAD = enum.auto()
    ELEMENT = enum.auto()
    CALL = enum.auto()
    ON_HOST = enum.auto()


def walked(program: Program) -> Iterator[tuple[torch.fx.Node, Kind]]:
    """All nodes but the output and those that only prepare a move on the host."""
    for node in program.graph.nodes:
        kind = _kind_of(node)
        if kind is not None:
            yield node, kind


def _kind_of(node: torch.fx.Node) -> Kind | None:
    if node.op == "placeholder":
        return Kind.INPUT
    if node.op != "call_function":
        return None
    if node.target is operator.getitem:
        return Kind.ELEMENT
    if REASON.on(node):
        return Kind.ON_HOST
    if is_upload(node):
        return Kind.UPLOAD
    if is_download(node):
        return Kind.DOWNLOAD
    return Kind.CALL if PATH.on(node) else None
