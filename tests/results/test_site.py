"""The files of the site: their set, data, valid links, and safe names."""

from __future__ import annotations

import json
import pathlib
import random
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.results.invented import results
from torch_ttnn.results import Row, site
from torch_ttnn.results.record import FAILS, HOST, ON_DEVICE, WITH_HOST_OPS, HostOp, Variation
from torch_ttnn.results.site.changes import changes
from torch_ttnn.results.site.names import file_names
from torch_ttnn.results.summary import ordered

ROWS = results(12)
_DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


def data_of(path: pathlib.Path) -> Any:
    """The data of a page."""
    found = _DATA.search(path.read_text(encoding="utf-8"))
    assert found
    return json.loads(found[1])


def pages_in(value: Any) -> set[str]:
    """Paths of pages anywhere in the data of a page."""
    if isinstance(value, dict):
        return set().union(*map(pages_in, value.values())) if value else set()
    if isinstance(value, list):
        return set().union(*map(pages_in, value)) if value else set()
    return {value} if isinstance(value, str) and re.fullmatch(r"(models|ops)/[^/]+\.html", value) else set()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return site.build(ROWS, tmp_path_factory.mktemp("site"), before=ROWS[2:]).parent


def test_there_is_a_page_per_model_and_operation(folder: pathlib.Path):
    models = {path.stem for path in (folder / "models").iterdir()}
    ops = {path.stem for path in (folder / "ops").iterdir()}
    assert models == {row.model for row in ROWS}
    assert ops == {each.op for row in ROWS for each in (*row.variations, *row.host_ops)}
    assert {path.name for path in folder.glob("*.html")} == {"index.html", "ops.html", "search.html", "compare.html"}


def test_all_links_lead_to_files(folder: pathlib.Path):
    linked = set()
    for path in folder.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        for target in re.findall(r'<a href="([^"#]+)', text):
            assert (path.parent / target).is_file(), (path, target)
        data = data_of(path)
        for target in pages_in(data):
            assert (path.parent / data["top"] / target).is_file(), (path, target)
            linked.add(target)
    assert linked == {f"{path.parent.name}/{path.name}" for path in folder.glob("*/*.html")}


def test_an_operation_has_every_variation_and_model(folder: pathlib.Path):
    op = next(each.op for row in ROWS for each in row.host_ops)
    data = data_of(folder / "ops" / f"{op}.html")
    expected = [(row, each) for row in ROWS for each in row.variations if each.op == op]
    assert sum(row[4] for row in data["variations"]) == sum(each.count for _, each in expected)
    assert {(row[0], row[1], row[2]) for row in data["variations"]} == {
        (each.inputs, each.arguments, each.outcome) for _, each in expected
    }
    assert {(model, mode) for model, mode, *_ in data["rows"]} == {(row.model, row.mode) for row, _ in expected}
    assert all(reason for *_, outcome, reason, _, _ in data["variations"] if outcome == HOST)
    lines = [each.source for row in ordered(ROWS) for each in row.host_ops if each.op == op]
    assert [row[2] for row in data["host"]] == lines


def test_the_same_variation_of_several_models_is_one_line(tmp_path: pathlib.Path):
    expected = Variation("aten.mm.default", "float32[2, 2], float32[2, 2]", "", "converted", 3)
    rows = [Row(name, status=ON_DEVICE, variations=(expected,)) for name in "ab"]
    data = data_of(site.build(rows, tmp_path).parent / "ops" / "aten.mm.default.html")
    assert data["variations"] == [[expected.inputs, "", "converted", "", 6, [[0, 3], [1, 3]]]]
    assert [row[0] for row in data["rows"]] == ["a", "b"]


def test_a_host_op_without_a_variation_has_a_page_too(tmp_path: pathlib.Path):
    row = Row("a", status=WITH_HOST_OPS, host_ops=(HostOp("aten.sort.default", "why", "", 2),))
    top = site.build([row], tmp_path).parent
    assert data_of(top / "ops" / "aten.sort.default.html")["host"] == [[0, "why", "", 2]]
    assert data_of(top / "ops.html")["ops"][0]["left"] == 2


def test_numbers_that_json_cannot_represent_are_omitted(tmp_path: pathlib.Path):
    row = Row("a", status=ON_DEVICE, pcc=float("nan"), relative_error=float("inf"), first_seconds=float("inf"))
    data = data_of(site.build([row], tmp_path, before=[row]).parent / "models" / "a.html")
    assert (data["rows"][0]["pcc"], data["rows"][0]["error"], data["rows"][0]["first"]) == (None, None, None)


