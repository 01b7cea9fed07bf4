"""All reports of a folder of traces: tables, histograms, the page, and the records for queries.

reports.generate("stat")        # reads stat/raw, writes into stat
"""

from __future__ import annotations

import os
import pathlib
import re
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING

from torch_ttnn.errors import MissingPackage
from torch_ttnn.system.file_names import file_stem
from torch_ttnn.tracer.reports import page, tables
from torch_ttnn.tracer.reports.summary import PHASES, NoTraces, OpSummary, Summary, summarise, trace_files
from ttnn_emulator.atomic_files import replacing

if TYPE_CHECKING:  # imported only for pictures
    from torch_ttnn.tracer.reports.histograms import Sheet

MANIFEST = "generated.txt"  # lists the files of a report, so that the next one can remove stale ones
OURS = re.compile(
    r"(fw|bw)_total_(arguments|input_size_dist|output_size_dist)/[^/\\]*\.(csv|png)|(fw|bw)_node_count\.csv"
    r"|(ops|models|skipped)\.csv|(index|compare)\.html|records\.parquet"
)
SIDES = {"input": "elements of all inputs of a call together", "output": "elements of all outputs of a call together"}
NEEDED = {"pictures": "matplotlib", "parquet": "pyarrow"}

Progress = Callable[[str, int, int], None]  # stage, done, total


@dataclass
class Reports:
    """What was written."""

    folder: pathlib.Path
    summary: Summary
    files: list[pathlib.Path] = field(default_factory=list)

    @property
    def page(self) -> pathlib.Path:
        return self.folder / "index.html"


def generate(
    stat: str | os.PathLike = "stat",
    raw: str | os.PathLike | None = None,
    out: str | os.PathLike | None = None,
    *,
    compare: str | os.PathLike | None = None,
    pictures: bool = True,
    parquet: bool = True,
    progress: Progress | None = None,
) -> Reports:
    """Report on the traces in `stat/raw` (or `raw`), into `stat` (or `out`).

    Files that are not traces are skipped, and listed with the reason in `skipped.csv` and on the page. `compare` is
    the folder of an earlier run, compared with this one in `compare.html`. Stale files of an earlier report are
    removed; files that no report wrote are not touched. `pictures` and `parquet` say whether histograms and
    `records.parquet` are wanted.
    """
    _require(pictures=pictures, parquet=parquet)
    source = pathlib.Path(raw) if raw is not None else pathlib.Path(stat) / "raw"
    folder = pathlib.Path(out if out is not None else stat)
    trace_files(source)  # before anything is written
    writer = _Writer(folder, progress)
    summary = _read(source, writer, parquet)
    _write_tables(writer, summary)
    for phase in PHASES:
        _write_operations(writer, summary.ops(phase), phase, pictures)
    writer.text("index.html", page.render(summary, title=f"Operations traced in {folder.resolve().name}"))
    if compare is not None:
        writer.text("compare.html", _comparison(pathlib.Path(compare), summary, folder))
    writer.finish()
    return Reports(folder, summary, writer.files)


def _require(**wanted: bool) -> None:
    for part, package in NEEDED.items():
        if wanted[part] and find_spec(package) is None:
            raise MissingPackage(
                f"Reports need {package}, which is not installed. Install it (pip install 'torch_ttnn[reports]'), "
                f"or pass {part}=False."
            )


def _read(source: pathlib.Path, writer: _Writer, parquet: bool) -> Summary:
    """One pass over the traces, for the summary and the table of records."""
    with ExitStack() as stack:
        listeners = []
        if parquet:
            from torch_ttnn.tracer.reports.parquet import record_table  # the package may be missing

            listeners.append(stack.enter_context(record_table(writer.path("records.parquet"))).add)
        summary = summarise(source, writer.stage("reading traces"), listeners)
        if not summary.models:
            first, why = summary.bad[0]
            raise NoTraces(f"None of the {len(summary.bad)} file(s) in {source} is a trace; {first}: {why}.")
        return summary


def _write_tables(writer: _Writer, summary: Summary) -> None:
    for phase in PHASES:
        writer.table(f"{phase}_node_count.csv", tables.node_count(summary, phase))
    writer.table("ops.csv", tables.ops(summary))
    writer.table("models.csv", tables.models(summary))
    writer.table("skipped.csv", tables.skipped(summary))


def _write_operations(writer: _Writer, ops: list[OpSummary], phase: str, pictures: bool) -> None:
    """The files of each operation."""
    progress = writer.stage(f"operations, {PHASES[phase]}")
    sheets = {side: _sheet(side, ops) for side in SIDES} if pictures and ops else {}
    for number, op in enumerate(ops, 1):
        stem = file_stem(op.op_type)
        writer.table(f"{phase}_total_arguments/{stem}.csv", tables.arguments(op))
        for side, counts in _sizes(op).items():
            path = f"{phase}_total_{side}_size_dist/{stem}"
            writer.table(f"{path}.csv", tables.sizes(counts))
            if pictures:
                writer.content(f"{path}.png", sheets[side].png(op.op_type, counts))
        progress(number, len(ops))


def _sizes(op: OpSummary) -> dict[str, Counter[int]]:
    return {"input": op.input_sizes, "output": op.output_sizes}


def _sheet(side: str, ops: list[OpSummary]) -> Sheet:
    from torch_ttnn.tracer.reports.histograms import Sheet  # the package may be missing

    return Sheet(SIDES[side], max(max(_sizes(op)[side]) for op in ops))


def _comparison(other: pathlib.Path, summary: Summary, folder: pathlib.Path) -> str:
    before = summarise(other / "raw" if (other / "raw").is_dir() else other)
    return page.compare(before, summary, titles=(other.resolve().name, folder.resolve().name))


class _Writer:
    """Writes files into a folder, lists them, and removes stale files of an earlier report."""

    def __init__(self, folder: pathlib.Path, progress: Progress | None) -> None:
        self.folder = folder
        self.files: list[pathlib.Path] = []
        self._progress = progress

    def stage(self, name: str) -> Callable[[int, int], None]:
        report = self._progress
        return (lambda done, total: report(name, done, total)) if report else (lambda done, total: None)

    def path(self, name: str) -> pathlib.Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        self.files.append(path)
        return path

    def table(self, name: str, rows: Iterable[tables.Row]) -> None:
        tables.write(self.path(name), rows)

    def text(self, name: str, text: str) -> None:
        self.content(name, text.encode())

    def content(self, name: str, content: bytes) -> None:
        with replacing(self.path(name)) as temporary:
            temporary.write_bytes(content)

    def finish(self) -> None:
        names = {path.relative_to(self.folder).as_posix() for path in self.files}
        stale = _listed(self.folder) - names
        self.text(MANIFEST, "\n".join(sorted(names)) + "\n")
        for name in stale:
            (self.folder / name).unlink(missing_ok=True)
        for emptied in {(self.folder / name).parent for name in stale if "/" in name}:
            with suppress(OSError):  # it is not empty
                emptied.rmdir()


def _listed(folder: pathlib.Path) -> set[str]:
    """The files of an earlier report; only names that a report writes, in case the list is corrupt."""
    try:
        names = (folder / MANIFEST).read_text("utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return set()
    return {name for name in names if OURS.fullmatch(name)}
