"""`torch_ttnn.explain`: what the compiler makes of a model, without running it on the device.

The model is compiled as `torch.compile` would compile it. Where a second graph needs what the first one gives, torch
computes it. A model built on torch's meta device is compiled as if its tensors were ordinary ones; they are given
addresses but no memory, so a model of any size can be explained on any machine.
"""

from __future__ import annotations

import dataclasses
import mmap
import os
import time
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.fx
import torch.utils._pytree as pytree
from rich.console import Group

from torch_ttnn.backend import GraphCompiler
from torch_ttnn.compiler.capture import compile_captured
from torch_ttnn.compiler.errors import TorchTtnnError
from torch_ttnn.compiler.memory import Memory, measure
from torch_ttnn.compiler.program import Program
from torch_ttnn.compiler.specialise import Specialised
from torch_ttnn.options import TorchTtnnOption
from torch_ttnn.report import page, text
from torch_ttnn.report.data import Report, describe, total_seconds
from ttnn_emulator.files import replacing

NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)  # Linux; the name came with Python 3.13
UNKNOWN_VALUES = (
    "The model has no values and came as several graphs: zeros stood for what a graph gives, "
    "so a branch that depends on values may go another way."
)


class Explanation:
    """What the compiler made of a model. Print it, or take it apart with `to_json()`; `to_html(path)` writes a page."""

    def __init__(self, report: Report, programs: Sequence[Program]) -> None:
        self.report = report
        self.programs = list(programs)

    @property
    def code(self) -> str:
        """The programs as Python."""
        return "\n\n".join(f"# {program.name}\n{program.code}" for program in self.report.programs)

    @property
    def memory(self) -> Memory:
        return self.report.memory

    def to_json(self) -> dict[str, Any]:
        """Plain dictionaries and lists: `programs`, `memory`, `compile_seconds`, `versions`."""
        return self.report.to_json()

    def to_html(self, path: str | os.PathLike | None = None) -> str:
        """One page that needs nothing else: the graph, memory over the program, tables. Written to `path` if given."""
        written = page.render(self.report)
        if path is not None:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as temporary:
                temporary.write_text(written, encoding="utf-8")
        return written

    def __rich__(self) -> Group:
        return text.summary(self.report)

    def __str__(self) -> str:
        return text.plain(self.report)

    def __repr__(self) -> str:
        return f"<Explanation of {len(self.programs)} program(s)>"


def explain(model: Callable[..., Any], *args: Any, options: Any = None, **kwargs: Any) -> Explanation:
    """Compile a model for these inputs and tell what came of it.

    >>> import torch, torch_ttnn
    >>> from torch_ttnn.explain import explain
    >>> with torch.no_grad():
    ...     explanation = explain(torch.nn.Linear(8, 4), torch.ones(2, 8))
    >>> explanation.to_json()["programs"][0]["host_ops"]
    []
    """
    start = time.perf_counter()
    captured = capture(model, args, kwargs, options)
    return explanation_of(captured.found, time.perf_counter() - start, captured.notes, captured.options.numerics)


def capture(model: Callable[..., Any], args: tuple, kwargs: dict[str, Any], options: Any = None) -> Captured:
    """Compile every graph of a model for these inputs; torch computes whatever the next graph needs."""
    given = TorchTtnnOption.of(options)
    captured = Captured(dataclasses.replace(given, cache_dir="", bypass_compile=False, export_code=None))
    with _addressed(model, args, kwargs) as (inputs, settings, captured.without_values):
        torch.compile(_fresh_caller(), backend=captured, dynamic=False)(model, inputs, settings)
    if not captured.found:
        raise TorchTtnnError("nothing was compiled: the model has no operation on tensors that torch.compile captures")
    return captured


def arguments_of(inputs: Any) -> tuple[tuple, dict[str, Any]]:
    """Arguments of a call, given as one tensor, a sequence of arguments, or a mapping of keyword arguments."""
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    return tuple(inputs) if isinstance(inputs, list | tuple) else (inputs,), {}


def explanation_of(
    programs: Sequence[tuple[str, Program]],
    elapsed: float | None = None,
    notes: Sequence[str] = (),
    numerics: str = "",
) -> Explanation:
    """The explanation of programs that are there already, each with its name; `numerics` is the emulator's mode."""
    seconds = total_seconds([program.seconds for _, program in programs])
    if elapsed is not None:
        seconds = {"capture": max(elapsed - sum(seconds.values()), 0.0), **seconds}
    start = time.perf_counter()
    described = [describe(program, measure(program), name) for name, program in programs]
    seconds["memory"] = time.perf_counter() - start
    target = programs[0][1].target
    report = Report(described, seconds, target.name, tuple(notes), numerics if target.is_emulator else "")
    return Explanation(report, [program for _, program in programs])


