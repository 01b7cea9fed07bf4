"""Prices of operations: which programs a call launches, and how long each of them takes.

A pricer is registered for the operations that it knows:

    @prices("ttnn.relu", "ttnn.gelu")
    def unary(call: Call) -> list[Launch]: ...

It sees what the operation's plan was made from, never values: specs, arguments, and `work`, which operations that
choose their program attach to their plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.chips import CHIPS, Chip
from ttnn_emulator.timing.launches import Launch


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a device operation.

    name       the operation, e.g. `ttnn.matmul`
    inputs     specs of its tensor arguments in order, by parameter; a list of tensors repeats its name
    outputs    specs of its results
    arguments  all other arguments by parameter
    work       what the operation's plan records of its program, if anything (`Plan.work`)
    """

    name: str
    inputs: tuple[tuple[str, Spec], ...]
    outputs: tuple[Spec, ...]
    arguments: Mapping[str, Any]
    board: Board
    work: Any = None
    chip: Chip = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "chip", CHIPS[self.board.arch])

    def tensor(self, name: str) -> Spec | None:
        """The first tensor passed for a parameter."""
        return next((spec for parameter, spec in self.inputs if parameter == name), None)

    @property
    def tensors(self) -> tuple[Spec, ...]:
        """The specs of all tensor arguments."""
        return tuple([spec for _, spec in self.inputs])


Pricer = Callable[[Call], Sequence[Launch]]

PRICERS: dict[str, Pricer] = {}


def prices(*names: str) -> Callable[[Pricer], Pricer]:
    """Register the pricer of operations."""

    def register(pricer: Pricer) -> Pricer:
        for name in names:
            if name in PRICERS:
                raise ValueError(f"{name} has two pricers")
            PRICERS[name] = pricer
        return pricer

    return register
