"""The page that compares two runs, in a browser: regressions first, both runs everywhere."""

from __future__ import annotations

import pathlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser import opened
from tests.tracer.invented import op_name, summary
from tests.tracer.shown_page import heads, looks_right, names, row_of, table, written
from torch_ttnn.tracer.reports import page
from torch_ttnn.tracer.reports.summary import ModelPhase, ModelSummary, OpSummary, Summary

FIRST = op_name(0)  # aten.convolution.default


def two_runs() -> tuple[Summary, Summary]:
    """The same models; one operation each is lowered less, lowered more, added, gone and changed."""
    before, after = summary(ops=24, models=8), summary(ops=24, models=8)
    worse, better = after.phases["fw"][op_name(5)], after.phases["fw"][op_name(3)]
    worse.lowering = Counter({("host", "a new reason"): worse.count})
    better.lowering = Counter({("device", ""): better.count})
    del after.phases["fw"][op_name(7)]
    after.phases["fw"]["aten.new.default"] = OpSummary("aten.new.default", Counter({"model 1": 3, "newcomer": 2}))
    after.phases["fw"][FIRST].models["model 1"] += 100
    after.phases["fw"][FIRST].arguments["stride"]["[9, 9]"] += 100
    after.models["newcomer"] = ModelSummary("newcomer")
    after.models["newcomer"].phases["fw"] = ModelPhase(graphs=1, ops=2, distinct_ops=1)
    after.models["model 2"].phases["fw"].lowering["host"] += 50
    return before, after


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return written(tmp_path_factory.mktemp("page"), page.compare(*two_runs(), ("main", "branch")))


@pytest.fixture
def compared(browser: Any, path: pathlib.Path) -> Iterator[Any]:
    with opened(browser, path) as tab:
        yield tab


def test_comparison_puts_regressions_first(compared: Any):
    assert names(compared) == [op_name(5), op_name(3), "aten.new.default", op_name(7), FIRST]
    kinds = compared.locator("main td .change").all_inner_texts()
    assert kinds == ["regressed", "improved", "added", "gone", "changed"]
    assert compared.inner_text(".tally").split("\n")[:2] == ["1 regressed", "1 improved"]


def test_comparison_shows_both_runs_and_the_difference(compared: Any):
    before, after = (run.phases["fw"][FIRST].count for run in two_runs())
    titles = heads(compared)
    cells = row_of(compared, FIRST).all_inner_texts()
    row = dict(zip(titles, cells, strict=True))
    assert [row["calls main"], row["calls branch"], row["change of calls"]] == [f"{before:,}", f"{after:,}", "+100"]


def test_comparison_sorts_searches_and_filters(compared: Any):
    titles = heads(compared)
    for number, title in enumerate(titles):
        orders = []
        for _ in range(2):
            compared.locator("main th button").nth(number).click()
            orders.append(compared.locator("main th").nth(number).get_attribute("aria-sort"))
        assert set(orders) == {"ascending", "descending"}, title
    compared.select_option("#change", "all")
    compared.wait_for_url("**change=all*")
    assert len(names(compared)) == 25
    compared.select_option("#change", "gone")
    compared.wait_for_url("**change=gone*")
    assert names(compared) == [op_name(7)]
    compared.select_option("#change", "")
    compared.fill("#find", "new")
    compared.wait_for_url("**find=new*")
    assert names(compared) == ["aten.new.default"]


def test_comparison_of_one_operation(compared: Any):
    compared.get_by_role("link", name=FIRST, exact=True).click()
    assert [row for row in table(compared, "stride") if row[0] == "[9, 9]"] == [["[9, 9]", "0", "100", "+100"]]
    bars = compared.get_by_role("img", name="Elements of all inputs").locator("rect.column")
    assert {bar.get_attribute("class") for bar in bars.all()} == {"column run0", "column run1"}
    compared.keyboard.press("Escape")
    compared.get_by_role("link", name=op_name(5), exact=True).click()
    assert ["on the host", "a new reason"] in [row[:2] for row in table(compared, "Lowering")]


def test_comparison_of_models(compared: Any):
    compared.get_by_role("button", name="Models", exact=True).click()
    assert names(compared) == ["model 2", "newcomer"]
    compared.get_by_role("link", name="newcomer").click()
    assert table(compared, "operations")[0][:4] == ["aten.new.default", "0", "2", "+2"]


def test_comparison_fits_its_window(compared: Any):
    looks_right(compared, ("#", "#view=models", f"#op={FIRST}", "#model=model+3"))
