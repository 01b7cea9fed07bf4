"""The pages of traces in a browser: they load without a network, sort, filter, link, and show each chart."""

from __future__ import annotations

import csv
import pathlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.browser import opened
from tests.tracer.invented import REASONS, op_name, summary
from tests.tracer.shown_page import (
    await_rows,
    column,
    heads,
    looks_right,
    names,
    row_of,
    run_of,
    settled,
    table,
    written,
)
from torch_ttnn.tracer.reports import page
from torch_ttnn.tracer.reports.summary import OpSummary
from torch_ttnn.tracer.reports.verdicts import locations, lowered_share

RUN = summary(ops=24, models=8)
FIRST = op_name(0)  # aten.convolution.default


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return written(tmp_path_factory.mktemp("page"), page.render(RUN, "Our run"))


@pytest.fixture
def shown(browser: Any, path: pathlib.Path) -> Iterator[Any]:
    with opened(browser, path) as tab:
        yield tab


# -- the list of operations -------------------------------------------------------------------------------------------


def test_loads_and_shows_the_totals(shown: Any):
    assert shown.title() == "Our run"
    cards = shown.locator("header .card").all_inner_texts()
    assert cards[0].split() == ["8", "models"]
    assert f"{len(RUN.phases['fw'].keys() | RUN.phases['bw'].keys())}\ndistinct operations" in cards
    assert set(names(shown)) == RUN.phases["fw"].keys()
    shown.get_by_text("1 file(s) were skipped").click()
    assert shown.get_by_text("fw_broken_0.json").is_visible()


def _share(op: OpSummary) -> float:
    share = lowered_share(locations(op.lowering))
    return -1.0 if share is None else float(share)


COLUMNS: dict[str, Callable[[OpSummary], Any]] = {
    "operation": lambda op: op.op_type,
    "calls": lambda op: op.count,
    "share": lambda op: op.count,
    "models": lambda op: len(op.models),
    "of models": lambda op: len(op.models),
    "FLOPs": lambda op: op.flops,
    "of FLOPs": lambda op: op.flops,
    "bytes in": lambda op: op.bytes_in,
    "bytes out": lambda op: op.bytes_out,
    "FLOPs/byte": lambda op: op.intensity,
    "lowered": _share,
}


def test_every_column_sorts_both_ways(shown: Any):
    titles = heads(shown)
    assert titles == list(COLUMNS)
    for title, value in COLUMNS.items():
        for _ in range(2):
            column(shown, title).get_by_role("button").click()
            found = [value(RUN.phases["fw"][name]) for name in names(shown)]
            down = column(shown, title).get_attribute("aria-sort") == "descending"
            assert found == sorted(found, reverse=down), title
        assert down == (title == "operation")  # numbers come largest first, then smallest


def test_numbers_of_a_row(shown: Any):
    op = RUN.phases["fw"][FIRST]
    cells = row_of(shown, FIRST).all_inner_texts()
    total = sum(each.count for each in RUN.phases["fw"].values())
    assert cells[1] == f"{op.count:,}"
    assert float(cells[2].strip("%")) == pytest.approx(100 * op.count / total, abs=0.1)
    assert cells[3:5] == [str(len(op.models)), f"{100 * len(op.models) / 8:g}%"]
    assert cells[10] == "100%"


def test_switches_phase(shown: Any):
    shown.get_by_role("button", name="backward").click()
    assert set(names(shown)) == RUN.phases["bw"].keys()
    assert "phase=bw" in shown.url


SEARCHES: dict[tuple[str, str], Callable[[OpSummary], bool]] = {
    ("name", "RELU"): lambda op: "relu" in op.op_type,
    ("model", "model 3"): lambda op: "model 3" in op.models,
    ("argument", "groups=17"): lambda op: op.arguments["groups"]["17"] > 0,
    ("reason", REASONS[0]): lambda op: any(reason == REASONS[0] for _, reason in op.lowering),
    ("all", "[2, 2]"): lambda op: op.arguments["stride"]["[2, 2]"] > 0,
    ("name", "no such thing"): lambda op: False,
}


