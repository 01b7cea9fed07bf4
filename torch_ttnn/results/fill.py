"""Fills the predictions of measured rows by compiling their models, each in its own process; nothing is measured."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from torch_ttnn import jobs
from torch_ttnn.results.collect import PRELOAD
from torch_ttnn.results.predict import Prediction, arguments_of
from torch_ttnn.results.provenance import sources, versions
from torch_ttnn.results.record import FAILS, Row

FUNCTION = "torch_ttnn.results.predict:predict_model"
PREDICTIONS = "predictions"  # the folder of a run's output


@dataclass(frozen=True)
class Filled:
    """All rows, with new predictions.

    failed       rows without a new one, with the reason; they keep the one that they had
    differences  rows that describe another program than the one that is compiled now
    """

    rows: list[Row]
    failed: dict[str, str]
    differences: list[str]


def fill(
    rows: Sequence[Row],
    wanted: Mapping[str, str],
    folder: pathlib.Path,
    *,
    executor: jobs.Executor | None = None,
    limits: jobs.Limits | None = None,
    again: bool = False,
    watcher: jobs.Watcher | None = None,
) -> Filled:
    """`rows` with predictions for those in `wanted`: keys of rows, and the names of their models in the catalog.

    What an interrupted run has predicted is in `folder` and kept, unless other sources predicted it. Rows that failed
    when they were measured get no prediction.
    """
    ran = [row for row in rows if row.key in wanted and row.status != FAILS]
    outcomes = jobs.run(
        [jobs.Job(row.key, FUNCTION, arguments_of(row, wanted[row.key])) for row in ran],
        folder / PREDICTIONS,
        executor=executor or jobs.LocalExecutor(preload=PRELOAD if len(ran) > 1 else ()),
        limits=limits or jobs.Limits(),
        conditions={name: version for name, version in versions().items() if name != "sources"},
        again=again,
        valid=_is_current,
        watcher=watcher,
    )
    found = {row.key: Prediction.from_json(each.result) for row, each in zip(ran, outcomes) if each.ok}
    return Filled(
        rows=[replace(row, predicted=found[row.key].predicted) if row.key in found else row for row in rows],
        failed={row.key: each.reason for row, each in zip(ran, outcomes) if not each.ok},
        differences=[text for row in ran if row.key in found for text in found[row.key].differences(row)],
    )


def _is_current(outcome: jobs.Outcome) -> bool:
    try:
        return Prediction.from_json(outcome.result).sources == sources()
    except ValueError:  # of another version
        return False
