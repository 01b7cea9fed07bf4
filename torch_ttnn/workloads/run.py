"""The job of `torch-ttnn run`: run a model with a backend, compare with eager torch, and return a row."""

from __future__ import annotations

import copy
import functools
import pathlib
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from torch_ttnn.backend import compile
from torch_ttnn.options import TorchTtnnOption
from torch_ttnn.system.file_names import file_stem
from torch_ttnn.workloads import passes
from torch_ttnn.workloads.agreement import pcc
from torch_ttnn.workloads.measure import measure
from torch_ttnn.workloads.program_counts import counts
from torch_ttnn.workloads.timing import elapsed, interleaved
from torch_ttnn.workloads.trace import PROFILES, Wanted

DEVICE = "torch_ttnn"  # the backend that compiles for the device
WARM_CALLS = 3


def run_model(backend: str, device: str | None = None, **arguments: Any) -> dict[str, Any]:
    """Run a model with a backend; the other arguments are the fields of `trace.Wanted`.

    Weights are random such that every one matters (`zoo.initialisation`). With `backward`, gradients are compared as
    well; the model stays in eval mode, because dropout would make two runs differ.
    """
    wanted = Wanted(**arguments)
    entry = wanted.entry
    model = entry.build(wanted.weights, seed=wanted.seed)
    inputs = entry.inputs(wanted.seed)
    row = {
        "model": entry.name,
        "family": entry.family,
        "task": entry.task,
        "source": entry.source,
        "reduced": entry.reduced,
        "backend": backend,
        "parameters": passes.parameters(model),
        "inputs": passes.shapes(*inputs),
        "mode": "backward" if wanted.backward else "forward",
    }
    torch._dynamo.reset()
    runner = functools.partial(_on_device, device=device) if backend == DEVICE else _with_torch
    return {**row, **runner(wanted, backend, model, inputs), "files": _files(wanted)}


def _on_device(wanted: Wanted, backend: str, model: nn.Module, inputs: Any, device: str | None) -> dict[str, Any]:
    """Run compiled for the device: operations by location, and agreement with torch."""
    options = TorchTtnnOption(device=device, gen_graphviz=wanted.graphviz, debug_dir=_pictures(wanted))
    if wanted.backward:
        return {**_gradients(wanted, model, inputs, options), **_programs(options)}
    measured = measure(model, [inputs], options, WARM_CALLS)
    if wanted.profile:
        compiled = compile(model, options=options)
        passes.forward(compiled, *inputs)
        passes.write_profile(lambda: passes.forward(compiled, *inputs), _profile(wanted))
    return {
        "pcc": measured.pcc,
        "relative_error": measured.relative_error,
        "ops_before": measured.ops_before,
        "device_ops": measured.device_ops,
        "host_ops": [list(each) for each in measured.host_ops],
        "uploads": measured.uploads,
        "downloads": measured.downloads,
        "conversions": measured.conversions,
        "first_seconds": measured.compile_seconds,
        "warm_seconds": measured.compiled_seconds,
        "eager_seconds": measured.eager_seconds,
    }


def _gradients(wanted: Wanted, model: nn.Module, inputs: Any, options: TorchTtnnOption) -> dict[str, Any]:
    """Worst PCC of outputs and of gradients against torch, and times."""
    reference = copy.deepcopy(model)
    reference_inputs = copy.deepcopy(inputs)
    start = time.perf_counter()
    want = passes.leaves(passes.backward(reference, *reference_inputs))
    eager = time.perf_counter() - start
    compiled = compile(model, options=options)
    start = time.perf_counter()
    got = passes.leaves(passes.backward(compiled, *inputs))
    first = time.perf_counter() - start
    outputs = [pcc(a, b) for a, b in zip(got, want) if b.is_floating_point()]
    expected = dict(reference.named_parameters())
    gradients = {
        name: pcc(parameter.grad, grad)
        for name, parameter in model.named_parameters()
        if parameter.grad is not None and (grad := expected[name].grad) is not None
    }
    if wanted.profile:
        passes.write_profile(lambda: passes.backward(compiled, *inputs), _profile(wanted))
    worst = min(gradients, key=lambda name: gradients[name], default="")
    return {
        "pcc": min(outputs, default=1.0),
        "gradient_pcc": gradients.get(worst, 1.0),
        "worst_gradient": worst,
        "first_seconds": first,
        "warm_seconds": _warm(lambda: passes.backward(compiled, *inputs)),
        "eager_seconds": eager,
    }


def _programs(options: TorchTtnnOption) -> dict[str, Any]:
    """Operations and moves of the compiled programs."""
    found = counts(options.programs)
    return {
        "ops_before": found.ops_before,
        "device_ops": found.device_ops,
        "host_ops": [list(each) for each in found.host_ops],
        "uploads": found.uploads,
        "downloads": found.downloads,
        "conversions": found.conversions,
    }


def _with_torch(wanted: Wanted, backend: str, model: nn.Module, inputs: Any) -> dict[str, Any]:
    """Run with one of torch's own backends."""
    compiled = model if backend == "eager" else torch.compile(model, backend=backend)
    once = passes.backward if wanted.backward else passes.forward
    start = time.perf_counter()
    once(compiled, *inputs)
    first = time.perf_counter() - start
    warm = _warm(lambda: once(compiled, *inputs))
    if wanted.profile:
        passes.write_profile(lambda: once(compiled, *inputs), _profile(wanted))
    return {"first_seconds": first, "warm_seconds": warm}


def _warm(once: Callable[[], Any]) -> float:
    return interleaved([lambda: elapsed(once)], WARM_CALLS).medians[0]


def _profile(wanted: Wanted) -> pathlib.Path:
    return wanted.folder / PROFILES / f"{file_stem(wanted.entry.name)}.json"


def _pictures(wanted: Wanted) -> pathlib.Path:
    return wanted.folder / "graphviz" / file_stem(wanted.entry.name)


def _files(wanted: Wanted) -> list[str]:
    paths = [_profile(wanted)] if wanted.profile else []
    paths += sorted(path for path in _pictures(wanted).rglob("*") if path.is_file()) if wanted.graphviz else []
    return [str(path.relative_to(wanted.folder)) for path in paths]
