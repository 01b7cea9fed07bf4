"""The job of `torch-ttnn metrics`: run a model with torch and compiled for the device, and describe both in one row."""

from __future__ import annotations

import copy
import functools
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.fx
import torch.utils._pytree as pytree
from torch import nn

from torch_ttnn import devices
from torch_ttnn.backend import compile
from torch_ttnn.compiler.stages.capture import boxed, compile_captured
from torch_ttnn.jobs.job import load
from torch_ttnn.options import TorchTtnnOption
from torch_ttnn.results.portable_text import portable
from torch_ttnn.results.program_fields import fields_of
from torch_ttnn.results.provenance import versions
from torch_ttnn.results.record import EVAL, FAILS, NEAR, TRAIN, Row, Task
from torch_ttnn.results.variations import captured_variations, tensor_text
from torch_ttnn.workloads import passes
from torch_ttnn.workloads.agreement import Agreement, agreement
from torch_ttnn.workloads.timing import Times, elapsed, interleaved
from torch_ttnn.workloads.trace import ONE_VALUE, Wanted
from torch_ttnn.zoo import ModelEntry, tensors, trained

# Inference with the default options. Gradients of deep ReLU networks are ill-conditioned in bfloat16 on any device:
# torch's own correlate with its float32 gradients by 0.92 in ResNet-18 and by 0.30 in MobileNetV2.
PRECISIONS: Mapping[str, str] = {EVAL: "bfloat16", TRAIN: "float32"}
CALLS = 5  # warm calls that are timed
SECONDS = 60.0  # for all of them together; slow models get fewer calls
# For networks whose batch norms get one value per image: with two images they would return 1 and -1 for any weights.
TRAINING_BATCH = 8
DETAIL_LINES = 30  # of a traceback


@dataclass(frozen=True)
class Conditions:
    """How models are measured."""

    seed: int = 0
    device: str | None = None
    precision: str = "bfloat16"  # of float32 tensors on the device
    threads: int | None = None  # None: as many as the process may use
    calls: int = CALLS
    seconds: float = SECONDS
    tasks: bool = True  # also run the model's task on real data, if it has one
    task_items: int | None = None  # maximum number of items

    def options(self) -> TorchTtnnOption:
        """Without the cache on disk: the first run compiles, and programs know their captured operations."""
        return TorchTtnnOption(device=self.device, precision=self.precision, cache_dir="")


