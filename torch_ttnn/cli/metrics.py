"""`torch-ttnn metrics`: measures models with torch and on the device, for the results table."""

from __future__ import annotations

import functools
import json
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from torch_ttnn.cli import choices, predicting, tables
from torch_ttnn.cli.parameters import JSON, Option, Options, positive

if TYPE_CHECKING:
    from rich.console import Console

    from torch_ttnn.results.check import Verdict
    from torch_ttnn.results.collect import Choice
    from torch_ttnn.results.record import Row

HELP = "measure models with torch and on the device: the results table"
KEPT = "results/results.parquet"
FOLDER = "metrics"
WIDEST_NAME = 13  # narrow, because there are many columns
EPILOG = """\
Each model runs in its own process, so that a crash, a hang or a lack of memory costs one row only. After Ctrl-C the
same command resumes, and repeats what failed. Rows are in FOLDER/rows, one JSON file per row, and all of them in
FOLDER/results.parquet.

--check compares with committed results and fails (exit code 1) if a row got worse: its status, host operations,
transfers, conversions, PCC, predicted device time. Measured times are compared only with --check-times.

--predict compiles the models of measured rows, as they were measured, and writes the predicted device time of a call
into the rows; nothing runs and nothing that was measured changes. It fails (exit code 1) if a model no longer compiles
or leaves another number of operations on the host than its row says.

examples
  torch-ttnn metrics resnet18 bert-large-qa
  torch-ttnn metrics --all --mode both -j 2 --threads 1
  torch-ttnn metrics 'zoo:resnet*' --mode train --calls 3
  torch-ttnn metrics --all --family resnet --check
  torch-ttnn metrics --all --check results/results.parquet --check-times 1.5
  torch-ttnn metrics --all --mode both --predict -j 2
  torch-ttnn metrics --all --executor ray --ray-address auto -j 64
"""


ROWS, MEASURING, CHECKING = "rows", "measurement", "comparison"
PARAMETERS: list[click.Parameter] = [
    *choices.MODELS,
    Option("--mode", type=click.Choice(("eval", "train", "both")), default="eval", group=ROWS, help="default eval"),
    Option("--family", group=ROWS, help="only models of this family, e.g. resnet"),
    Option("--source", group=ROWS, help="only models of this library: torchvision, timm, transformers, ours"),
    Option(
        "--size",
        type=click.Choice(("full", "reduced")),
        group=ROWS,
        help="only models of published size, or only smaller ones",
    ),
    *choices.SIZE_OPTIONS,
    choices.device(group=MEASURING),
    Option(
        "--precision",
        type=click.Choice(("bfloat16", "float32")),
        group=MEASURING,
        help="on the device (default bfloat16, in training float32)",
    ),
    Option(
        "--threads",
        type=positive,
        metavar="N",
        group=MEASURING,
        help="threads of each job, torch and emulator alike (default: its share of cores)",
    ),
    Option("--calls", type=positive, default=5, metavar="N", group=MEASURING, help="warm calls timed (default 5)"),
    Option(
        "--seconds",
        type=float,
        default=60,
        metavar="S",
        group=MEASURING,
        help="time for all of these; slow models get fewer calls (default 60)",
    ),
    Option("--no-tasks", is_flag=True, group=MEASURING, help="skip tasks with real data"),
    Option("--task-items", type=positive, metavar="N", group=MEASURING, help="maximum number of items per task"),
    *choices.JOBS,
    Option(
        "--changed",
        is_flag=True,
        group=choices.RUNNING,
        help="also repeat rows measured with other sources of the compiler",
    ),
    Option(
        "--executor",
        type=click.Choice(("local", "ray")),
        default="local",
        group=choices.RUNNING,
        help="where jobs run (default local)",
    ),
    Option(
        "--ray-address",
        metavar="ADDRESS",
        group=choices.RUNNING,
        help="of a cluster; by default Ray starts on this machine",
    ),
    Option("-o", "--out", default=FOLDER, metavar="FOLDER", help=f"where to write (default {FOLDER})"),
    Option(
        "--predict",
        is_flag=False,
        flag_value=KEPT,
        metavar="PATH",
        group=MEASURING,
        help=f"measure nothing: fill the predicted times of these rows (default {KEPT})",
    ),
    Option(
        "--check",
        is_flag=False,
        flag_value=KEPT,
        metavar="PATH",
        group=CHECKING,
        help=f"compare with these results (default {KEPT})",
    ),
    Option(
        "--check-times",
        type=float,
        metavar="RATIO",
        group=CHECKING,
        help="allowed slowdown of compiled calls",
    ),
    Option(
        "--tolerance",
        type=float,
        default=1e-3,
        metavar="X",
        group=CHECKING,
        help="allowed loss of PCC (default 0.001)",
    ),
    JSON,
]


