"""Raw records: one JSON file per traced graph, with one record per operation."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import pathlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from torch_ttnn.system.file_names import file_stem
from ttnn_emulator.atomic_files import replacing

FORMAT, VERSION = "torch_ttnn.trace", 1
FORWARD, BACKWARD = "fw", "bw"
NOT_JSONABLE = "not_jsonable"  # in place of an argument that JSON cannot represent; most are tensors of the graph
LARGEST_FILE = 2 << 30  # bytes; a graph of a hundred thousand operations takes some 60 MB
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class BadTrace(ValueError):
    """A file that is not a complete trace; the message says what is wrong."""


@dataclass(frozen=True)
class TensorFact:
    """An input or output of an operation."""

    shape: tuple[int, ...]
    dtype: str  # without "torch.": float32, int64 ...
    name: str = ""  # of the argument, from the operation's schema; `tensors[0]` for parts of a list

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Record:
    """One operation of a graph."""

    op_type: str  # aten.convolution.default
    inputs: tuple[TensorFact, ...]
    outputs: tuple[TensorFact, ...]
    arguments: dict[str, Any] = field(default_factory=dict)  # by their names in the schema, defaults included
    source: str = ""  # file:line: code of the user's model
    module: str = ""  # encoder.layer.0.attention
    flops: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    lowering: str = ""  # device, host, or decomposed; empty if the compiler was not asked
    reason: str = ""  # why it stays on the host


@dataclass(frozen=True)
class Trace:
    """A traced graph."""

    model: str
    phase: str  # FORWARD or BACKWARD
    graph: int  # its number among the graphs of the model
    records: tuple[Record, ...]
    versions: dict[str, str] = field(default_factory=dict)


def file_name(phase: str, model: str, graph: int) -> str:
    return f"{phase}_{file_stem(model)}_{graph}.json"


def write(trace: Trace, folder: pathlib.Path) -> pathlib.Path:
    """Write a trace under its own name, replacing an existing file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / file_name(trace.phase, trace.model, trace.graph)
    with replacing(path) as temporary:
        temporary.write_text("".join(_text(trace)), encoding="utf-8")
    return path


def claim(model: str, folder: pathlib.Path) -> int:
    """Reserve the next free graph number of this model, safely across threads and processes."""
    folder.mkdir(parents=True, exist_ok=True)
    taken = re.compile(rf"{FORWARD}_{re.escape(file_stem(model))}_(\d+)\.json")
    numbers = [int(found[1]) for name in os.listdir(folder) if (found := taken.fullmatch(name))]
    number = max(numbers, default=-1) + 1
    while True:
        try:
            with open(folder / file_name(FORWARD, model, number), "x"):
                return number
        except FileExistsError:
            number += 1