@dataclass
class Subject:
    """A model that is being measured, and the fields known so far."""

    entry: ModelEntry
    model: nn.Module
    conditions: Conditions
    options: TorchTtnnOption = field(default_factory=TorchTtnnOption)
    known: dict[str, Any] = field(default_factory=dict)

    def inputs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Fresh copies of the same inputs: a model may modify its arguments, for instance a cache."""
        return self.entry.inputs(self.conditions.seed)


def measure_model(
    model: str,
    mode: str = EVAL,
    *,
    seed: int = 0,
    device: str | None = None,
    precision: str | None = None,
    threads: int | None = None,
    calls: int = CALLS,
    seconds: float = SECONDS,
    tasks: bool = True,
    task_items: int | None = None,
    **choices: Any,
) -> dict[str, Any]:
    """One row of results as JSON. `model` is a name of `zoo.catalog`; `choices` are batch, shape, length and layers.

    `precision` is that of float32 tensors on the device, by default that of the mode in `PRECISIONS`. The number of
    threads changes the order of torch's sums, and with it the last digits of PCC.
    A model that does not compile or run has a row as well, with the status `fails` and a reason.
    """
    if mode not in PRECISIONS:
        raise ValueError(f"there is no mode {mode!r}; choose {' or '.join(PRECISIONS)}")
    conditions = Conditions(seed, device, precision or PRECISIONS[mode], threads, calls, seconds, tasks, task_items)
    return measured(model, mode, conditions, **choices).to_json()


def measured(model: str, mode: str, conditions: Conditions, **choices: Any) -> Row:
    """The row of one model in one mode."""
    wanted = Wanted(model=model, out="", backward=mode == TRAIN, seed=conditions.seed, **choices)
    row = replace(about(wanted.entry), mode=mode, seed=conditions.seed, device=device_name(conditions.device))
    if conditions.threads is not None:
        torch.set_num_threads(conditions.threads)
    settings = {"precision": conditions.precision, "threads": str(torch.get_num_threads())}
    row = replace(row, versions={**row.versions, **settings})
    try:
        return replace(row, **_run(wanted.entry, mode, conditions), host_peak=host_peak())
    except Exception as error:
        if mode == TRAIN and wanted.entry.batch == 1 and choices.get("batch") is None and ONE_VALUE in str(error):
            return measured(model, mode, conditions, **{**choices, "batch": TRAINING_BATCH})
        known = getattr(error, "known", {})
        return replace(row, **known, **_failure(error), host_peak=host_peak())


def about(entry: ModelEntry) -> Row:
    """The fields known before the model is built."""
    return Row(
        model=entry.name,
        family=entry.family,
        source=entry.source,
        task=entry.task,
        reduced=entry.reduced,
        batch=entry.batch,
        versions=versions(),
    )


def _run(entry: ModelEntry, mode: str, conditions: Conditions) -> dict[str, Any]:
    torch._dynamo.reset()
    torch.manual_seed(conditions.seed)
    subject = Subject(entry, entry.build(seed=conditions.seed), conditions, conditions.options())
    subject.known = {"parameters": passes.parameters(subject.model), "inputs": inputs_text(*subject.inputs())}
    try:
        if mode == TRAIN:
            from torch_ttnn.results.training import train

            return {**subject.known, **train(subject)}
        return {**subject.known, **infer(subject)}
    except Exception as error:
        _remember(error, subject, mode)
        raise


def infer(subject: Subject) -> dict[str, Any]:
    """Inference with torch and on the device."""
    model = subject.model
    want = tensors(forward(model, subject.inputs()))
    compiled = compile(model, options=subject.options)
    got, first = _first(lambda inputs: tensors(forward(compiled, inputs)), subject.inputs())
    compared = subject.entry.compared
    near = agreement(got, want) if compared is None else _of_part(compared.part(model), subject)
    fields = fields_of(subject.options.programs) if subject.options.programs else nothing_captured()
    times = warm_times([functools.partial(forward, model), functools.partial(forward, compiled)], subject)
    return {
        **fields,
        "first_seconds": first,
        **time_fields(times),
        "compared": compared.note if compared else "",
        "pcc": finite(near.pcc),
        "relative_error": finite(near.relative_error),
        "torch_pcc": _torch_pcc(subject) if near.pcc < NEAR else None,
        **task_fields(subject, compiled),
    }


def _of_part(part: nn.Module, subject: Subject) -> Agreement:
    """Agreement of a part of the model, compiled on its own, with torch."""
    compiled = compile(part, options=subject.conditions.options())
    got = tensors(forward(compiled, subject.inputs()))
    return agreement(got, tensors(forward(part, subject.inputs())))


def _torch_pcc(subject: Subject) -> float | None:
    """PCC of torch itself with weights and activations in bfloat16; None if the model does not run that way."""
    compared = subject.entry.compared
    model = compared.part(subject.model) if compared else subject.model
    want = tensors(forward(model, subject.inputs()))
    coarse = copy.deepcopy(model).to(torch.bfloat16)
    try:
        return finite(agreement(tensors(forward(coarse, _in_bfloat16(subject.inputs()))), want).pcc)
    except Exception:  # many models create float32 tensors, which torch does not mix with bfloat16 ones
        return None


def _in_bfloat16(inputs: Any) -> Any:
    return pytree.tree_map_only(
        torch.Tensor, lambda each: each.to(torch.bfloat16) if each.is_floating_point() else each, inputs
    )


def forward(model: Callable[..., Any], inputs: tuple[tuple[Any, ...], Mapping[str, Any]]) -> Any:
    return passes.forward(model, *inputs)


def nothing_captured() -> dict[str, Any]:
    return {"status": FAILS, "reason": "torch.compile captured no operation of the model: nothing ran on the device"}


def _first(call: Callable[[Any], Any], inputs: Any) -> tuple[Any, float]:
    """Result and seconds of the first call, which compiles, prepares weights and runs."""
    found: list[Any] = []
    seconds = elapsed(lambda: found.append(call(inputs)))
    return found[0], seconds


def warm_times(runs: Sequence[Callable[[Any], Any]], subject: Subject) -> Times:
    """Medians of interleaved warm calls with equal inputs; the time to create inputs is not counted."""

    def timed(run: Callable[[Any], Any]) -> float:
        inputs = subject.inputs()
        return elapsed(lambda: run(inputs))

    chosen = subject.conditions
    return interleaved([functools.partial(timed, run) for run in runs], chosen.calls, chosen.seconds, warm_up=True)


def time_fields(times: Times) -> dict[str, Any]:
    original, compiled = times.medians
    return {"original_seconds": original, "compiled_seconds": compiled, "calls": times.calls}


def finite(value: float) -> float | None:
    """The value, or None if JSON has no number for it."""
    return value if value == value and abs(value) != float("inf") else None


# -- tasks with known answers -----------------------------------------------------------------------------------------


def task_fields(subject: Subject, compiled: Any) -> dict[str, Any]:
    """Scores of the model's task on real data with torch and on the device; a remark if its data is not installed."""
    address = trained.TASKS.get(subject.entry.name) if subject.conditions.tasks else None
    if address is None:
        return {}
    try:
        scores = load(address)(subject.model, compiled, limit=subject.conditions.task_items)
        return {"tasks": tuple([Task(**vars(score)) for score in scores])}
    except trained.DataError as error:
        return {"details": portable(f"its task on real data was skipped: {error}")}