def run(options: Options) -> int:
    from torch_ttnn.results import collect, store

    if options.predict:
        return predicting.predict(options, functools.partial(_executor, options), _limits(options))
    choices.check_device(options.device)
    kept = store.read(options.check) if options.check else []  # fails early
    choice = collect.Choice(options.mode, options.family, options.source, options.size)
    wanted = _wanted(options, choice)
    collected = collect.collect(
        wanted,
        options.out,
        _arguments(options),
        executor=_executor(options, len(wanted)),
        limits=_limits(options),
        again=options.again,
        changed=options.changed,
        watcher=None if options.quiet else collect.Display(),
    )
    console = tables.console(stderr=options.json)
    show(console, collected.rows)
    _keep(console, collected.rows, pathlib.Path(options.out))
    if collected.stale:
        console.print(
            f"{len(collected.stale)} rows were measured with other sources of the compiler; "
            "--changed measures them again"
        )
    verdict = _checked(collected.rows, kept, choice, options) if options.check else None
    if verdict is not None:
        show_verdict(console, verdict, options.check)
    if options.json:
        print(json.dumps(_as_json(collected.rows, verdict), indent=1))
    good = verdict.ok if verdict is not None else all(row.status != "fails" for row in collected.rows)
    return 0 if good else 1


def _as_json(rows: Sequence[Row], verdict: Verdict | None) -> dict[str, Any]:
    content: dict[str, Any] = {"rows": [row.to_json() for row in rows]}
    if verdict is not None:
        content["check"] = {
            "compared": verdict.compared,
            "ok": verdict.ok,
            "worse": [str(change) for change in verdict.worse],
            "better": [str(change) for change in verdict.better],
            "vanished": list(verdict.vanished),
            "new": list(verdict.new),
        }
    return content


def _wanted(options: Options, choice: Choice) -> Sequence[Any]:
    from torch_ttnn.results import collect

    names = choices.chosen_models(options)
    try:
        wanted = collect.requests(names, choice, named=options.models, **choices.size_arguments(options))
    except ValueError as error:
        raise choices.BadChoice(str(error)) from error
    if not wanted:
        raise choices.BadChoice(
            f"none of the {len(names)} models matches the filters (--mode, --family, --source, --size)"
        )
    choices.note_torchvision(names, options)
    return wanted


def _arguments(options: Options) -> dict[str, Any]:
    """Arguments of `measure_model`, without defaults: a new option does not change the fingerprints of jobs."""
    if not options.seconds > 0:
        raise choices.BadChoice(f"--seconds {options.seconds:g} leaves no time for a call")
    given = {
        **choices.size_arguments(options),
        "device": options.device,
        "precision": options.precision,
        "threads": options.threads,
        "calls": options.calls,
        "seconds": options.seconds,
        "seed": options.seed,
        "task_items": options.task_items,
        "tasks": False if options.no_tasks else None,
    }
    return {name: value for name, value in given.items() if value is not None or name == "layers"}


def _executor(options: Options, count: int) -> Any:
    from torch_ttnn import jobs
    from torch_ttnn.results.collect import PRELOAD

    if options.executor == "ray":
        from torch_ttnn.jobs.ray_executor import RayExecutor

        return RayExecutor(options.jobs, options.ray_address, PRELOAD)
    return jobs.LocalExecutor(options.jobs, PRELOAD if count > 1 else ())


