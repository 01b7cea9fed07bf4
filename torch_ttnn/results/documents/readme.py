"""The results block in README.md: totals and a dozen rows, generated between two markers and never edited."""

from __future__ import annotations

import pathlib
from collections.abc import Iterable

from torch_ttnn.errors import UserError
from torch_ttnn.results.documents.columns import COMMON, rows_table, tasks_table
from torch_ttnn.results.documents.markdown import meanings
from torch_ttnn.results.documents.sentences import NOTE, measured_on, predicted_by, totals_lines
from torch_ttnn.results.documents.versus_older import verdict_line
from torch_ttnn.results.record import Row
from torch_ttnn.results.summary import headlines, ordered
from ttnn_emulator.atomic_files import replacing

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


class BadMarkers(UserError, ValueError):
    """A file lacks the two markers that results are written between; the message says what to do."""


def block(rows: Iterable[Row]) -> str:
    """The text between the markers; the order of rows does not matter."""
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
        *([text, ""] if (text := predicted_by(known)) else []),
        "<details><summary>Columns</summary>",
        "",
        *meanings(COMMON),
        "",
        "</details>",
        "",
        f"[All {len(known):,} rows](docs/results.md), with the reasons why operations stay on the host.",
    ]
    return "\n".join(lines)


def update(path: str | pathlib.Path, rows: Iterable[Row]) -> bool:
    """Replace the block in a file; returns whether it changed."""
    path = pathlib.Path(path)
    before = _read(path)
    after = _replaced(before, block(rows), path)
    if after == before:
        return False
    with replacing(path) as temporary:
        temporary.write_text(after, encoding="utf-8", newline="")
    return True


def stale(path: str | pathlib.Path, rows: Iterable[Row]) -> bool:
    """Whether the block in a file differs from that of these rows."""
    text = _read(pathlib.Path(path))
    return _replaced(text, block(rows), pathlib.Path(path)) != text


def _read(path: pathlib.Path) -> str:
    """The text with its line endings unchanged."""
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        raise BadMarkers(f"{path} does not exist: create it, with {BEGIN} and {END} where the results belong") from None


def _replaced(text: str, content: str, path: pathlib.Path) -> str:
    for marker in (BEGIN, END):
        found = text.count(marker)
        if found != 1:
            wrong = "lacks the marker" if not found else f"has {found} times the marker"
            raise BadMarkers(f"{path} {wrong} {marker}: results are written between {BEGIN} and {END}, once each")
    start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    if end < start:
        raise BadMarkers(f"{path} has the marker {END} before {BEGIN}: swap them")
    newline = "\r\n" if "\r\n" in text else "\n"
    return text[:start] + newline + content.replace("\n", newline) + newline + text[end:]
