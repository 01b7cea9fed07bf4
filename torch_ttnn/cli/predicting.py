"""`torch-ttnn metrics --predict`: fills the predicted times of measured rows by compiling their models."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from torch_ttnn.cli import choices, tables
from torch_ttnn.cli.parameters import Options

if TYPE_CHECKING:
    from rich.console import Console

    from torch_ttnn.results.fill import Filled
    from torch_ttnn.results.record import Row

NOT_WITH = ("check", "device", "precision", "batch", "length", "input_shape")  # a row has its own


def predict(options: Options, executor: Callable[[int], Any], limits: Any) -> int:
    """`executor` makes the executor of a number of jobs."""
    from torch_ttnn import jobs
    from torch_ttnn.results import fill, store

    for name in NOT_WITH:
        if getattr(options, name) is not None:
            flag = name.replace("_", "-")
            raise choices.BadChoice(f"--predict compiles each model as its row was measured: omit --{flag}")
    path = pathlib.Path(options.predict)
    rows, wanted = _rows(path, options)
    filled = fill.fill(
        rows,
        wanted,
        pathlib.Path(options.out),
        executor=executor(len(wanted)),
        limits=limits,
        again=options.again,
        watcher=None if options.quiet else jobs.Display(),
    )
    store.write(filled.rows, path)
    shown = [row for row in filled.rows if row.key in wanted]
    if options.json:
        print(json.dumps(_as_json(shown, filled), indent=1))
    console = tables.console(stderr=options.json)
    _show(console, shown, filled)
    console.print(f"{len(shown) - len(filled.failed)} predictions are in {path}", markup=False)
    return 1 if filled.failed or filled.differences else 0


def _rows(path: pathlib.Path, options: Options) -> tuple[list[Row], dict[str, str]]:
    """All rows of the file, and the keys of those to predict with the names of their models."""
    from torch_ttnn.results import collect, store

    if path.is_dir():
        raise choices.BadChoice(f"{path} is a folder: --predict fills a Parquet file, such as {path / store.FILE}")
    rows = store.read(path)
    choice = collect.Choice(options.mode, options.family, options.source, options.size)
    names = {row_name(name): name for name in choices.chosen_models(options)}
    wanted = {row.key: names[row.model] for row in rows if row.model in names and choice.expects(row)}
    if not wanted:
        raise choices.BadChoice(f"{path} has no row of these models in this mode; `torch-ttnn metrics` measures them")
    return rows, wanted


def row_name(name: str) -> str:
    """The name that the row of a model has."""
    from torch_ttnn.zoo import catalog

    try:
        return catalog.resolve(name).name
    except ValueError as error:
        raise choices.BadChoice(str(error)) from error


def _as_json(rows: Sequence[Row], filled: Filled) -> dict[str, Any]:
    return {
        "rows": [row.to_json() for row in rows],
        "failed": filled.failed,
        "differences": filled.differences,
    }


def _show(console: Console, rows: Sequence[Row], filled: Filled) -> None:
    """A line per row, then what failed and what differs."""
    from torch_ttnn.perf.time_text import duration_text

    predicted = [row for row in rows if row.predicted is not None]
    if predicted:
        columns: tables.Columns = {
            "board": lambda row: row.predicted.board,
            "programs": lambda row: f"{row.predicted.programs:,}",
            "predicted": lambda row: duration_text(row.predicted.device_seconds * 1e9),
            "error": lambda row: f"± {row.predicted.error:.0%}",
            "not calibrated": lambda row: f"{row.predicted.uncalibrated:.0%}",
            "on host": lambda row: str(row.ops_remaining or ""),
        }
        console.print(tables.table([row.key for row in predicted], predicted, columns))
    for text in filled.differences:
        console.print(text, style="yellow", markup=False)
    for key, reason in filled.failed.items():
        console.print(f"{key} has no new prediction: {reason}", style="red", markup=False)
