"""Time that eager mode adds to the programs of single operations: `python benchmarks/eager.py`.

CPU time of this thread, the best of several rounds, so other work on the machine matters little.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from rich import box
from rich.console import Console
from rich.table import Table

from torch_ttnn.eager import programs

CALLS, ROUNDS = 200, 15
Call = Callable[[], object]


def microseconds(call: Call) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.thread_time()
        for _ in range(CALLS):
            call()
        best = min(best, (time.thread_time() - start) / CALLS)
    return best * 1e6


def program_alone(call: Call) -> Call:
    """The program that a call runs, with the inputs of that call."""
    ran: list[Call] = []
    run = programs.OneOperation.run

    def spy(entry: programs.OneOperation, given: programs.Call) -> list[object]:
        inputs = given.inputs
        ran.append(lambda: entry.program.run(inputs))
        return run(entry, given)

    programs.OneOperation.run = spy  # type: ignore[method-assign, assignment]
    try:
        call()
    finally:
        programs.OneOperation.run = run  # type: ignore[method-assign]
    return ran[0]


def calls() -> dict[str, Call]:
    x, y = (torch.randn(32, 32, device="ttnn") for _ in range(2))
    return {
        "x + y": lambda: x + y,
        "x * 2.0": lambda: x * 2.0,
        "relu(x)": lambda: torch.relu(x),
        "x.add_(y)": lambda: x.add_(y),
        "x.t() + y": lambda: x.t() + y,
        "softmax(x)": lambda: torch.softmax(x, -1),
        "x @ y": lambda: x @ y,
    }


def main() -> None:
    torch.set_num_threads(1)
    table = Table(box=box.SIMPLE_HEAD)
    for title in ("operation on [32, 32]", "whole, µs", "program alone, µs", "added, µs"):
        table.add_column(title, justify="left" if title.startswith("operation") else "right")
    with torch.no_grad():
        for name, call in calls().items():
            call()
            alone, whole = microseconds(program_alone(call)), microseconds(call)
            table.add_row(name, f"{whole:.0f}", f"{alone:.0f}", f"{whole - alone:.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
