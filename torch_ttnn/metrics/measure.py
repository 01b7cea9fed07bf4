"""Runs a model by torch and compiled, and tells what was found."""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.fx
import torch.utils._pytree as pytree

from torch_ttnn.backend import compile
from torch_ttnn.compiler.program import Program
from torch_ttnn.metrics.compare import pcc, relative_error
from torch_ttnn.options import TorchTtnnOption

CONVERSIONS = ("ttnn.to_layout", "ttnn.typecast", "ttnn.to_memory_config")


@dataclass
class Measurement:
    """One model, both ways. Times are medians of warm calls in seconds."""

    ops_before: int
    device_ops: int
    host_ops: list[tuple[str, str, str]]  # operation, reason, line of the model
    uploads: int
    downloads: int
    inputs: int  # tensors that the programs are given, weights left out
    outputs: int  # tensors that they give
    conversions: dict[str, int]
    pcc: float
    relative_error: float
    compile_seconds: float
    eager_seconds: float
    compiled_seconds: float
    programs: list[Program] = field(repr=False, default_factory=list)

    @property
    def crosses_only_at_the_ends(self) -> bool:
        """Whether values cross between host and device only as inputs and outputs."""
        return self.uploads <= self.inputs and self.downloads <= self.outputs


def measure(
    model: Callable[..., Any],
    inputs: Sequence[tuple[tuple, dict[str, Any]]],
    options: Any = None,
    repeats: int = 0,
) -> Measurement:
    """Compile a model and call it with each of `inputs` (arguments and keywords, of the same shapes).

    PCC and relative error are the worst of all outputs. With `repeats` both ways are timed as well, in turns.
    """
    chosen = TorchTtnnOption.of(options)
    compiled = compile(model, options=chosen)
    worst, error, seconds = 1.0, 0.0, 0.0
    with torch.no_grad():
        for args, kwargs in inputs:
            its_args, its_kwargs = copy.deepcopy((args, kwargs))  # a model may change what it is given, a cache say
            start = time.perf_counter()
            got = _tensors(compiled(*args, **kwargs))
            seconds = seconds or time.perf_counter() - start
            want = _tensors(model(*its_args, **its_kwargs))
            if len(got) != len(want):
                raise AssertionError(f"the compiled model gives {len(got)} tensors, torch {len(want)}")
            for mine, theirs in zip(got, want):
                if theirs.is_floating_point():
                    worst = min(worst, pcc(mine, theirs))
                    error = max(error, relative_error(mine, theirs))
                elif not torch.equal(mine, theirs):
                    worst = min(worst, 0.0)
        args, kwargs = inputs[0]
        times = _times([lambda: model(*args, **kwargs), lambda: compiled(*args, **kwargs)], repeats)
    return _measurement(chosen.programs, worst, error, seconds, times)


def _measurement(
    programs: Sequence[Program], worst: float, error: float, seconds: float, times: Sequence[float]
) -> Measurement:
    nodes = [node for program in programs for node in program.graph.nodes]
    paths = [node.meta.get("path") for node in nodes]
    host = [
        (str(node.target), node.meta["reason"], node.meta.get("source", "")) for node in nodes if "reason" in node.meta
    ]
    moves = ("ttnn.from_torch", "ttnn.to_torch", *CONVERSIONS)
    return Measurement(
        ops_before=sum(program.ops_before for program in programs),
        device_ops=len([path for path in paths if path and path not in moves]),
        host_ops=host,
        uploads=paths.count("ttnn.from_torch"),
        downloads=paths.count("ttnn.to_torch"),
        inputs=sum(len([node for node in program.lowered.inputs if node is not None]) for program in programs),
        outputs=sum(program.outputs for program in programs),
        conversions={path.removeprefix("ttnn."): paths.count(path) for path in CONVERSIONS},
        pcc=worst,
        relative_error=error,
        compile_seconds=seconds,
        eager_seconds=times[0],
        compiled_seconds=times[1],
        programs=list(programs),
    )


def _tensors(output: Any) -> list[torch.Tensor]:
    if hasattr(output, "to_tuple"):
        output = output.to_tuple()
    return [each for each in pytree.tree_leaves(output) if isinstance(each, torch.Tensor)]


def _times(runs: Sequence[Callable[[], Any]], repeats: int) -> list[float]:
    """Medians of `repeats` calls of each, in turns so that a slow minute of the machine meets all."""
    taken: list[list[float]] = [[] for _ in runs]
    for _ in range(repeats):
        for run, times in zip(runs, taken):
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
    return [statistics.median(times) if times else 0.0 for times in taken]
