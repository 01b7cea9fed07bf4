"""`torch-ttnn metrics`: the results table. Every model run both ways, each number measured as its heading says."""

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch_ttnn.cli import choices, tables

if TYPE_CHECKING:
    from rich.console import Console

    from torch_ttnn.results.check import Verdict
    from torch_ttnn.results.collect import Choice
    from torch_ttnn.results.record import Row

HELP = "measure models by torch and on the device: the results table"
KEPT = "results/results.parquet"
FOLDER = "metrics"
WIDEST_NAME = 13  # there are many columns beside it
EPILOG = """\
Each model runs in a process of its own, so that a crash, a hang or a lack of memory costs one row. What is done is not
done again: the same command after Ctrl-C goes on, and takes up what failed. Rows are in FOLDER/rows, one JSON file a
row, and all of them in FOLDER/results.parquet.

--check compares with results that are kept, and fails (exit code 1) if a row got worse: its status, operations left to
the host, crossings, conversions, PCC. Times are not compared unless --check-times is given.

examples
  torch-ttnn metrics resnet18 bert-large-qa
  torch-ttnn metrics --all --mode both -j 2 --threads 1
  torch-ttnn metrics 'zoo:resnet*' --mode train --calls 3
  torch-ttnn metrics --all --family resnet --check
  torch-ttnn metrics --all --check results/results.parquet --check-times 1.5
  torch-ttnn metrics --all --executor ray --ray-address auto -j 64
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    choices.add_models(parser)
    _add_rows(parser)
    choices.add_sizes(parser)
    _add_measuring(parser)
    choices.add_jobs(parser)
    parser.add_argument(
        "--changed", action="store_true", help="also rows that were measured with other sources of the compiler"
    )
    parser.add_argument("--executor", choices=("local", "ray"), default="local", help="where jobs run (default local)")
    parser.add_argument("--ray-address", metavar="ADDRESS", help="of a cluster; none starts Ray on this machine")
    parser.add_argument("-o", "--out", default=FOLDER, metavar="FOLDER", help=f"where to write (default {FOLDER})")
    _add_check(parser)


def _add_rows(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("which rows of them")
    group.add_argument("--mode", choices=("eval", "train", "both"), default="eval", help="default eval")
    group.add_argument("--family", help="only models of this family, e.g. resnet")
    group.add_argument("--source", help="only models of this library: torchvision, timm, transformers, ours")
    group.add_argument(
        "--size", choices=("full", "reduced"), help="only models of published size, or only smaller ones"
    )


def _add_measuring(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how they are measured")
    group.add_argument("--device", help='"emulator", "emulator:<board>", "ttnn" or "ttnn:<id>"')
    group.add_argument(
        "--precision", choices=("bfloat16", "float32"), help="on the device (default bfloat16, in training float32)"
    )
    group.add_argument(
        "--threads", type=choices.positive, metavar="N", help="of each job, for both ways (default: its share of cores)"
    )
    group.add_argument("--calls", type=choices.positive, default=5, metavar="N", help="warm calls timed (default 5)")
    group.add_argument(
        "--seconds", type=float, default=60, metavar="S", help="for all of these together; slow models get fewer (60)"
    )
    group.add_argument("--no-tasks", action="store_true", help="leave out tasks with real data")
    group.add_argument("--task-items", type=choices.positive, metavar="N", help="at most so many items of a task")


def _add_check(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("whether they got worse")
    group.add_argument(
        "--check", nargs="?", const=KEPT, metavar="PATH", help=f"compare with these results (default {KEPT})"
    )
    group.add_argument("--check-times", type=float, metavar="RATIO", help="compiled calls may be slower by this ratio")
    group.add_argument(
        "--tolerance", type=float, default=1e-3, metavar="X", help="by which a PCC may be lower (default 0.001)"
    )


def run(options: argparse.Namespace) -> int:
    from rich.console import Console

    from torch_ttnn.results import collect, store

    kept = store.read(options.check) if options.check else []  # before hours are spent
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
    console = Console(emoji=False, highlight=False)
    show(console, collected.rows)
    _keep(console, collected.rows, pathlib.Path(options.out))
    if collected.stale:
        console.print(
            f"{len(collected.stale)} rows were measured with other sources of the compiler than these; "
            "--changed measures them anew"
        )
    if not options.check:
        return 1 if any(row.status == "fails" for row in collected.rows) else 0
    return _checked(console, collected.rows, kept, choice, options)


def _wanted(options: argparse.Namespace, choice: Choice) -> Sequence[Any]:
    from torch_ttnn.results import collect

    names = choices.chosen_models(options)
    try:
        wanted = collect.asked(names, choice, named=options.models, **choices.size_arguments(options))
    except ValueError as error:
        raise choices.BadChoice(str(error)) from error
    if not wanted:
        raise choices.BadChoice(
            f"none of the {len(names)} models named is of the kind asked for (--mode, --family, --source, --size)"
        )
    return wanted


def _arguments(options: argparse.Namespace) -> dict[str, Any]:
    """Those of `measure_model`; what is not asked for is left out, so that jobs of today and tomorrow are the same."""
    if not options.seconds > 0:
        raise choices.BadChoice(f"--seconds {options.seconds:g} lets no call be timed")
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


def _executor(options: argparse.Namespace, many: int) -> Any:
    from torch_ttnn import jobs
    from torch_ttnn.results.collect import PRELOAD

    if options.executor == "ray":
        from torch_ttnn.jobs.ray_executor import RayExecutor

        return RayExecutor(options.jobs, options.ray_address, PRELOAD)
    return jobs.LocalExecutor(options.jobs, PRELOAD if many > 1 else ())


def _limits(options: argparse.Namespace) -> Any:
    """On a cluster this machine's memory is no measure, so only what is asked for is a limit there."""
    from torch_ttnn import jobs

    if options.executor == "ray" and options.memory is None:
        return jobs.Limits(seconds=options.timeout)
    return choices.limits(options)


