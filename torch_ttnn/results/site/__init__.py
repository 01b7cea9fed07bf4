"""A static site of the results: models, operations, search, and a comparison of two runs. It needs no server.

>>> import tempfile
>>> from torch_ttnn.results import Row, site
>>> with tempfile.TemporaryDirectory() as folder:
...     site.build([Row("resnet18", status="device", pcc=0.999)], folder).name
'index.html'

Every page is self-contained, so it can be moved or sent alone.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterable, Iterator

from torch_ttnn.results.record import Row
from torch_ttnn.results.site.changes import changes
from torch_ttnn.results.site.data import operations
from torch_ttnn.results.site.names import file_names
from torch_ttnn.results.site.pages import Site
from torch_ttnn.results.summary import ordered
from ttnn_emulator.atomic_files import replacing

__all__ = ["build"]

MODELS, OPERATIONS = "models", "ops"  # folders of pages
OURS = b'<meta name="generator" content="torch_ttnn results">'  # in the first lines of every page


def build(rows: Iterable[Row], folder: str | os.PathLike, *, before: Iterable[Row] | None = None) -> pathlib.Path:
    """Write the site into a folder; returns the path of its first page.

    With `before`, the rows of an earlier run, there is a page that compares the two. Pages of an earlier site that no
    longer exist are removed; other files in the folder are not touched.
    """
    top = pathlib.Path(folder)
    written = set()
    for path, text in _pages(ordered(rows), None if before is None else ordered(before)):
        target = top / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as temporary:
            temporary.write_text(text, encoding="utf-8")
        written.add(target)
    for old in _earlier(top):
        if old not in written:
            old.unlink()
    return top / "index.html"


def _pages(rows: list[Row], before: list[Row] | None) -> Iterator[tuple[str, str]]:
    """Path and text of every page."""
    found = operations(rows)
    models = file_names(MODELS, [row.model for row in rows])
    ops = file_names(OPERATIONS, found)
    site = Site(rows, found, models, ops, None if before is None else changes(before, rows))
    for name, path in models.items():
        yield path, site.model(name)
    for name, path in ops.items():
        yield path, site.operation(name)
    yield "ops.html", site.ops()
    yield "search.html", site.search()
    if before is not None:
        yield "compare.html", site.compare()
    yield "index.html", site.index()  # last, when the pages it links to exist


def _earlier(top: pathlib.Path) -> Iterator[pathlib.Path]:
    """Pages in the folder that this or an earlier build wrote."""
    for folder in (top, top / MODELS, top / OPERATIONS):
        for path in sorted(folder.glob("*.html")):
            with path.open("rb") as file:
                if OURS in file.read(1000):
                    yield path
