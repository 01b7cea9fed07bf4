"""Outcomes as tables on the terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

UNLIMITED = 10_000  # width in a file or a pipe, where nothing is folded
WIDEST_NAME = 10  # longer names are folded on narrow terminals, so that 80 columns suffice
Columns = Mapping[str, Callable[[Any], str]]  # heading -> text of a successful outcome or a row


def console(stderr: bool = False) -> Console:
    """The output console: as wide as the terminal, unlimited in a file or a pipe."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, emoji=False, highlight=False, width=None if stream.isatty() else UNLIMITED)


def as_json(outcomes: Sequence[Any]) -> int:
    """Print one object per model; returns the exit code."""
    rows = [
        {
            "model": each.name,
            "status": each.status.value,
            "reason": each.reason,
            "seconds": each.seconds,
            "peak_memory": each.peak_memory,
            "result": each.result,
        }
        for each in outcomes
    ]
    print(json.dumps(rows, indent=1))
    return 0 if all(each.ok for each in outcomes) else 1


def show(console: Console, outcomes: Sequence[Any], columns: Columns) -> None:
    """One row per model, then failed models with their reasons."""
    from rich.markup import escape

    good = [each for each in outcomes if each.ok]
    if good:
        console.print(table([each.name for each in good], good, columns))
    failed = [each for each in outcomes if not each.ok]
    for outcome in failed:
        console.print(f"[red]{escape(outcome.name)}[/red] ({outcome.status.value}): {escape(outcome.reason)}")
    console.print(f"{len(good)} of {len(outcomes)} models" + (f", {len(failed)} failed" if failed else ""))


def table(
    names: Sequence[str], items: Sequence[Any], columns: Columns, widest: int = WIDEST_NAME, heading: str = "model"
) -> Table:
    """One line per item, without columns that are empty for all."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    cells = {heading: [text(item) for item in items] for heading, text in columns.items()}
    shown = {heading: texts for heading, texts in cells.items() if any(texts)}
    rendered = Table(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False)
    rendered.add_column(heading, overflow="fold", min_width=min(widest, max(map(len, names), default=0)))
    for each in shown:
        rendered.add_column(
            each, justify="left" if each == "folder" else "right", no_wrap=each != "folder", overflow="fold"
        )
    for name, *texts in zip(names, *shown.values()):
        rendered.add_row(escape(name), *map(escape, texts))
    return rendered


def seconds(value: float) -> str:
    return f"{value:.1f} s" if value >= 0.1 else f"{value * 1e3:.1f} ms"


def gigabytes(value: int) -> str:
    return f"{value / 2**30:.1f} GiB"


def engineering(value: float) -> str:
    """
    >>> engineering(3_642_973_696)
    '3.64 G'
    """
    for power, letter in ((12, "T"), (9, "G"), (6, "M"), (3, "k")):
        if value >= 10**power:
            return f"{value / 10**power:.3g} {letter}"
    return f"{value:g} "
