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
from torch_ttnn.results.collect import Choice, asked

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


def wanted(*names: str, mode: str = "eval") -> list[collect.Asked]:
    return asked([HERE + name for name in names], Choice(mode), named=[HERE + name for name in names])


def test_each_in_a_process_of_its_own_and_a_crash_costs_one_row(tmp_path: pathlib.Path) -> None:
    names = ("small", "broken", "crashing")
    executor = jobs.LocalExecutor(2, preload=("torch_ttnn.results.training",))
    found = collect.collect(wanted(*names), tmp_path, QUICK, executor=executor).rows
    assert [row.model for row in found] == [f"tests.results.subjects.{name}" for name in names]
    assert [row.status for row in found] == ["device", "fails", "fails"]
    assert found[1].reason == "RuntimeError: no such layer"
    assert found[2].reason == "its process ended with exit code 3 and no result"
    assert found[2].source == "factory", "what is known of it without running it"
    assert {row.key: row.status for row in store.rows(tmp_path)} == {row.key: row.status for row in found}


def test_what_is_done_is_not_done_again_but_failures_are(tmp_path: pathlib.Path) -> None:
    for expected in (["small", "broken"], ["broken"]):
        executor = Here()
        collect.collect(wanted("small", "broken"), tmp_path, QUICK, executor=executor)
        assert [name.rpartition(".")[2] for name in executor.done] == expected
    executor = Here()
    collect.collect(wanted("small"), tmp_path, {"calls": 1, "seed": 5}, executor=executor)
    assert executor.done, "another seed is another question"


def test_rows_of_other_sources_are_told_and_measured_again_on_request(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collect.collect(wanted("small"), tmp_path, QUICK, executor=Here())
    assert collect.collect(wanted("small"), tmp_path, QUICK, executor=Here()).stale == ()
    monkeypatch.setattr(collect, "sources", lambda: "of tomorrow")
    kept = Here()
    found = collect.collect(wanted("small"), tmp_path, QUICK, executor=kept)
    assert (kept.done, found.stale) == ([], ("tests.results.subjects.small",))
    anew = Here()
    collect.collect(wanted("small"), tmp_path, QUICK, executor=anew, changed=True)
    assert anew.done == ["tests.results.subjects.small"]


def test_both_modes_are_two_rows(tmp_path: pathlib.Path) -> None:
    names = [HERE + "small"]
    both = [*asked(names, Choice("eval"), named=names), *asked(names, Choice("train"), named=names)]
    found = collect.collect(both, tmp_path, QUICK, executor=Here()).rows
    assert [row.key for row in found] == ["tests.results.subjects.small", "tests.results.subjects.small (train)"]
    assert found[1].gradient_pcc is not None


def test_training_is_for_those_that_take_part_in_it() -> None:
    trained = [entry for entry in zoo.entries() if entry.train]
    assert trained
    names = [f"zoo:{entry.name}" for entry in zoo.entries()]
    assert [each.entry for each in asked(names, Choice("train"))] == trained
    both = asked(names, Choice("both"))
    assert len(both) == len(names) + len(trained)
    other = next(entry.name for entry in zoo.entries() if not entry.train)
    assert asked([other], Choice("train")) == []
    assert [each.key for each in asked([other], Choice("train"), named=[other])] == [f"{other} (train)"]


@pytest.mark.parametrize(
    ("choice", "models"),
    [
        (Choice(family="mnist"), {"mnist-cnn"}),
        (Choice(source="torchvision"), {"resnet18", "resnet18-32px"}),
        (Choice(source="torchvision", size="full"), {"resnet18"}),
        (Choice(size="reduced"), {"resnet18-32px"}),
    ],
)
def test_models_can_be_chosen_by_their_kind(choice: Choice, models: set[str]) -> None:
    names = ("mnist-cnn", "resnet18", "resnet18-32px", "resnet18")
    found = asked(names, choice)
    assert {each.entry.name for each in found} == models
    assert len(found) == len(models), "each once"


def test_a_choice_says_which_kept_rows_a_run_has() -> None:
    choice = Choice("both", family="resnet")
    assert choice.expects(Row("a", "train", family="resnet"))
    assert not choice.expects(Row("a", family="vit"))
    assert not Choice("eval").expects(Row("a", "train"))
    assert Choice(size="reduced").expects(Row("a", reduced="2 layers."))


def test_sizes_reach_the_model() -> None:
    (only,) = asked(["mnist-cnn"], Choice(), batch=4)
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
