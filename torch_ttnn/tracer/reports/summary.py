"""Summary of all traces of a folder: counts, sizes, arguments and facts per operation, in one pass."""

from __future__ import annotations

import hashlib
import json
import math
import pathlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torch_ttnn.errors import UserError
from torch_ttnn.system.garbage import collector_paused
from torch_ttnn.tracer import records
from torch_ttnn.tracer.records import BACKWARD, FORWARD, NOT_JSONABLE, BadTrace, Record, TensorFact, Trace
from torch_ttnn.tracer.reports.verdicts import location

PHASES = {FORWARD: "forward", BACKWARD: "backward"}
LONGEST_TEXT = 200  # characters of a counted value; longer ones are cut and distinguished by a hash
MOST_ELEMENTS = (1 << 63) - 1  # the maximum: torch counts elements in 64 bits

Progress = Callable[[int, int], None]  # done, total
Listener = Callable[[Trace, "Sequence[Call]"], None]


class NoTraces(UserError, ValueError):
    """There is nothing to report on; the message says which folder was searched, and what to do."""


class Call(NamedTuple):
    """One operation of a graph as the texts and sizes that reports count."""

    record: Record
    input_size: int
    output_size: int
    shapes: str
    dtypes: str
    arguments: dict[str, str]  # name -> JSON text


@dataclass
class OpSummary:
    """One operation in one phase, over all models."""

    op_type: str
    models: Counter[str] = field(default_factory=Counter)  # calls in each model
    flops: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    input_sizes: Counter[int] = field(default_factory=Counter)  # elements of all inputs of a call together -> calls
    output_sizes: Counter[int] = field(default_factory=Counter)
    shapes: Counter[str] = field(default_factory=Counter)  # of the inputs: "1×3×224×224, 64×3×7×7" -> calls
    dtypes: Counter[str] = field(default_factory=Counter)  # of the inputs, each once: "float32, int64" -> calls
    arguments: dict[str, Counter[str]] = field(default_factory=dict)  # name -> JSON text, or not_jsonable -> calls
    lowering: Counter[tuple[str, str]] = field(default_factory=Counter)  # (device, decomposed, host or "", reason)
    source: str = ""  # an example source line that calls it

    @property
    def count(self) -> int:
        return self.models.total()

    @property
    def intensity(self) -> float:
        """FLOPs per byte moved."""
        moved = self.bytes_in + self.bytes_out
        return self.flops / moved if moved else 0.0

    def add(self, model: str, call: Call) -> None:
        record = call.record
        self.models[model] += 1
        self.flops += record.flops
        self.bytes_in += record.bytes_in
        self.bytes_out += record.bytes_out
        self.input_sizes[call.input_size] += 1
        self.output_sizes[call.output_size] += 1
        self.shapes[cut(call.shapes)] += 1
        self.dtypes[cut(call.dtypes)] += 1
        self.lowering[record.lowering, cut(record.reason)] += 1
        self.source = self.source or cut(record.source)
        for name, text in call.arguments.items():
            values = self.arguments.get(name)
            if values is None:
                values = self.arguments[name] = Counter()
            values[cut(text)] += 1


@dataclass
class ModelPhase:
    """One model in one phase."""

    graphs: int = 0
    ops: int = 0
    distinct_ops: int = 0
    flops: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    lowering: Counter[str] = field(default_factory=Counter)  # a location of `verdicts` -> calls


@dataclass
class ModelSummary:
    """One model."""

    name: str
    phases: dict[str, ModelPhase] = field(default_factory=lambda: {phase: ModelPhase() for phase in PHASES})


@dataclass
class Summary:
    """Summary of a folder; the source of all reports."""

    phases: dict[str, dict[str, OpSummary]] = field(default_factory=lambda: {phase: {} for phase in PHASES})
    models: dict[str, ModelSummary] = field(default_factory=dict)
    bad: list[tuple[str, str]] = field(default_factory=list)  # skipped file, reason
    versions: dict[str, Counter[str]] = field(default_factory=dict)  # torch -> 2.13.0 -> graphs

    def ops(self, phase: str) -> list[OpSummary]:
        """Most frequent first; ties by name, so that reports do not change between runs."""
        return sorted(self.phases[phase].values(), key=lambda op: (-op.count, op.op_type))

    def add(self, trace: Trace, calls: Sequence[Call]) -> None:
        name = cut(trace.model)
        ops = self.phases[trace.phase]
        model = self.models.setdefault(name, ModelSummary(name)).phases[trace.phase]
        model.graphs += 1
        for call in calls:
            record = call.record
            op_type = cut(record.op_type)
            op = ops.get(op_type)
            if op is None:
                op = ops[op_type] = OpSummary(op_type)
            model.distinct_ops += name not in op.models
            op.add(name, call)
            model.ops += 1
            model.flops += record.flops
            model.bytes_in += record.bytes_in
            model.bytes_out += record.bytes_out
            model.lowering[location(record.lowering, record.reason)] += 1
        for package, version in trace.versions.items():
            self.versions.setdefault(cut(package), Counter())[cut(version)] += 1


