"""`torch-ttnn metrics` from its arguments to its exit code."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from dataclasses import replace

import pytest

from tests.zoo.installed import need
from torch_ttnn.cli import main
from torch_ttnn.results import Row, collect, store

ROOT = pathlib.Path(__file__).parents[2]
SMALL = "tests.results.subjects:small"
KEY = "tests.results.subjects.small"


@pytest.fixture(autouse=True)
def workplace(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    need("pyarrow")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> dict[str, Row]:
    """Fake jobs: rows by name, which a test can change; missing ones fail."""
    rows: dict[str, Row] = {}

    def run(wanted, folder, **settings):
        from torch_ttnn import jobs

        outcomes = [
            jobs.Outcome(job.name, jobs.Status.OK, rows[job.name].to_json())
            if job.name in rows
            else jobs.Outcome(job.name, jobs.Status.TIMEOUT, reason="not done after 9 s")
            for job in wanted
        ]
        for job, outcome in zip(wanted, outcomes):
            jobs.Results(folder).keep(job, outcome)
        return outcomes

    monkeypatch.setattr(collect.jobs, "run", run)
    return rows


def good(model: str = "mnist-cnn", **fields: object) -> Row:
    about = {"status": "device", "programs": 1, "uploads": 1, "downloads": 1, "pcc": 0.9999, "ops_before": 14}
    return Row(model, **{**about, **fields})


def call(*arguments: str) -> int:
    return main(["metrics", *arguments, "-q"])


def test_one_model_from_start_to_end(workplace: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(SMALL, "--calls", "1", "--seed", "3", "-o", "out") == 0
    shown = capsys.readouterr().out
    assert KEY[:20] in shown
    assert "inference: 1 rows, 1 all on the device" in shown
    (row,) = store.read(workplace / "out" / "results.parquet")
    assert (row.key, row.status, row.seed, row.calls) == (KEY, "device", 3, 1)
    assert store.rows("out") == [row]
    store.write([replace(row, conversions=row.conversions - 1)], "kept.parquet")
    assert call(SMALL, "--calls", "1", "--seed", "3", "-o", "out", "--check", "kept.parquet") == 1
    assert f"worse: {KEY}: conversions {row.conversions - 1} → {row.conversions}" in _flat(capsys.readouterr().out)


def test_predictions_are_filled_in(workplace: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(SMALL, "--calls", "1", "-o", "out") == 0
    (row,) = store.read("out/results.parquet")
    assert row.predicted is not None
    store.write([replace(row, predicted=None), Row("other", status="device")], "kept.parquet")
    capsys.readouterr()
    assert call(SMALL, "--predict", "kept.parquet", "-o", "out") == 0
    assert store.read("kept.parquet") == [Row("other", status="device"), row]
    assert "1 predictions are in kept.parquet" in _flat(capsys.readouterr().out)
    store.write([replace(row, ops_remaining=2)], "kept.parquet")
    assert call(SMALL, "--predict", "kept.parquet", "-o", "out", "--json") == 1
    content = json.loads(capsys.readouterr().out)
    assert content["differences"] == [f"{KEY}: ops_remaining was 2 when the row was measured and is 0 now"]
    assert content["failed"] == {}
    assert content["rows"][0]["predicted"]["programs"] == row.predicted.programs


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("mnist-cnn", "--predict", "kept.parquet"), "has no row of these models"),
        ((SMALL, "--predict", "kept.parquet", "--mode", "train"), "has no row of these models in this mode"),
        ((SMALL, "--predict", "nothing.parquet"), "there are no results at nothing.parquet"),
        ((SMALL, "--predict", "."), "is a folder"),
        ((SMALL, "--predict", "kept.parquet", "--device", "emulator:p150"), "omit --device"),
        ((SMALL, "--predict", "kept.parquet", "--check"), "omit --check"),
    ],
)
def test_what_cannot_be_predicted(arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    store.write([Row(KEY, status="device")], "kept.parquet")
    assert call(*arguments) == 2
    assert message in _flat(capsys.readouterr().err)


def _flat(text: str) -> str:
    return " ".join(text.split())


def test_a_row_that_fails_ends_with_one(measured: dict[str, Row], capsys: pytest.CaptureFixture[str]) -> None:
    measured["mnist-cnn"] = good()
    assert call("mnist-cnn") == 0
    assert call("mnist-cnn", "resnet18-32px") == 1
    assert "resnet18-32px fails: not done after 9 s" in _flat(capsys.readouterr().out)
    assert [row.status for row in store.read("metrics/results.parquet")] == ["device", "fails"]


def test_host_ops_and_tasks_are_shown(measured: dict[str, Row], capsys: pytest.CaptureFixture[str]) -> None:
    from torch_ttnn.results.record import HostOp, Task

    host = (HostOp("aten.sort.default", "no [lowering]", "a.py:3: x.sort()"),)
    tasks = (Task("digits", "accuracy, %", 1000, 99.1, 98.95),)
    measured["mnist-cnn"] = good(status="host", ops_remaining=1, host_ops=host, tasks=tasks)
    assert call("mnist-cnn") == 0
    shown = _flat(capsys.readouterr().out)
    assert "mnist-cnn: aten.sort.default stays on the host: no [lowering] a.py:3: x.sort()" in shown
    assert "digits, accuracy, % of 1000: 99.10 by torch, 98.95 on the device" in shown


def test_check_fails_when_a_row_got_worse(measured: dict[str, Row], capsys: pytest.CaptureFixture[str]) -> None:
    store.write([good(), good("resnet18", pcc=0.999)], "results/results.parquet")
    measured.update({"mnist-cnn": good(uploads=3, downloads=0), "resnet18": good("resnet18", pcc=0.9985)})
    assert call("mnist-cnn", "resnet18", "--check") == 1
    shown = _flat(capsys.readouterr().out)
    assert "worse: mnist-cnn: uploads 1 → 3" in shown
    assert "better: mnist-cnn: downloads 1 → 0" in shown
    assert "2 rows compared with results/results.parquet: 1 got worse" in shown
    measured["mnist-cnn"] = good()
    assert call("mnist-cnn", "resnet18", "--check") == 0
    assert call("mnist-cnn", "resnet18", "--check", "--tolerance", "1e-5") == 1
    measured["mnist-cnn"] = good(original_seconds=1.0, compiled_seconds=9.0, calls=1)
    store.write([good(original_seconds=1.0, compiled_seconds=2.0, calls=1)], "results/results.parquet")
    assert call("mnist-cnn", "--check") == 0
    assert call("mnist-cnn", "--check", "--check-times", "2") == 1


def test_the_kept_results_are_where_the_store_says() -> None:
    from torch_ttnn.cli import metrics

    assert pathlib.Path(metrics.KEPT) == store.KEPT


def test_a_known_failure_passes_the_check(measured: dict[str, Row]) -> None:
    store.write([Row("mnist-cnn", reason="not done after 9 s")], "results/results.parquet")
    assert call("mnist-cnn", "--check") == 0


def test_a_missing_row_fails_the_check_of_all(measured: dict[str, Row], capsys: pytest.CaptureFixture[str]) -> None:
    kept = [good(family="mnist"), good("no-longer-there", family="mnist"), good("other", family="vit")]
    store.write(kept, "results/results.parquet")
    measured["mnist-cnn"] = good(family="mnist")
    assert call("mnist-cnn", "--check") == 0, "only one was requested"
    assert call("--all", "--family", "mnist", "--check") == 1
    shown = _flat(capsys.readouterr().out)
    assert "worse: no-longer-there: the row no longer exists" in shown
    assert "worse: other" not in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a model"),
        (["resnet-18"], "Did you mean zoo:resnet18"),
        (["mnist-cnn", "--check", "nowhere.parquet"], "there are no results at nowhere.parquet"),
        (["mnist-cnn", "--family", "vit"], "none of the 1 models matches the filters"),
        (["mnist-cnn", "--seconds", "0"], "--seconds 0 leaves no time for a call"),
        (["mnist-cnn", "--timeout", "0"], "lets no job run"),
        (["mnist-cnn", "--input-shape", "1,2"], "mnist-cnn takes Picture"),
    ],
)
def test_usage_errors_are_explained(
    arguments: list[str], message: str, workplace: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need("torchvision", "timm", "transformers")
    assert call(*arguments) == 2
    assert message in capsys.readouterr().err
    assert not (workplace / "metrics").exists()


def test_an_invalid_results_file_is_named(workplace: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    (workplace / "x.parquet").write_text("no")
    assert call("mnist-cnn", "--check", "x.parquet") == 2
    assert "x.parquet cannot be read" in capsys.readouterr().err


def test_without_ray_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("torch_ttnn.jobs.ray_executor.find_spec", lambda name: None)
    assert call("mnist-cnn", "--executor", "ray") == 2
    assert 'pip install "torch_ttnn[ray]"' in capsys.readouterr().err


def test_the_table_fits_a_narrow_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    from torch_ttnn.cli import metrics

    wide = good(
        "a_model_of_a_name_so_long_that_it_must_be_folded", mode="train", ops_before=12345, ops_remaining=1234,
        uploads=123, downloads=123, gradient_pcc=0.99123, first_seconds=123.4, original_seconds=12.3,
        compiled_seconds=0.123,
    )  # fmt: skip
    metrics.show(Console(width=80), [wide])
    shown = capsys.readouterr().out
    assert "…" not in shown
    assert "123 ms" in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.slow
def test_the_tool_runs_from_a_checkout(workplace: pathlib.Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    called = [sys.executable, str(ROOT / "tools" / "collect_metrics.py"), "mnist-cnn", "--calls", "1", "-o", "out"]
    done = subprocess.run(called, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "1 all on the device" in done.stdout
    assert [row.model for row in store.read(workplace / "out" / "results.parquet")] == ["mnist-cnn"]


@pytest.mark.slow
def test_rows_from_a_cluster_are_the_same(workplace: pathlib.Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'torch_ttnn[ray]'")
    assert call("mnist-cnn", "--calls", "1", "-o", "here") == 0
    assert call("mnist-cnn", "--calls", "1", "-o", "there", "--executor", "ray") == 0
    (here,), (there,) = store.read("here/results.parquet"), store.read("there/results.parquet")
    assert (here.pcc, here.moves, here.variations) == (there.pcc, there.moves, there.variations)