# -- failures ---------------------------------------------------------------------------------------------------------


def _failure(error: Exception) -> dict[str, Any]:
    cause = getattr(error, "inner_exception", error)  # torch.compile wraps what a backend raised
    message = f"{type(cause).__name__}: {(str(cause).strip() or 'no message').splitlines()[0]}"
    lines = "".join(traceback.format_exception(type(error), error, error.__traceback__)).splitlines()
    details = "\n".join(lines[-DETAIL_LINES:])
    return {"status": FAILS, "reason": portable(message), "details": portable(details)}


def _remember(error: Any, subject: Subject, mode: str) -> None:
    """Attach the known fields of a model to its error: its programs if it was compiled, else its operations."""
    known = dict(subject.known)
    if subject.options.programs:
        with suppress(Exception):  # the first failure matters more
            known |= fields_of(subject.options.programs)
    else:
        known |= _captured(subject, mode)
    error.known = {name: value for name, value in known.items() if name != "status"}


def _captured(subject: Subject, mode: str) -> dict[str, Any]:
    """Counts of captured operations from a run with torch; zeros if that fails, too."""
    graphs: list[torch.fx.GraphModule] = []

    def keep(graph_module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
        graphs.append(graph_module)
        return boxed(lambda given: graph_module(*given))

    def backend(graph_module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        return compile_captured(graph_module, inputs, forward=keep, backward=keep, inference=keep)

    torch._dynamo.reset()
    with suppress(Exception):  # the first failure matters more
        once = passes.backward if mode == TRAIN else passes.forward
        once(torch.compile(subject.model, backend=backend), *subject.inputs())
    count, unique = captured_variations(graphs)
    return {"ops_before": count, "ops_before_unique": unique}


# -- conditions -------------------------------------------------------------------------------------------------------


def inputs_text(arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> str:
    """
    >>> inputs_text((torch.ones(1, 3),), {"mask": torch.ones(1, 3, dtype=torch.bool)})
    'float32[1, 3], mask=bool[1, 3]'
    """
    shown = [tensor_text(tensor) for argument in arguments for tensor in passes.leaves(argument)]
    for name, value in keywords.items():
        shown += [f"{name}={tensor_text(tensor)}" for tensor in passes.leaves(value)]
    return ", ".join(shown)


def device_name(device: str | None) -> str:
    """
    >>> device_name("emulator:n300")
    'emulator:n300'
    """
    target = devices.resolve(device)
    if target.is_emulator:
        return f"emulator:{target.typing.board.name}"
    number = str(device or "").partition(":")[2] or "0"
    return f"ttnn:{number}"


def host_peak() -> int:
    """Peak memory of this process, in bytes."""
    try:
        import resource
    except ImportError:  # Windows
        import psutil

        return int(psutil.Process().memory_info().peak_wset)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
