"""`torch_ttnn.check`: checks every call of a program with the real `ttnn` on a mock card.

The real library checks arguments and infers output specs without hardware. Each distinct call is checked once, with the
same text as in the program, on tensors created from the compiler's specs.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.fx

import ttnn_emulator
from torch_ttnn.capture.model_call import ModelCall
from torch_ttnn.capture.programs import capture_call
from torch_ttnn.compiler.analysis.memory import specs_of
from torch_ttnn.compiler.errors import TorchTtnnError
from torch_ttnn.compiler.ir.arguments import DeviceMarker, mapped
from torch_ttnn.compiler.ir.describe import dtype_name, shape_and_dtype
from torch_ttnn.compiler.ir.metadata import PATH, PREPARED, SPEC
from torch_ttnn.compiler.stages import emit
from torch_ttnn.explain.data import model_line
from ttnn_emulator import Tensor
from ttnn_emulator.api.recorded import ttnn_version
from ttnn_emulator.conformance import environment, exchange, mock_card
from ttnn_emulator.conformance.real import RealTtnn
from ttnn_emulator.tensors.spec import Spec

REJECTED, DIFFERENT = "rejected", "typed differently"
LARGEST_UPLOAD = 1 << 22  # uploads are checked up to this many elements, because their zeros are allocated
NOT_ASKED = {"ttnn.to_torch": "a mock card has nothing to read"}


class NoRealTtnn(TorchTtnnError):
    """There is no Python environment with the real `ttnn`."""


@dataclass(frozen=True)
class Finding:
    """A call that the real library rejects, or whose result it types differently."""

    verdict: str
    call: str
    arguments: tuple[str, ...]
    ours: str
    real: str
    source: str
    program: str

    def __str__(self) -> str:
        lines = [f"{self.verdict}: {self.call}", *[f"    {each}" for each in self.arguments]]
        lines += (
            [f"    ttnn: {self.real}"]
            if self.verdict == REJECTED
            else [
                f"    ttnn returns {self.real}",
                f"    the compiler expects {self.ours}",
            ]
        )
        return "\n".join([*lines, f"    in {self.program}{', from ' + self.source if self.source else ''}"])


@dataclass
class Check:
    """The real library's answers. `calls` counts all calls, `asked` the distinct ones that were checked."""

    version: str
    calls: int = 0
    asked: int = 0
    findings: list[Finding] = field(default_factory=list)
    not_asked: dict[str, int] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return not self.findings

    @property
    def rejected(self) -> list[Finding]:
        return [each for each in self.findings if each.verdict == REJECTED]

    def __str__(self) -> str:
        lines = [
            f"{self.calls} calls, {self.asked} distinct, checked with ttnn {self.version}: "
            f"{len(self.rejected)} rejected, {len(self.findings) - len(self.rejected)} typed differently"
        ]
        lines += [f"not checked, {count} times: {reason}" for reason, count in self.not_asked.items()]
        return "\n".join([*lines, *map(str, self.findings)])


def check(
    model: Any,
    *inputs: Any,
    args: tuple | None = None,
    kwargs: Mapping[str, Any] | None = None,
    options: Any = None,
    device: Any = None,
    install: bool = False,
    **named: Any,
) -> Check:
    """Compile a model for these inputs and check every call with the real `ttnn`, without hardware.

    The model and its arguments are those of `torch_ttnn.explain`. `install` allows a download of the library (150 MB)
    into a separate environment if no Python has it.
    """
    call = ModelCall.of(model, inputs, named, args=args, kwargs=kwargs, options=options, device=device)
    python = real_python(install=install)
    found = capture_call(call).found
    return check_programs([program for _, program in found], python=python, names=[name for name, _ in found])


def check_programs(
    programs: Iterable[Any], *, python: str | None = None, names: Sequence[str] = (), install: bool = False
) -> Check:
    """Check compiled programs; calls that several of them share are checked once."""
    with Checker(python or real_python(install=install)) as checker:
        checker.put(programs, names)
        return checker.result


class Checker:
    """Checks any number of programs with one release of the real library; every distinct call once."""

    def __init__(self, python: str) -> None:
        self.result = Check(environment.installed_version(python))
        self._python = python
        self._libraries: dict[str, _RealLibrary] = {}

    def __enter__(self) -> Checker:
        return self

    def __exit__(self, *error: object) -> None:
        for library in self._libraries.values():
            library.close()

    def put(self, programs: Iterable[Any], names: Sequence[str] = ()) -> list[Finding]:
        """Check these programs; returns the findings."""
        before = len(self.result.findings)
        for number, program in enumerate(programs):
            board = _mock_board(program.target.typing.board)
            if board not in self._libraries:
                self._libraries[board] = _RealLibrary(self._python, board)
            name = names[number] if number < len(names) else f"program {number + 1}"
            for graph in (program.lowered.prepare, program.lowered.main):
                for node in graph.nodes:
                    if PATH.on(node):
                        _check_call(node, name, self._libraries[board], self.result)
        self.result.asked = sum(library.asked for library in self._libraries.values())
        return self.result.findings[before:]


def real_python(install: bool = False) -> str:
    """The path of a Python that has the real library."""
    version = ttnn_version()
    found = environment.existing_python(version)
    if found or install:
        return found or environment.ttnn_python(version)
    raise NoRealTtnn(
        f"check needs the real ttnn {version}, and no Python that has it was found. Set {environment.PYTHON_VARIABLE} "
        f"to a Python with `pip install ttnn=={version}` (there are wheels for Python "
        f"{' and '.join(reversed(environment.WHEEL_PYTHONS))}), or call check(..., install=True) to create one in "
        f"{environment.cache_folder()}."
    )


