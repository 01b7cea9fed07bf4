"""The cost of the timing model, compared with typing the same programs, in one run.

    python benchmarks/timing.py [--models NAMES] [--rounds N]

A compiled program is typed on a device that holds no values, as for its memory; then all kinds of calls that the device
has counted are timed. Rounds alternate, and numbers are medians.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
from rich.console import Console
from rich.table import Table

from torch_ttnn import zoo
from torch_ttnn.capture.programs import capture
from torch_ttnn.compiler.analysis.memory import measure
from ttnn_emulator.execution.listeners import Listener, OperationEvent, listening
from ttnn_emulator.hardware.activity import CallRecord
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.timing.pricing import launches_of_record, load_families

MODELS = "resnet18,bert-large-qa"
LIMIT = 0.3  # of the time of typing


class _Calls(Listener):
    """The kinds of calls of a program."""

    def __init__(self) -> None:
        self.kinds: dict[int, tuple[CallRecord, Board]] = {}

    def ended(self, event: OperationEvent) -> None:
        if event.record is not None and event.device is not None:
            self.kinds[id(event.record)] = event.record, event.device.board


def compare(name: str, rounds: int) -> tuple[int, float, float]:
    """Kinds of calls, seconds of typing, seconds of timing."""
    entry = zoo.find(name)
    arguments, keywords = entry.inputs()
    with torch.no_grad():
        programs = [program for _, program in capture(entry.build(), arguments, keywords).found]
    typing, timing = [], []
    for _ in range(rounds):
        heard = _Calls()
        start = time.perf_counter()
        with listening(heard):
            for program in programs:
                measure(program)
        typing.append(time.perf_counter() - start)
        start = time.perf_counter()
        for record, board in heard.kinds.values():
            launches_of_record(record, board)
        timing.append(time.perf_counter() - start)
    return len(heard.kinds), statistics.median(typing), statistics.median(timing)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=MODELS, help="names of the zoo, separated by commas")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    load_families()
    table = Table("model", "kinds of calls", "typing", "timing", "ratio", "limit", "", title="Timing a typed program")
    for name in options.models.split(","):
        kinds, typing, timing = compare(name, options.rounds)
        ratio = timing / typing
        mark = "[green]met[/]" if ratio <= LIMIT else "[red]exceeded[/]"
        table.add_row(
            name, str(kinds), f"{typing * 1e3:,.1f} ms", f"{timing * 1e3:,.2f} ms", f"{ratio:.3f}", f"{LIMIT}", mark
        )
    Console().print(table)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
