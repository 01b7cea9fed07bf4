"""Writes all pages of results (README block, full table, site) and finds stale ones among the committed."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterable

from torch_ttnn.results import site as static_site
from torch_ttnn.results.documents import readme as readme_block
from torch_ttnn.results.documents.full_table import document
from torch_ttnn.results.record import Row
from ttnn_emulator.atomic_files import replacing

Path = str | os.PathLike


def write(
    rows: Iterable[Row],
    *,
    readme: Path | None = None,
    results_md: Path | None = None,
    site: Path | None = None,
    before: Iterable[Row] | None = None,
) -> list[pathlib.Path]:
    """Write the pages that have a path; returns the files that changed, and the first page of the site.

    `before` are rows of an earlier run; the site then has a page that compares the two.
    """
    known = list(rows)
    written = []
    if readme is not None and readme_block.update(pathlib.Path(readme), known):
        written.append(pathlib.Path(readme))
    if results_md is not None and _is_stale(pathlib.Path(results_md), document(known)):
        path = pathlib.Path(results_md)
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            temporary.write_text(document(known), encoding="utf-8", newline="\n")
        written.append(path)
    if site is not None:
        written.append(static_site.build(known, site, before=before))
    return written


def check(rows: Iterable[Row], *, readme: Path | None = None, results_md: Path | None = None) -> list[pathlib.Path]:
    """The files that are missing or differ from those of these rows."""
    known = list(rows)
    found = []
    if readme is not None and readme_block.stale(pathlib.Path(readme), known):
        found.append(pathlib.Path(readme))
    if results_md is not None and _is_stale(pathlib.Path(results_md), document(known)):
        found.append(pathlib.Path(results_md))
    return found


def _is_stale(path: pathlib.Path, text: str) -> bool:
    return not path.exists() or path.read_bytes().replace(b"\r\n", b"\n") != text.encode()