def _mock_board(board: Any) -> str:
    """The mock card for a board: the same board, or one with the same chip."""
    if board.name in mock_card.CLUSTERS and board.chips == 1:
        return board.name
    for name, cluster in mock_card.CLUSTERS.items():
        if cluster["arch"].upper() == board.arch.name and cluster["chips"] == 1:
            return name
    raise NoRealTtnn(f"ttnn {ttnn_version()} does not know the chip of {board.name}, so its calls cannot be checked")


# -- one call ---------------------------------------------------------------------------------------------------------


class _RealLibrary:
    """The real library on one mock card; answers are cached."""

    def __init__(self, python: str, board: str) -> None:
        self._real = RealTtnn(python, board)
        self._answers: dict[str, dict[str, Any]] = {}

    @functools.cached_property
    def has_torch(self) -> bool:
        return self._real.ask({"exec": "import torch"})["ok"]

    def ask(self, question: str) -> dict[str, Any]:
        if question not in self._answers:
            self._answers[question] = self._real.ask({"exec": question})
        return self._answers[question]

    @property
    def asked(self) -> int:
        return len(self._answers)

    def close(self) -> None:
        self._real.__exit__(None, None, None)


class _Name(DeviceMarker):
    """A tensor in the text of a call."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


def _check_call(node: torch.fx.Node, program: str, library: _RealLibrary, result: Check) -> None:
    result.calls += 1
    reason = _cannot_ask(node, library)
    if reason:
        result.not_asked[reason] = result.not_asked.get(reason, 0) + 1
        return
    question = _Question(node)
    answer = library.ask(question.text)
    ours = exchange.describe(ttnn_emulator, SPEC[node])
    if answer["ok"] and answer["out"] == ours:
        return
    result.findings.append(
        Finding(
            verdict=DIFFERENT if answer["ok"] else REJECTED,
            call=question.call,
            arguments=tuple(question.arguments),
            ours=str(ours),
            real=str(answer["out"]) if answer["ok"] else f"{answer['type']}: {answer['error']}",
            source=model_line(node),
            program=program,
        )
    )


def _cannot_ask(node: torch.fx.Node, library: _RealLibrary) -> str:
    path = PATH[node]
    if path in NOT_ASKED:
        return f"{path}: {NOT_ASKED[path]}"
    if path == "ttnn.from_torch":
        if not library.has_torch:
            return "ttnn.from_torch: the Python of the real library has no torch"
        val = node.all_input_nodes[0].meta.get("val")
        is_small = isinstance(val, torch.Tensor) and val.numel() <= LARGEST_UPLOAD
        return "" if is_small else "ttnn.from_torch: too large to allocate"
    return ""


class _Question:
    """One call of the program, after lines that create its tensors.

    Tensors are created from their specs. A tensor whose padding a spec cannot express (prepared weights of a
    convolution) is created by the same call as in the program.
    """

    def __init__(self, node: torch.fx.Node) -> None:
        self.arguments: list[str] = []
        self._names: dict[torch.fx.Node, _Name] = {}
        self._lines = ["import exchange"]
        self.call = self._call(node)
        self.text = "\n".join([*self._lines, f"result = {self.call}"])

    def _call(self, node: torch.fx.Node) -> str:
        def named(item: Any) -> Any:
            return self._named(item) if isinstance(item, torch.fx.Node) else item

        return emit.call_text(PATH[node], mapped(node.args, named), mapped(node.kwargs, named))

    def _named(self, node: torch.fx.Node) -> _Name:
        if node not in self._names:
            source = self._source(node)
            name = self._names[node] = _Name(f"t{len(self._names)}")
            self._lines.append(f"{name} = {source}")
            self.arguments.append(f"{name}: {_summary(SPEC.get(node) if SPEC.on(node) else node.meta.get('val'))}")
        return self._names[node]

    def _source(self, node: torch.fx.Node) -> str:
        spec = SPEC.get(node)
        if all(each == each.with_() for each in specs_of(node)):
            return _creation(spec if spec is not None else node.meta.get("val"))
        producer: Any = PREPARED.get(node) or node
        if producer.target is operator.getitem:
            return f"{self._named(producer.args[0])}[{producer.args[1]}]"
        return self._call(producer)


def _creation(item: Any) -> str:
    """Source that creates such a tensor in the process of the real library."""
    if isinstance(item, Tensor):
        return f"exchange.make_tensor(ttnn, device, {_description(item.spec)!r})"
    if isinstance(item, torch.Tensor):
        return f"__import__('torch').zeros({list(item.shape)}, dtype=__import__('torch').{dtype_name(item.dtype)})"
    if isinstance(item, int):
        return repr(item)
    if isinstance(item, list | tuple):
        return f"[{', '.join(map(_creation, item))}]"
    raise TorchTtnnError(f"no tensor can be created from {item!r}")


def _description(spec: Spec) -> list[Any]:
    fields = [list(spec.shape), spec.dtype.name.lower(), spec.layout.name, exchange.describe_memory(spec.memory_config)]
    return fields if spec.on_device else [*fields, "host"]


def _summary(item: Any) -> str:
    if isinstance(item, Tensor):
        return item.spec.brief()
    if isinstance(item, torch.Tensor):
        return f"{shape_and_dtype(item)} host"
    return ", ".join(map(_summary, item)) if isinstance(item, Sequence) else repr(item)
