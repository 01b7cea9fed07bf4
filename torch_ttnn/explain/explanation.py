"""`torch_ttnn.explain`: how a model is compiled, without running it on the device.

The model is compiled as `torch.compile` would compile it. Where a second graph needs results of the first one, torch
computes them. A model on the meta device is compiled as if its tensors were ordinary ones; they get addresses but no
memory, so a model of any size can be explained on any machine.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group

from torch_ttnn.capture.model_call import ModelCall
from torch_ttnn.capture.programs import capture, capture_call
from torch_ttnn.compiler.analysis.memory import Memory, measure
from torch_ttnn.compiler.frontend.graph_breaks import Missed
from torch_ttnn.compiler.runtime.program import Program
from torch_ttnn.explain import page, text
from torch_ttnn.explain.data import Report, describe, total_seconds
from torch_ttnn.explain.predicted import Boards
from torch_ttnn.perf.program_time import program_times
from ttnn_emulator.atomic_files import replacing

__all__ = ["Explanation", "capture", "explain", "explanation_of"]


class Explanation:
    """How a model was compiled. Print it, convert it with `to_json()`, or write a page with `to_html(path)`."""

    def __init__(self, report: Report, programs: Sequence[Program]) -> None:
        self.report = report
        self.programs = list(programs)

    @property
    def code(self) -> str:
        """The programs as Python."""
        return "\n\n".join(f"# {program.name}\n{program.code}" for program in self.report.programs)

    @property
    def memory(self) -> Memory:
        return self.report.memory

    @property
    def times(self) -> Boards:
        """The predicted time of a call of all programs, by board."""
        return self.report.times

    def to_json(self) -> dict[str, Any]:
        """Plain dictionaries and lists: `programs`, `memory`, `predicted`, `compile_seconds`, `versions`."""
        return self.report.to_json()

    def to_html(self, path: str | os.PathLike | None = None) -> str:
        """A self-contained HTML page with the graph, memory, predicted times and tables; written to `path` if given."""
        written = page.render(self.report)
        if path is not None:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as temporary:
                temporary.write_text(written, encoding="utf-8")
        return written

    def __rich__(self) -> Group:
        return text.summary(self.report)

    def __str__(self) -> str:
        return text.plain(self.report)

    def __repr__(self) -> str:
        return f"<Explanation of {len(self.programs)} program(s)>"


def explain(
    model: Any,
    *inputs: Any,
    args: tuple | None = None,
    kwargs: Mapping[str, Any] | None = None,
    options: Any = None,
    device: Any = None,
    **named: Any,
) -> Explanation:
    """Compile a model for these inputs and describe the result.

    The model is a module, a function, or a program of `torch.export`, which has example inputs. Its arguments are
    passed as to the model itself, or as `torch.export.export` takes them (`torch_ttnn/capture/model_call.py`). `device`
    is short for the option of that name.

    >>> import torch, torch_ttnn
    >>> from torch_ttnn.explain import explain
    >>> with torch.no_grad():
    ...     explanation = explain(torch.nn.Linear(8, 4), torch.ones(2, 8))
    >>> explanation.to_json()["programs"][0]["host_ops"]
    []
    """
    start = time.perf_counter()
    call = ModelCall.of(model, inputs, named, args=args, kwargs=kwargs, options=options, device=device)
    captured = capture_call(call)
    elapsed = time.perf_counter() - start
    return explanation_of(captured.found, elapsed, captured.notes, captured.options.numerics, captured.missed)


def explanation_of(
    programs: Sequence[tuple[str, Program]],
    elapsed: float | None = None,
    notes: Sequence[str] = (),
    numerics: str = "",
    missed: Sequence[Missed] = (),
    boards: Sequence[str] | None = None,
) -> Explanation:
    """The explanation of compiled programs, each with its name; `numerics` is the emulator's mode. Times are predicted
    on `boards`, by default on all."""
    seconds = total_seconds([program.seconds for _, program in programs])
    if elapsed is not None:
        seconds = {"capture": max(elapsed - sum(seconds.values()), 0.0), **seconds}
    start = time.perf_counter()
    memory = [measure(program) for _, program in programs]
    seconds["memory"] = time.perf_counter() - start
    start = time.perf_counter()
    times = program_times([program for _, program in programs], boards)
    seconds["predict"] = time.perf_counter() - start
    described = [describe(program, used, name, each) for (name, program), used, each in zip(programs, memory, times)]
    target = programs[0][1].target
    mode = numerics if target.is_emulator else ""
    report = Report(described, seconds, target.name, tuple(notes), mode, tuple(missed))
    return Explanation(report, [program for _, program in programs])
