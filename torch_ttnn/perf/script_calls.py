"""Records a script: the entries of its performance sheet, and its calls of the library in a form to repeat."""

from __future__ import annotations

import dataclasses
import linecache
import pathlib
import sys
import threading
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.fx

import torch_ttnn
from torch_ttnn.compiler.ir.arguments import DEVICE, leaves, mapped
from torch_ttnn.compiler.runtime.program import Program
from torch_ttnn.perf.calls import Call, Calls, Ref, Step
from torch_ttnn.perf.program_calls import origin_of
from ttnn_emulator import MeshDevice, Tensor
from ttnn_emulator.execution.call_context import context
from ttnn_emulator.execution.listeners import OperationEvent, Replay, Transfer
from ttnn_emulator.hardware.activity import CallRecord
from ttnn_emulator.profiling.recorder import Origin, Recorder, caller
from ttnn_emulator.tensors.spec import Spec

OWN_CODE = str(pathlib.Path(torch_ttnn.__file__).parent)
RUNTIME = sys.modules[Program.__module__].__file__


@dataclass
class _Counted:
    """A step, and how often it ran."""

    step: Step
    times: int = 1


@dataclass
class _Running:
    """The outermost call of a thread: its arguments as references, and what it has launched so far."""

    args: tuple
    kwargs: dict[str, Any]
    origin: Origin
    records: list[CallRecord] = field(default_factory=list)
    device: MeshDevice | None = None
    inputs: dict[Hashable, Spec] = field(default_factory=dict)
    is_repeatable: bool = True


class ScriptRecorder(Recorder):
    """A recorder that also keeps calls. Calls within a trace count as often as the trace is executed."""

    def __init__(self) -> None:
        super().__init__()
        self.device: MeshDevice | None = None  # the first one that runs a program
        self._steps: list[_Counted] = []
        self._inputs: dict[Hashable, Spec] = {}
        self._numbers: dict[int, int] = {}  # of the latest tensor in a buffer
        self._latest = 0
        self._captured: dict[tuple[int, int], list[_Counted]] = {}
        self._running = threading.local()

    @property
    def calls(self) -> Calls | None:
        """The recorded calls; None if no program ran."""
        if self.device is None:
            return None
        steps: list[Step] = [
            dataclasses.replace(each.step, times=each.times) if isinstance(each.step, Call) else each.step
            for each in self._steps
        ]
        return Calls(self.device.board, steps, self._inputs)

    def origin_of(self, event: OperationEvent) -> Origin:
        """The line of the script; for a call of a compiled program, the line and the module of the model."""
        node = _running_node()
        return Origin(event.name, caller(OWN_CODE, "<torch_ttnn")) if node is None else origin_of(node)

    def started(self, event: OperationEvent) -> None:
        super().started(event)
        if event.depth:
            return
        running = _Running((), {}, self._called.origin)
        arguments = {
            name: mapped(value, lambda leaf: self._ref(leaf, running)) for name, value in event.arguments.items()
        }
        running.args = tuple([value for name, value in arguments.items() if _is_positional(name)])
        running.kwargs = {name: value for name, value in arguments.items() if not _is_positional(name)}
        self._running.call = running

    def ended(self, event: OperationEvent) -> None:
        super().ended(event)
        running: _Running | None = getattr(self._running, "call", None)
        if running is None:
            return
        if event.record is not None and event.error is None:
            running.records += [event.record] if event.record.runs_program else []
            running.device = event.device or running.device
        if event.depth == 0:
            self._running.call = None
            if event.error is None and not context.specs_only:
                self._keep(event.name, running, event.result)

    def _keep(self, name: str, running: _Running, result: Any) -> None:
        tensors = [leaf for leaf in leaves(result) if isinstance(leaf, Tensor)]
        results = mapped(result, lambda leaf: Ref(self._number(leaf)) if isinstance(leaf, Tensor) else None)
        on_device = any(tensor.spec.on_device for tensor in tensors)
        if not running.is_repeatable or not (running.records or on_device):
            self._inputs |= {self._numbers[id(tensor._storage)]: tensor.spec for tensor in tensors}
            return
        self._inputs |= running.inputs
        self.device = self.device or running.device
        outputs: dict[Hashable, Spec] = {self._numbers[id(tensor._storage)]: tensor.spec for tensor in tensors}
        ran = tuple(running.records)
        counted = _Counted(Call(name, running.args, running.kwargs, results, running.origin, 1, ran, outputs))
        self._steps.append(counted)
        if running.device is not None and running.device.capturing is not None:
            counted.times = 0
            self._captured.setdefault((running.device.id(), running.device.capturing.id), []).append(counted)

    def _ref(self, leaf: Any, running: _Running) -> Any:
        if isinstance(leaf, MeshDevice):
            return DEVICE
        if isinstance(leaf, torch.Tensor):
            running.is_repeatable = False  # a move from the host: its result is an input
            return None
        if not isinstance(leaf, Tensor):
            return leaf
        number = self._numbers.get(id(leaf._storage))
        if number is None:
            number = self._number(leaf)
            running.inputs[number] = leaf.spec
        return Ref(number)

    def _number(self, tensor: Tensor) -> int:
        self._latest += 1
        self._numbers[id(tensor._storage)] = self._latest
        return self._latest

    def transferred(self, transfer: Transfer) -> None:
        super().transferred(transfer)
        self._steps.append(_Counted(transfer))

    def replayed(self, replay: Replay) -> None:
        super().replayed(replay)
        for counted in self._captured.get((replay.device.id(), replay.trace_id), ()):
            counted.times += 1


def _running_node() -> torch.fx.Node | None:
    """The node of the compiled program that is running, if one is."""
    frame, name = sys._getframe(1), ""
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith("<torch_ttnn program") and not name:
            name = linecache.getline(file, frame.f_lineno).partition(" = ")[0].strip()
        elif name and file == RUNTIME and isinstance(program := frame.f_locals.get("self"), Program):
            return next((node for node in program.graph.nodes if node.name == name), None)
        frame = frame.f_back  # type: ignore[assignment]
    return None


def _is_positional(name: str) -> bool:
    """Whether the name of an argument was made up for listeners."""
    return name.startswith("arg") and name[3:].isdigit()
