"""Counts of device operations, host operations and moves, taken from the graphs of compiled programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch.fx

from torch_ttnn.compiler.ir.metadata import PATH, PREPARED, REASON, SOURCE
from torch_ttnn.compiler.ir.verifier import beyond_moves
from torch_ttnn.compiler.runtime.program import Program

UPLOAD, DOWNLOAD = "ttnn.from_torch", "ttnn.to_torch"
CONVERSIONS = ("ttnn.to_layout", "ttnn.typecast", "ttnn.to_memory_config")


@dataclass(frozen=True)
class Counts:
    """Operations and moves of one or several programs."""

    ops_before: int
    device_ops: int
    host_ops: list[tuple[str, str, str]]  # operation, reason, line of the model
    uploads: int
    downloads: int
    crossings_within: int  # without one upload per input and one download per output
    conversions: dict[str, int]
    inputs: int  # input tensors of the programs, without weights
    outputs: int  # output tensors


def counts(programs: Sequence[Program]) -> Counts:
    nodes = [node for program in programs for node in program.graph.nodes]
    paths = [PATH.get(node) for node in nodes]
    host = [(str(node.target), REASON[node], SOURCE.get(node) or "") for node in nodes if REASON.on(node)]
    moves = (UPLOAD, DOWNLOAD, *CONVERSIONS)
    return Counts(
        ops_before=sum(program.ops_before for program in programs),
        device_ops=len([path for path in paths if path and path not in moves]),
        host_ops=host,
        uploads=paths.count(UPLOAD),
        downloads=paths.count(DOWNLOAD),
        crossings_within=sum(crossings_within(program.graph) for program in programs),
        conversions={path.removeprefix("ttnn."): paths.count(path) for path in CONVERSIONS},
        inputs=sum(len([node for node in program.lowered.inputs if node is not None]) for program in programs),
        outputs=sum(program.outputs for program in programs),
    )


def crossings_within(graph: torch.fx.Graph) -> int:
    """Uploads and downloads that would not be needed if everything ran on the device."""
    uploads = [node for node in graph.nodes if PATH.get(node) == UPLOAD]
    downloads = [node for node in graph.nodes if PATH.get(node) == DOWNLOAD]
    producers = {
        each for node in uploads for each in beyond_moves(node.all_input_nodes, lambda each: each.all_input_nodes)
    }
    inputs = [node for node in producers if node.op == "placeholder" and not PREPARED.on(node)]
    outputs = [node for node in downloads if any(_is_output(user) for user in beyond_moves(node.users, _users))]
    return len(uploads) - len(inputs) + len(downloads) - len(outputs)


def _users(node: torch.fx.Node) -> list[torch.fx.Node]:
    return list(node.users)


def _is_output(node: torch.fx.Node) -> bool:
    return node.op == "output"