def _keep(console: Console, rows: Sequence[Row], folder: pathlib.Path) -> None:
    """All rows of the folder in one file: those of this call, and those of earlier ones into the same folder."""
    from torch_ttnn.results import store
    from torch_ttnn.tracer.reports import MissingPackage

    found = store.look_into(folder)
    for name, why in found.left_out:
        console.print(f"left out: {name}: {why}", markup=False)
    known = {row.key: row for row in (*found.rows, *rows)}
    try:
        store.write(known.values(), folder / store.FILE)
    except MissingPackage as error:
        console.print(str(error), markup=False)
    else:
        console.print(f"{len(known)} rows are in {folder / store.FILE}", markup=False)


# -- what is shown ----------------------------------------------------------------------------------------------------


def show(console: Console, rows: Sequence[Row]) -> None:
    """A line a row, then the reasons of what did not go, then the totals."""
    from torch_ttnn.results.summary import totals

    ran = [row for row in rows if row.status != "fails"]
    if ran:
        console.print(tables.table([row.key for row in ran], ran, COLUMNS, WIDEST_NAME))
    for row in rows:
        for task in row.tasks:
            told = f"{task.torch:.2f} by torch, {task.device:.2f} on the device"
            console.print(f"{row.key}: {task.name}, {task.metric} of {task.items}: {told}", markup=False)
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
                f"on the host, {mode.failing} fail; PCC of 0.99 and more in {mode.near}"
            )


def _pcc(value: float | None) -> str:
    return "" if value is None else f"{value:.5f}"


def _brief(seconds: float) -> str:
    """Three digits: the table is as wide as a terminal."""
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


def _checked(
    console: Console, rows: Sequence[Row], kept: Sequence[Row], choice: Choice, options: argparse.Namespace
) -> int:
    from torch_ttnn.results.check import check

    try:
        verdict = check(
            rows,
            kept,
            expected=choice.expects if options.all == "zoo" else None,
            tolerance=options.tolerance,
            times=options.check_times,
        )
    except ValueError as error:
        raise choices.BadChoice(str(error)) from error
    tell(console, verdict, options.check)
    return 0 if verdict.ok else 1


def tell(console: Console, verdict: Verdict, path: str) -> None:
    """Every field that changed, the worse ones last, where they are seen."""
    for change in verdict.other_conditions:
        console.print(f"measured under other conditions: {change}", markup=False)
    for change in verdict.better:
        console.print(f"better: {change}", style="green", markup=False)
    if verdict.new:
        console.print(f"new: {', '.join(verdict.new)}", markup=False)
    for key in verdict.vanished:
        console.print(f"worse: {key}: there is no such row any more", style="red", markup=False)
    for change in verdict.worse:
        console.print(f"worse: {change}", style="red", markup=False)
    worse = len({change.key for change in verdict.worse}) + len(verdict.vanished)
    console.print(f"{verdict.compared} rows compared with {path}: {worse} got worse", markup=False)
