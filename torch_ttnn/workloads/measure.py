"""Runs a model with torch and compiled, and compares the two."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.utils._pytree as pytree

from torch_ttnn.backend import compile
from torch_ttnn.compiler.runtime.program import Program
from torch_ttnn.options import TorchTtnnOption
from torch_ttnn.workloads.agreement import Agreement, agreement
from torch_ttnn.workloads.program_counts import counts
from torch_ttnn.workloads.timing import elapsed, interleaved


@dataclass
class Measurement:
    """One model with torch and compiled. Times are medians of warm calls in seconds."""

    ops_before: int
    device_ops: int
    host_ops: list[tuple[str, str, str]]  # operation, reason, line of the model
    uploads: int
    downloads: int
    inputs: int  # input tensors of the programs, without weights
    outputs: int  # output tensors
    conversions: dict[str, int]
    pcc: float
    relative_error: float
    compile_seconds: float
    eager_seconds: float
    compiled_seconds: float
    programs: list[Program] = field(repr=False, default_factory=list)


def measure(
    model: Callable[..., Any],
    inputs: Sequence[tuple[tuple, dict[str, Any]]],
    options: Any = None,
    repeats: int = 0,
) -> Measurement:
    """Compile a model and call it with each of `inputs` (arguments and keywords, of the same shapes).

    PCC and relative error are the worst of all outputs. With `repeats`, interleaved calls of both are timed as well.
    """
    chosen = TorchTtnnOption.of(options)
    compiled = compile(model, options=chosen)
    worst, seconds = Agreement(), 0.0
    with torch.no_grad():
        for args, kwargs in inputs:
            its_args, its_kwargs = copy.deepcopy((args, kwargs))  # a model may modify its arguments, e.g. a cache
            start = time.perf_counter()
            got = _tensors(compiled(*args, **kwargs))
            seconds = seconds or time.perf_counter() - start
            worst = worst.and_(agreement(got, _tensors(model(*its_args, **its_kwargs))))
        args, kwargs = inputs[0]
        runs = [lambda: elapsed(lambda: model(*args, **kwargs)), lambda: elapsed(lambda: compiled(*args, **kwargs))]
        eager, warm = interleaved(runs, repeats).medians
    found = counts(chosen.programs)
    return Measurement(
        ops_before=found.ops_before,
        device_ops=found.device_ops,
        host_ops=found.host_ops,
        uploads=found.uploads,
        downloads=found.downloads,
        inputs=found.inputs,
        outputs=found.outputs,
        conversions=found.conversions,
        pcc=worst.pcc,
        relative_error=worst.relative_error,
        compile_seconds=seconds,
        eager_seconds=eager,
        compiled_seconds=warm,
        programs=list(chosen.programs),
    )


def _tensors(output: Any) -> list[torch.Tensor]:
    if hasattr(output, "to_tuple"):
        output = output.to_tuple()
    return [each for each in pytree.tree_leaves(output) if isinstance(each, torch.Tensor)]
