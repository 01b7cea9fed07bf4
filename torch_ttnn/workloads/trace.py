"""The job of `torch-ttnn stat`: trace a model into `<out>/raw`, and return a row."""

from __future__ import annotations

import pathlib
import re
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import torch

from torch_ttnn import tracer, zoo
from torch_ttnn.system.file_names import file_stem
from torch_ttnn.tracer.options import PICTURES, RAW
from torch_ttnn.tracer.records import BACKWARD, FORWARD, read
from torch_ttnn.workloads import passes
from torch_ttnn.zoo import catalog
from torch_ttnn.zoo.catalog.torchvision_models import TRAINING_BATCH
from torch_ttnn.zoo.fake import fake

PROFILES = "profile"  # folder within the output
VALUES = ("auto", "fake", "real")
ONE_VALUE = "Expected more than 1 value per channel when training"  # torch's message for a batch norm in train mode


@dataclass(frozen=True)
class Wanted:
    """A model and how to trace or run it. The fields are the arguments of `trace_model`."""

    model: str
    out: str
    backward: bool = False
    shape: Sequence[int] | None = None
    batch: int | None = None
    length: int | None = None
    layers: int | None = catalog.LAYERS
    weights: str | None = None  # "pretrained", or a path
    values: str = "auto"  # one of VALUES
    profile: bool = False
    graphviz: bool = False
    decompositions: str = "none"
    lowering: bool = True  # ask the compiler where each operation runs
    seed: int = 0
    entry: zoo.ModelEntry = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        layers = None if self.weights else self.layers  # weights fit the published size
        entry = catalog.resolve(self.model, shape=self.shape, batch=self._batch(), length=self.length, layers=layers)
        object.__setattr__(self, "entry", entry)

    def _batch(self) -> int | None:
        usual = TRAINING_BATCH.get(self.model.removeprefix("torchvision:")) if self.backward else None
        return self.batch if self.batch is not None or self.shape is not None else usual

    @property
    def folder(self) -> pathlib.Path:
        return pathlib.Path(self.out)

    @property
    def needs_values(self) -> bool:
        """Whether the model must run on real tensors."""
        requested = self.values == "real" or self.profile or self.weights is not None
        return requested or (self.entry.needs_values and self.values == "auto")


def trace_model(**arguments: Any) -> dict[str, Any]:
    """Trace a model; the arguments are the fields of `Wanted`.

    A model runs on fake tensors if possible: the operations are the same, in a fraction of the time and without
    memory. Models whose control flow depends on values, that are profiled or have loaded weights run on real ones.
    """
    wanted = Wanted(**arguments)
    why_real = "its control flow depends on values" if wanted.entry.needs_values else "values were requested"
    if not wanted.needs_values:
        try:
            return _traced(wanted, fake(wanted.entry, seed=wanted.seed), "fake", "")
        except Exception as error:  # the real run shows whether it is an error of the model
            if wanted.values == "fake":
                raise
            why_real = f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"
    return _traced(wanted, _Real(wanted), "real", why_real)


@dataclass
class _Real:
    """A model and inputs with values."""

    wanted: Wanted
    model: Any = None
    arguments: tuple[Any, ...] = ()
    keywords: dict[str, Any] = field(default_factory=dict)

    def __enter__(self) -> _Real:
        entry, seed = self.wanted.entry, self.wanted.seed
        self.model = entry.build(self.wanted.weights, seed=seed, randomise=False)
        self.arguments, self.keywords = entry.inputs(seed)
        return self

    def __exit__(self, *_: object) -> None:
        pass


def _traced(wanted: Wanted, source: AbstractContextManager[Any], values: str, why_real: str) -> dict[str, Any]:
    forget(wanted.entry.name, wanted.folder)
    start = time.perf_counter()
    with source as prepared:
        built = time.perf_counter()
        _trace(wanted, prepared)
        traced = time.perf_counter()
        row = {
            "model": wanted.entry.name,
            "family": wanted.entry.family,
            "task": wanted.entry.task,
            "source": wanted.entry.source,
            "reduced": wanted.entry.reduced,
            "parameters": passes.parameters(prepared.model),
            "inputs": passes.shapes(prepared.arguments, prepared.keywords),
            "mode": "train" if wanted.backward else "eval",
            "values": values,
            "why_real": why_real if values == "real" else "",
            "build_seconds": built - start,
            "trace_seconds": traced - built,
        }
    return {**row, **totals(wanted.entry.name, wanted.folder)}


def _trace(wanted: Wanted, prepared: Any) -> None:
    backend = tracer.backend(
        model_name=wanted.entry.name,
        out_folder=wanted.out,
        decompositions=wanted.decompositions,
        lowering=wanted.lowering,
        gen_graphviz=wanted.graphviz,
    )
    torch._dynamo.reset()
    torch.manual_seed(wanted.seed)  # dropout
    prepared.model.train(wanted.backward)
    compiled = torch.compile(prepared.model, backend=backend)
    once = passes.backward if wanted.backward else passes.forward
    try:
        once(compiled, prepared.arguments, prepared.keywords)
    except Exception as error:
        if ONE_VALUE not in str(error):
            raise
        name = wanted.entry.name
        raise ValueError(
            f"{name} cannot be trained on one image: a batch norm gets one value; pass --batch 2"
        ) from error
    if wanted.profile:
        path = wanted.folder / PROFILES / f"{file_stem(wanted.entry.name)}.json"
        passes.write_profile(lambda: once(compiled, prepared.arguments, prepared.keywords), path)


def forget(model: str, folder: pathlib.Path) -> None:
    """Remove the files of an earlier trace, so that its graphs are not counted again."""
    for path in files(model, folder):
        path.unlink()


def files(model: str, folder: pathlib.Path) -> list[pathlib.Path]:
    """The files of a model's traces, pictures and profile."""
    stem = re.escape(file_stem(model))
    patterns = {
        RAW: rf"({FORWARD}|{BACKWARD})_{stem}_\d+\.json",
        PICTURES: rf"({FORWARD}|{BACKWARD})_{stem}_\d+\.(dot|svg)",
        PROFILES: rf"{stem}\.json",
    }
    return [
        path
        for name, pattern in patterns.items()
        if (folder / name).is_dir()
        for path in sorted((folder / name).iterdir())
        if re.fullmatch(pattern, path.name)
    ]


def totals(model: str, folder: pathlib.Path) -> dict[str, Any]:
    """Totals over the traces of a model."""
    written = files(model, folder)
    traces = [read(path) for path in written if path.parent.name == RAW]
    if not any(trace.records for trace in traces):
        raise ValueError(f"{model} ran, but torch.compile captured no operation of it")
    counts = {phase: sum(len(trace.records) for trace in traces if trace.phase == phase) for phase in ("fw", "bw")}
    return {
        "graphs": sum(trace.phase == FORWARD for trace in traces),
        "forward_ops": counts[FORWARD],
        "backward_ops": counts[BACKWARD],
        "distinct_ops": len({record.op_type for trace in traces for record in trace.records}),
        "flops": sum(record.flops for trace in traces for record in trace.records),
        "files": [str(path.relative_to(folder)) for path in written],
    }
