"""`torch-ttnn results`: pages from the results of `torch-ttnn metrics`."""

from __future__ import annotations

import json
import os
import pathlib

import click

from torch_ttnn.cli import choices
from torch_ttnn.cli.metrics import KEPT
from torch_ttnn.cli.parameters import JSON, Argument, Option, Options

HELP = "make pages of the results: the README's table, the full table, a site"
README, TABLE = "README.md", os.path.join("docs", "results.md")
EPILOG = """\
RESULTS is a Parquet file, or a folder that `torch-ttnn metrics` wrote. Options say what to write.

--keep writes RESULTS to results/results.parquet, the committed file that --check of `torch-ttnn metrics` compares
with. --stale writes nothing and fails (exit code 1) if README.md or docs/results.md are out of date.

examples
  torch-ttnn results --site site                       a page per model and operation
  torch-ttnn results metrics --site site --before results/results.parquet
  torch-ttnn results metrics --keep --pages            after a full run: update the project's table
  torch-ttnn results --stale
"""


PARAMETERS: list[click.Parameter] = [
    Argument("results", required=False, default=KEPT, help=f"results to show (default {KEPT})"),
    Option("--pages", is_flag=True, help=f"write the block in {README}, and {TABLE}"),
    Option("--site", metavar="FOLDER", help="write a site of static pages"),
    Option("--before", metavar="RESULTS", help="with --site: compare with these results, worse rows first"),
    Option("--keep", is_flag=True, help=f"write them to {KEPT}"),
    Option("--stale", is_flag=True, help="only list pages that are out of date"),
    JSON,
]


def run(options: Options) -> int:
    from torch_ttnn.results import pages, store

    if options.before and not options.site:
        raise choices.BadChoice("--before needs --site FOLDER: the comparison is a page of the site")
    if not (options.pages or options.site or options.keep or options.stale):
        raise choices.BadChoice("choose what to write: --pages, --site FOLDER, --keep or --stale")
    rows = store.read(options.results)
    if not rows:
        raise choices.BadChoice(f"{options.results} contains no rows")
    if options.stale:
        found = pages.check(rows, readme=README, results_md=TABLE)
        if options.json:
            print(json.dumps({"out_of_date": [str(path) for path in found]}, indent=1))
        for path in () if options.json else found:
            print(f"out of date: {path}; `torch-ttnn results {options.results} --pages` updates it")
        return 1 if found else 0
    before = store.read(options.before) if options.before else None
    written = [pathlib.Path(KEPT)] if options.keep else []
    if options.keep:
        store.write(rows, KEPT)
    written += pages.write(
        rows,
        readme=README if options.pages else None,
        results_md=TABLE if options.pages else None,
        site=options.site,
        before=before,
    )
    if options.json:
        print(json.dumps({"written": [str(path) for path in written]}, indent=1))
    for path in () if options.json else written:
        print(path)
    return 0