def test_searches(shown: Any):
    for (scope, text), test in SEARCHES.items():
        shown.select_option("#scope", scope)
        shown.fill("#find", text)
        wanted = {name for name, op in RUN.phases["fw"].items() if test(op)}
        await_rows(shown, len(wanted))
        assert set(names(shown)) == wanted != RUN.phases["fw"].keys()
        assert shown.inner_text("#count") == f"{len(wanted)} of {len(RUN.phases['fw'])} operations"


FILTERS: dict[str, Callable[[Counter], bool]] = {
    "left": lambda found: found["host"] + found["partly"] > 0,
    "decomposed": lambda found: found["decomposed"] > 0,
    "device": lambda found: found["device"] == found.total(),
    "lowered": lambda found: found["device"] + found["decomposed"] == found.total(),
    "unknown": lambda found: found["unknown"] > 0,
}


def test_filters_by_lowering(shown: Any):
    for choice, test in FILTERS.items():
        shown.select_option("#lowering", choice)
        wanted = {name for name, op in RUN.phases["fw"].items() if test(locations(op.lowering))}
        await_rows(shown, len(wanted))
        assert set(names(shown)) == wanted
        assert 0 < len(wanted) < len(RUN.phases["fw"])


def test_lowering_is_a_bar_in_proportion(browser: Any, tmp_path: pathlib.Path):
    op = OpSummary("aten.op.default", Counter(m=4), lowering=Counter({("device", ""): 3, ("host", "too large"): 1}))
    with opened(browser, written(tmp_path, page.render(run_of(op)))) as tab:
        device, host = (tab.locator(f"main .strip i.{name}").bounding_box()["width"] for name in ("device", "host"))
        assert device == pytest.approx(3 * host, rel=0.05)
        assert "1 × too large" in tab.locator("main .lowering").get_attribute("title")


def test_exports_what_is_shown_as_csv(shown: Any, tmp_path: pathlib.Path):
    shown.fill("#find", "conv")
    column(shown, "FLOPs").get_by_role("button").click()
    with shown.expect_download() as started:
        shown.get_by_role("button", name="Export CSV").click()
    assert started.value.suggested_filename == "fw_ops.csv"
    started.value.save_as(tmp_path / "ops.csv")
    rows = list(csv.DictReader((tmp_path / "ops.csv").open(encoding="utf-8-sig", newline="")))
    assert [row["operation"] for row in rows] == names(shown)
    assert [int(row["FLOPs"]) for row in rows] == [RUN.phases["fw"][name].flops for name in names(shown)]


# -- one operation ----------------------------------------------------------------------------------------------------


def test_an_operation_opens_by_click_and_by_keyboard(shown: Any):
    row_of(shown, FIRST).nth(5).click()
    assert shown.inner_text("main h2.name") == FIRST
    shown.keyboard.press("Escape")
    shown.get_by_role("link", name=FIRST, exact=True).focus()
    shown.keyboard.press("Enter")
    assert shown.inner_text("main h2.name") == FIRST
    shown.get_by_role("link", name="back to the list").click()
    assert len(names(shown)) == len(RUN.phases["fw"])


@pytest.mark.parametrize("chart", ["Elements of all inputs", "Elements of all outputs"])
def test_size_charts_have_a_bar_per_bin(browser: Any, path: pathlib.Path, chart: str):
    op = RUN.phases["fw"][FIRST]
    sizes = op.input_sizes if "inputs" in chart else op.output_sizes
    bins = Counter({size.bit_length(): 0 for size in sizes})
    for size, calls in sizes.items():
        bins[size.bit_length()] += calls
    with opened(browser, path, f"#op={FIRST}") as tab:
        boxes = [bar.bounding_box() for bar in tab.get_by_role("img", name=chart).locator("rect.column").all()]
    assert len(boxes) == len(bins) > 1
    assert all(box["width"] > 3 and box["height"] > 1 for box in boxes)
    assert [box["x"] for box in boxes] == sorted(box["x"] for box in boxes)
    tallest = max(box["height"] for box in boxes)
    for (_, calls), box in zip(sorted(bins.items()), boxes):
        assert box["height"] / tallest == pytest.approx(calls / max(bins.values()), abs=0.03)


