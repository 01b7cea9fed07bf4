"""Writes records graph by graph and keeps none of them in memory."""

from __future__ import annotations

import functools
import logging
import pathlib
import platform
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import torch
import torch.fx
from torch.utils._python_dispatch import _disable_current_modes

from torch_ttnn.compiler.ir.dump import dot, draw_svg
from torch_ttnn.tracer.calls import record
from torch_ttnn.tracer.facts import facts_of
from torch_ttnn.tracer.graphs import operations
from torch_ttnn.tracer.modified import records_of_program
from torch_ttnn.tracer.options import PICTURES, RAW, RAW_MODIFIED, TracerOption
from torch_ttnn.tracer.questions import GraphQuestions
from torch_ttnn.tracer.records import FORWARD, Record, Trace, claim, write
from ttnn_emulator.atomic_files import replacing

if TYPE_CHECKING:
    from torch_ttnn.compiler.runtime.program import Program

log = logging.getLogger("torch_ttnn")


class Recording:
    """Files of one graph of a model: its forward and its backward trace have the same number.

    A graph that is recompiled, or whose backward is, gets a new number. So does a backward graph without a forward;
    its forward trace is empty.
    """

    def __init__(self, option: TracerOption, model: str, folder: str = RAW) -> None:
        self.option = option
        self.model = option.out_prefix + (option.model_name or model)
        self.folder = pathlib.Path(option.out_folder) / folder
        self._number: int | None = None  # of the last forward graph, until its backward is written
        self._lock = threading.Lock()

    def write(self, phase: str, records: Sequence[Record]) -> pathlib.Path:
        """Write the trace of a graph; returns its path."""
        with self._lock:
            if phase == FORWARD:
                number = self._number = claim(self.model, self.folder)
            elif self._number is None:
                number = claim(self.model, self.folder)
                self._write(FORWARD, number, ())
            else:
                number, self._number = self._number, None
            return self._write(phase, number, records)

    def _write(self, phase: str, number: int, records: Iterable[Record]) -> pathlib.Path:
        trace = Trace(self.model, phase, number, tuple(records), versions())
        path = write(trace, self.folder)
        level = logging.WARNING if self.option.verbose and not log.isEnabledFor(logging.INFO) else logging.INFO
        log.log(level, "traced %d operations of %s into %s", len(trace.records), self.model, path)
        return path

    def graph(self, phase: str, graph_module: torch.fx.GraphModule, statics: Iterable[int]) -> pathlib.Path:
        """Write the trace of a captured graph, and its picture if the options ask for one."""
        with _disable_current_modes():  # values are inspected outside of the caller's modes
            path = self.write(phase, tuple(records_of(graph_module, statics, self.option)))
        if self.option.gen_graphviz:
            self.draw(graph_module.graph, path.stem)
        return path

    def draw(self, graph: torch.fx.Graph, name: str) -> None:
        """Write the graph as a `.dot` file, and draw it if graphviz is installed."""
        folder = pathlib.Path(self.option.out_folder) / PICTURES
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(folder / f"{name}.dot") as temporary:
            temporary.write_text(dot(graph), encoding="utf-8")
        draw_svg(graph, folder / f"{name}.svg")


class ProgramTracer:
    """Records the captured graphs of one `torch.compile` region and the programs compiled from them."""

    def __init__(self, option: TracerOption, model: str) -> None:
        self.option = option
        self.captured = Recording(option, model)
        self.modified = Recording(option, model, RAW_MODIFIED)

    def program(self, phase: str, program: Program, statics: Iterable[int]) -> None:
        """Record a program, whether compiled or loaded from disk."""
        if self.option.trace_orig:
            self.captured.graph(phase, program.captured, statics)
        if self.option.trace_modi:
            path = self.modified.write(phase, tuple(records_of_program(program.graph)))
            if self.option.gen_graphviz:
                self.modified.draw(program.graph, f"{path.stem}_modified")


def records_of(graph_module: torch.fx.GraphModule, statics: Iterable[int], option: TracerOption) -> Iterator[Record]:
    """Records of every operation of a graph. `statics` are the indices of the inputs that are weights."""
    lowerings = option.lowerings
    questions = GraphQuestions(graph_module, statics) if lowerings is not None else None
    for node, call in operations(graph_module):
        facts = facts_of(call) if option.facts else None
        verdict = lowerings.of(questions.about(node, call)) if lowerings and questions else None
        yield record(call, facts, verdict)


@functools.cache
def versions() -> dict[str, str]:
    """Versions that traces depend on."""
    import torch_ttnn

    return {"python": platform.python_version(), "torch": torch.__version__, "torch_ttnn": torch_ttnn.__version__}
