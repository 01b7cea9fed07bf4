"""The block of results in README.md: totals and a dozen rows, written between two marks and never edited."""

from __future__ import annotations

import pathlib
from collections.abc import Iterable

from torch_ttnn.results.columns import COMMON, rows_table, tasks_table
from torch_ttnn.results.markdown import meanings
from torch_ttnn.results.record import Row
from torch_ttnn.results.sentences import NOTE, measured_on, totals_lines
from torch_ttnn.results.summary import headlines, ordered
from torch_ttnn.results.versus import verdict_line
from ttnn_emulator.atomic_files import replacing

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


class BadMarks(ValueError):
    """A file does not have the two marks that results are written between; the message says what to do."""


def block(rows: Iterable[Row]) -> str:
    """What stands between the marks; equal rows in any order give an equal text."""
    known = ordered(rows)
    shown = headlines(known)
    lines = [NOTE, "", *totals_lines(known), *verdict_line(known), ""]
    if shown:
        lines += [*rows_table(COMMON, shown), ""]
    if tasks := tasks_table(known):
        lines += ["With trained weights and real data:", "", *tasks, ""]
    lines += [
        measured_on(known),
        "",
        "<details><summary>What the columns say</summary>",
        "",
        *meanings(COMMON),
        "",
        "</details>",
        "",
        f"[All {len(known):,} rows](docs/results.md), with the reasons of what stays on the host.",
    ]
    return "\n".join(lines)


def update(path: str | pathlib.Path, rows: Iterable[Row]) -> bool:
    """Write the block into a file; nothing else of it changes. Whether it was another before."""
    path = pathlib.Path(path)
    before = _read(path)
    after = _replaced(before, block(rows), path)
    if after == before:
        return False
    with replacing(path) as temporary:
        temporary.write_text(after, encoding="utf-8", newline="")
    return True


def stale(path: str | pathlib.Path, rows: Iterable[Row]) -> bool:
    """Whether the block in a file is another than these rows give."""
    text = _read(pathlib.Path(path))
    return _replaced(text, block(rows), pathlib.Path(path)) != text


def _read(path: pathlib.Path) -> str:
    """As it is, with the ends of its lines."""
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        raise BadMarks(f"{path} does not exist: make it, with {BEGIN} and {END} where results belong") from None


def _replaced(text: str, content: str, path: pathlib.Path) -> str:
    for mark in (BEGIN, END):
        found = text.count(mark)
        if found != 1:
            wrong = "lacks the mark" if not found else f"has {found} times the mark"
            raise BadMarks(f"{path} {wrong} {mark}: results are written between {BEGIN} and {END}, once each")
    start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    if end < start:
        raise BadMarks(f"{path} has the mark {END} before {BEGIN}: put them the other way around")
    newline = "\r\n" if "\r\n" in text else "\n"
    return text[:start] + newline + content.replace("\n", newline) + newline + text[end:]