def test_a_bar_has_a_tooltip(browser: Any, path: pathlib.Path):
    with opened(browser, path, f"#op={FIRST}") as tab:
        tab.locator("main rect.column").first.hover()
        assert "elements" in tab.inner_text("#tip") and "calls" in tab.inner_text("#tip")


def test_an_operation_shows_arguments_shapes_dtypes_models_and_source(browser: Any, path: pathlib.Path):
    op = RUN.phases["fw"][FIRST]
    with opened(browser, path, f"#op={FIRST}") as tab:
        for title, counter in {**op.arguments, "Input shapes": op.shapes, "Dtypes of the inputs": op.dtypes}.items():
            if title == "input":
                continue
            found = {value: calls for value, calls, _ in table(tab, title)}
            assert found == {value: f"{calls:,}" for value, calls in counter.items()}
        assert {name: int(calls) for name, calls, _ in table(tab, "models")} == op.models
        assert "(not_jsonable): input" in tab.inner_text("main")
        assert "model.py:1: x = op(x)" in tab.inner_text("main")
        assert table(tab, "Lowering") == [["on the device", "", f"{op.count:,}", "100%"]]


def test_a_long_argument_table_says_how_much_is_omitted(browser: Any, tmp_path: pathlib.Path):
    values = Counter({f"[{number}]": 100 - number for number in range(60)})
    op = OpSummary("aten.op.default", Counter(m=10), arguments={"dim": values}, input_sizes=Counter({0: 10}))
    with opened(browser, written(tmp_path, page.render(run_of(op))), "#op=aten.op.default") as tab:
        assert table(tab, "dim")[0][:2] == ["[0]", "100"]
        assert f"… and 36 more, with {sum(sorted(values.values())[:36]):,} calls" in tab.inner_text("main")
        assert "none" in tab.get_by_role("img", name="Elements of all inputs").text_content()


# -- models and charts ------------------------------------------------------------------------------------------------


def test_models_sort_and_open(shown: Any):
    shown.get_by_role("button", name="Models", exact=True).click()
    ops = {name: model.phases["fw"].ops for name, model in RUN.models.items()}
    assert names(shown) == sorted(ops, key=lambda name: -ops[name])
    titles = heads(shown)
    assert {"graphs", "calls", "distinct operations", "FLOPs", "lowered"} <= set(titles)
    for title in titles:
        for _ in range(2):
            before = names(shown)
            column(shown, title).get_by_role("button").click()
        assert sorted(names(shown)) == sorted(before) == sorted(ops)
    shown.get_by_role("link", name="model 5", exact=True).click()
    used = {name: op.models["model 5"] for name, op in RUN.phases["fw"].items() if op.models["model 5"]}
    rows = table(shown, "operations")
    assert {row[0]: int(row[1].replace(",", "")) for row in rows} == used
    shown.get_by_role("link", name=rows[0][0], exact=True).click()
    assert settled(shown).inner_text("main h2.name") == rows[0][0]


def test_models_are_found_by_their_operations(shown: Any):
    shown.get_by_role("button", name="Models", exact=True).click()
    rare = min(RUN.phases["fw"].values(), key=lambda op: len(op.models))
    shown.select_option("#scope", "op")
    shown.fill("#find", rare.op_type)
    await_rows(shown, len(rare.models))
    assert set(names(shown)) == rare.models.keys()


@pytest.mark.parametrize("chart, weight", [("calls", lambda op: op.count), ("FLOPs", lambda op: op.flops)])
def test_share_charts(browser: Any, path: pathlib.Path, chart: str, weight: Callable[[OpSummary], int]):
    weights = sorted((weight(op) for op in RUN.phases["fw"].values() if weight(op)), reverse=True)
    with opened(browser, path, "#view=charts") as tab:
        picture = tab.get_by_role("img", name=f"share of {chart} by operation")
        widths = [bar.bounding_box()["width"] for bar in picture.locator("rect.column").all()]
        assert picture.locator("circle").count() == min(20, len(weights))
        assert len(widths) == min(21, len(weights))
        for width, value in zip(widths[:20], weights):
            assert width / widths[0] == pytest.approx(value / weights[0], abs=0.05)
        picture.get_by_role("link").first.click()
        top = max(RUN.phases["fw"].values(), key=weight)
        assert tab.inner_text("main h2.name") == top.op_type


