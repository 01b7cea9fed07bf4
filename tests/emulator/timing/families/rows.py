"""Rows of performance sheets for tests: what was measured on silicon, and what is predicted."""

from __future__ import annotations

from dataclasses import replace

from ttnn_emulator.enums import MathFidelity
from ttnn_emulator.hardware.boards import find_board
from ttnn_emulator.timing.evaluation.profiler_rows import _grid, spec_of
from ttnn_emulator.timing.pricing import load_families
from ttnn_emulator.timing.programs import PROGRAMS, ProgramRun


def predicted_ns(code: str, inputs: str, output: str, cores: int, grid: int, fidelity: str = "") -> float:
    """The predicted time of a program on a Blackhole with `grid` cores."""
    load_families()
    board = replace(find_board("p150"), grid=_grid(grid))
    specs = tuple([spec_of(text, cores, board) for text in inputs.split("|")])
    run = ProgramRun(
        code,
        specs,
        (spec_of(output, cores, board),),
        cores,
        board,
        MathFidelity[fidelity] if fidelity else None,
    )
    return PROGRAMS[code].timer(run).kernel_ns
