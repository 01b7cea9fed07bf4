"""The stages of the compiler, in order."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.fx
from torch.utils._python_dispatch import _disable_current_modes

from torch_ttnn.compiler.lower import Lowered, lower
from torch_ttnn.compiler.normalise import normalise
from torch_ttnn.compiler.place import place
from torch_ttnn.compiler.program import Program
from torch_ttnn.compiler.recorder import Recorder
from torch_ttnn.devices import Target
from torch_ttnn.options import TorchTtnnOption


@dataclass
class Compilation:
    """What the stages work on: the captured graph, then the two graphs of the program."""

    captured: torch.fx.GraphModule
    static_inputs: Sequence[int]
    target: Target
    options: TorchTtnnOption
    fake_mode: Any
    graph_module: torch.fx.GraphModule = field(init=False)
    lowered: Lowered | None = None
    program: Program | None = None
    ops_before: int = 0
    fusions: list[Any] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)


def _normalise(compilation: Compilation) -> None:
    compilation.graph_module = normalise(compilation.captured)


def _lower(compilation: Compilation) -> None:
    recorder = Recorder(compilation.target, compilation.options, compilation.fake_mode)
    compilation.lowered = lower(compilation.graph_module, compilation.static_inputs, recorder)


def _place(compilation: Compilation) -> None:
    assert compilation.lowered is not None
    place(compilation.lowered.main)


def _program(compilation: Compilation) -> None:
    assert compilation.lowered is not None
    compilation.program = Program(compilation.lowered, compilation.captured, compilation.target, compilation.options)


STAGES: list[tuple[str, Callable[[Compilation], None]]] = [
    ("normalise", _normalise),
    ("lower", _lower),
    ("place", _place),
    ("program", _program),
]


def compile_graph(compilation: Compilation) -> Program:
    """Run all stages."""
    with _disable_current_modes():  # AOTAutograd compiles under its fake mode; what we make here is real
        for name, stage in STAGES:
            start = time.perf_counter()
            stage(compilation)
            compilation.seconds[name] = time.perf_counter() - start
    assert compilation.program is not None
    compilation.program.seconds = compilation.seconds
    return compilation.program