@pytest.mark.parametrize("rank", ["models", "calls", "flops"])
def test_coverage_of_models(browser: Any, path: pathlib.Path, rank: str):
    weight = {"models": lambda op: len(op.models), "calls": lambda op: op.count, "flops": lambda op: op.flops}[rank]
    order = sorted(RUN.phases["fw"].values(), key=lambda op: (-weight(op), -op.count, op.op_type))
    uses = {name: {op.op_type for op in order if op.models[name]} for name in RUN.models}
    covered = [sum(need <= {op.op_type for op in order[: k + 1]} for need in uses.values()) for k in range(len(order))]
    with opened(browser, path, "#view=charts") as tab:
        tab.select_option("#rank", rank)
        tab.wait_for_function("rank => state.rank === rank && byId('rank').value === rank", arg=rank)
        tab.get_by_text("as a table").click()
        assert [[int(row[0]), int(row[2])] for row in table(tab, "coverage")] == [
            [k + 1, many] for k, many in enumerate(covered)
        ]
        picture = tab.get_by_role("img", name="models covered by the first k operations")
        line = picture.locator("path.line").bounding_box()
        assert line["width"] > 400 and line["height"] > 200
        assert f"{covered.index(8) + 1} operations cover 100% of the models" in tab.inner_text("main")
        picture.locator("rect").hover()
        assert "of 8 models" in tab.inner_text("#tip")


# -- links, layout ----------------------------------------------------------------------------------------------------


def test_a_view_can_be_linked_and_left(browser: Any, path: pathlib.Path):
    with opened(browser, path) as tab:
        tab.get_by_role("button", name="backward").click()
        column(tab, "bytes in").get_by_role("button").click()
        tab.fill("#find", "aten.c")
        tab.wait_for_url("**find=aten.c*")
        before, link = names(tab), "#" + tab.url.split("#")[1]
        tab.get_by_role("link", name=before[0], exact=True).click()
        tab.go_back()
        assert names(tab) == before
    with opened(browser, path, link) as tab:
        assert names(tab) == before
        assert column(tab, "bytes in").get_attribute("aria-sort") == "descending"
        assert tab.input_value("#find") == "aten.c"


@pytest.mark.parametrize(
    "link", ["#view=nothing&phase=xx&sort=__proto__&lowering=constructor", "#op=none", "#model=none"]
)
def test_an_invalid_link_is_ignored(browser: Any, path: pathlib.Path, link: str):
    with opened(browser, path, link) as tab:
        assert tab.locator("main").inner_text()


def test_a_slash_leads_to_the_search(shown: Any):
    shown.keyboard.press("/")
    shown.keyboard.type("relu")
    assert shown.input_value("#find") == "relu"


def test_light_and_dark_fit_their_window(shown: Any):
    looks_right(shown, ("#", "#view=models", "#view=charts", f"#op={FIRST}", "#model=model+3"))


def test_a_large_run_opens_and_shows_more_as_it_is_scrolled(browser: Any, tmp_path: pathlib.Path):
    with opened(browser, written(tmp_path, page.render(summary(ops=400, models=60, phases=("fw",))))) as tab:
        first = len(names(tab))
        assert first < 400
        assert f"{first} of 400 shown" in tab.inner_text("main .more")
        tab.wait_for_function(
            """() => {
                const table = document.querySelector("main .whole");
                table.scrollTo(0, table.scrollHeight);
                return table.querySelectorAll("tbody tr").length === 400;
            }"""
        )
        assert tab.locator("main .more").is_hidden()
        assert tab.locator("#phases").is_hidden()
