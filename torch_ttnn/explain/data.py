"""The data of an explanation: operations, host operations, moves, fusions, memory and times of compiled programs."""

from __future__ import annotations

import math
import operator
import platform
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
import torch.fx

from torch_ttnn.compiler.analysis.memory import Fit, Memory, fits, spec_bytes, specs_of, together
from torch_ttnn.compiler.frontend.graph_breaks import Missed
from torch_ttnn.compiler.ir.describe import shape_and_dtype
from torch_ttnn.compiler.ir.metadata import MOVE, NUMBER, ORIGIN, PATH, PREPARED, REASON, SOURCE
from torch_ttnn.compiler.ir.nodes import target_name
from torch_ttnn.compiler.ir.source_lines import module_path, source_line
from torch_ttnn.compiler.ir.verifier import beyond_moves
from torch_ttnn.explain import predicted
from torch_ttnn.explain.border import BorderOp, border_ops
from torch_ttnn.perf.program_time import Times, summed
from ttnn_emulator.api.recorded import ttnn_version

# Calls that only connect two operations. A typecast is one as well, unless the model itself has it.
MOVES = frozenset({"ttnn.from_torch", "ttnn.to_torch", "ttnn.to_layout", "ttnn.to_memory_config", "ttnn.to_dtype"})
CASTS = frozenset({"ttnn.typecast"})
_CALLER = f"{Path(__file__).parent.parent / 'capture' / 'programs.py'}:"  # it calls the model and is not part of it
ATEN_CASTS = ("aten._to_copy", "aten.to.", "prims.convert_element_type")


# What each numerics mode of the emulator computes, and the cost of the next more exact one (docs/numerics.md).
NUMERICS = {
    "fast": (
        "results are from fast numerics: rounded between operations as on the chip, computed within them in float32;\n"
        'options={"numerics": "exact"} computes bit for bit as the chip and takes some 10 to 100 times as long'
    ),
    "auto": (
        "results are from auto numerics: bit-exact where an operation has up to 8 million products,\n"
        "beyond that rounded between operations as on the chip and computed within them in float32"
    ),
    "exact": "results are from exact numerics: bit-exact in every operation",
}


@dataclass(frozen=True)
class HostOp:
    """An ATen operation left to torch."""

    op: str
    reason: str
    source: str


@dataclass(frozen=True)
class Move:
    """A call that only connects two operations: its kind, its bytes, and its reason."""

    kind: str
    bytes: int
    reason: str
    node: str = ""
    source: str = ""


@dataclass(frozen=True)
class FusionView:
    """A fusion and the operations that it replaced."""

    name: str
    replaced: tuple[str, ...]
    source: str


@dataclass(frozen=True)
class NodeView:
    """One node of the drawn graph. `kind`: input, device, host, move, output."""

    name: str
    op: str
    kind: str
    inputs: tuple[str, ...]
    weights: tuple[str, ...] = ()
    spec: str = ""
    module: str = ""
    source: str = ""
    note: str = ""


@dataclass(frozen=True)
class ProgramReport:
    """One program. `device_ops` counts `ttnn` calls without moves, `ops_before` operations of the captured graph."""

    name: str
    device_ops: dict[str, int]
    host_ops: list[HostOp]
    moves: list[Move]
    fusions: list[FusionView]
    ops_before: int
    code: str
    nodes: list[NodeView]
    memory: Memory
    seconds: dict[str, float] = field(default_factory=dict)
    border_ops: list[BorderOp] = field(default_factory=list)  # views and copies by the host around moves
    board: str = ""  # that the program is compiled for
    times: Times = field(default_factory=dict)  # predicted, by board

    @property
    def nothing_on_device(self) -> str:
        """A sentence if the device computes nothing in a call, else empty."""
        if self.device_ops:
            return ""
        left = f"{len(self.host_ops)} operations and {len(self.border_ops)} views and copies run on the host"
        return f"nothing of {self.name} runs on the device: {left}"