def read(path: pathlib.Path) -> Trace:
    """Read and validate a trace; raises `BadTrace` for any other file."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise BadTrace(f"larger than {LARGEST_FILE >> 30} GiB")
        text = path.read_bytes()
        _expect(bool(text), "empty: the trace was not finished")
        content = json.loads(text, parse_constant=_reject)
        if _SURROGATE.search(text):
            _reject_surrogates(content)
    except BadTrace:
        raise
    except OSError as error:
        raise BadTrace(error.strerror or str(error)) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise BadTrace(f"not JSON: {error}") from error
    _expect(isinstance(content, dict) and content.get("format") == FORMAT, f"not marked as {FORMAT}")
    _expect(content.get("version") == VERSION, f"of version {content.get('version')!r}, not {VERSION}")
    _expect(content.get("phase") in (FORWARD, BACKWARD), "neither forward nor backward")
    _expect(isinstance(content.get("model"), str), "the model has no name")
    _expect(_is_count(content.get("graph")), "the graph has no number")
    _expect(isinstance(content.get("records"), list), "it has no records")
    versions = content.get("versions", {})
    _expect(
        _is_table(versions) and all(isinstance(each, str) for each in versions.values()), "versions are not strings"
    )
    known: dict[Any, TensorFact] = {}
    records = tuple([_record(number, each, known) for number, each in enumerate(content["records"])])
    return Trace(content["model"], content["phase"], content["graph"], records, versions)


def _text(trace: Trace) -> Iterator[str]:
    model = trace.model.encode("utf-8", "replace").decode()  # no lone surrogates
    head = {"format": FORMAT, "version": VERSION, "model": model, "phase": trace.phase, "graph": trace.graph}
    yield json.dumps({**head, "versions": trace.versions})[:-1] + ', "records": [\n'
    for number, record in enumerate(trace.records):
        yield (",\n" if number else "") + json.dumps(_plain(record), allow_nan=False)
    yield "\n]}\n"


def _plain(record: Record) -> dict[str, Any]:
    """Without empty fields."""
    shown = {each.name: getattr(record, each.name) for each in dataclasses.fields(record)}
    shown["inputs"] = [_plain_tensor(each) for each in record.inputs]
    shown["outputs"] = [_plain_tensor(each) for each in record.outputs]
    always = ("op_type", "inputs", "outputs", "arguments")
    return {name: value for name, value in shown.items() if value or name in always}


def _plain_tensor(tensor: TensorFact) -> dict[str, Any]:
    named = {"name": tensor.name} if tensor.name else {}
    return {**named, "shape": list(tensor.shape), "dtype": tensor.dtype}


TEXTS = ("source", "module", "lowering", "reason")
COUNTS = ("flops", "bytes_in", "bytes_out")


def _record(number: int, content: Any, known: dict[Any, TensorFact]) -> Record:
    where = f"record {number}"
    _expect(isinstance(content, dict) and isinstance(content.get("op_type"), str), f"{where} has no op_type")
    texts = {name: content.get(name, "") for name in TEXTS}
    _expect(
        all(isinstance(each, str) for each in texts.values()), f"{where}: one of {', '.join(TEXTS)} is not a string"
    )
    counts = {name: content.get(name, 0) for name in COUNTS}
    _expect(all(map(_is_count, counts.values())), f"{where}: one of {', '.join(COUNTS)} is not a count")
    arguments = content.get("arguments", {})
    _expect(_is_table(arguments), f"{where}: arguments have no names")
    inputs, outputs = (_tensors(where, content.get(side), known) for side in ("inputs", "outputs"))
    return Record(content["op_type"], inputs, outputs, arguments, **texts, **counts)


def _tensors(where: str, content: Any, known: dict[Any, TensorFact]) -> tuple[TensorFact, ...]:
    _expect(isinstance(content, list), f"{where}: inputs and outputs must be lists")
    return tuple([_tensor(where, each, known) for each in content])


def _tensor(where: str, content: Any, known: dict[Any, TensorFact]) -> TensorFact:
    """`known` are the tensors of the file so far: models repeat the same ones."""
    _expect(isinstance(content, dict), f"{where}: a tensor is not an object")
    shape, dtype, name = content.get("shape"), content.get("dtype"), content.get("name", "")
    _expect(isinstance(shape, list) and all(map(_is_count, shape)), f"{where}: a tensor has no shape")
    _expect(isinstance(dtype, str) and isinstance(name, str), f"{where}: a tensor has no dtype")
    key = (*shape, dtype, name)
    found = known.get(key)
    if found is None:
        _expect(_is_count(math.prod(shape)), f"{where}: a tensor has too many elements")
        found = known[key] = TensorFact(tuple(shape), dtype, name)
    return found


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _reject(constant: str) -> Any:
    raise BadTrace(f"not JSON: {constant}")


def _reject_surrogates(content: Any) -> None:
    """Lone surrogates cannot be encoded, so a report with them could not be written."""
    try:
        json.dumps(content, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise BadTrace("it has lone surrogates") from error


def _expect(condition: bool, message: str) -> None:
    if not condition:
        raise BadTrace(message)


def files(folder: pathlib.Path) -> list[pathlib.Path]:
    """All files of a folder that may be traces, sorted."""
    return sorted(path for path in folder.iterdir() if path.suffix == ".json" and path.is_file())


def read_all(paths: Iterable[pathlib.Path]) -> Iterator[tuple[pathlib.Path, Trace | BadTrace]]:
    """Traces one by one, so that only one is in memory; bad files are yielded as their error."""
    for path in paths:
        try:
            yield path, read(path)
        except BadTrace as error:
            yield path, error
