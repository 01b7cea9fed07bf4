"""Times of a generation: measured on this machine, with prompts and next tokens apart."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Figures:
    """Of one call of `generate`; rates are None where a program was compiled, or nothing ran.

    prompt_tokens, new_tokens        of all sequences
    prefill_seconds, decode_seconds  from the upload of token ids to logits on the host; decode also counts sampling
    programs, compiled               programs that exist, and those of them that this call compiled
    """

    prompt_tokens: int
    new_tokens: int
    prefill_seconds: float
    decode_seconds: float
    programs: int
    compiled: int


class Recorder:
    """Collects the times of one call of `generate`."""

    def __init__(self) -> None:
        self.begin(0)

    def begin(self, programs: int) -> None:
        self.before = programs
        self.steps: list[tuple[float, float, int, int]] = []
        self.seconds = 0.0

    def start(self) -> float:
        return time.perf_counter()

    def ran(self, started: float, tokens: int, programs: int) -> None:
        self.steps.append((started, time.perf_counter(), tokens, programs))

    def end(self) -> None:
        pass

    def figures(self, runner: Any) -> Figures:
        if not self.steps:
            return Figures(0, 0, 0.0, 0.0, runner.compiled, runner.compiled - self.before)
        first, *rest = self.steps
        return Figures(
            first[2], sum(each[2] for each in rest), first[1] - first[0],
            rest[-1][1] - first[1] if rest else 0.0, runner.compiled, runner.compiled - self.before,
        )  # fmt: skip