def summarise(folder: pathlib.Path, progress: Progress | None = None, listeners: Iterable[Listener] = ()) -> Summary:
    """Read all traces of a folder, one in memory at a time; listeners see each trace that is counted."""
    paths = trace_files(folder)
    summary = Summary()
    listeners = (summary.add, *listeners)
    with collector_paused():
        for number, path in enumerate(paths, 1):
            _count(path, summary, listeners)
            if progress:
                progress(number, len(paths))
    return summary


def _count(path: pathlib.Path, summary: Summary, listeners: Iterable[Listener]) -> None:
    """A separate function, so that a trace is freed before the next is read: a large one takes half a gigabyte."""
    try:
        trace = records.read(path)
        calls = list(calls_of(trace))
    except BadTrace as error:
        summary.bad.append((_shown(path.name), cut(str(error))))
        return
    for listener in listeners:
        listener(trace, calls)


def _shown(name: str) -> str:
    """A file name, which may not be valid Unicode, as text."""
    return cut(name.encode("utf-8", "backslashreplace").decode())


def trace_files(folder: pathlib.Path) -> list[pathlib.Path]:
    """The files of a folder that may be traces; raises `NoTraces` if there are none."""
    if not folder.is_dir():
        raise NoTraces(f"There is no folder {folder}. Trace a model first (torch-ttnn stat), or pass another folder.")
    paths = records.files(folder)
    if not paths:
        raise NoTraces(f"{folder} has no traces (*.json). Trace a model into it first (torch-ttnn stat).")
    return paths


def calls_of(trace: Trace) -> Iterator[Call]:
    """The operations of a trace as counted; raises `BadTrace` before any is counted if one is invalid."""
    shape_texts: dict[tuple[int, ...], str] = {}
    value_texts: dict[str, str] = {}
    for number, record in enumerate(trace.records):
        input_size, output_size = _elements(record.inputs), _elements(record.outputs)
        if max(input_size, output_size) > MOST_ELEMENTS:
            raise BadTrace(f"record {number}: too many elements")
        try:
            arguments = {name: _value_text(value, value_texts) for name, value in record.arguments.items()}
        except RecursionError as error:
            raise BadTrace(f"record {number}: an argument is nested too deeply") from error
        shapes = ", ".join([_shape_text(each.shape, shape_texts) for each in record.inputs])
        dtypes = ", ".join(dict.fromkeys([each.dtype for each in record.inputs or record.outputs]))
        yield Call(record, input_size, output_size, shapes, dtypes, arguments)


def _elements(tensors: tuple[TensorFact, ...]) -> int:
    return sum([math.prod(each.shape) for each in tensors])


def _shape_text(shape: tuple[int, ...], known: dict[tuple[int, ...], str]) -> str:
    text = known.get(shape)
    if text is None:
        text = known[shape] = "×".join(map(str, shape)) or "scalar"
    return text


def _value_text(value: Any, known: dict[str, str]) -> str:
    """Cached by `repr`, which is faster than JSON and as unique."""
    key = repr(value)
    text = known.get(key)
    if text is None:
        text = known[key] = value_text(value)
    return text


_encode = json.JSONEncoder(ensure_ascii=False).encode


def value_text(value: Any) -> str:
    """An argument's value as JSON, or `not_jsonable`.

    >>> value_text([1, 1]), value_text("mean"), value_text("not_jsonable")
    ('[1, 1]', '"mean"', 'not_jsonable')
    """
    return NOT_JSONABLE if value == NOT_JSONABLE else _encode(value)


def cut(text: str) -> str:
    """A text of bounded length; different texts stay different."""
    if len(text) <= LONGEST_TEXT:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:8]
    return f"{text[:LONGEST_TEXT]}… ({len(text)} characters, {digest})"
