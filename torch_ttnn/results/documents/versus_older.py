"""Our rows compared with those that the older compiler published: a summary, tables, and what has no counterpart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from torch_ttnn.results.documents import markdown as md
from torch_ttnn.results.documents.markdown import Column
from torch_ttnn.results.documents.older_compiler import (
    LEFT_OUT,
    Comparison,
    PeerRow,
    Verdict,
    compare,
    link,
    peer_rows,
    peers_of,
)
from torch_ttnn.results.record import FAILS, Row

PROJECT = "[pytorch2.0_ttnn](https://github.com/tenstorrent/pytorch2.0_ttnn)"
COLUMNS = (
    Column("Row", ""),
    Column("Older name", ""),
    Column("Torch Ops (Remain), ours", "", number=True),
    Column("theirs", "", number=True),
    Column("Transfers within, ours", "", number=True),
    Column("theirs", "", number=True),
    Column("Ours is", ""),
    Column("What differs", ""),
)


@dataclass(frozen=True)
class Pair:
    """One of our rows and one of theirs, for the same model and mode."""

    row: Row
    peer: PeerRow
    comparison: Comparison

    @property
    def verdict(self) -> Verdict:
        """Worse if either count is worse."""
        both = (self.comparison.host_ops, self.comparison.moves)
        return next((each for each in (Verdict.WORSE, Verdict.BETTER) if each in both), Verdict.EQUAL)

    @property
    def note(self) -> str:
        found = link(self.peer)
        return found.note if found else ""


def pairs(rows: Iterable[Row]) -> list[Pair]:
    """All rows that both have, in the order of ours."""
    return [Pair(row, peer, compare(row, peer)) for row in rows for peer in peers_of(row)]


def verdicts(rows: Iterable[Row]) -> dict[str, tuple[str, str]]:
    """For every row with a counterpart: better, equal or worse, with the numbers."""
    found: dict[str, tuple[str, str]] = {}
    for pair in pairs(rows):
        text = f"host ops {_ours(pair.row.ops_remaining, pair)} here and {_theirs(pair.peer.ops_remaining)} there, "
        text += f"transfers within {_ours(pair.row.crossings_within, pair)} here and {_theirs(pair.peer.moves)} there"
        earlier = found.get(pair.row.key)
        if earlier is None or earlier[0] != Verdict.WORSE.value:  # of two counterparts, the stricter comparison
            found[pair.row.key] = (pair.verdict.value, text)
    return found


def verdict_line(rows: Iterable[Row]) -> list[str]:
    """Summary of the comparison as a list item; empty if there are no common rows."""
    counted = Counter(pair.verdict for pair in pairs(rows))
    if not counted:
        return []
    text = ", ".join(f"{counted[verdict]:,} {verdict.value}" for verdict in Verdict)
    return [
        f"- **Against the older compiler**, {PROJECT}, by operations left to the host and transfers within the model: "
        f"{text}, of {counted.total():,} published rows with a counterpart here."
    ]


def versus_peer(rows: Sequence[Row]) -> list[str]:
    """The section of the comparison: exceptions first, then all rows."""
    found = pairs(rows)
    if not found:
        return []
    text = (
        f"{PROJECT} published how many operations of each model it leaves to the host and how many transfers to and "
        "from the device it needs within the model (without inputs and outputs). Fewer is better; a row is worse if "
        "either count is worse."
    )
    worse = [pair for pair in found if pair.verdict is Verdict.WORSE]
    lines = ["## Against the older compiler", "", text, "", *verdict_line(rows), ""]
    if worse:
        lines += ["### Exceptions: rows that are worse here", "", *_table(worse), ""]
    return [*lines, f"### All common rows ({len(found):,})", "", *_table(found), ""]


def left_out(rows: Iterable[Row]) -> list[str]:
    """The section of published rows that have no counterpart here, each with the reason."""
    measured = {(row.model, row.mode) for row in rows}
    lines = []
    for peer in sorted(peer_rows(), key=lambda peer: peer.key.casefold()):
        ours = link(peer)
        if ours is None:
            lines.append([md.plain(peer.key), md.plain(LEFT_OUT[peer.key])])
        elif (ours.entry, peer.mode) not in measured:
            lines.append([md.plain(peer.key), f"{md.plain(ours.entry)} was not measured"])
    if not lines:
        return []
    text = "Rows that the older compiler published and that have no counterpart above."
    columns = [Column("Older name", ""), Column("Why", "")]
    return [f"## Left out ({len(lines):,})", "", text, "", *md.table(columns, lines), ""]


def _table(found: Iterable[Pair]) -> list[str]:
    lines = [
        [
            md.plain(pair.row.key),
            md.plain(pair.peer.model),
            _ours(pair.row.ops_remaining, pair),
            _theirs(pair.peer.ops_remaining),
            _ours(pair.row.crossings_within, pair),
            _theirs(pair.peer.moves),
            pair.verdict.value,
            md.plain(pair.note),
        ]
        for pair in found
    ]
    return md.table(COLUMNS, lines)


def _ours(count: int, pair: Pair) -> str:
    return "fails" if pair.row.status == FAILS else f"{count:,}"


def _theirs(count: int | None) -> str:
    return "fails" if count is None else f"{count:,}"
