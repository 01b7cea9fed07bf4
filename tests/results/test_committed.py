"""The committed results: pages are up to date, and the project's claims hold."""

from __future__ import annotations

import pathlib
from collections import Counter

import pytest

from torch_ttnn import zoo
from torch_ttnn.results import Row, pages, site, store
from torch_ttnn.results.documents import readme
from torch_ttnn.results.documents.older_compiler import LEFT_OUT, Verdict, link, peer_rows
from torch_ttnn.results.documents.versus_older import pairs
from torch_ttnn.results.record import EVAL, FAILS, NEAR, ON_DEVICE, TRAIN
from torch_ttnn.results.summary import accuracy, is_near, totals

pytest.importorskip("pyarrow")
ROOT = pathlib.Path(__file__).parents[2]
MOST_BYTES = 2 << 20


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return store.read(ROOT / store.KEPT)


def of(rows: list[Row], mode: str) -> list[Row]:
    return [row for row in rows if row.mode == mode]


def test_pages_are_up_to_date(rows: list[Row]) -> None:
    stale = pages.check(rows, readme=ROOT / "README.md", results_md=ROOT / "docs" / "results.md")
    assert not stale, "`torch-ttnn results --pages` updates them"


def test_the_readme_and_the_site_count_the_same_rows(rows: list[Row], tmp_path: pathlib.Path) -> None:
    text = readme.block(rows)
    index = site.build(rows, tmp_path).read_text(encoding="utf-8")
    found = totals(rows)
    assert f"[All {len(rows):,} rows]" in text
    assert len(rows) == found.eval.rows + found.train.rows
    for mode in (found.eval, found.train):
        assert f"{mode.on_device:,} of {mode.rows:,} rows" in text
        assert f"{mode.on_device:,} / {mode.rows:,}" in index
        assert f"{mode.near:,} / {mode.rows:,}" in index
        assert f"{mode.near:,} (" in text


def test_rows_are_of_one_run_over_the_whole_zoo(rows: list[Row]) -> None:
    expected = {(entry.name, EVAL) for entry in zoo.entries()} | {(e.name, TRAIN) for e in zoo.entries() if e.train}
    assert {(row.model, row.mode) for row in rows} == expected
    same = [name for name in rows[0].versions if name not in ("precision", "sources")]
    for name in same:
        assert len({row.versions.get(name) for row in rows}) == 1, name
    assert {row.seed for row in rows} == {0}
    assert {row.device for row in rows} == {"emulator:n150"}
    assert (ROOT / store.KEPT).stat().st_size < MOST_BYTES


def test_nearly_all_of_inference_is_on_the_device_and_accurate(rows: list[Row]) -> None:
    found = of(rows, EVAL)
    good = [row for row in found if row.status == ON_DEVICE and is_near(row)]
    assert len({row.model for row in found}) >= 120
    assert len(good) >= 0.95 * len(found)


def test_other_rows_have_a_reason(rows: list[Row]) -> None:
    for row in rows:
        if row.status == FAILS:
            assert row.reason, row.key
        assert all(each.reason and each.count for each in row.host_ops), row.key
        assert bool(row.host_ops) == (row.status == "host"), row.key
        if row.status != FAILS:
            assert accuracy(row) is not None, row.key
    table = (ROOT / "docs" / "results.md").read_text(encoding="utf-8").split(f"## Rows with a PCC below {NEAR}")[1]
    listed = table.split("\n## ")[0]
    for row in rows:
        if row.status != FAILS and not is_near(row):
            assert f"| {row.key} |" in listed


def test_gradients_of_twenty_models_and_more(rows: list[Row]) -> None:
    found = [row for row in of(rows, TRAIN) if is_near(row)]
    assert len(found) >= 20
    assert all(len(row.losses) == len(row.original_losses) == 3 and row.gradients for row in found)


def test_every_row_of_the_older_compiler_is_matched_or_listed(rows: list[Row]) -> None:
    counted = Counter(pair.verdict for pair in pairs(rows))
    linked = [peer for peer in peer_rows() if link(peer) is not None]
    assert counted.total() == len(linked)
    assert all(peer.key in LEFT_OUT for peer in peer_rows() if link(peer) is None)
    worse = [pair for pair in pairs(rows) if pair.verdict is Verdict.WORSE]
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    if worse:
        listed = text.split("### Exceptions")[1].split("\n### ")[0]
        for pair in worse:
            assert f"| {pair.row.key} |" in listed
    else:
        assert "### Exceptions" not in text


def test_tasks_lose_half_a_point_at_most(rows: list[Row]) -> None:
    tasks = {row.model: row.tasks for row in rows if row.tasks}
    assert {"mnist-cnn-trained", "resnet18-cifar10", "minilm-l6-trained", "efficientnet-lite0-trained"} == set(tasks)
    for name, each in [(name, task) for name, done in tasks.items() for task in done]:
        assert each.torch - each.device <= 0.5, name
    assert all(any(task.items >= 1000 for task in done) for done in tasks.values())
