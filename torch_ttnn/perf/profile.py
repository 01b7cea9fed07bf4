"""`torch_ttnn.profile`: the predicted time of a model on a card, program by program.

The model is compiled as `torch.compile` would compile it. Its calls are then repeated on an emulated device without
values, which chooses the same programs as a run: times do not depend on values, so a model on the meta device, whose
weights exist nowhere, is profiled like any other. All times are predictions; none is a time of this machine.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch_ttnn.capture.model_call import ModelCall
from torch_ttnn.capture.programs import capture_call
from torch_ttnn.perf import analysis
from torch_ttnn.perf.advice import Advice, Advisor
from torch_ttnn.perf.calls import Call, Calls, OnHost, PlannedCall, repeated, spec_only_device
from torch_ttnn.perf.end_to_end import EndToEndTimes, end_to_end
from torch_ttnn.perf.memory_view import write_report
from torch_ttnn.perf.program_calls import calls_of
from ttnn_emulator import MeshDevice
from ttnn_emulator.atomic_files import replacing
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.profiling import device_log, sheet
from ttnn_emulator.profiling.recorder import DeviceCall, Entry, HostCall
from ttnn_emulator.profiling.timeline import HostRow, ProgramRow, Row, timeline

if TYPE_CHECKING:
    from rich.console import Group as Renderable

    from torch_ttnn.compiler.runtime.program import Program


class Profile:
    """Predicted times of a model or a script. Print it, or write its sheet and its page.

    name   what was profiled
    board  the card
    rows   every program on the chip, host operation and signpost, in order, on the predicted time axis
    """

    def __init__(
        self,
        name: str,
        calls: Calls,
        planned: Sequence[PlannedCall],
        rows: Sequence[Row],
        device: MeshDevice,
        write_memory: Callable[[Path], Any] | None = None,
    ) -> None:
        self.name = name
        self._write_memory = write_memory
        self.rows = list(rows)
        self._calls = calls
        self._planned = list(planned)
        self._device = device

    @property
    def board(self) -> Board:
        return self._calls.board

    @cached_property
    def programs(self) -> list[ProgramRow]:
        """The rows of one chip; all chips of a mesh run the same programs."""
        first = next((row.chip for row in self.rows if isinstance(row, ProgramRow)), 0)
        return [row for row in self.rows if isinstance(row, ProgramRow) and row.chip == first]

    @property
    def host_operations(self) -> list[HostRow]:
        return [row for row in self.rows if isinstance(row, HostRow)]

    @cached_property
    def table(self) -> list[dict[str, Any]]:
        """The performance sheet as one dictionary per row, with the columns of the profiler."""
        return sheet.sheet(self.rows)

    @property
    def kernels_ns(self) -> float:
        """The time of all programs, without what lies between them."""
        return sum(row.program.launch.kernel_ns for row in self.programs)

    @cached_property
    def end_to_end(self) -> EndToEndTimes:
        """Latency and interval call by call, as a trace, and with two command queues."""
        return end_to_end(self._calls, self._planned)

    @cached_property
    def calibration(self) -> analysis.Calibration:
        return analysis.calibration([row.program.launch for row in self.programs])

    @cached_property
    def roofline(self) -> analysis.Roofline:
        return analysis.roofline(self.programs, self.board)

    @cached_property
    def advice(self) -> list[Advice]:
        """What would make it faster, by predicted gain."""
        return Advisor(self._calls, self._planned, self._device, self.end_to_end).advice()

    def to_csv(self, path: str | os.PathLike | None = None) -> str:
        """The performance sheet as text; also written to `path`."""
        text = sheet.written(self.table)
        _write(path, text)
        return text

    def to_html(self, path: str | os.PathLike | None = None) -> str:
        """A self-contained page: where the time goes, a timeline, a roofline, advice; also written to `path`."""
        from torch_ttnn.perf import page

        text = page.render(self)
        _write(path, text)
        return text

    def to_json(self) -> dict[str, Any]:
        """Plain dictionaries and lists."""
        from torch_ttnn.perf.data import as_json

        return as_json(self)

    def write(self, folder: str | os.PathLike) -> None:
        """Write a folder: the sheet, the files that tools expect beside it, the page, and the memory view."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        sheet.write(self.table, target / sheet.FILE)
        device_log.write_log(self.rows, target / device_log.LOG)
        device_log.write_tracy_placeholder(target / device_log.TRACY)
        self.to_html(target / "performance.html")
        if self._write_memory is not None:
            self._write_memory(target)

    def __rich__(self) -> Renderable:
        from torch_ttnn.perf import text

        return text.summary(self)

    def __str__(self) -> str:
        from torch_ttnn.perf import text

        return text.plain(self)

    def __repr__(self) -> str:
        return f"<Profile of {self.name} on the emulated {self.board.name}: {len(self.programs)} programs>"


def _write(path: str | os.PathLike | None, text: str) -> None:
    if path is not None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            temporary.write_text(text, encoding="utf-8")


def profile(
    model: Any,
    *inputs: Any,
    args: tuple | None = None,
    kwargs: Mapping[str, Any] | None = None,
    options: Any = None,
    device: Any = None,
    **named: Any,
) -> Profile:
    """Compile a model for these inputs and predict the time of every program that it launches on a card.

    The model and its arguments are passed as to `torch_ttnn.explain`. `device` is short for the option of that name:
    `"emulator:p150"` predicts times of a p150.

    >>> import torch, torch_ttnn
    >>> from torch_ttnn.perf.profile import profile
    >>> with torch.no_grad():
    ...     found = profile(torch.nn.Linear(64, 64), torch.ones(32, 64))
    >>> [row["OP CODE"] for row in found.table]
    ['MatmulDeviceOperation']
    """
    call = ModelCall.of(model, inputs, named, args=args, kwargs=kwargs, options=options, device=device)
    captured = capture_call(call)
    name = getattr(model, "__name__", None) or type(model).__name__
    return profile_of([program for _, program in captured.found], name)


def profile_of(programs: Sequence[Program], name: str) -> Profile:
    """The profile of compiled programs that run one after the other."""
    like = programs[0].target.typing
    device = spec_only_device(like.board, like)
    calls = calls_of(programs, device)
    planned = list(repeated(calls, device))
    rows = timeline(_entries(calls, planned, device))
    return Profile(name, calls, planned, rows, device, functools.partial(write_report, programs=programs, name=name))


def _entries(calls: Calls, planned: Iterable[PlannedCall], device: MeshDevice) -> Iterable[Entry]:
    """The steps of a model as a recorder would have recorded them."""
    found = {id(each.call): each for each in planned}
    seen: set[int] = set()
    for step in calls.steps:
        if isinstance(step, Call):
            each = found.get(id(step))
            for record in each.records if each is not None else ():
                yield DeviceCall(step.origin, record, device, id(record) in seen)
                seen.add(id(record))
        elif isinstance(step, OnHost):
            yield HostCall(step.origin, step.operation)
        else:
            yield step
