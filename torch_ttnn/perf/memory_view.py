"""The memory view of compiled programs: a folder that ttnn-visualizer opens, with the lines of the user's model.

The programs' calls run in order on an emulated device without values, so a model of any size, also one on
torch's meta device, takes seconds. Weights are on the device from the beginning; the report has no calls for them.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence
from typing import Any

import torch.fx

import torch_ttnn.capture
from torch_ttnn.compiler.analysis.memory import Walk
from torch_ttnn.compiler.ir.arguments import leaves
from torch_ttnn.compiler.ir.metadata import ORIGIN, PATH, REASON, is_download, is_upload
from torch_ttnn.compiler.ir.nodes import target_name
from torch_ttnn.compiler.ir.source_lines import stack_frames
from torch_ttnn.compiler.runtime.program import Program
from ttnn_emulator import EmulatorError, MeshDevice, Tensor
from ttnn_emulator.profiling.memory_report import MemoryReport

_CALLER = str(pathlib.Path(torch_ttnn.capture.__file__).parent)  # it calls the model and is not part of it


def write_report(folder: str | os.PathLike, programs: Sequence[Program], name: str = "") -> pathlib.Path:
    """Write the report of one call of a model, all its programs one after the other; returns the database's path.

    If a call does not fit into the memory of the board, the report ends with it and has its error.
    """
    report = MemoryReport(name)
    if programs:
        device = _device_like(programs[0].target.typing)
        walks = [_RecordedWalk(program, device, report) for program in programs]
        try:
            kept = [walk.weights() for walk in walks]
            with report.recording():
                for walk, weights in zip(walks, kept):
                    walk.is_recorded = True
                    walk.calls(weights)
        except EmulatorError as error:
            report.failed(error)
    return report.write(folder)


class _RecordedWalk(Walk):
    """A walk whose moves and host operations are calls of the report, too, each with the lines of the model."""

    is_recorded = False

    def __init__(self, program: Program, device: MeshDevice, report: MemoryReport) -> None:
        super().__init__(program, device)
        self.graph = report.graph

    def result(self, node: torch.fx.Node, env: dict[torch.fx.Node, Any]) -> Any:
        if not self.is_recorded:
            return super().result(node, env)
        self.graph.stack = _stack(node)
        if REASON.on(node):
            with self.graph.call(f"(torch) {target_name(node)}", {"reason": REASON[node]}):
                return super().result(node, env)
        if is_upload(node) or is_download(node):
            read = [value for value in map(env.get, node.all_input_nodes) if isinstance(value, Tensor)]
            with self.graph.call(PATH[node], {}, read) as results:
                result = super().result(node, env)
                results += [leaf for leaf in leaves(result) if isinstance(leaf, Tensor)]
                return result
        return super().result(node, env)


def _stack(node: torch.fx.Node) -> list[str]:
    """The lines of the model that a node was written for, innermost first."""
    origin = ORIGIN.get(node)
    frames = [] if origin is None else stack_frames(origin)
    return [frame for frame in frames if f'File "{_CALLER}' not in frame]


def _device_like(device: MeshDevice) -> MeshDevice:
    return MeshDevice(
        device.board,
        shape=device.shape,
        device_ids=device.get_device_ids(),
        l1_small_size=device.l1_small_size,
        trace_region_size=device.trace_region_size,
        num_command_queues=device.num_command_queues,
        holds_values=False,
    )