@dataclass(frozen=True)
class Report:
    """All programs of one model."""

    programs: list[ProgramReport]
    compile_seconds: dict[str, float]
    target: str = ""
    notes: tuple[str, ...] = ()
    numerics: str = ""  # numerics mode of the emulator; empty for a card
    missed: tuple[Missed, ...] = ()  # what Dynamo left to Python, and no program contains

    @property
    def memory(self) -> Memory:
        return together([program.memory for program in self.programs])

    @property
    def fits(self) -> list[Fit]:
        return fits(self.memory)

    @property
    def board(self) -> str:
        """The board that the programs are compiled for."""
        return self.programs[0].board if self.programs else ""

    @cached_property
    def times(self) -> predicted.Boards:
        """Predicted times of all programs together, by board."""
        boards = self.programs[0].times if self.programs else ()
        return {board: summed([each.times[board] for each in self.programs], board) for board in boards}

    @property
    def versions(self) -> dict[str, str]:
        return {
            "torch_ttnn": _version("torch_ttnn"),
            "torch": torch.__version__,
            "ttnn": ttnn_version(),
            "python": platform.python_version(),
        }

    def to_json(self) -> dict[str, Any]:
        memory = self.memory
        return {
            "programs": [_program_json(program) for program in self.programs],
            "memory": {"dram_peak": memory.dram_peak, "l1_peak": memory.l1_peak, "weights": memory.weights},
            "predicted": predicted.to_json(self.times),
            "missed": [{"kind": each.kind, "reason": each.reason, "source": each.source} for each in self.missed],
            "compile_seconds": dict(self.compile_seconds),
            "numerics": self.numerics,
            "versions": self.versions,
        }


def _program_json(program: ProgramReport) -> dict[str, Any]:
    return {
        "device_ops": dict(program.device_ops),
        "host_ops": [{"op": each.op, "reason": each.reason, "source": each.source} for each in program.host_ops],
        "moves": [{"kind": each.kind, "bytes": each.bytes, "reason": each.reason} for each in program.moves],
        "border_ops": [{"op": each.op, "bytes": each.bytes, "reason": each.reason} for each in program.border_ops],
        "fusions": [
            {"name": each.name, "replaced": list(each.replaced), "source": each.source} for each in program.fusions
        ],
        "ops_before": program.ops_before,
        "predicted": {**predicted.to_json(predicted.times_of(program)), "calls": predicted.calls_json(program)},
        "code": program.code,
    }


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        import torch_ttnn

        return torch_ttnn.__version__


# -- one program ------------------------------------------------------------------------------------------------------


def describe(program: Any, memory: Memory, name: str = "program", times: Times | None = None) -> ProgramReport:
    """Everything about one compiled program; `times` are predicted."""
    nodes = list(program.graph.nodes)
    calls = [node for node in nodes if node.op == "call_function"]
    kinds = {node: kind_of(node) for node in nodes}
    paths = [PATH[node] for node in calls if kinds[node] == "device" and PATH.on(node)]
    return ProgramReport(
        name=name,
        device_ops=dict(Counter(paths).most_common()),
        host_ops=[_host_op(node) for node in calls if REASON.on(node)],
        moves=[_move(node) for node in calls if kinds[node] == "move" and PATH.on(node)],
        fusions=[_fusion(each) for each in program.fusions],
        ops_before=program.ops_before,
        code=program.code,
        nodes=[_view(node, kinds[node]) for node in nodes if kinds[node] != "weight"],
        memory=memory,
        seconds=dict(program.seconds),
        border_ops=border_ops(program.graph, target_name, _why_downloaded, model_line),
        board=program.target.typing.board.name,
        times=times or {},
    )


def kind_of(node: torch.fx.Node) -> str:
    """input, weight, output, host, move or device."""
    if node.op == "placeholder":
        return "weight" if PREPARED.on(node) else "input"
    if node.op == "output":
        return "output"
    if REASON.on(node):
        return "host"
    if MOVE.on(node) or PATH.get(node) in MOVES:
        return "move"
    if node.target is operator.getitem:
        return kind_of(node.args[0])  # type: ignore[arg-type]
    if PATH.get(node) in CASTS and not _is_cast_of_model(node):
        return "move"
    return "device" if PATH.on(node) else "host"


def _is_cast_of_model(node: torch.fx.Node) -> bool:
    origin = ORIGIN.get(node)
    return origin is not None and str(origin.target).startswith(ATEN_CASTS)


def _host_op(node: torch.fx.Node) -> HostOp:
    return HostOp(target_name(node), REASON[node], model_line(node))


def model_line(node: torch.fx.Node) -> str:
    """The source line of the model for a node of a program; empty if its stack has only lines of torch."""
    origin = ORIGIN.get(node)
    found = source_line(origin) if isinstance(origin, torch.fx.Node) else SOURCE.get(node) or ""
    return "" if found.startswith(_CALLER) else found


