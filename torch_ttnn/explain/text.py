"""A report as short text, most important first."""

from __future__ import annotations

import io
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from torch_ttnn.compiler.analysis.memory import Fit
from torch_ttnn.explain import predicted
from torch_ttnn.explain.data import NUMERICS, Move, ProgramReport, Report, bytes_text
from torch_ttnn.perf.program_time import ModelTime, Unpredicted

_INSTALLED = re.compile(r"^\S*/site-packages/")
SHOWN = 12  # rows per table in the summary; the page and the JSON have all


def summary(report: Report) -> Group:
    """The report as a `rich` renderable."""
    parts: list[Any] = [Text(f"{len(report.programs)} program(s) for the {report.target}", style="bold")]
    if report.numerics:
        parts.append(Text(NUMERICS[report.numerics]))
    for program in report.programs:
        parts += list(_program(program))
    if report.missed:
        parts += [Text(), _missed(report)]
    parts += [_memory(report), *predicted.summary(report.times, report.board, SHOWN)]
    parts += [Text(note, style="yellow") for note in report.notes]
    total = sum(report.compile_seconds.values())
    stages = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in report.compile_seconds.items())
    parts.append(Text(f"compiled in {total:.2f} s: {stages}"))
    return Group(*parts)


def plain(report: Report) -> str:
    """The report as plain text."""
    console = Console(file=io.StringIO(), width=120, color_system=None, highlight=False)
    console.print(summary(report))
    return console.file.getvalue()  # type: ignore[attr-defined]


def _program(program: ProgramReport) -> Iterator[Any]:
    device = sum(program.device_ops.values())
    crossings = [move for move in program.moves if move.kind in ("from_torch", "to_torch")]
    moved = bytes_text(sum(move.bytes for move in crossings))
    yield Text()
    yield Text(
        f"{program.name}: {program.ops_before} ATen operations became {device} device operations, "
        f"{len(program.host_ops)} host operations and {len(program.moves)} moves "
        f"({len(crossings)} of them, {moved}, between host and device)",
        style="bold",
    )
    if program.nothing_on_device:
        yield Text(f"  {program.nothing_on_device}", style="red")
    yield _counts("device operations", Counter(program.device_ops))
    if line := predicted.program_line(program):
        yield Text(f"  {line}")
    if program.host_ops:
        yield _host_ops(program)
    if program.moves:
        yield _moves(program.moves)
    if program.border_ops:
        yield _border(program)
    if program.fusions:
        yield _counts("fusions", Counter(fusion.name for fusion in program.fusions))


def _counts(title: str, counts: Counter) -> Text:
    named = [f"{name.removeprefix('ttnn.')} × {count}" for name, count in counts.most_common()]
    return Text(f"  {title}: {', '.join(named) or 'none'}")


def _host_ops(program: ProgramReport) -> Table:
    table = _table("host operations", "op", "times", "reason", "source")
    grouped = Counter((each.op, each.reason, each.source) for each in program.host_ops)
    for (op, reason, source), count in grouped.most_common(SHOWN):
        table.add_row(Text(op), str(count), Text(reason), Text(_INSTALLED.sub("", source)))
    return _with_rest(table, len(grouped))


def _moves(moves: list[Move]) -> Table:
    table = _table("moves", "kind", "times", "bytes", "reason")
    grouped: dict[tuple[str, str], list[int]] = defaultdict(list)
    for move in moves:
        grouped[move.kind, move.reason].append(move.bytes)
    for (kind, reason), sizes in sorted(grouped.items(), key=lambda item: -sum(item[1]))[:SHOWN]:
        table.add_row(Text(kind), str(len(sizes)), bytes_text(sum(sizes)), Text(reason))
    return _with_rest(table, len(grouped))


def _border(program: ProgramReport) -> Text:
    counts = Counter(each.op for each in program.border_ops)
    copied = sum(each.bytes for each in program.border_ops)
    named = ", ".join(f"{name} × {count}" for name, count in counts.most_common())
    return Text(f"  views and copies by the host around moves: {named} ({bytes_text(copied)} copied)")


def _missed(report: Report) -> Table:
    table = _table("left to Python by torch.compile, so in no program", "what", "reason", "source")
    for each in report.missed[:SHOWN]:
        table.add_row(Text(each.kind), Text(each.reason), Text(_INSTALLED.sub("", each.source)))
    return _with_rest(table, len(report.missed))


def _memory(report: Report) -> Group:
    memory = report.memory
    head = Text(
        f"\nmemory: {bytes_text(memory.dram_peak)} of DRAM at the peak, {bytes_text(memory.weights)} of it weights; "
        f"{bytes_text(memory.l1_peak)} of L1 per core at the peak",
        style="bold",
    )
    lines = [
        Text(f"  {fit_text(fit, report.times.get(fit.board))}", style="green" if fit.fits else "red")
        for fit in report.fits
    ]
    problems = [Text(f"  does not fit: {each}", style="red") for each in memory.problems[:SHOWN]]
    return Group(head, *lines, *problems)


def fit_text(fit: Fit, time: ModelTime | Unpredicted | None = None) -> str:
    """Whether a model fits on a board; if it does on one chip, also the time of a traced call."""
    verdict = "fits" if fit.fits else "does not fit"
    share = f"{bytes_text(fit.bytes_needed)} of {bytes_text(fit.bytes_there)}"
    if fit.split:
        how = f"with weights split evenly over {fit.chips} chips"
        return f"{fit.board}: {verdict} {how} ({share} per chip; an estimate)"
    chip = " on one chip" if fit.chips > 1 else ""
    return f"{fit.board}: {verdict} ({share}{chip})" + (predicted.suffix(time) if fit.fits else "")


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 2))
    for column in columns:
        numeric = column in ("times", "bytes")
        table.add_column(column, justify="right" if numeric else "left", overflow="fold", no_wrap=numeric)
    return table


def _with_rest(table: Table, count: int) -> Table:
    if count > SHOWN:
        table.caption = f"and {count - SHOWN} more"
    return table
