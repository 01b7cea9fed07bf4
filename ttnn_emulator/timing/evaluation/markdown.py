"""The errors of an evaluation as tables of a Markdown page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ttnn_emulator.atomic_files import replacing
from ttnn_emulator.timing.evaluation.measurements import UnknownFormat
from ttnn_emulator.timing.evaluation.report import ModelTime, Score

BEGIN, END = "<!-- errors: begin -->", "<!-- errors: end -->"


def tables(scores: Mapping[tuple[str, str], Score], models: Sequence[ModelTime]) -> str:
    """Errors by family and board, then whole models."""
    families = _table(
        ("family", "board", "rows", "missed", "median", "90th percentile", "bias", "PM IDEAL, median"),
        "llrrrrrr",
        [
            (
                family,
                board,
                str(score.rows),
                str(score.misses or ""),
                percent(score.quantile(0.5)),
                percent(score.quantile(0.9)),
                f"{score.bias:+.1%}",
                "" if score.ideal is None else percent(score.ideal),
            )
            for (family, board), score in scores.items()
        ],
    )
    lists = _table(
        ("list", "board", "calls", "programs", "predicted ms", "uncalibrated", "published ms", "predicted ÷ published"),
        "llrrrrrr",
        [
            (
                model.name,
                model.board,
                str(model.calls),
                str(model.programs),
                f"{model.kernels_ns / 1e6:.3f}",
                percent(model.uncalibrated) if model.uncalibrated_ns else "",
                "" if model.published_ns is None else f"{model.published_ns / 1e6:.3f}",
                "" if model.ratio is None else f"{model.ratio:.3f}",
            )
            for model in models
        ],
    )
    return "\n".join([*families, "", *lists]) + "\n"


def percent(share: float) -> str:
    return "missed" if share == float("inf") else f"{share:.1%}"


def _table(names: Sequence[str], sides: str, rows: Iterable[Sequence[str]]) -> list[str]:
    rules = ["---:" if side == "r" else "---" for side in sides]
    return ["| " + " | ".join(cells) + " |" for cells in (names, rules, *rows)]


def write_tables(page: Path, text: str) -> None:
    """Replace the tables between the marks of a page."""
    old = page.read_text(encoding="utf-8")
    before, begin, rest = old.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise UnknownFormat(f"{page} has no lines {BEGIN} and {END}, between which the tables belong")
    with replacing(page) as temporary:
        Path(temporary).write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}", encoding="utf-8")
