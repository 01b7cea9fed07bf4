"""Times of a generation, of prompts and of next tokens: measured on this machine, predicted for a board."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from torch_ttnn.compiler.runtime.program import Program
from torch_ttnn.generation.runner import Runner
from torch_ttnn.perf.program_time import Mode, Unpredicted, program_times, summed
from torch_ttnn.perf.time_text import duration_text, rate_text, share_text

Tensor = torch.Tensor


@dataclass(frozen=True)
class Phase:
    """Tokens of one phase and the seconds they took. Steps that compiled a program are left out."""

    tokens: int = 0
    seconds: float = 0.0

    @property
    def rate(self) -> float | None:
        """Tokens per second; None if every step compiled a program."""
        return self.tokens / self.seconds if self.tokens else None


@dataclass(frozen=True)
class Predicted:
    """Of one call of a phase's programs on a board, replayed from a trace; of one chip that holds all weights."""

    board: str
    tokens: int
    seconds: float
    error: float

    @property
    def rate(self) -> float:
        return self.tokens / self.seconds


@dataclass(frozen=True)
class Figures:
    """Of the last call of `generate`.

    prefill, decode              measured on this machine, sampling and transfers included
    predicted_*                  for the device of the programs; None for programs that no board runs
    new_tokens                   of all sequences
    programs, compiled           programs that the model has now, and those of them that this call compiled
    cache_bytes                  of keys, values and states on the device
    """

    prefill: Phase
    decode: Phase
    predicted_prefill: Predicted | None
    predicted_decode: Predicted | None
    new_tokens: int
    programs: int
    compiled: int
    cache_bytes: int

    def __str__(self) -> str:
        rows = [
            _row("prefill", self.prefill, self.predicted_prefill),
            _row("decode", self.decode, self.predicted_decode),
        ]
        known = self.predicted_decode or self.predicted_prefill
        head = ("", "measured here", f"predicted for the {known.board}, per call" if known else "")
        widths = [max(len(row[column]) for row in (head, *rows)) for column in range(3)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in (head, *rows)]
        compiled = f", {self.compiled} of them compiled in this call" if self.compiled else ""
        lines.append(
            f"{self.new_tokens} new tokens; {self.programs} programs{compiled}; {_size(self.cache_bytes)} of cache"
        )
        return "\n".join(lines)


def _row(name: str, measured: Phase, predicted: Predicted | None) -> tuple[str, str, str]:
    rate = measured.rate
    here = "compiled in this call" if rate is None else f"{_tokens(rate)}"
    if predicted is None:
        return name, here, ""
    seconds = duration_text(1e9 * predicted.seconds)
    return name, here, f"{_tokens(predicted.rate)}, {seconds} (± {share_text(predicted.error)} of the kernels)"


def _tokens(rate: float) -> str:
    return rate_text(rate).replace("/s", " tokens/s")


def _size(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"


class Step(NamedTuple):
    """One call of a program, with the programs that existed after it."""

    phase: str
    started: float
    ended: float
    sequences: int
    tokens: int
    programs: int


@dataclass
class Recorder:
    """Collects the steps of one call of `generate`."""

    programs_before: int = 0
    cache_bytes: int = 0
    steps: list[Step] = field(default_factory=list)

    def begin(self, programs: int) -> None:
        self.programs_before, self.cache_bytes, self.steps = programs, 0, []

    def ran(self, phase: str, started: float, given: Tensor, programs: int) -> None:
        """Record a step that ends now; audio that is given to an encoder has no tokens."""
        tokens = 0 if given.is_floating_point() else given.numel()
        self.steps.append(Step(phase, started, time.perf_counter(), given.shape[0], tokens, programs))

    def phase(self, *names: str) -> Phase:
        """The tokens and seconds of steps, without those that compiled; sampling counts with the step after it."""
        tokens, seconds, before = 0, 0.0, None
        for step in self.steps:
            compiled = step.programs > (before.programs if before else self.programs_before)
            if step.phase in names and not compiled:
                tokens += step.tokens
                seconds += step.ended - (before.ended if before and step.phase == "decode" else step.started)
            before = step
        return Phase(tokens, seconds)

    def last_tokens(self, *names: str) -> int:
        """The tokens of the last step of each name."""
        last = {step.phase: step.tokens for step in self.steps}
        return sum(last.get(name, 0) for name in names)


PREFILL, DECODE = ("encode", "prefill"), ("decode",)


def figures_of(recorder: Recorder, runner: Runner) -> Figures:
    def forecast(names: tuple[str, ...]) -> Predicted | None:
        programs = [program for name in names for program in runner.last(name)]
        return predicted(programs, recorder.last_tokens(*names))

    return Figures(
        recorder.phase(*PREFILL),
        recorder.phase(*DECODE),
        forecast(PREFILL),
        forecast(DECODE),
        sum(step.sequences for step in recorder.steps if step.phase != "encode"),
        runner.count,
        runner.count - recorder.programs_before,
        recorder.cache_bytes,
    )


def predicted(programs: Sequence[Program], tokens: int) -> Predicted | None:
    """The time of one call of these programs, one after another, on the board that they are compiled for."""
    if not programs or not tokens:
        return None
    board = programs[0].target.typing.board.name
    total = summed([times[board] for times in program_times(programs, [board])], board)
    if isinstance(total, Unpredicted):
        return None
    return Predicted(board, tokens, total.end_to_end(Mode.TRACED).latency_ns / 1e9, total.error)
