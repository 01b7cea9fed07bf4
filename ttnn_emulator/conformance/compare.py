"""Compares the emulator with recorded answers and counts agreements."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import ttnn_emulator as ttnn
from ttnn_emulator.conformance import exchange, recorded
from ttnn_emulator.conformance.case import Case, case_id
from ttnn_emulator.conformance.server import L1_SMALL_SIZE
from ttnn_emulator.hardware.boards import find_board


class EmulatedTtnn:
    """Runs cases on the emulator, with the interface of `RealTtnn`; computes no values."""

    def __init__(self, board: str = "n150") -> None:
        chips = find_board(board).chips
        options: dict[str, Any] = {"l1_small_size": L1_SMALL_SIZE, "board": board, "holds_values": False}
        if chips == 1:
            self.device = ttnn.open_device(device_id=0, **options)
        else:
            ttnn.set_fabric_config(ttnn.FabricConfig.FABRIC_1D)
            self.device = ttnn.open_mesh_device(ttnn.MeshShape(1, chips), **options)

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        answer = exchange.answer(ttnn, self.device, question)
        self.device.clear_program_cache()
        return answer

    def __enter__(self) -> EmulatedTtnn:
        return self

    def __exit__(self, *exc_info: object) -> None:
        ttnn.close_device(self.device)


@dataclass
class Difference:
    """One case on which the emulator and the library disagree."""

    case: Case
    real: dict[str, Any]
    emulated: dict[str, Any]

    @property
    def kind(self) -> str:
        if self.real["ok"] != self.emulated["ok"]:
            return "emulator refuses" if self.real["ok"] else "emulator accepts"
        return "spec"

    def __str__(self) -> str:
        return f"{case_id(self.case)}\n    real: {_brief(self.real)}\n    ours: {_brief(self.emulated)}"


def _brief(answer: dict[str, Any]) -> str:
    return str(answer["out"]) if answer["ok"] else f"{answer['type']}: {answer['error']}"


@dataclass
class Score:
    """Counts of cases, agreements, and refusals by the library, per operation."""

    cases: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    agreed: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    refused: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    differences: list[Difference] = field(default_factory=list)

    def add(self, case: Case, real: dict[str, Any], emulated: dict[str, Any]) -> None:
        op = case["op"]
        self.cases[op] += 1
        self.refused[op] += not real["ok"]
        if agree(real, emulated):
            self.agreed[op] += 1
        else:
            self.differences.append(Difference(case, real, emulated))

    @property
    def total(self) -> int:
        return sum(self.cases.values())

    @property
    def share(self) -> float:
        return sum(self.agreed.values()) / self.total if self.total else 1.0

    @property
    def refused_share(self) -> float:
        return sum(self.refused.values()) / self.total if self.total else 0.0

    def merge(self, other: Score) -> None:
        for op, count in other.cases.items():
            self.cases[op] += count
            self.agreed[op] += other.agreed[op]
            self.refused[op] += other.refused[op]
        self.differences += other.differences


def agree(real: dict[str, Any], emulated: dict[str, Any]) -> bool:
    """Same verdict and, if accepted, equal output specs."""
    if real["ok"] != emulated["ok"]:
        return False
    return not real["ok"] or real["out"] == emulated["out"]


def score(family: str, only: str = "") -> Score:
    """Run every recorded case of a family on the emulator and compare."""
    result = Score()
    with EmulatedTtnn(recorded.header(family)["board"]) as emulated:
        for case, real in recorded.read(family):
            if only and only != case["op"]:
                continue
            result.add(case, real, emulated.ask(case))
    return result
