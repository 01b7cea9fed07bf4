"""Rows survive a round trip through the disk; other files are reported."""

from __future__ import annotations

import json
import logging
import pathlib
from dataclasses import replace

import pytest

from tests.results.invented import results
from tests.zoo.installed import need
from torch_ttnn.errors import MissingPackage
from torch_ttnn.jobs import Job, Outcome, Results, Status
from torch_ttnn.results import BadRow, Row, store
from torch_ttnn.results.summary import ordered


@pytest.fixture(autouse=True)
def parquet() -> None:
    need("pyarrow")


def test_rows_survive_a_round_trip(tmp_path: pathlib.Path) -> None:
    rows = results(30, seed=4)
    store.write(rows, tmp_path / "deep" / "results.parquet")
    assert store.read(tmp_path / "deep" / "results.parquet") == ordered(rows)
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["results.parquet"], "nothing temporary is left"


@pytest.mark.parametrize(
    "row",
    [
        Row("bare"),
        Row("hostile/../<b>", reason="a\nb", details="\x00 ünïcode 🚧"),
        Row("none", pcc=None, relative_error=None, losses=()),
        Row("numbers", dram_peak=2**60, pcc=1e-30, losses=(0.1, -1e300)),
        Row("versions", versions={"z": "1", "a": ""}),
    ],
    ids=lambda row: row.model[:7],
)
def test_sparse_and_unusual_rows(row: Row, tmp_path: pathlib.Path) -> None:
    store.write([row], tmp_path / "one.parquet")
    assert store.read(tmp_path / "one.parquet") == [row]


def test_a_file_without_rows(tmp_path: pathlib.Path) -> None:
    store.write([], tmp_path / "none.parquet")
    assert store.read(tmp_path / "none.parquet") == []


def test_equal_rows_give_an_equal_file(tmp_path: pathlib.Path) -> None:
    rows = results(10)
    store.write(rows, tmp_path / "a.parquet")
    store.write(rows[::-1], tmp_path / "b.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_the_columns_can_be_queried(tmp_path: pathlib.Path) -> None:
    import pyarrow.parquet as pq

    store.write(results(6), tmp_path / "rows.parquet")
    table = pq.read_table(tmp_path / "rows.parquet", columns=["model", "pcc", "variations"])
    assert str(table.schema.field("variations").type).startswith("list<element: struct<op: string, inputs: string")
    assert pq.ParquetFile(tmp_path / "rows.parquet").metadata.row_group(0).column(0).compression == "ZSTD"


def test_two_rows_with_one_key_are_rejected(tmp_path: pathlib.Path) -> None:
    with pytest.raises(BadRow, match="more than once: resnet18"):
        store.write([Row("resnet18"), Row("resnet18", pcc=0.5)], tmp_path / "rows.parquet")
    assert not (tmp_path / "rows.parquet").exists()


def test_foreign_files_are_named(tmp_path: pathlib.Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pytest.raises(FileNotFoundError, match=r"no results at .*nowhere\.parquet; `torch-ttnn metrics"):
        store.read(tmp_path / "nowhere.parquet")
    (tmp_path / "text.parquet").write_text("model,pcc")
    with pytest.raises(BadRow, match=r"text\.parquet cannot be read as a Parquet file"):
        store.read(tmp_path / "text.parquet")
    store.write(results(5), tmp_path / "cut.parquet")
    whole = (tmp_path / "cut.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BadRow, match=r"cut\.parquet cannot be read"):
        store.read(tmp_path / "cut.parquet")
    pq.write_table(pa.table({"model": ["resnet18"]}), tmp_path / "foreign.parquet")
    with pytest.raises(BadRow, match=r"foreign\.parquet is a file of another kind, not of results in version 1"):
        store.read(tmp_path / "foreign.parquet")


def test_a_file_of_another_version_says_so(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "VERSION", 7)
    store.write([Row("a")], tmp_path / "rows.parquet")
    monkeypatch.undo()
    with pytest.raises(BadRow, match="of version 7, not of results in version 1; measure again"):
        store.read(tmp_path / "rows.parquet")


def test_without_pyarrow_the_reader_says_what_to_install(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "find_spec", lambda name: None)
    with pytest.raises(MissingPackage, match=r"pip install 'torch_ttnn\[reports\]'"):
        store.write([Row("a")], tmp_path / "rows.parquet")


# -- one file per row -------------------------------------------------------------------------------------------------


def kept(folder: pathlib.Path, row: Row, **outcome: object) -> None:
    """The stored result of a job."""
    given = {"status": Status.OK, "result": row.to_json(), **outcome}
    job = Job(row.key, "torch_ttnn.results.measure:measure_model", {"model": row.model, "mode": row.mode})
    Results(folder / store.ROWS).keep(job, Outcome(row.key, **given))


def test_rows_of_a_folder(tmp_path: pathlib.Path) -> None:
    rows = results(8)
    for row in rows:
        kept(tmp_path, row)
    assert store.rows(tmp_path) == ordered(rows)
    assert store.rows(tmp_path / store.ROWS) == ordered(rows)
    assert store.read(tmp_path) == ordered(rows)


def test_a_job_that_crashed_is_a_row_with_its_reason(tmp_path: pathlib.Path) -> None:
    row = Row("big/model", "train")
    place = "/opt/x/site-packages/timm/a.py"
    kept(tmp_path, row, status=Status.TIMEOUT, result=None, reason="not done after 9 s", details=place, peak_memory=5)
    expected = replace(row, status="fails", reason="not done after 9 s", details="timm/a.py", host_peak=5)
    assert store.rows(tmp_path) == [expected]


def test_invalid_rows_are_named_and_skipped(tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
    kept(tmp_path, Row("good"))
    folder = tmp_path / store.ROWS
    whole = (folder / "good.json").read_text()
    (folder / "cut.json").write_text(whole[:200])
    (folder / "foreign.json").write_text('{"hello": 1}')
    (folder / "list.json").write_text("[1]")
    (folder / "deep.json").write_text("[" * 100_000)
    other = json.loads(whole)
    other["result"]["batch"] = "two"
    (folder / "wrong.json").write_text(json.dumps(other))
    Results(folder).keep(Job("stat", "json:loads", {"s": "1"}), Outcome("stat", Status.CRASH))
    found = store.read_rows(tmp_path)
    assert [row.model for row in found.rows] == ["good"]
    reasons = dict(found.left_out)
    assert set(reasons) == {"cut.json", "foreign.json", "list.json", "deep.json", "wrong.json", "stat.json"}
    assert reasons["foreign.json"] == reasons["list.json"] == "it is not the result of a job"
    assert reasons["wrong.json"] == "batch should be of type int, not 'two'"
    assert reasons["stat.json"] == "it is the result of another kind of job"
    assert "JSONDecodeError" in reasons["cut.json"]
    with caplog.at_level(logging.WARNING, "torch_ttnn"):
        assert len(store.rows(tmp_path)) == 1
    assert "cut.json is left out: it cannot be read" in caplog.text


def test_a_missing_folder_is_named(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere"):
        store.rows(tmp_path / "nowhere")
