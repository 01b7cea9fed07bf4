"""`torch-ttnn results` writes the requested pages and no others."""

from __future__ import annotations

import pathlib

import pytest

from torch_ttnn.cli import main
from torch_ttnn.results import Row, store
from torch_ttnn.results.documents.readme import BEGIN, END

pytest.importorskip("pyarrow")


@pytest.fixture
def project(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A folder with a README and results of a run."""
    (tmp_path / "README.md").write_text(f"# A\n{BEGIN}\n{END}\nthe end\n")
    store.write([row(0.999)], tmp_path / "run.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def row(pcc: float) -> Row:
    return Row("resnet18", status="device", pcc=pcc, ops_before=70, device="emulator:n150")


def test_a_whole_run_becomes_the_results_of_the_project(
    project: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["results", "run.parquet", "--keep", "--pages"]) == 0
    assert capsys.readouterr().out.split() == ["results/results.parquet", "README.md", "docs/results.md"]
    assert store.read(project / "results" / "results.parquet") == [row(0.999)]
    assert "resnet18" in (project / "README.md").read_text()
    assert "resnet18" in (project / "docs" / "results.md").read_text()
    assert main(["results", "--stale"]) == 0


def test_stale_pages_are_named_and_not_changed(project: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["results", "run.parquet", "--keep", "--pages"])
    store.write([row(0.5)], project / "results" / "results.parquet")
    before = (project / "README.md").read_text()
    assert main(["results", "--stale"]) == 1
    assert "out of date: README.md" in capsys.readouterr().out
    assert (project / "README.md").read_text() == before


def test_a_site_of_two_runs(project: pathlib.Path) -> None:
    store.write([row(0.5)], project / "worse.parquet")
    assert main(["results", "worse.parquet", "--site", "site", "--before", "run.parquet"]) == 0
    assert (project / "site" / "index.html").exists()
    assert "0.999" in (project / "site" / "compare.html").read_text()
    assert not (project / "docs").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run.parquet"], "choose what to write"),
        (["run.parquet", "--before", "run.parquet", "--pages"], "--before needs --site FOLDER"),
        (["nowhere.parquet", "--site", "site"], "there are no results at nowhere.parquet"),
        (["README.md", "--site", "site"], "cannot be read as a Parquet file"),
    ],
)
def test_usage_errors_are_reported(
    arguments: list[str], message: str, project: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["results", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_readme_without_markers_is_reported(project: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "README.md").write_text("# A\n")
    assert main(["results", "run.parquet", "--pages"]) == 2
    assert "lacks the marker" in capsys.readouterr().err