def _fresh_caller() -> Callable[..., Any]:
    """A function with a code object of its own: Dynamo keeps what it compiles by code, and must find nothing here."""

    def call(model: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        return model(*args, **kwargs)

    return types.FunctionType(call.__code__.replace(), call.__globals__, "call")


class Captured:
    """A backend that compiles every graph, keeps programs with the inputs of their calls, and lets torch compute."""

    def __init__(self, options: TorchTtnnOption) -> None:
        self.options = options
        self.without_values = False
        self.found: list[tuple[str, Program]] = []
        self.calls: list[tuple[Program, list[Any]]] = []
        self.graphs = 0

    @property
    def notes(self) -> list[str]:
        return [UNKNOWN_VALUES] if self.without_values and self.graphs > 1 else []

    def __call__(self, graph_module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        self.graphs += 1
        number = f" {self.graphs}" if self.graphs > 1 else ""
        return compile_captured(
            graph_module,
            inputs,
            forward=_Collecting(self, f"forward{number}").forward,
            backward=_Collecting(self, f"backward{number}").backward,
            inference=_Collecting(self, f"inference{number}").forward,
        )


class _Collecting(GraphCompiler):
    """Compiles as the backend does, but the result computes with torch."""

    def __init__(self, captured: Captured, name: str) -> None:
        super().__init__(captured.options)
        self.captured = captured
        self.name = name

    def runner(self, specialised: Specialised) -> Callable[[list[Any]], Any]:
        captured, name, graph_module = self.captured, self.name, specialised.graph_module
        if specialised.only is not None:
            captured.found.append((name, specialised.only))

        def run(given: list[Any]) -> Any:
            program = specialised.program_for(given)
            if not any(program is each for _, each in captured.found):
                captured.found.append((name, program))
            captured.calls.append((program, list(specialised.arguments(given))))
            if captured.without_values:
                output = graph_module.graph.output_node()
                return [_addressed_like(each.meta["val"]) if _is_tensor(each) else each for each in output.args[0]]  # type: ignore[union-attr]
            with torch.no_grad():
                return list(graph_module(*given))

        return run


def _is_tensor(item: Any) -> bool:
    return isinstance(item, torch.fx.Node) and isinstance(item.meta.get("val"), torch.Tensor)


# -- models without values --------------------------------------------------------------------------------------------


@contextmanager
def _addressed(model: Any, args: tuple, kwargs: dict[str, Any]) -> Iterator[tuple[tuple, dict[str, Any], bool]]:
    """Tensors on the meta device as ordinary ones while the block runs; whether there were any."""
    made: dict[int, torch.Tensor] = {}

    def stand_in(item: Any) -> Any:
        if not isinstance(item, torch.Tensor) or not item.is_meta:
            return item
        if id(item) not in made:
            twin = _addressed_like(item)
            made[id(item)] = torch.nn.Parameter(twin, item.requires_grad) if _is_parameter(item) else twin
        return made[id(item)]

    inputs, settings = pytree.tree_map(stand_in, (args, kwargs))
    places = list(_tensor_places(model)) if isinstance(model, torch.nn.Module) else []
    held = [place[name] for place, name in places]
    try:
        for place, name in places:
            place[name] = stand_in(place[name])
        yield inputs, settings, bool(made)
    finally:
        for (place, name), original in zip(places, held):
            place[name] = original


def _is_parameter(item: torch.Tensor) -> bool:
    return isinstance(item, torch.nn.Parameter)


def _tensor_places(model: torch.nn.Module) -> Iterator[tuple[dict[str, Any], str]]:
    """Where a model keeps its meta tensors: parameters, buffers, and plain attributes."""
    for module in model.modules():
        for place in (module._parameters, module._buffers, module.__dict__):
            for name, item in list(place.items()):
                if isinstance(item, torch.Tensor) and item.is_meta:
                    yield place, name


def _addressed_like(like: torch.Tensor) -> torch.Tensor:
    """A tensor on the CPU with addresses of its own; its pages are never touched, so they take no memory."""
    size = torch.empty_strided(like.shape, like.stride(), dtype=like.dtype, device="meta").untyped_storage().nbytes()
    if size == 0:
        return torch.empty_strided(like.shape, like.stride(), dtype=like.dtype, device="cpu")
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE)
    flat = torch.frombuffer(pages, dtype=torch.uint8).view(like.dtype)
    return flat.as_strided(tuple(like.shape), tuple(like.stride()))
