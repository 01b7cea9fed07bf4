"""The site in a browser: pages load without a network, sort, filter, search, draw their charts, and compare runs."""

from __future__ import annotations

import csv
import pathlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from tests.browser import opened
from tests.results.invented import results
from torch_ttnn.results import Row, site
from torch_ttnn.results.record import EVAL, FAILS, ON_DEVICE, TRAIN, WITH_HOST_OPS, Fusion, HostOp, Move, Variation
from torch_ttnn.results.summary import accuracy

ROWS = results(40, seed=3)
HOSTED = next(row for row in ROWS if row.status == WITH_HOST_OPS and row.mode == EVAL)
TRAINED = next(row for row in ROWS if row.mode == TRAIN and row.status != FAILS)
FAILED = next(row for row in ROWS if row.status == FAILS)
KEYS = {row.key: row for row in ROWS}


def _older(rows: list[Row]) -> list[Row]:
    """An older run with two better rows, one worse, one missing and one since removed."""
    good = [row for row in rows if row.status == ON_DEVICE]
    were = {
        HOSTED.key: replace(HOSTED, status=ON_DEVICE, ops_remaining=0),
        good[0].key: replace(good[0], conversions=good[0].conversions - 1),
        good[1].key: replace(good[1], ops_remaining=5),
    }
    kept = [were.get(row.key, row) for row in rows if row.key != good[2].key]
    return [*kept, replace(good[3], model="an old model")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return site.build(ROWS, tmp_path_factory.mktemp("site"), before=_older(ROWS)).parent


@pytest.fixture
def page(browser: Any, folder: pathlib.Path) -> Callable[..., Any]:
    @contextmanager
    def show(path: str, link: str = "", **settings: Any) -> Iterator[Any]:
        with opened(browser, folder / path, link, **settings) as tab:
            yield tab

    return show


def first_column(tab: Any) -> list[str]:
    texts = tab.locator("main .whole tbody td:first-child").all_inner_texts()
    return [text.removesuffix("†").strip() for text in texts]


def head(tab: Any, title: str) -> Any:
    return tab.locator(".whole").get_by_role("columnheader", name=title, exact=True)


def cells(tab: Any, region: str) -> list[list[str]]:
    rows = tab.get_by_role("region", name=region, exact=True).locator("tbody tr").all()
    return [row.locator("td").all_inner_texts() for row in rows]


# -- the index --------------------------------------------------------------------------------------------------------


def test_the_index_shows_totals_and_every_row(page: Any):
    with page("index.html") as tab:
        evals = [row for row in ROWS if row.mode == EVAL]
        texts = tab.locator("header .card").all_inner_texts()
        assert texts[0].split() == [str(len(evals)), "models"]
        assert f"{sum(row.status == ON_DEVICE for row in evals)} / {len(evals)}\ninference rows all on device" in texts
        assert sorted(first_column(tab)) == sorted(KEYS)
        assert "The device is the emulated n150" in tab.inner_text("header")
        assert cells(tab, "Tasks with real data") == [
            ["mnist-cnn", "MNIST test set", "accuracy, %", "10,000", "99.12", "99.10", "−0.02"]
        ]


SORTS: dict[str, Callable[[Row], Any]] = {
    "model": lambda row: row.key,
    "status": lambda row: (ON_DEVICE, WITH_HOST_OPS, FAILS).index(row.status),
    "PCC": lambda row: -1 if accuracy(row) is None else accuracy(row),
    "torch ops before": lambda row: row.ops_before or -1,
    "torch ops remain": lambda row: -1 if row.status == FAILS else row.ops_remaining,
    "to/from device": lambda row: -1 if row.status == FAILS else row.uploads + row.downloads,
    "torch": lambda row: row.original_seconds,
    "compiled": lambda row: row.compiled_seconds,
    "first run": lambda row: row.first_seconds,
    "predicted on the device": lambda row: -1 if row.predicted is None else row.predicted.device_seconds,
    "family": lambda row: row.family,
    "batch": lambda row: row.batch,
    "DRAM peak": lambda row: row.dram_peak,
}


def test_columns_sort_both_ways(page: Any):
    with page("index.html") as tab:
        for title, value in SORTS.items():
            for _ in range(2):
                head(tab, title).get_by_role("button").click()
                found = [value(KEYS[key]) for key in first_column(tab)]
                down = head(tab, title).get_attribute("aria-sort") == "descending"
                assert found == sorted(found, reverse=down), title
        assert "sort=-dram" in tab.url or "sort=dram" in tab.url


def test_predictions_are_labelled(page: Any):
    row = next(row for row in ROWS if row.predicted and row.mode == EVAL)
    with page("index.html") as tab:
        assert "they are no measurements" in tab.inner_text("header")
        tab.locator(".filters input").fill(row.model)
        place = tab.locator(".whole th").all_inner_texts().index("predicted on the device")
        assert tab.locator(".whole tbody tr td").nth(place).inner_text().endswith("s")
    with page(f"models/{row.model}.html") as tab:
        found = tab.locator(".block").filter(has_text="Predicted, not measured").inner_text()
        assert "± 20%" in found
        assert "one chip of\nn150" in found


FILTERS: dict[tuple[str, str], Callable[[Row], bool]] = {
    ("family", "bert"): lambda row: row.family == "bert",
    ("status", "host"): lambda row: row.status == WITH_HOST_OPS,
    ("mode", "train"): lambda row: row.mode == TRAIN,
    ("source", "timm"): lambda row: row.source == "timm",
}


@pytest.mark.parametrize(("name", "value"), FILTERS)
def test_filters(page: Any, name: str, value: str):
    wanted = {row.key for row in ROWS if FILTERS[name, value](row)}
    with page("index.html") as tab:
        tab.select_option(f"select[name={name}]", value)
        assert set(first_column(tab)) == wanted != set()
        assert tab.inner_text(".filters .count") == f"{len(wanted)} of {len(ROWS)} rows"
        link = tab.url[tab.url.index("#") :]
    with page("index.html", link) as tab:  # a view can be linked
        assert set(first_column(tab)) == wanted


def test_filters_by_text_and_by_host_op(page: Any):
    op = HOSTED.host_ops[0].op
    with page("index.html") as tab:
        tab.locator(".filters input").fill("RESNET")
        found = {row.key for row in ROWS if "resnet" in f"{row.model} {row.family}"}
        assert set(first_column(tab)) == found
        tab.locator(".filters input").fill(op)
        assert set(first_column(tab)) == {row.key for row in ROWS if any(each.op == op for each in row.host_ops)}
        tab.locator(".filters input").fill("no such thing")
        assert first_column(tab) == []
        assert tab.get_by_text("No row matches.").first.is_visible()


def test_every_chart_is_drawn_from_the_rows(page: Any):
    ran = [row for row in ROWS if row.status != FAILS]
    left: Counter[str] = Counter()
    for row in ROWS:
        for each in row.host_ops:
            left[each.op] += each.count
    with page("index.html") as tab:
        dots = tab.get_by_role("img", name="compiled against original run time").locator("circle").all()
        assert len(dots) == len(ran)
        for row, dot in zip(sorted(ran, key=lambda row: (row.model, row.mode)), dots[:3]):
            assert dot.get_attribute("class") == f"dot {row.status}"
        bars = tab.get_by_role("img", name="rows by PCC").locator("rect.column").all()
        heights = [bar.bounding_box()["height"] for bar in bars]
        counts = [0] * 6
        for row in ran:
            counts[sum((accuracy(row) or 0) >= edge for edge in (0.9, 0.99, 0.999, 0.9999, 0.99999))] += 1
        assert [height / max(heights) for height in heights] == pytest.approx(
            [count / max(counts) for count in counts], abs=0.03
        )
        kinds = [(bar.get_attribute("class") or "").split()[1] for bar in bars]
        assert kinds == ["wrong", "bad", "near", "near", "near", "near"], "below 0.9 is red"
        red = tab.evaluate("getComputedStyle(document.querySelector('.column.wrong')).fill")
        assert red == "rgb(207, 59, 59)"
        links = tab.get_by_role("img", name="host operations by name").locator("a").all()
        assert [link.get_attribute("aria-label") for link in links] == sorted(left, key=lambda op: (-left[op], op))
        dots[-1].hover()  # drawn last, on top of the others
        assert "torch" in tab.inner_text("#tip")


def test_charts_follow_the_filters(page: Any):
    with page("index.html", "#status=device") as tab:
        assert tab.get_by_role("img", name="host operations by name").count() == 0
        assert tab.get_by_text("None: every operation runs on the device.").is_visible()


def test_the_shown_rows_are_exported(page: Any, tmp_path: pathlib.Path):
    with page("index.html", "#sort=-before&mode=train") as tab:
        with tab.expect_download() as started:
            tab.get_by_role("button", name="Export CSV").click()
        started.value.save_as(tmp_path / "rows.csv")
        rows = list(csv.DictReader((tmp_path / "rows.csv").open(encoding="utf-8-sig", newline="")))
        assert [row["model"] for row in rows] == first_column(tab)
        assert [int(row["torch ops before"]) for row in rows] == [
            KEYS[key].ops_before or -1 for key in first_column(tab)
        ]


# -- models and operations --------------------------------------------------------------------------------------------


def test_a_model_page_is_complete(page: Any):
    row = HOSTED
    with page(f"models/{row.model}.html") as tab:
        assert tab.inner_text("h1") == row.model
        found = cells(tab, "Host ops")
        assert [(op, int(times), reason) for op, times, reason, _ in found] == [
            (each.op, each.count, each.reason) for each in row.host_ops
        ]
        assert all(line.startswith("timm/models/thing.py:") for *_, line in found)
        assert [kind for kind, *_ in cells(tab, "Moves")] == [move.kind for move in row.moves]
        assert [name for name, _ in cells(tab, "Fusions")] == [fusion.name for fusion in row.fusions]
        by_op: Counter[str] = Counter()
        for each in row.variations:
            by_op[each.op] += each.count
        assert {op: int(calls) for op, calls, *_ in cells(tab, "Operations by outcome")} == by_op
        assert len(cells(tab, "variations")) == len(row.variations)
        tab.select_option("select[name=outcome]", "host")
        assert len(cells(tab, "variations")) == sum(each.outcome == "host" for each in row.variations)
        for title in ("Memory", "Times", "Accuracy", "How it was measured"):
            assert tab.get_by_role("heading", name=title, exact=True).is_visible()


def test_training_is_on_the_page_of_its_model(page: Any):
    with page(f"models/{TRAINED.model}.html") as tab:
        tab.get_by_role("button", name="training").click()
        assert [row[0] for row in cells(tab, "Gradients that differ most")] == [e.parameter for e in TRAINED.gradients]
        assert [row[1:] for row in cells(tab, "Losses")] == [["2.3", "2.31"], ["2.2", "2.2"], ["2.1", "2.11"]]
        assert "mode=train" in tab.url
        tab.get_by_role("button", name="inference").click()
        assert tab.get_by_role("region", name="Losses").count() == 0


def test_a_failure_has_its_reason_and_details(page: Any):
    with page(f"models/{FAILED.model}.html", "#mode=train" if FAILED.mode == TRAIN else "") as tab:
        assert FAILED.reason in tab.inner_text(".failure")
        tab.get_by_text("details", exact=True).click()
        assert "Traceback" in tab.inner_text(".failure pre")


def test_an_operation_has_its_variations_and_models(page: Any):
    op = HOSTED.host_ops[0].op
    expected = [(row, each) for row in ROWS for each in row.variations if each.op == op]
    with page(f"ops/{op}.html") as tab:
        assert len(cells(tab, "variations")) == len({(e.inputs, e.arguments, e.outcome, e.reason) for _, e in expected})
        tab.locator(".filters input").fill(HOSTED.model)
        shown = cells(tab, "variations")
        assert 0 < len(shown) < len(expected) and all(HOSTED.model in row[4] for row in shown)
        assert {row[0] for row in cells(tab, "Rows that use it")} == {row.key for row, _ in expected}


def test_operations_are_listed_and_filtered(page: Any):
    left = {each.op for row in ROWS for each in row.host_ops}
    with page("ops.html") as tab:
        assert set(first_column(tab)) == {each.op for row in ROWS for each in row.variations}
        tab.select_option("select[name=outcome]", "host")
        assert set(first_column(tab)) == left
        tab.locator(".filters input").fill(HOSTED.host_ops[0].op)
        assert first_column(tab) == [HOSTED.host_ops[0].op]


def test_search_finds_models_and_operations_from_every_page(browser: Any, folder: pathlib.Path):
    for start in ("index.html", "ops.html", f"models/{HOSTED.model}.html", "compare.html"):
        context = browser.new_context()
        tab = context.new_page()
        tab.goto((folder / start).as_uri())
        tab.keyboard.press("/")
        tab.keyboard.type("conv")
        tab.keyboard.press("Enter")
        tab.wait_for_url("**/search.html#find=conv")
        assert tab.locator("ul.found a").all_inner_texts() == ["aten.convolution.default"]
        tab.fill("#anywhere", HOSTED.model)
        tab.get_by_role("link", name=HOSTED.model, exact=True).click()
        tab.wait_for_url(f"**/models/{HOSTED.model}.html")
        assert tab.inner_text("h1") == HOSTED.model
        context.close()


# -- two runs ---------------------------------------------------------------------------------------------------------


def test_the_comparison_shows_regressions_first(page: Any):
    with page("compare.html") as tab:
        kinds = tab.locator("main .whole tbody td:nth-child(2)").all_inner_texts()
        assert kinds == ["regressed", "regressed", "improved", "added", "gone"]
        assert first_column(tab)[0] == HOSTED.key  # its status
        assert "status device → host" in tab.locator("main .whole tbody tr").first.inner_text()
        assert first_column(tab)[4].startswith("an old model")
        tab.select_option("select[name=change]", "same")
        assert len(first_column(tab)) == len(ROWS) - 4
        tab.select_option("select[name=change]", "")
        assert len(first_column(tab)) == len(ROWS) + 1


def test_there_is_no_comparison_of_one_run(browser: Any, tmp_path: pathlib.Path):
    with opened(browser, site.build(ROWS, tmp_path)) as tab:
        assert tab.get_by_role("link", name="Compare").count() == 0


# -- layout -----------------------------------------------------------------------------------------------------------


def test_no_page_is_wider_than_its_window_and_tables_scroll(page: Any):
    paths = ["index.html", "ops.html", "search.html", "compare.html", f"models/{HOSTED.model}.html",
             f"ops/{HOSTED.host_ops[0].op}.html"]  # fmt: skip
    for path in paths:
        with page(path, viewport={"width": 400, "height": 800}) as tab:
            assert tab.evaluate("document.documentElement.scrollWidth") <= 400, path
            if tab.locator(".table.whole").count():
                wide, shown = tab.eval_on_selector(".table.whole", "table => [table.scrollWidth, table.clientWidth]")
                assert wide > shown, path


def test_charts_of_a_row_are_equally_high(page: Any):
    with page("index.html", viewport={"width": 1400, "height": 900}) as tab:
        boxes = [each.bounding_box() for each in tab.locator(".grid.charts svg.chart").all()]
        assert len(boxes) == 3
        assert [box["height"] for box in boxes] == pytest.approx([boxes[0]["height"]] * 3, rel=0.02)


def test_words_are_not_broken_in_a_narrow_window(page: Any):
    """A cell is as wide as its longest word; the table scrolls."""
    broken = """[...document.querySelectorAll('td')].filter(cell => {
        const word = document.createRange(), text = cell.querySelector('*') ? null : cell.firstChild;
        if (!text || text.nodeType !== 3 || /\\s/.test(text.data.trim())) return false;
        word.selectNodeContents(text);
        return word.getClientRects().length > 1;
    }).map(cell => cell.innerText)"""
    for path in ("index.html", "ops.html", f"models/{HOSTED.model}.html"):
        with page(path, viewport={"width": 400, "height": 800}) as tab:
            assert tab.evaluate(broken) == [], path


def test_light_and_dark(page: Any):
    grounds = []
    for scheme in ("light", "dark"):
        with page("index.html", color_scheme=scheme) as tab:
            grounds.append(tab.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert grounds == ["rgb(251, 251, 250)", "rgb(21, 25, 28)"]


# -- size -------------------------------------------------------------------------------------------------------------


MOST_ELEMENTS = 10_000  # more elements are slow to draw; seconds would depend on the machine


@pytest.mark.slow
def test_a_large_site_draws_what_is_seen(browser: Any, tmp_path: pathlib.Path):
    rows = results(300, variations=67)
    assert sum(len(row.variations) for row in rows) > 20_000
    first = site.build(rows, tmp_path)
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.html")) < 40e6
    for path in (first, tmp_path / "ops.html", tmp_path / "ops" / "aten.add.Tensor.html"):
        with opened(browser, path) as tab:
            drawn = tab.evaluate("document.querySelectorAll('*').length")
            assert drawn < MOST_ELEMENTS, path


ATTACK = "</script><img src=x onerror=\"window.hit=1\"><svg onload='window.hit=1'>"
ATTACKS = (ATTACK, "__proto__", "javascript:window.hit=1", "../a b#c?d%41\u202e")


def _attacking(attack: str) -> Row:
    """A row in which every text is an attack."""
    return replace(
        HOSTED,
        **dict.fromkeys(("model", "family", "source", "task", "reduced", "inputs", "device", "reason"), attack),
        versions={attack: attack},
        host_ops=(HostOp(attack, attack, attack),),
        moves=(Move(attack, 1, attack),),
        fusions=(Fusion(attack, 1),),
        variations=(
            Variation(attack, attack, attack, "converted"),
            Variation(attack, attack, attack, attack, 2, attack),
        ),
    )


def test_hostile_texts_do_nothing_and_are_shown_as_they_are(browser: Any, tmp_path: pathlib.Path):
    rows = [_attacking(attack) for attack in ATTACKS]
    top = site.build(rows, tmp_path, before=[replace(row, status=ON_DEVICE, device="") for row in rows]).parent
    paths = sorted(top.rglob("*.html"))
    assert len(paths) == 4 + 2 * len(ATTACKS)
    titles = []
    for path in paths:
        with opened(browser, path) as tab:
            titles.append(tab.inner_text("h1"))
            assert tab.evaluate("window.hit") is None
            assert tab.locator("img[src]").count() == 0
            for link in tab.locator("a").evaluate_all("links => links.map((link) => link.href.baseVal ?? link.href)"):
                assert "://" not in link.removeprefix("file://") and not link.startswith("javascript:")
    others = ("Results", "Operations", "Search", "Two runs compared")
    assert sorted(titles) == sorted([*ATTACKS, *ATTACKS, *others])