def _limits(options: Options) -> Any:
    """On a cluster only explicit limits apply: this machine's memory says nothing about its nodes."""
    from torch_ttnn import jobs

    if options.executor == "ray" and options.memory is None:
        return jobs.Limits(seconds=options.timeout)
    return choices.limits(options)


def _keep(console: Console, rows: Sequence[Row], folder: pathlib.Path) -> None:
    """Write all rows of the folder to one file, including those of earlier runs."""
    from torch_ttnn.errors import MissingPackage
    from torch_ttnn.results import store

    found = store.read_rows(folder)
    for name, why in found.left_out:
        console.print(f"left out: {name}: {why}", markup=False)
    known = {row.key: row for row in (*found.rows, *rows)}
    try:
        store.write(known.values(), folder / store.FILE)
    except MissingPackage as error:
        console.print(str(error), markup=False)
    else:
        console.print(f"{len(known)} rows are in {folder / store.FILE}", markup=False)


# -- output -----------------------------------------------------------------------------------------------------------


def show(console: Console, rows: Sequence[Row]) -> None:
    """One line per row, then reasons of failures and host operations, then totals."""
    from torch_ttnn.results.summary import totals

    ran = [row for row in rows if row.status != "fails"]
    if ran:
        console.print(tables.table([row.key for row in ran], ran, COLUMNS, WIDEST_NAME))
    for row in rows:
        for task in row.tasks:
            scores = f"{task.torch:.2f} by torch, {task.device:.2f} on the device"
            console.print(f"{row.key}: {task.name}, {task.metric} of {task.items}: {scores}", markup=False)
        for each in row.host_ops:
            console.print(f"{row.key}: {each.op} stays on the host: {each.reason}\n    {each.source}", markup=False)
        if row.details and row.status != "fails":
            console.print(f"{row.key}: {row.details}", markup=False)
        if row.status == "fails":
            console.print(f"{row.key} fails: {row.reason}", style="red", markup=False)
    found = totals(rows)
    for name, mode in (("inference", found.eval), ("training", found.train)):
        if mode.rows:
            console.print(
                f"{name}: {mode.rows} rows, {mode.on_device} all on the device, {mode.with_host_ops} with operations "
                f"on the host, {mode.failing} fail; PCC of at least 0.99 in {mode.near}"
            )


def _pcc(value: float | None) -> str:
    return "" if value is None else f"{value:.5f}"


def _brief(seconds: float) -> str:
    """Three digits, because the table must fit a terminal."""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


COLUMNS: tables.Columns = {
    "ops": lambda row: str(row.ops_before),
    "host": lambda row: str(row.ops_remaining),
    "to/from": lambda row: f"{row.uploads}/{row.downloads}",
    "PCC": lambda row: _pcc(row.pcc),
    "grad": lambda row: _pcc(row.gradient_pcc),
    "first": lambda row: _brief(row.first_seconds),
    "torch": lambda row: _brief(row.original_seconds),
    "ttnn": lambda row: _brief(row.compiled_seconds),
}


def _checked(rows: Sequence[Row], kept: Sequence[Row], choice: Choice, options: Options) -> Verdict:
    from torch_ttnn.results.check import check

    try:
        return check(
            rows,
            kept,
            expected=choice.expects if options.all == "zoo" else None,
            tolerance=options.tolerance,
            times=options.check_times,
        )
    except ValueError as error:
        raise choices.BadChoice(str(error)) from error


def show_verdict(console: Console, verdict: Verdict, path: str) -> None:
    """Every field that changed; regressions last, next to the prompt."""
    for change in verdict.other_conditions:
        console.print(f"measured under other conditions: {change}", markup=False)
    for change in verdict.better:
        console.print(f"better: {change}", style="green", markup=False)
    if verdict.new:
        console.print(f"new: {', '.join(verdict.new)}", markup=False)
    for key in verdict.vanished:
        console.print(f"worse: {key}: the row no longer exists", style="red", markup=False)
    for change in verdict.worse:
        console.print(f"worse: {change}", style="red", markup=False)
    worse = len({change.key for change in verdict.worse}) + len(verdict.vanished)
    console.print(f"{verdict.compared} rows compared with {path}: {worse} got worse", markup=False)
