"""The stages of the compiler, in order."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.fx
from torch.utils._python_dispatch import _disable_current_modes

from torch_ttnn.compiler.cache import programs as cache
from torch_ttnn.compiler.complex_numbers.pairs import decompose
from torch_ttnn.compiler.frontend.higher_order import inlined
from torch_ttnn.compiler.frontend.kept_on_host import hidden_from_fusions, overloads_of
from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.ir.dump import dumped
from torch_ttnn.compiler.ir.resident import Residents
from torch_ttnn.compiler.ir.verifier import verify_compilation
from torch_ttnn.compiler.runtime.program import Program
from torch_ttnn.compiler.stages.fuse import fuse
from torch_ttnn.compiler.stages.lower import Lowered, lower
from torch_ttnn.compiler.stages.normalise import count_operations, normalise
from torch_ttnn.compiler.stages.simplify import simplify
from torch_ttnn.devices import Target
from torch_ttnn.options import TorchTtnnOption
from torch_ttnn.system.garbage import collector_paused

log = logging.getLogger("torch_ttnn")

VERIFY = "TORCH_TTNN_VERIFY"  # "1" verifies graphs after every stage, "full" also retypes every call


@dataclass
class Compilation:
    """The state that the stages work on: the captured graph, then the two graphs of the program."""

    captured: torch.fx.GraphModule
    static_inputs: Sequence[int]
    target: Target
    options: TorchTtnnOption
    fake_mode: Any
    residents: Residents = field(default_factory=Residents)
    graph_module: torch.fx.GraphModule = field(init=False)
    lowered: Lowered | None = None
    ops_before: int = 0
    fusions: list[Any] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    key: str = ""  # of the cache on disk


def _normalise(compilation: Compilation) -> None:
    compilation.ops_before = count_operations(compilation.captured.graph)
    compilation.graph_module = normalise(compilation.captured, compilation.static_inputs)
    decompose(compilation.graph_module, compilation.static_inputs)


def _fuse(compilation: Compilation) -> None:
    if not compilation.options.fuse:
        return
    placeholders = compilation.graph_module.graph.find_nodes(op="placeholder")
    hidden = hidden_from_fusions(compilation.graph_module.graph, overloads_of(compilation.options.host_ops))
    with hidden:
        records = fuse(compilation.graph_module, {placeholders[number] for number in compilation.static_inputs})
    compilation.fusions = [
        {"name": record.name, "nodes": list(record.nodes), "result": record.result, "source": record.source}
        for record in records
    ]


def _lower(compilation: Compilation) -> None:
    for may_overwrite in (True, False):
        builder = ProgramBuilder(
            compilation.target, compilation.options, compilation.fake_mode, compilation.residents, may_overwrite
        )
        compilation.lowered = lower(compilation.graph_module, compilation.static_inputs, builder, compilation.captured)
        if not builder.overwrites_too_early:
            return


def _simplify(compilation: Compilation) -> None:
    assert compilation.lowered is not None
    simplify(compilation.lowered.main)


@dataclass(frozen=True)
class Stage:
    """A stage of the compiler; `after` names the stages whose results it needs."""

    name: str
    run: Callable[[Compilation], None]
    after: tuple[str, ...] = ()


STAGES = (
    Stage("normalise", _normalise),
    Stage("fuse", _fuse, after=("normalise",)),  # patterns are closed only where duplicate computations are gone
    Stage("lower", _lower, after=("normalise", "fuse")),  # fusions match ATen
    Stage("simplify", _simplify, after=("lower",)),
)


def compile_graph(compilation: Compilation) -> Program:
    """Load the program from the cache on disk, or run all stages."""
    # AOTAutograd compiles under its fake mode, but we create real tensors. Hardly any object here becomes garbage.
    with _disable_current_modes(), collector_paused():
        compilation.captured = inlined(compilation.captured)
        # Programs of tensors on the device are not cached on disk: their files have no specs of inputs.
        folder = cache.folder(compilation.options) if not compilation.residents else None
        program = _cached_program(compilation, folder) if folder is not None else None
        if program is None:
            program = _run_stages(compilation, folder)
    program.seconds, program.ops_before, program.fusions = (
        compilation.seconds,
        compilation.ops_before,
        compilation.fusions,
    )
    return program


def _cached_program(compilation: Compilation, folder: Path) -> Program | None:
    """The cached program of this graph; None if there is none, or if its file is corrupt."""
    with _timed(compilation, "cache"):
        compilation.key = cache.key_of(
            compilation.captured, compilation.static_inputs, compilation.target, compilation.options
        )
    try:
        with _timed(compilation, "cache"):
            cached = cache.load(folder, compilation.key, compilation.target, compilation.captured.graph)
        if cached is None:
            return None
        lowered, facts = cached
        program = _program(compilation, lowered)
        compilation.ops_before, compilation.fusions = facts["ops_before"], facts["fusions"]
    except Exception as error:  # a corrupt file must not keep a model from compiling
        path = cache.path_of(folder, compilation.key)
        log.warning("the cached program %s cannot be read (%s: %s); recompiling", path, type(error).__name__, error)
        return None
    compilation.lowered = lowered
    return program


def _run_stages(compilation: Compilation, folder: Path | None) -> Program:
    for number, stage in enumerate(STAGES, 1):
        with dumped(compilation, number, stage.name, last=number == len(STAGES)), _timed(compilation, stage.name):
            stage.run(compilation)
        _verify(compilation)
    assert compilation.lowered is not None
    if folder is not None:
        with _timed(compilation, "cache"):
            facts = {"ops_before": compilation.ops_before, "fusions": compilation.fusions}
            cache.store(folder, compilation.key, compilation.lowered, facts)
    return _program(compilation, compilation.lowered)


def _program(compilation: Compilation, lowered: Lowered) -> Program:
    with _timed(compilation, "program"):
        return Program(lowered, compilation.captured, compilation.target, compilation.options)


def _verify(compilation: Compilation) -> None:
    """Verify the graphs after a stage: when debugging the compiler, and in its tests."""
    wanted = os.environ.get(VERIFY) or ("1" if compilation.options.debug else "")
    if wanted:
        verify_compilation(compilation, full=wanted == "full")


@contextmanager
def _timed(compilation: Compilation, name: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    compilation.seconds[name] = compilation.seconds.get(name, 0.0) + time.perf_counter() - start
