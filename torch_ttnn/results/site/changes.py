"""How every row changed between two runs: regressions first, most severe at the top."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from torch_ttnn.results.check import Change, check
from torch_ttnn.results.record import Row
from torch_ttnn.results.summary import ordered

# In the order in which they are shown.
REGRESSED, IMPROVED, ADDED, GONE, CHANGED, SAME = "regressed", "improved", "added", "gone", "changed", "same"
KINDS = (REGRESSED, IMPROVED, ADDED, GONE, CHANGED, SAME)
MOST_SEVERE = ("status", "ops_remaining", "pcc", "gradient_pcc", "crossings_within")  # then all others


@dataclass(frozen=True)
class RowChange:
    """A row in two runs; None in a run without it."""

    key: str
    before: Row | None
    after: Row | None
    worse: tuple[Change, ...] = ()
    better: tuple[Change, ...] = ()
    conditions: tuple[Change, ...] = ()  # measured under different conditions

    @property
    def kind(self) -> str:
        if self.before is None or self.after is None:
            return ADDED if self.before is None else GONE
        if self.worse:
            return REGRESSED
        if self.better:
            return IMPROVED
        return CHANGED if self.conditions else SAME


def changes(before: Sequence[Row], after: Sequence[Row]) -> list[RowChange]:
    """Every row of either run; regressions first."""
    verdict = check(after, before, expected=lambda row: True)
    worse, better, conditions = (_by_key(found) for found in (verdict.worse, verdict.better, verdict.other_conditions))
    old, new = ({row.key: row for row in rows} for rows in (before, after))
    keys = dict.fromkeys(row.key for row in ordered([*before, *after]))
    result = [
        RowChange(key, old.get(key), new.get(key), tuple(worse[key]), tuple(better[key]), tuple(conditions[key]))
        for key in keys
    ]
    return sorted(result, key=_severity)  # sorting is stable


def _by_key(found: Sequence[Change]) -> defaultdict[str, list[Change]]:
    grouped: defaultdict[str, list[Change]] = defaultdict(list)
    for each in found:
        grouped[each.key].append(each)
    return grouped


def _severity(change: RowChange) -> tuple[int, int, int]:
    """Sort key: kind of change, then field, then size of the change."""
    fields = [each.field for each in (change.worse or change.better)]
    ranks = [MOST_SEVERE.index(name) if name in MOST_SEVERE else len(MOST_SEVERE) for name in fields]
    return KINDS.index(change.kind), min(ranks, default=len(MOST_SEVERE)), -len(fields)
