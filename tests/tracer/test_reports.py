"""Reports contain what the traces contain, tolerate other files in the folder, and change only their own files."""

from __future__ import annotations

import csv
import io
import itertools
import json
import pathlib
from collections import Counter

import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from PIL import Image

from torch_ttnn.errors import MissingPackage
from torch_ttnn.tracer import records
from torch_ttnn.tracer.records import BACKWARD, FORWARD, NOT_JSONABLE, Record, TensorFact, Trace
from torch_ttnn.tracer.reports import generation as reports
from torch_ttnn.tracer.reports import histograms, parquet, tables
from torch_ttnn.tracer.reports.summary import NoTraces

IMAGE, KERNEL = TensorFact((1, 3, 8, 8), "float32", "input"), TensorFact((4, 3, 3, 3), "float32", "weight")
RELU = Record("aten.relu.default", (IMAGE,), (IMAGE,), {"self": NOT_JSONABLE}, flops=192, lowering="device")
SORT = Record(
    *("aten.sort.default", (IMAGE,), (IMAGE,), {"self": NOT_JSONABLE, "dim": -1}),
    source="model.py:9: x.sort()",
    module="head",
    lowering="host",
    reason="no lowering",
)


def convolution(stride: int) -> Record:
    arguments = {"input": NOT_JSONABLE, "weight": NOT_JSONABLE, "stride": [stride, stride], "groups": 1}
    output = TensorFact((1, 4, 6 // stride, 6 // stride), "float32")
    facts = {"flops": 7776, "bytes_in": 1200, "bytes_out": 576, "lowering": "device"}
    return Record("aten.convolution.default", (IMAGE, KERNEL), (output,), arguments, **facts)


TRACES = (
    Trace("resnet", FORWARD, 0, (convolution(1), RELU, convolution(1), convolution(2), RELU)),
    Trace("bert", FORWARD, 0, (RELU, SORT)),
    Trace("resnet", BACKWARD, 0, (convolution(1),)),
)


@pytest.fixture
def stat(tmp_path) -> pathlib.Path:
    """A folder with traces of two models."""
    for trace in TRACES:
        records.write(trace, tmp_path / "stat" / "raw")
    return tmp_path / "stat"


def rows(path: pathlib.Path) -> list[list[str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def files(folder: pathlib.Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_operations_by_model(stat):
    reports.generate(stat)
    assert rows(stat / "fw_node_count.csv") == [
        ["op_type", "total", "bert", "resnet"],
        ["aten.convolution.default", "3", "0", "3"],
        ["aten.relu.default", "3", "1", "2"],
        ["aten.sort.default", "1", "1", "0"],
    ]
    assert rows(stat / "bw_node_count.csv") == [["op_type", "total", "resnet"], ["aten.convolution.default", "1", "1"]]


def test_size_distributions(stat):
    reports.generate(stat)
    name = "aten.convolution.default"
    assert rows(stat / f"fw_total_input_size_dist/{name}.csv") == [["elements", "calls", "share"], ["300", "3", "1.0"]]
    assert rows(stat / f"fw_total_output_size_dist/{name}.csv")[1:] == [
        ["36", "1", "0.333333"],
        ["144", "2", "0.666667"],
    ]
    for folder in ("fw_total_input_size_dist", "fw_total_output_size_dist", "bw_total_input_size_dist"):
        with Image.open(stat / folder / f"{name}.png") as picture:
            assert picture.size == histograms.PIXELS


def test_arguments_have_two_rows_each(stat):
    reports.generate(stat)
    assert rows(stat / "fw_total_arguments/aten.convolution.default.csv") == [
        ["input's appeared value", "not_jsonable"],
        ["input's appeared value's count", "3"],
        ["weight's appeared value", "not_jsonable"],
        ["weight's appeared value's count", "3"],
        ["stride's appeared value", "[1, 1]", "[2, 2]"],
        ["stride's appeared value's count", "2", "1"],
        ["groups's appeared value", "1"],
        ["groups's appeared value's count", "3"],
    ]
    assert rows(stat / "fw_total_arguments/aten.sort.default.csv")[2] == ["dim's appeared value", "-1"]


def test_facts_of_operations_and_models(stat):
    reports.generate(stat)
    with open(stat / "ops.csv", newline="") as file:
        ops = {(row["phase"], row["op_type"]): row for row in csv.DictReader(file)}
    conv, sort = ops["fw", "aten.convolution.default"], ops["fw", "aten.sort.default"]
    assert (conv["count"], conv["models"], conv["share_of_models"]) == ("3", "1", "0.5")
    assert float(conv["share_of_flops"]) == pytest.approx(3 * 7776 / (3 * 7776 + 3 * 192), abs=1e-6)
    assert float(conv["flops_per_byte"]) == pytest.approx(7776 / 1776, abs=1e-4)
    assert (conv["device"], conv["host"], conv["reasons"]) == ("3", "0", "")
    assert (sort["device"], sort["host"], sort["reasons"]) == ("0", "1", "no lowering (1)")
    with open(stat / "models.csv", newline="") as file:
        models = {(row["model"], row["phase"]): row for row in csv.DictReader(file)}
    assert set(models) == {("bert", "fw"), ("resnet", "fw"), ("resnet", "bw")}
    assert (models["resnet", "fw"]["ops"], models["resnet", "fw"]["distinct_ops"]) == ("5", "2")


def test_records_can_be_queried(stat):
    reports.generate(stat)
    table = pq.read_table(stat / "records.parquet")
    by_op = table.group_by("op_type").aggregate([("flops", "sum"), ("index", "count")]).to_pylist()
    assert {row["op_type"]: (row["flops_sum"], row["index_count"]) for row in by_op} == {
        "aten.convolution.default": (4 * 7776, 4),
        "aten.relu.default": (3 * 192, 3),
        "aten.sort.default": (0, 1),
    }
    on_host = ds.dataset(stat / "records.parquet").to_table(filter=pc.field("lowering") == "host").to_pylist()
    assert [(row["model"], row["reason"], row["source"], row["module"]) for row in on_host] == [
        ("bert", "no lowering", "model.py:9: x.sort()", "head")
    ]
    assert json.loads(on_host[0]["arguments"]) == {"self": "not_jsonable", "dim": -1}


def test_the_table_of_records_contains_every_record(stat, monkeypatch):
    monkeypatch.setattr(parquet, "GROUP", 3)  # so that this small table has several row groups
    reports.generate(stat)
    file = pq.ParquetFile(stat / "records.parquet")
    assert [file.metadata.row_group(each).num_rows for each in range(file.num_row_groups)] == [3, 3, 2]
    found = {(row["model"], row["phase"], row["graph"], row["index"]): row for row in file.read().to_pylist()}
    for trace in TRACES:
        for index, record in enumerate(trace.records):
            row = found.pop((trace.model, trace.phase, trace.graph, index))
            assert row["op_type"] == record.op_type
            assert row["input_shapes"] == [list(each.shape) for each in record.inputs]
            assert row["input_names"] == [each.name for each in record.inputs]
            assert row["output_dtypes"] == [each.dtype for each in record.outputs]
            assert json.loads(row["arguments"]) == record.arguments
            assert (row["flops"], row["bytes_in"], row["lowering"]) == (record.flops, record.bytes_in, record.lowering)
    assert not found


def test_the_page_and_a_comparison(stat, tmp_path):
    records.write(Trace("other", FORWARD, 0, (SORT,)), tmp_path / "earlier" / "raw")
    report = reports.generate(stat, compare=tmp_path / "earlier")
    assert report.page.read_text("utf-8").lower().startswith("<!doctype html>")
    assert "aten.convolution.default" in report.page.read_text("utf-8")
    assert "other" in (stat / "compare.html").read_text("utf-8")
    assert {path.relative_to(stat).as_posix() for path in report.files} == {
        name for name in files(stat) if not name.startswith("raw/")
    }
    assert all(reports.OURS.fullmatch(name) for name in (stat / reports.MANIFEST).read_text().split())


def test_bad_files_are_named_and_the_report_is_written(stat):
    (stat / "raw" / "fw_cut_0.json").write_text('{"format": "torch_ttnn.trace", "rec')
    (stat / "raw" / "=foreign.json").write_text("[1, 2]")
    report = reports.generate(stat)
    assert [name for name, _ in report.summary.bad] == ["=foreign.json", "fw_cut_0.json"]
    listed = rows(stat / "skipped.csv")
    assert [row[0] for row in listed] == ["file", "'=foreign.json", "fw_cut_0.json"]
    assert all(len(row) == 2 and row[1] for row in listed)
    assert len(rows(stat / "fw_node_count.csv")) == 4


def test_nothing_to_report_is_an_error_and_writes_nothing(tmp_path):
    stat = tmp_path / "stat"
    with pytest.raises(NoTraces, match="no folder"):
        reports.generate(stat)
    assert not stat.exists()
    (stat / "raw").mkdir(parents=True)
    with pytest.raises(NoTraces, match="has no traces"):
        reports.generate(stat)
    (stat / "raw" / "bad.json").write_text("{")
    with pytest.raises(NoTraces, match=r"None of the 1 file\(s\).*bad\.json: not JSON"):
        reports.generate(stat)
    assert files(stat) == {"raw/bad.json"}


def test_stale_files_of_a_report_are_removed_and_others_stay(stat):
    reports.generate(stat)
    mine = {"notes.csv", "fw_total_arguments/mine.csv", "fw_total_input_size_dist/mine.png", "profile/trace.json"}
    for name in mine:
        (stat / name).parent.mkdir(exist_ok=True)
        (stat / name).write_text("mine")
    (stat / "raw" / "fw_bert_0.json").unlink()
    before = files(stat)
    reports.generate(stat, pictures=False)
    gone = before - files(stat)
    assert "fw_total_arguments/aten.sort.default.csv" in gone
    assert all("sort" in name or name.endswith(".png") for name in gone)
    assert mine <= files(stat)


def test_empty_folders_of_a_report_are_removed(stat):
    reports.generate(stat)
    (stat / "bw_total_arguments" / "mine.csv").write_text("mine")
    (stat / "raw" / "bw_resnet_0.json").unlink()
    reports.generate(stat)
    assert {path.name for path in stat.iterdir() if path.name.startswith("bw_")} == {
        "bw_node_count.csv",
        "bw_total_arguments",
    }


def test_a_corrupt_list_of_files_removes_nothing_else(stat, tmp_path):
    reports.generate(stat)
    precious = [tmp_path / "precious.csv", stat / "notes.csv", stat / "raw" / "x.csv"]
    for path in precious:
        path.write_text("precious")
    listed = "../precious.csv\nnotes.csv\nraw/x.csv\nfw_total_arguments/../../../precious.csv\n" + str(precious[0])
    (stat / reports.MANIFEST).write_text(listed)
    reports.generate(stat)
    assert all(path.read_text() == "precious" for path in precious)


HOSTILE = [
    "../../escape",
    "/etc/passwd",
    "a b/ü",
    "=1+1",
    "",
    "..",
    "new\nline",
    "$x_{1}$",
    "x" * 5000,
    "\x00nul",
    "<b>",
]


def test_names_of_any_kind_stay_in_the_folder(tmp_path):
    traced = tuple(Record(name, (IMAGE,), (IMAGE,), {name: 1}, reason=name) for name in HOSTILE)
    for number, name in enumerate(HOSTILE):
        records.write(Trace(name, FORWARD, number, traced), tmp_path / "stat" / "raw")
    report = reports.generate(tmp_path / "stat")
    assert not report.summary.bad
    assert files(tmp_path) == {f"stat/{name}" for name in files(tmp_path / "stat")}
    assert len(list((tmp_path / "stat" / "fw_total_input_size_dist").glob("*.csv"))) == len(HOSTILE)
    assert len(rows(tmp_path / "stat" / "fw_node_count.csv")) == len(HOSTILE) + 1


@pytest.mark.parametrize("text", ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\n=1", "＝1"])
def test_no_text_is_a_formula(tmp_path, text):
    tables.write(tmp_path / "x.csv", [[text, "-1", "-0.5", -1, "a=b"]])
    assert rows(tmp_path / "x.csv") == [[f"'{text}", "-1", "-0.5", "-1", "a=b"]]


@pytest.mark.parametrize("text", ["a\r=1", "a\n=1", "a\r\n=1", 'a"\n=1', "a,=1", "a;b"])
def test_no_text_breaks_out_of_its_cell(tmp_path, text):
    tables.write(tmp_path / "x.csv", [[text, 1], ["next", 2]])
    assert rows(tmp_path / "x.csv") == [[text.replace("\r\n", "\n").replace("\r", "\n"), "1"], ["next", "2"]]


def test_two_runs_write_the_same(stat, tmp_path):
    reports.generate(stat, out=tmp_path / "one" / "stat")
    reports.generate(stat, out=tmp_path / "two" / "stat")
    names = files(tmp_path / "one")
    assert names == files(tmp_path / "two")
    assert len(names) > 20
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name
    assert files(stat) == {f"raw/{path.name}" for path in (stat / "raw").iterdir()}


@pytest.mark.parametrize(("part", "package"), [("pictures", "matplotlib"), ("parquet", "pyarrow")])
def test_a_missing_package_is_named_and_optional(stat, monkeypatch, part, package):
    monkeypatch.setattr(reports, "find_spec", lambda name: None if name == package else name)
    with pytest.raises(MissingPackage, match=rf"{package}.*pip install.*{part}=False"):
        reports.generate(stat)
    reports.generate(stat, **{part: False})
    assert (stat / "index.html").exists()
    assert not any(name.endswith({"pictures": ".png", "parquet": ".parquet"}[part]) for name in files(stat))


def test_progress_goes_from_the_first_to_the_last(stat):
    steps: dict[str, list[tuple[int, int]]] = {}
    reports.generate(stat, progress=lambda stage, done, total: steps.setdefault(stage, []).append((done, total)))
    assert steps["reading traces"] == [(1, 3), (2, 3), (3, 3)]
    assert all(each[-1][0] == each[-1][1] for each in steps.values())
    assert len(steps) == 3


def test_a_failure_leaves_the_earlier_reports(stat, monkeypatch):
    reports.generate(stat)
    before = {name: (stat / name).read_bytes() for name in files(stat)}
    monkeypatch.setattr(parquet.RecordTable, "add", lambda *_: (_ for _ in ()).throw(OSError("the disk is full")))
    with pytest.raises(OSError, match="full"):
        reports.generate(stat)
    assert {name: (stat / name).read_bytes() for name in files(stat)} == before


# -- histograms -------------------------------------------------------------------------------------------------------


def blue(png: bytes) -> Counter[int]:
    """Pixels of a bar in each column of a picture."""
    with Image.open(io.BytesIO(png)) as picture:
        bar = tuple(int(histograms.BAR[at : at + 2], 16) for at in (1, 3, 5))
        width, height = picture.size
        pixels = picture.convert("RGB").load()
        return Counter(x for x in range(width) for y in range(height) if pixels[x, y] == bar)


def test_bars_are_as_high_as_their_calls():
    heights = blue(histograms.Sheet("elements", 10**6).png("aten.op", Counter({10: 40, 10_000: 20, 100_000: 10})))
    tall, middle, low = sorted(set(heights.values()), reverse=True)
    assert middle / tall == pytest.approx(0.5, abs=0.02)
    assert low / tall == pytest.approx(0.25, abs=0.02)
    assert [heights[x] for x in sorted(heights)] == sorted(heights.values(), reverse=True)


def test_one_call_among_very_many_is_seen():
    assert min(blue(histograms.Sheet("elements", 10**6).png("aten.op", Counter({10: 10**9, 10**5: 1}))).values()) == 1


@pytest.mark.parametrize("counts", [{0: 3}, {1: 1}, {0: 1, 1: 1, (1 << 63) - 1: 1}, {2**20: 10**12}])
def test_any_sizes_can_be_drawn(counts):
    png = histograms.Sheet("elements", max(counts)).png("aten.op", Counter(counts))
    groups = sorted(blue(png))
    assert 1 + sum(b - a > 1 for a, b in itertools.pairwise(groups)) == len(counts)


def test_every_power_of_ten_begins_a_bar():
    for power in range(19):
        (bar,) = histograms.bars(Counter({10**power: 1}))
        assert bar.left == power


@pytest.mark.parametrize("most", [1, 2, 3, 4, 5, 9, 10, 11, 41, 99, 1000, 7360, 10**12 + 1])
def test_ticks_are_few_round_and_reach_the_top(most):
    steps = histograms.ticks(most)
    assert 1 <= len(steps) <= 4
    assert steps[-1] >= most > steps[-1] - steps[0]
    assert str(steps[0]).rstrip("0") in ("1", "2", "5")
