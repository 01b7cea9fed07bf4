"""Programs on the chip by the profiler's names, and the functions that predict their time.

    @times("HaloDeviceOperation", family="halo")
    def halo(run: ProgramRun) -> Launch: ...

An operation may launch several programs; `calls.py` has the operations.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ttnn_emulator.enums import MathFidelity
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.chips import CHIPS, Chip
from ttnn_emulator.timing.launches import Launch


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """One program: what it reads and writes, and how many cores it uses.

    code        the profiler's OP CODE
    settings    what specs do not tell, in a record of the program's family; None if it is not known
    attributes  the profiler's text of the operation's attributes, for rows of a performance sheet
    """

    code: str
    inputs: tuple[Spec, ...]
    outputs: tuple[Spec, ...]
    cores: int
    board: Board
    fidelity: MathFidelity | None = None
    settings: Any = None
    attributes: str = ""
    chip: Chip = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "chip", CHIPS[self.board.arch])


Timer = Callable[[ProgramRun], Launch]


@dataclass(frozen=True, slots=True)
class TimedProgram:
    """The function that times a program.

    family    what it is calibrated with
    settings  the class of its settings for programs that the emulator planned; None if it has none
    """

    family: str
    timer: Timer
    settings: type | None = None


PROGRAMS: dict[str, TimedProgram] = {}


def times(*codes: str, family: str, settings: type | None = None) -> Callable[[Timer], Timer]:
    """Register the function that times programs; older names of a program may follow its name."""

    def register(function: Timer) -> Timer:
        def timer(run: ProgramRun) -> Launch:
            return function(run).of(run.inputs, run.outputs)

        functools.update_wrapper(timer, function)
        for code in codes:
            if code in PROGRAMS:
                raise ValueError(f"{code} is timed twice")
            PROGRAMS[code] = TimedProgram(family, timer, settings)
        return timer

    return register


def family_of(code: str) -> str:
    """The family of a program; its own name if nothing times it."""
    found = PROGRAMS.get(code)
    return code if found is None else found.family
