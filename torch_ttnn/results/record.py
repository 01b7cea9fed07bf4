"""One row of the results: a model run with torch and compiled for the device. Everything that collects, stores,
compares or shows results uses this type."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch_ttnn.errors import UserError

VERSION = 1

ON_DEVICE, WITH_HOST_OPS, FAILS = "device", "host", "fails"  # outcome of a model
STATUSES = (ON_DEVICE, WITH_HOST_OPS, FAILS)
EVAL, TRAIN = "eval", "train"
NEAR = 0.99  # a result with at least this PCC counts as correct
CONVERTED, REMOVED, HOST = "converted", "removed", "host"  # outcome of an operation


class BadRow(UserError, ValueError):
    """The data is not a row of results; the message says where and why."""


@dataclass(frozen=True)
class HostOp:
    """An ATen operation that stayed on the host."""

    op: str  # aten.sort.default
    reason: str
    source: str  # the model's line: file:line: text
    count: int = 1


@dataclass(frozen=True)
class Move:
    """Transfers between host and device, or conversions of layout, dtype or memory on the device."""

    kind: str  # from_torch, to_torch, to_layout, typecast, to_memory_config
    bytes: int  # of all of them together
    reason: str
    count: int = 1


@dataclass(frozen=True)
class Fusion:
    name: str
    count: int


@dataclass(frozen=True)
class Variation:
    """An ATen operation with the shapes, dtypes and arguments of its calls."""

    op: str
    inputs: str  # float32[1, 3, 224, 224], float32[64, 3, 7, 7]
    arguments: str  # stride=[2, 2], padding=[3, 3]; without tensors
    outcome: str  # CONVERTED, REMOVED (no work is left: fused, folded, or an alias) or HOST
    count: int = 1
    reason: str = ""  # of HOST


@dataclass(frozen=True)
class Task:
    """A task with known answers, done by torch and by the device."""

    name: str  # MNIST test set
    metric: str  # accuracy, %
    items: int
    torch: float
    device: float


@dataclass(frozen=True)
class Predicted:
    """Predicted times of one call on a card, in seconds: of one chip, from the timing model, never measured.

    Operations on the host have no predicted time: the sums lack them.
    """

    board: str
    programs: int  # that the device launches
    kernels_seconds: float  # of all programs
    gaps_seconds: float  # between the programs of a trace
    transfers_seconds: float  # of inputs and outputs
    as_is_seconds: float  # a call whose operations the host calls one by one, transfers included
    traced_seconds: float  # a call of a trace, transfers included
    interval_seconds: float  # from call to call of a trace with two queues
    error: float = 0.0  # relative, of the kernels, as the timing model states it
    uncalibrated: float = 0.0  # share of the kernels that no measurement calibrates
    sources: str = ""  # of the compiler and the timing model, as in the versions of a row

    @property
    def device_seconds(self) -> float:
        """From the first program to the last."""
        return self.kernels_seconds + self.gaps_seconds


@dataclass(frozen=True)
class Gradient:
    """Agreement of a parameter's gradient with torch's: the worst of three steps."""

    parameter: str
    pcc: float
    relative_error: float


@dataclass(frozen=True)
class Row:
    """Everything known about one model in one mode.

    Times are medians of warm calls in seconds, without loading, both measured under the same conditions.
    """

    model: str  # the name in the zoo
    mode: str = EVAL
    family: str = ""
    source: str = ""  # torchvision, timm, transformers, ours
    task: str = ""
    reduced: str = ""  # a sentence that says what is smaller than published; empty for full size
    compared: str = ""  # what is compared, if not simply all outputs of the model
    batch: int = 1
    inputs: str = ""  # float32[1, 3, 224, 224]
    parameters: int = 0

    status: str = FAILS
    reason: str = ""  # of a failure, one sentence
    details: str = ""  # of a failure, the end of its traceback or log

    programs: int = 0  # graphs that were compiled
    ops_before: int = 0  # ATen operations of the graphs
    ops_before_unique: int = 0
    ops_remaining: int = 0  # of them, those that the host runs
    ops_remaining_unique: int = 0
    device_ops: int = 0  # TT-NN calls, without moves
    uploads: int = 0  # from_torch of activations in a warm call
    downloads: int = 0
    crossings_within: int = 0  # uploads and downloads that are not inputs or outputs of a graph
    conversions: int = 0  # to_layout, typecast, to_memory_config on the device
    host_ops: tuple[HostOp, ...] = ()
    moves: tuple[Move, ...] = ()
    fusions: tuple[Fusion, ...] = ()
    variations: tuple[Variation, ...] = ()

    first_seconds: float = 0.0  # the first call: compiling, preparing weights, running
    original_seconds: float = 0.0
    compiled_seconds: float = 0.0
    calls: int = 0  # number of warm calls of the medians

    pcc: float | None = None  # worst of all outputs, against float32 torch
    relative_error: float | None = None
    torch_pcc: float | None = None  # if the device's is low: that of torch itself in bfloat16
    tasks: tuple[Task, ...] = ()

    gradient_pcc: float | None = None  # training: worst of all parameters in all steps
    gradients: tuple[Gradient, ...] = ()  # the ten worst
    losses: tuple[float, ...] = ()  # of the steps, on the device
    original_losses: tuple[float, ...] = ()

    dram_peak: int = 0  # bytes on the device
    l1_peak: int = 0
    weights: int = 0
    host_peak: int = 0  # peak memory of the process in bytes

    predicted: Predicted | None = None

    device: str = ""  # emulator:n150, ttnn:0
    seed: int = 0
    versions: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def key(self) -> str:
        """Unique name of a row: `resnet18`, `resnet18 (train)`."""
        return self.model if self.mode == EVAL else f"{self.model} ({self.mode})"

    def to_json(self) -> dict[str, Any]:
        return {"version": VERSION, **dataclasses.asdict(self)}

    @classmethod
    def from_json(cls, content: Any) -> Row:
        """
        >>> Row.from_json(Row("resnet18", pcc=0.5).to_json()).pcc
        0.5
        >>> Row.from_json({"version": 1, "model": "resnet18", "batch": "two"})
        Traceback (most recent call last):
        torch_ttnn.results.record.BadRow: batch should be of type int, not 'two'
        """
        if not isinstance(content, Mapping) or content.get("version") != VERSION:
            raise BadRow(f"not a row of results in version {VERSION}")
        row = _from_json(cls, {name: value for name, value in content.items() if name != "version"}, "")
        if row.status not in STATUSES or row.mode not in (EVAL, TRAIN):
            raise BadRow(f"status {row.status!r} or mode {row.mode!r} is unknown")
        return row


def _from_json(kind: type, content: Any, path: str) -> Any:
    """A dataclass from JSON, every value checked against its type."""
    if not isinstance(content, Mapping):
        raise BadRow(f"{path or 'a row'} should be an object, not {content!r}")
    known = {each.name: each for each in dataclasses.fields(kind)}
    if unknown := sorted(set(content) - set(known)):
        raise BadRow(f"{path or 'a row'} has unknown fields: {', '.join(map(str, unknown))}")
    missing = [
        name
        for name, each in known.items()
        if each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING and name not in content
    ]
    if missing:
        raise BadRow(f"{path or 'a row'} lacks {', '.join(missing)}")
    hints = typing.get_type_hints(kind)
    return kind(**{name: _value(hints[name], value, f"{path}{name}") for name, value in content.items()})


def _value(hint: Any, value: Any, path: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return None if value is None else _value(arguments[0], value, path)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise BadRow(f"{path} should be a list, not {value!r}")
        return tuple(_value(arguments[0], each, f"{path}[{number}]") for number, each in enumerate(value))
    if origin is not None:  # a mapping of texts
        if not isinstance(value, Mapping) or not all(isinstance(each, str) for each in value.values()):
            raise BadRow(f"{path} should map texts to texts, not {value!r}")
        return dict(value)
    if dataclasses.is_dataclass(hint):
        return _from_json(typing.cast(type, hint), value, f"{path}.")
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        raise BadRow(f"{path} should be of type {hint.__name__}, not {value!r}")
    return value
