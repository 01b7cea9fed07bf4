"""Measuring many models: selection, stored rows, repeated rows, failures."""

from __future__ import annotations

import io
import json
import pathlib
from typing import Any

import pytest
from rich.console import Console

from torch_ttnn import jobs, zoo
from torch_ttnn.results import Row, collect, store
from torch_ttnn.results.collect import Choice, requests

HERE = "tests.results.subjects:"
QUICK = {"calls": 1}


class Here:
    """Runs jobs in this process, and counts them."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def run(self, wanted, limits, logs):
        for job in wanted:
            yield job, None
            self.done.append(job.name)
            yield job, jobs.Outcome(job.name, jobs.Status.OK, json.loads(json.dumps(job.call())))


def wanted(*names: str, mode: str = "eval") -> list[collect.Request]:
    return requests([HERE + name for name in names], Choice(mode), named=[HERE + name for name in names])


def test_each_row_has_its_own_process_and_a_crash_costs_one_row(tmp_path: pathlib.Path) -> None:
    names = ("small", "broken", "crashing")
    executor = jobs.LocalExecutor(2, preload=("torch_ttnn.results.training",))
    found = collect.collect(wanted(*names), tmp_path, QUICK, executor=executor).rows
    assert [row.model for row in found] == [f"tests.results.subjects.{name}" for name in names]
    assert [row.status for row in found] == ["device", "fails", "fails"]
    assert found[1].reason == "RuntimeError: no such layer"
    assert found[2].reason == "its process ended with exit code 3 and no result"
    assert found[2].source == "factory", "known without running it"
    assert {row.key: row.status for row in store.rows(tmp_path)} == {row.key: row.status for row in found}


def test_finished_rows_are_reused_and_failures_repeated(tmp_path: pathlib.Path) -> None:
    for expected in (["small", "broken"], ["broken"]):
        executor = Here()
        collect.collect(wanted("small", "broken"), tmp_path, QUICK, executor=executor)
        assert [name.rpartition(".")[2] for name in executor.done] == expected
    executor = Here()
    collect.collect(wanted("small"), tmp_path, {"calls": 1, "seed": 5}, executor=executor)
    assert executor.done, "another seed is another job"


def test_rows_of_other_sources_are_reported_and_measured_again_on_request(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collect.collect(wanted("small"), tmp_path, QUICK, executor=Here())
    assert collect.collect(wanted("small"), tmp_path, QUICK, executor=Here()).stale == ()
    monkeypatch.setattr(collect, "sources", lambda: "of tomorrow")
    kept = Here()
    found = collect.collect(wanted("small"), tmp_path, QUICK, executor=kept)
    assert (kept.done, found.stale) == ([], ("tests.results.subjects.small",))
    repeated = Here()
    collect.collect(wanted("small"), tmp_path, QUICK, executor=repeated, changed=True)
    assert repeated.done == ["tests.results.subjects.small"]


def test_both_modes_are_two_rows(tmp_path: pathlib.Path) -> None:
    names = [HERE + "small"]
    both = [*requests(names, Choice("eval"), named=names), *requests(names, Choice("train"), named=names)]
    found = collect.collect(both, tmp_path, QUICK, executor=Here()).rows
    assert [row.key for row in found] == ["tests.results.subjects.small", "tests.results.subjects.small (train)"]
    assert found[1].gradient_pcc is not None


def test_training_rows_are_of_entries_with_train_set() -> None:
    trained = [entry for entry in zoo.entries() if entry.train]
    assert trained
    names = [f"zoo:{entry.name}" for entry in zoo.entries()]
    assert [each.entry for each in requests(names, Choice("train"))] == trained
    both = requests(names, Choice("both"))
    assert len(both) == len(names) + len(trained)
    other = next(entry.name for entry in zoo.entries() if not entry.train)
    assert requests([other], Choice("train")) == []
    assert [each.key for each in requests([other], Choice("train"), named=[other])] == [f"{other} (train)"]


@pytest.mark.parametrize(
    ("choice", "models"),
    [
        (Choice(family="mnist"), {"mnist-cnn"}),
        (Choice(source="torchvision"), {"resnet18", "resnet18-32px"}),
        (Choice(source="torchvision", size="full"), {"resnet18"}),
        (Choice(size="reduced"), {"resnet18-32px"}),
    ],
)
def test_models_can_be_filtered(choice: Choice, models: set[str]) -> None:
    names = ("mnist-cnn", "resnet18", "resnet18-32px", "resnet18")
    found = requests(names, choice)
    assert {each.entry.name for each in found} == models
    assert len(found) == len(models), "each once"


def test_a_choice_knows_which_kept_rows_to_expect() -> None:
    choice = Choice("both", family="resnet")
    assert choice.expects(Row("a", "train", family="resnet"))
    assert not choice.expects(Row("a", family="vit"))
    assert not Choice("eval").expects(Row("a", "train"))
    assert Choice(size="reduced").expects(Row("a", reduced="2 layers."))


def test_sizes_reach_the_model() -> None:
    (only,) = requests(["mnist-cnn"], Choice(), batch=4)
    assert only.entry.batch == 4


def test_the_display_counts_rows_that_fail() -> None:
    text = io.StringIO()
    display = collect.Display(Console(file=text, width=100))
    job = jobs.Job("broken", "json:loads")
    result: dict[str, Any] = Row("broken", reason="no [such] layer").to_json()
    with display.watching(1, []):
        display.started(job)
        display.ended(job, jobs.Outcome("broken", jobs.Status.OK, result))
    assert "broken: no [such] layer" in text.getvalue()