def _fusion(record: dict[str, Any]) -> FusionView:
    source = record["source"]
    return FusionView(record["name"], tuple(record["nodes"]), "" if source.startswith(_CALLER) else source)


def _move(node: torch.fx.Node) -> Move:
    path = PATH[node]
    specs = specs_of(node) or [spec for each in node.all_input_nodes for spec in specs_of(each)]
    reason = _REASONS.get(path, _why_converted)(node)
    return Move(path.removeprefix("ttnn."), sum(map(spec_bytes, specs)), reason, node.name, model_line(node))


def _why_uploaded(node: torch.fx.Node) -> str:
    producers = beyond_moves(node.all_input_nodes, lambda each: each.all_input_nodes)
    return f"comes from {_listed(map(_brief, producers))}"


def _why_downloaded(node: torch.fx.Node) -> str:
    consumers = beyond_moves(node.users, lambda each: each.users)
    return f"goes to {_listed(map(_brief, consumers))}" if consumers else "goes to the host"


def _why_converted(node: torch.fx.Node) -> str:
    before = [spec for each in node.all_input_nodes for spec in specs_of(each)]
    after = specs_of(node)
    consumers = _listed([_brief(user) for user in node.users])
    if not before or not after:
        return f"for {consumers}"
    changes = [
        f"{old} to {new}"
        for old, new in (
            (before[0].dtype.name.lower(), after[0].dtype.name.lower()),
            (before[0].layout.name, after[0].layout.name),
            (before[0].memory_config.brief(), after[0].memory_config.brief()),
        )
        if old != new
    ]
    return f"{', '.join(changes) or 'a copy'} for {consumers}"


_REASONS = {"ttnn.from_torch": _why_uploaded, "ttnn.to_torch": _why_downloaded}


def _brief(node: torch.fx.Node) -> str:
    if node.op == "placeholder":
        return f"input {NUMBER[node]} of the graph" if NUMBER.on(node) else "a weight kept on the host"
    if node.op == "output":
        return "an output of the graph"
    if node.target is operator.getitem:
        return _brief(node.args[0])  # type: ignore[arg-type]
    return PATH.get(node) or f"the host op {target_name(node)}"


def _listed(items: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(items))
    shown = distinct[:3]
    more = len(distinct) - len(shown)
    return " and ".join(shown) + (f" and {more} more" if more else "")


def _view(node: torch.fx.Node, kind: str) -> NodeView:
    inputs = list(dict.fromkeys(node.all_input_nodes))
    origin = ORIGIN.get(node)
    return NodeView(
        name=node.name,
        op=_label(node),
        kind=kind,
        inputs=tuple([each.name for each in inputs if kind_of(each) != "weight"]),
        weights=tuple([f"{each.name} {_spec_text(each)}" for each in inputs if kind_of(each) == "weight"]),
        spec=_spec_text(node),
        module=module_path(origin) if isinstance(origin, torch.fx.Node) else "",
        source=model_line(node) if node.op == "call_function" else "",
        note=REASON.get(node) or "",
    )


def _label(node: torch.fx.Node) -> str:
    if node.op in ("placeholder", "output"):
        return node.name
    if node.target is operator.getitem:
        return f"[{node.args[1]}]"
    return PATH.get(node) or target_name(node)


def _spec_text(node: torch.fx.Node) -> str:
    specs = specs_of(node)
    if specs:
        return "; ".join(spec.brief() for spec in specs)
    vals: list[Any] = node.meta["val"] if isinstance(node.meta.get("val"), tuple | list) else [node.meta.get("val")]
    tensors = [each for each in vals if isinstance(each, torch.Tensor)]
    return "; ".join(f"{shape_and_dtype(each)} host" for each in tensors)


# -- numbers as text --------------------------------------------------------------------------------------------------


def bytes_text(count: int) -> str:
    """
    >>> bytes_text(1536)
    '1.5 KiB'
    """
    if count < 1024:
        return f"{count} B"
    step = min(int(math.log(count, 1024)), 4)
    return f"{count / 1024**step:.1f} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[step]}"


def total_seconds(parts: Sequence[dict[str, float]]) -> dict[str, float]:
    """Compile times of several programs, summed per stage."""
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return dict(total)
