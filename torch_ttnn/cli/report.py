"""`torch-ttnn report`: tables, pictures and a page from traces."""

from __future__ import annotations

import json
from typing import Any

import click

from torch_ttnn.cli import tables
from torch_ttnn.cli.parameters import JSON, Argument, Option, Options

HELP = "make tables, pictures and a page from traces"
EPILOG = """\
Reads the traces in STAT/raw and writes into STAT: fw_node_count.csv, ops.csv, size distributions and arguments of
every operation, records.parquet for queries, and a self-contained index.html.

examples
  torch-ttnn report
  torch-ttnn report stat --compare stat_of_last_week
  torch-ttnn report --raw traces -o reports --no-pictures
"""


PARAMETERS: list[click.Parameter] = [
    Argument("stat", required=False, default="stat", help="the folder that `torch-ttnn stat` wrote (default stat)"),
    Option("--raw", metavar="FOLDER", help="where the traces are (default STAT/raw)"),
    Option("-o", "--out", metavar="FOLDER", help="where to write (default STAT)"),
    Option("--compare", metavar="OTHER", help="another such folder to compare with (writes compare.html)"),
    Option("--no-pictures", is_flag=True, help="no histograms (they need matplotlib)"),
    Option("--no-parquet", is_flag=True, help="no records.parquet (it needs pyarrow)"),
    Option("-q", "--quiet", is_flag=True, help="no progress bar"),
    JSON,
]


def run(options: Options) -> int:
    from rich.console import Console
    from rich.progress import Progress

    from torch_ttnn.tracer import reports

    with Progress(console=Console(stderr=True), transient=True, disable=options.quiet) as progress:
        written = reports.generate(
            options.stat,
            options.raw,
            options.out,
            compare=options.compare,
            pictures=not options.no_pictures,
            parquet=not options.no_parquet,
            progress=_Stages(progress),
        )
    if options.json:
        content = {
            "page": str(written.page),
            "files": [str(each) for each in written.files],
            "models": list(written.summary.models),
            "left_out": dict(written.summary.bad),
        }
        print(json.dumps(content, indent=1))
        return 0
    console = tables.console()
    console.print(f"{len(written.files)} files of {len(written.summary.models)} models; see {written.page}")
    for name, why in written.summary.bad:
        console.print(f"left out: {name}: {why}", markup=False)
    return 0


class _Stages:
    """One progress bar per stage."""

    def __init__(self, progress: Any) -> None:
        self.progress = progress
        self.bars: dict[str, Any] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        if stage not in self.bars:
            self.bars[stage] = self.progress.add_task(stage)
        self.progress.update(self.bars[stage], completed=done, total=total)