def test_equal_rows_give_equal_files(tmp_path: pathlib.Path):
    shuffled = random.Random(1).sample(ROWS, len(ROWS))
    one, other = (site.build(rows, tmp_path / name).parent for rows, name in ((ROWS, "one"), (shuffled, "other")))
    names = {path.relative_to(one) for path in one.rglob("*.html")}
    assert names == {path.relative_to(other) for path in other.rglob("*.html")}
    for name in names:
        assert (one / name).read_bytes() == (other / name).read_bytes()


def test_stale_pages_are_removed_and_other_files_stay(tmp_path: pathlib.Path):
    site.build(ROWS, tmp_path, before=ROWS)
    (tmp_path / "models" / "notes.html").write_text("<p>mine</p>", encoding="utf-8")
    site.build(ROWS[:1], tmp_path)
    assert {path.name for path in (tmp_path / "models").iterdir()} == {f"{ROWS[0].model}.html", "notes.html"}
    assert not (tmp_path / "compare.html").exists()


def test_a_site_without_rows(tmp_path: pathlib.Path):
    assert data_of(site.build([], tmp_path, before=[]))["rows"] == []


# -- names ------------------------------------------------------------------------------------------------------------

ODD = [
    "../../etc/passwd",
    "..",
    ".",
    "",
    "/",
    "C:\\x",
    "a/b",
    "a-b",
    "A-B",
    "nul",
    "con.x",
    "名前",
    "<script>",
    "x" * 500,
]


@given(st.lists(st.one_of(st.sampled_from(ODD), st.text(st.characters(exclude_categories=[])))))
def test_any_name_stays_in_its_folder_and_no_two_share_a_file(texts: list[str]):
    names = file_names("models", texts)
    assert names.keys() == set(texts)
    assert len({path.casefold() for path in names.values()}) == len(names)
    for path in names.values():
        assert re.fullmatch(r"models/[A-Za-z0-9_][A-Za-z0-9._-]{0,110}\.html", path)
        assert not re.match(r"models/(con|prn|aux|nul|com\d|lpt\d)\.", path, re.IGNORECASE)
    assert file_names("models", reversed(texts)) == names


def test_names_that_collide_get_separate_files():
    imitated = pathlib.PurePath(file_names("models", ["a/b"])["a/b"]).stem
    names = file_names("models", ["a/b", imitated, f"{imitated}-{imitated[-8:]}"])
    assert len(set(names.values())) == 3


def test_hostile_names_are_written_inside_the_folder(tmp_path: pathlib.Path):
    rows = [Row(name, status=ON_DEVICE, variations=(Variation(name, "", "", "converted"),)) for name in ODD]
    site.build(rows, tmp_path / "in" / "site")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["site"]
    assert len(list((tmp_path / "in" / "site" / "models").iterdir())) == len(ODD)
    assert len(list((tmp_path / "in" / "site" / "ops").iterdir())) == len(ODD)


# -- two runs ---------------------------------------------------------------------------------------------------------


def test_regressions_come_first_most_severe_at_the_top():
    good = Row("x", status=ON_DEVICE, programs=1, pcc=0.9999, conversions=3)
    before = [replace(good, model=name) for name in ("a", "b", "c", "d", "e", "gone")]
    after = [
        replace(good, model="a"),
        replace(good, model="b", conversions=2),
        replace(good, model="c", conversions=9),
        replace(good, model="d", status=WITH_HOST_OPS, ops_remaining=4),
        replace(good, model="e", pcc=0.9),
        replace(good, model="new", status=FAILS),
    ]
    found = changes(before, after)
    assert [(each.key, each.kind) for each in found] == [
        ("d", "regressed"), ("e", "regressed"), ("c", "regressed"), ("b", "improved"), ("new", "added"),
        ("gone", "gone"), ("a", "same"),
    ]  # fmt: skip
    assert {(each.field, each.before, each.after) for each in found[0].worse} == {
        ("status", "device", "host"), ("ops_remaining", 0, 4),
    }  # fmt: skip


def test_a_row_that_is_both_better_and_worse_is_a_regression():
    before = Row("a", status=ON_DEVICE, programs=1, pcc=0.9999, conversions=3, crossings_within=0)
    (change,) = changes([before], [replace(before, conversions=0, crossings_within=1)])
    assert change.kind == "regressed"
    assert [each.field for each in change.better] == ["conversions"]


def test_a_row_under_other_conditions_is_changed():
    before = Row("a", status=ON_DEVICE, programs=1, pcc=0.9999)
    (change,) = changes([before], [replace(before, batch=8)])
    assert (change.kind, [each.field for each in change.conditions]) == ("changed", ["batch"])
