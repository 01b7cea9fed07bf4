"""Helpers that read a page of traces in a browser."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any

from torch_ttnn.tracer.reports.summary import ModelPhase, ModelSummary, OpSummary, Summary


def settled(tab: Any) -> Any:
    """The page once it shows the view of its address: it redraws shortly after the address changes."""
    tab.wait_for_function("() => document.body.dataset.shown === (location.hash || '#')")
    return tab


def names(tab: Any) -> list[str]:
    """The first column of the list: operations, or models."""
    return settled(tab).locator("main .whole tbody td:first-child").all_inner_texts()


def heads(tab: Any) -> list[str]:
    return [each.strip() for each in settled(tab).locator("main th").all_inner_texts()]


def column(tab: Any, title: str) -> Any:
    return tab.get_by_role("columnheader", name=title, exact=True)


def table(tab: Any, title: str) -> list[list[str]]:
    """The cells of one of the smaller tables."""
    rows = settled(tab).get_by_role("region", name=title, exact=True).locator("tbody tr").all()
    return [row.locator("td").all_inner_texts() for row in rows]


def row_of(tab: Any, name: str) -> Any:
    """The cells of the line of an operation or a model."""
    return settled(tab).locator("main tr", has=tab.get_by_text(name, exact=True)).locator("td")


def await_rows(tab: Any, wanted: int) -> None:
    tab.wait_for_function("wanted => document.querySelectorAll('main .whole tbody tr').length === wanted", arg=wanted)


def looks_right(tab: Any, views: Sequence[str]) -> None:
    """No view is wider than its window, in wide light and narrow dark windows."""
    grounds = []
    for scheme, width in (("light", 1280), ("dark", 700)):
        tab.emulate_media(color_scheme=scheme)
        tab.set_viewport_size({"width": width, "height": 800})
        for view in views:
            tab.goto(tab.url.split("#")[0] + view)
            assert settled(tab).evaluate("document.documentElement.scrollWidth <= innerWidth"), (view, width)
        grounds.append(tab.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert grounds == ["rgb(251, 251, 250)", "rgb(21, 25, 28)"]


def written(folder: pathlib.Path, text: str) -> pathlib.Path:
    (folder / "page.html").write_text(text, encoding="utf-8")
    return folder / "page.html"


def run_of(op: OpSummary) -> Summary:
    """A run of one operation in one model."""
    model = ModelSummary(next(iter(op.models)))
    model.phases["fw"] = ModelPhase(graphs=1, ops=op.count, distinct_ops=1)
    return Summary({"fw": {op.op_type: op}, "bw": {}}, {model.name: model})
