"""`python -m ttnn_emulator.timing`: compare predicted times with times that were measured on silicon."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from ttnn_emulator.errors import EmulatorError
from ttnn_emulator.timing.evaluation import markdown, report
from ttnn_emulator.timing.evaluation.measurements import UnknownFormat

console = Console(width=None if sys.stdout.isatty() else 160)

DESCRIPTION = """
Compare the timing model with silicon. FILE is a CSV file in one of four formats, told by its columns (gemm_flops,
measured_ops, exp_n150, matmul_height_sharded_n150), or a call list of a model (.jsonl, one call per line, named
<model>_<board>_b<batch>.jsonl; a README.md beside it may have its published "device ms").
"""


def evaluate(arguments: argparse.Namespace) -> int:
    """Print errors by family and board, totals of models, and what could not be predicted."""
    predictions: list[report.Prediction] = []
    models: list[report.ModelTime] = []
    sources: list[tuple[Path, Sequence[float | None]]] = []
    for path in track(arguments.files, "evaluating", console=console, disable=not sys.stdout.isatty()):
        if path.suffix == ".jsonl":
            models.append(report.time_of_list(path))
            sources.append((path, models[-1].rows))
        else:
            rows = list(report.predictions_of(path))
            predictions += rows
            sources.append((path, [row.predicted_ns for row in rows]))
    if predictions:
        console.print(_scores(report.scores(predictions)))
    if models:
        console.print(_models(models))
    _print_misses(predictions, models, arguments.show)
    if arguments.markdown is not None:
        markdown.write_tables(arguments.markdown, markdown.tables(report.scores(predictions), models))
    if arguments.csv is not None:
        report.write_predictions(arguments.csv, sources)
    return 0


def _scores(scores: dict[tuple[str, str], report.Score]) -> Table:
    table = Table(title="|predicted ÷ measured − 1|, by family and board")
    table.add_column("family", no_wrap=True)
    for name in ("board", "rows", "missed", "median", "90th percentile", "bias", "PM IDEAL, median"):
        table.add_column(name, justify="left" if name == "board" else "right", no_wrap=True)
    for (family, board), score in scores.items():
        ideal = score.ideal
        table.add_row(
            family,
            board,
            str(score.rows),
            str(score.misses or ""),
            markdown.percent(score.quantile(0.5)),
            markdown.percent(score.quantile(0.9)),
            f"{score.bias:+.1%}",
            "" if ideal is None else markdown.percent(ideal),
        )
    return table


def _models(models: Sequence[report.ModelTime]) -> Table:
    table = Table(title="Sum of kernel times of call lists")
    table.add_column("list", no_wrap=True)
    for name in (
        "board",
        "calls",
        "programs",
        "missed",
        "predicted ms",
        "uncalibrated",
        "published ms",
        "predicted ÷ published",
    ):
        table.add_column(name, justify="left" if name == "board" else "right", no_wrap=True)
    for model in models:
        published, ratio = model.published_ns, model.ratio
        table.add_row(
            model.name,
            model.board,
            str(model.calls),
            str(model.programs),
            str(len(model.misses) or ""),
            f"{model.kernels_ns / 1e6:.3f}",
            markdown.percent(model.uncalibrated) if model.uncalibrated_ns else "",
            "" if published is None else f"{published / 1e6:.3f}",
            "" if ratio is None else f"{ratio:.3f}",
        )
    return table


def _print_misses(predictions: Sequence[report.Prediction], models: Sequence[report.ModelTime], show: int) -> None:
    misses = [
        f"{each.measurement.file}, row {each.measurement.row}, {each.measurement.family}: {each.reason}"
        for each in predictions
        if each.predicted_ns is None
    ]
    misses += [f"{model.name}, {miss}" for model in models for miss in model.misses]
    if not misses:
        return
    console.print(f"{len(misses)} rows without a prediction, counted as misses:")
    for miss in misses[:show]:
        console.print(f"  {miss}", markup=False, highlight=False, soft_wrap=True)
    if len(misses) > show:
        console.print(f"  and {len(misses) - show} more; --show prints more of them")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m ttnn_emulator.timing", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("evaluate", help="compare predictions with measured times", description=DESCRIPTION)
    command.add_argument("files", nargs="+", type=Path, metavar="FILE")
    command.add_argument("--csv", type=Path, metavar="OUT", help="write all rows with a column predicted_ns")
    command.add_argument("--markdown", type=Path, metavar="PAGE", help="write the tables between the marks of a page")
    command.add_argument("--show", type=int, default=20, metavar="N", help="how many misses to list (20)")
    arguments = parser.parse_args(argv)
    try:
        return evaluate(arguments)
    except (OSError, UnknownFormat, EmulatorError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
