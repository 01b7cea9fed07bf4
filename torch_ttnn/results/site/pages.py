"""The pages of the site as HTML, one function per kind of page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from torch_ttnn.pages.assembly import BLOCKS_SCRIPT, BLOCKS_STYLE, assemble, card, embedded, safe
from torch_ttnn.results.documents.older_compiler import Verdict
from torch_ttnn.results.documents.sentences import is_emulated, measured_on, predicted_by
from torch_ttnn.results.documents.versus_older import verdicts
from torch_ttnn.results.record import Row
from torch_ttnn.results.site.changes import KINDS, RowChange
from torch_ttnn.results.site.data import (
    OUTCOMES,
    Operation,
    number,
    operation_line,
    operation_page,
    ops_of,
    row_line,
    row_page,
)
from torch_ttnn.results.summary import NEAR, ModeTotals, accuracy, totals

FILES = "torch_ttnn.results.site.files"
LINKS = {"index.html": "Models", "ops.html": "Operations", "compare.html": "Compare"}


class Site:
    """The content of the pages: ordered rows, operations, and the path of every page."""

    def __init__(
        self,
        rows: Sequence[Row],
        operations: Mapping[str, Operation],
        model_pages: Mapping[str, str],
        op_pages: Mapping[str, str],
        changes: Sequence[RowChange] | None,
    ) -> None:
        self.rows, self.operations, self.changes = rows, operations, changes
        self.model_pages, self.op_pages = model_pages, op_pages
        self.peers = verdicts(rows)

    def index(self) -> str:
        devices = sorted({row.device for row in self.rows if row.device})
        emulated = bool(devices) and all(map(is_emulated, devices))
        data = {
            "rows": [self._line(row) for row in self.rows],
            "pages": self._pages_of(each.op for row in self.rows for each in row.host_ops),
            "device": "The device is emulated: its times are this CPU's, not a card's." if emulated else "",
        }
        head = [_quiet(measured_on(self.rows, str)), _quiet(predicted_by(self.rows, str)), self._cards()]
        return self._page("index.html", "Results", "\n".join(head), data, ["plots.js", "index.js"])

    def ops(self) -> str:
        lines = [operation_line(each, self.rows, self.op_pages[each.name]) for each in self.operations.values()]
        head = _quiet("Every ATen operation of the models' graphs, and what became of its calls.")
        return self._page("ops.html", "Operations", head, {"ops": lines}, ["ops.js"])

    def search(self) -> str:
        models = {row.model: row for row in reversed(self.rows)}
        data = {
            "models": sorted([name, self.model_pages[name], _about(row)] for name, row in models.items()),
            "ops": [[each.name, self.op_pages[each.name], self._usage(each)] for each in self.operations.values()],
        }
        return self._page("search.html", "Search", "", data, ["search.js"])

    def model(self, name: str) -> str:
        rows = [row for row in self.rows if row.model == name]
        data = {
            "rows": [{**self._line(row), **row_page(row)} for row in rows],
            "pages": self._pages_of(op for row in rows for op in ops_of(row)),
        }
        return self._page(self.model_pages[name], name, _quiet(_about(rows[0])), data, ["model.js"])

    def operation(self, name: str) -> str:
        operation = self.operations[name]
        data = operation_page(operation, self.rows, self.model_pages)
        cards = [card("", f"{operation.calls.total():,}", "calls")] + [
            card(kind if operation.calls[outcome] else "", f"{operation.calls[outcome]:,}", text)
            for outcome, kind, text in zip(OUTCOMES, ("device", "", "host"), ("converted", "removed", "on the host"))
        ]
        cards.append(card("", f"{len(operation.variations):,}", "variations"))
        cards.append(card("", f"{len({model for model, *_ in data['rows']}):,}", "models"))
        return self._page(self.op_pages[name], name, _card_row(cards), data, ["op.js"])

    def compare(self) -> str:
        changes = self.changes or []
        kinds = [each.kind for each in changes]
        styles = dict(zip(KINDS, ("host", "good", "device", "move", "", "")))
        cards = [card(styles[kind] if kind in kinds else "", kinds.count(kind), kind) for kind in KINDS]
        data = {"changes": [self._change(each) for each in changes]}
        text = "Two runs, row by row: regressions first. Times are not judged."
        return self._page("compare.html", "Two runs compared", _quiet(text) + _card_row(cards), data, ["compare.js"])

    # -- shared parts of pages ----------------------------------------------------------------------------------------

    def _page(self, path: str, title: str, head: str, data: Mapping[str, Any], scripts: Sequence[str]) -> str:
        top = "../" * path.count("/")
        shown = [each for each in LINKS if each != "compare.html" or self.changes is not None]
        links = [
            f'<a href="{top}{each}"{" aria-current=page" if each == path else ""}>{LINKS[each]}</a>' for each in shown
        ]
        return assemble(
            FILES,
            "page.html",
            [BLOCKS_STYLE, "site.css"],
            [BLOCKS_SCRIPT, "site.js", *scripts],
            generator="results",
            title=safe(title),
            links="\n".join(links),
            head=head,
            data=embedded({"top": top, "pages": {}, **data}),
        )

    def _cards(self) -> str:
        found = totals(self.rows)
        cards = [card("", f"{found.models:,}", "models")]
        for mode, title in ((found.eval, "inference"), (found.train, "training")):
            if mode.rows:
                cards += _mode_cards(mode, title)
        variations = sum(len(each.variations) for each in self.operations.values())
        cards.append(card("", f"{len(self.operations):,}", "operations", f"{variations:,} variations"))
        if self.peers:
            worse = [key for key, (verdict, _) in self.peers.items() if verdict == Verdict.WORSE.value]
            count = f"{len(self.peers) - len(worse):,} / {len(self.peers):,}"
            title = "rows at least as good as the older compiler's"
            cards.append(
                card("device" if worse else "good", count, title, f"worse: {', '.join(worse)}" if worse else "")
            )
        return _card_row(cards)

    def _pages_of(self, ops: Iterable[str]) -> dict[str, str]:
        return {op: self.op_pages[op] for op in sorted(set(ops))}

    def _line(self, row: Row) -> dict[str, Any]:
        return {**row_line(row, self.model_pages[row.model]), "peer": self.peers.get(row.key)}

    def _usage(self, operation: Operation) -> str:
        left = operation.calls["host"] or sum(count for *_, count in operation.host)
        return f"{operation.calls.total():,} calls" + (f", {left:,} on the host" if left else "")

    def _change(self, change: RowChange) -> dict[str, Any]:
        row = change.after or change.before
        assert row is not None
        return {
            "key": change.key,
            "mode": row.mode,
            "page": self.model_pages[row.model] if change.after else "",
            "change": [change.kind],
            "worse": [[each.field, _text(each.before), _text(each.after)] for each in change.worse],
            "better": [[each.field, _text(each.before), _text(each.after)] for each in change.better],
            "conditions": [[each.field, _text(each.before), _text(each.after)] for each in change.conditions],
            "runs": [_run(change.before), _run(change.after)],
        }


def _run(row: Row | None) -> dict[str, Any] | None:
    if row is None:
        return None
    return {
        "status": row.status,
        "reason": row.reason,
        "remain": row.ops_remaining,
        "crossings": row.uploads + row.downloads,
        "pcc": accuracy(row),
        "compiled": number(row.compiled_seconds),
    }


def _text(value: Any) -> str:
    return "none" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


# -- the heads of pages -----------------------------------------------------------------------------------------------


def _quiet(text: str) -> str:
    return f'<p class="quiet">{safe(text)}</p>' if text else ""


def _card_row(cards: Iterable[str]) -> str:
    return f'<div class="cards">{"".join(cards)}</div>'


def _mode_cards(mode: ModeTotals, title: str) -> list[str]:
    detail = f"{mode.with_host_ops} with operations on the host, {mode.failing} fail, of {mode.rows}"
    worst = accuracy(mode.worst) if mode.worst else None
    lowest = f"the lowest is {worst:.4f}, {mode.worst.model}" if mode.worst and worst is not None else ""
    kind = "good" if mode.good == mode.rows else "device"
    return [
        card(kind, f"{mode.on_device:,} / {mode.rows:,}", f"{title} rows all on device", detail),
        card(kind, f"{mode.near:,} / {mode.rows:,}", f"{title} rows with PCC ≥ {NEAR}", lowest),
    ]


def _about(row: Row) -> str:
    return ", ".join(each for each in (row.family, row.task, row.source) if each)
