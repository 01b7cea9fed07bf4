"""The full results table as Markdown: `docs/results.md`, generated from rows and never edited."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch_ttnn.results.documents import markdown as md
from torch_ttnn.results.documents.columns import (
    CHANGED,
    COMMON,
    EVALUATED,
    LOSSES,
    MEMORY,
    PARAMETERS,
    TRAINED,
    rows_table,
    tasks_table,
)
from torch_ttnn.results.documents.markdown import Column
from torch_ttnn.results.documents.sentences import NOTE, measured_on, predicted_by, totals_lines
from torch_ttnn.results.documents.versus_older import left_out, versus_peer
from torch_ttnn.results.record import EVAL, FAILS, NEAR, TRAIN, Row
from torch_ttnn.results.summary import accuracy, families, is_near, ordered

WIDEST = 400  # characters of a reason shown in a cell
INFERENCE = "A call of the model without gradients."
TRAINING = (
    "Three optimizer steps, forward and backward compiled for the device in float32 (the option `precision`). In each "
    "step, gradients are compared parameter by parameter. Operations and moves are those of the forward and the "
    "backward graph."
)
INACCURATE = (
    "The last column is torch itself in bfloat16 on this CPU, in training under `torch.autocast`: where it is low as "
    "well, the network amplifies rounding errors."
)
TASKS = "Trained weights and real data, with torch in float32 and on the device: PCC on random weights is not accuracy."

Lines = list[str]


def document(rows: Iterable[Row]) -> str:
    """The text of `docs/results.md`; the order of rows does not matter."""
    known = ordered(rows)
    sections = [
        _head(known),
        ["## Columns", "", *md.meanings(COMMON), *md.meanings([LOSSES, PARAMETERS, MEMORY]), ""],
        _rows("Inference", INFERENCE, EVALUATED, [row for row in known if row.mode == EVAL]),
        _rows("Training", TRAINING, TRAINED, [row for row in known if row.mode == TRAIN]),
        _section("Tasks with real data", TASKS, tasks_table(known)),
        _families(known),
        versus_peer(known),
        _inaccurate(known),
        _host_ops(known),
        _failures(known),
        _changed(known),
        left_out(known),
    ]
    return "\n".join(line for section in sections for line in section).rstrip() + "\n"


def _head(rows: Sequence[Row]) -> Lines:
    return [
        "# Results",
        "",
        NOTE,
        "",
        "Every model runs with torch and compiled. This page is generated from `results/results.parquet`, which "
        "contains one whole run. To measure again: `torch-ttnn metrics --all --mode both --threads 1` measures every "
        "model of the zoo, and `torch-ttnn results metrics --keep --pages` writes both.",
        "",
        measured_on(rows),
        "",
        *([text, ""] if (text := predicted_by(rows)) else []),
        *totals_lines(rows),
        "",
    ]


def _section(title: str, text: str, lines: Lines) -> Lines:
    """A heading, a sentence and a table; empty if the table is empty."""
    if not lines:
        return []
    return [f"## {title}", "", *([text, ""] if text else []), *lines, ""]


def _rows(title: str, text: str, columns: Sequence[Column], rows: Sequence[Row]) -> Lines:
    return _section(f"{title} ({len(rows):,})", text, rows_table(columns, rows) if rows else [])


def _table(titles: str, lines: Sequence[Sequence[str]]) -> Lines:
    """A table with these headings (numeric ones end with #); empty if there are no lines."""
    columns = [Column(title.rstrip("#"), "", number=title.endswith("#")) for title in titles.split(" | ")]
    return md.table(columns, lines) if lines else []


def _families(rows: Sequence[Row]) -> Lines:
    lines = [
        [
            md.plain(family.name) or md.UNKNOWN,
            *[f"{count:,}" for count in (its.rows, its.on_device, its.with_host_ops, its.failing)],
            md.pcc(accuracy(its.worst) if its.worst else None),
        ]
        for family in families(rows)
        if (its := family.totals).rows
    ]
    titles = "Family | Models# | All on device# | With host ops# | Fail# | Lowest PCC#"
    return _section("Inference by family", "", _table(titles, lines))


def _inaccurate(rows: Sequence[Row]) -> Lines:
    found = [row for row in rows if row.status != FAILS and not is_near(row)]
    lines = [
        [md.plain(row.key), md.pcc(accuracy(row)), _number(row.relative_error), md.pcc(row.torch_pcc)]
        for row in sorted(found, key=lambda row: accuracy(row) or 0.0)
    ]
    titles = "Row | PCC# | Relative error of outputs# | PCC of torch in bfloat16#"
    return _section(f"Rows with a PCC below {NEAR}", INACCURATE, _table(titles, lines))


def _host_ops(rows: Sequence[Row]) -> Lines:
    lines = [
        [
            md.plain(row.key),
            md.plain(each.op),
            f"{each.count:,}",
            _short(each.reason),
            _short(each.source),
        ]
        for row in rows
        for each in row.host_ops
    ]
    titles = "Row | Operation | Times# | Reason | Line of the model"
    return _section("Operations that stay on the host", "", _table(titles, lines))


def _failures(rows: Sequence[Row]) -> Lines:
    lines = [[md.plain(row.key), _short(row.reason)] for row in rows if row.status == FAILS]
    return _section("Rows that fail", "", _table("Row | Reason", lines))


def _changed(rows: Sequence[Row]) -> Lines:
    sentences: dict[str, list[str]] = {}
    for row in rows:
        if notes := [each for each in (row.reduced, row.compared) if each]:
            sentences.setdefault(row.key, []).extend(notes)
    lines = [[md.plain(row), _short(" ".join(texts))] for row, texts in sentences.items()]
    return _section(f"What differs from the published models ({CHANGED})", "", _table("Row | What differs", lines))


def _number(value: float | None) -> str:
    return md.UNKNOWN if value is None else f"{value:.3g}"


def _short(text: str) -> str:
    """A text for a cell, or a dash if it is empty."""
    return md.plain(text if len(text) <= WIDEST else text[: WIDEST - 1] + "…") or md.UNKNOWN
