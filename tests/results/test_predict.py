"""Predictions of measured rows: compiled only, equal to those of a measurement, and apart from what was measured."""

from __future__ import annotations

import json
import pathlib
from dataclasses import replace

import pytest

from tests.results.test_measure import HERE, row
from torch_ttnn import jobs
from torch_ttnn.results import fill
from torch_ttnn.results.check import check
from torch_ttnn.results.predict import Prediction, predict_model
from torch_ttnn.results.provenance import sources
from torch_ttnn.results.record import Predicted, Row

PREDICTED = Predicted("n150", 3, 1e-3, 2e-6, 1e-4, 2e-3, 1.1e-3, 1e-3, sources="old")


def prediction(model: str, **settings: object) -> Prediction:
    return Prediction.from_json(json.loads(json.dumps(predict_model(model, **settings), allow_nan=False)))


@pytest.mark.parametrize("model", [HERE + "small", HERE + "sorting", "mnist-cnn"])
@pytest.mark.parametrize("mode", ["eval", "train"])
def test_it_is_what_a_measurement_predicts(model: str, mode: str) -> None:
    measured = row(model, mode, tasks=False)
    found = prediction(model, mode=mode)
    assert measured.predicted is not None
    assert found.predicted == measured.predicted
    assert found.predicted.sources == measured.versions["sources"] == sources()
    assert found.predicted.device_seconds > 0
    assert found.differences(measured) == []
    (text,) = found.differences(replace(measured, ops_remaining=measured.ops_remaining + 1))
    assert f"ops_remaining was {measured.ops_remaining + 1}" in text


def test_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def runs(*_: object) -> None:
        raise AssertionError("the model ran")

    monkeypatch.setattr("torch_ttnn.compiler.runtime.program.Program.__call__", runs)
    monkeypatch.setattr("torch_ttnn.compiler.runtime.program.Program.on_host", runs)
    assert prediction(HERE + "small").predicted.programs > 0


def test_another_board_and_precision() -> None:
    found = prediction(HERE + "small", device="emulator:p150", precision="float32").predicted
    assert found.board == "p150"
    assert found.kernels_seconds != prediction(HERE + "small").predicted.kernels_seconds


def test_a_model_with_other_inputs_is_refused() -> None:
    with pytest.raises(ValueError, match=r"inputs float32\[9, 32\], .*small has float32\[4, 32\] now"):
        predict_model(HERE + "small", inputs="float32[9, 32]")


def test_a_model_whose_graphs_depend_on_values_is_run_by_torch() -> None:
    found = prediction(HERE + "breaking")
    assert found.differences(row(HERE + "breaking")) == []
    assert found.counts["ops_before"] > 0


def test_filling_changes_nothing_that_was_measured(tmp_path: pathlib.Path) -> None:
    measured = replace(row(HERE + "small", seed=3), predicted=None)
    other = Row("other", status="device", predicted=PREDICTED)
    failing = replace(measured, model="failing", status="fails")
    rows = [measured, other, failing]
    wanted = {measured.key: HERE + "small", failing.key: HERE + "small"}
    filled = fill.fill(rows, wanted, tmp_path)
    assert not filled.failed
    assert not filled.differences
    assert [replace(each, predicted=None) for each in filled.rows] == [replace(each, predicted=None) for each in rows]
    assert filled.rows[0].predicted == prediction(HERE + "small", seed=3).predicted
    assert filled.rows[1:] == [other, failing]


def test_a_failure_keeps_the_row(tmp_path: pathlib.Path) -> None:
    broken = Row("tests.results.subjects.broken", status="device", predicted=PREDICTED)
    filled = fill.fill([broken], {broken.key: HERE + "broken"}, tmp_path)
    assert filled.rows == [broken]
    assert list(filled.failed) == [broken.key]
    assert filled.failed[broken.key]


def test_predictions_are_resumed_until_the_sources_change(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    class Fake:
        def run(self, wanted, limits, logs):
            for job in wanted:
                asked.append(job.name)
                result = {"predicted": vars_of(PREDICTED), "counts": {}, "sources": sources()}
                yield job, None
                yield job, jobs.Outcome(job.name, jobs.Status.OK, result)

    rows = [Row("a", status="device"), Row("b", status="device")]
    for _ in range(2):
        filled = fill.fill(rows, {"a": "a", "b": "b"}, tmp_path, executor=Fake())
        assert [each.predicted for each in filled.rows] == [PREDICTED, PREDICTED]
    assert asked == ["a", "b"]
    monkeypatch.setattr(fill, "sources", lambda: "new")
    fill.fill(rows, {"a": "a"}, tmp_path, executor=Fake())
    assert asked == ["a", "b", "a"]


def vars_of(predicted: Predicted) -> dict[str, object]:
    return {name: getattr(predicted, name) for name in Predicted.__dataclass_fields__}


def test_a_longer_prediction_is_worse() -> None:
    before = Row("a", status="device", pcc=1.0, predicted=PREDICTED)
    slower = replace(before, predicted=replace(PREDICTED, kernels_seconds=1.2e-3))
    near = replace(before, predicted=replace(PREDICTED, kernels_seconds=1.02e-3))
    assert [change.field for change in check([slower], [before]).worse] == ["predicted device seconds"]
    assert [change.field for change in check([before], [slower]).better] == ["predicted device seconds"]
    for other in (near, replace(before, predicted=None)):
        assert check([other], [before]).ok
        assert not check([other], [before]).better


def test_rows_with_and_without_a_prediction_survive_a_round_trip() -> None:
    for each in (Row("a"), Row("a", predicted=PREDICTED)):
        assert Row.from_json(json.loads(json.dumps(each.to_json()))) == each
