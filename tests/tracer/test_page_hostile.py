"""Injected markup in traces has no effect on pages and is shown as text."""

from __future__ import annotations

import csv
import pathlib
from collections import Counter
from typing import Any

import pytest

from tests.browser import opened
from tests.tracer.shown_page import names, run_of, table, written
from torch_ttnn.tracer.reports import page
from torch_ttnn.tracer.reports.summary import OpSummary, Summary

ATTACK = "</script><img src=x onerror=\"window.hit=1\"><svg onload='window.hit=1'>"
ATTACKS = (ATTACK, "__proto__", "constructor", "=1+1", "javascript:window.hit=1", "\u202eabc", "&lt;b&gt;#&op=x%41+")


def hostile() -> Summary:
    """Every text that can come from a file is an attack."""
    run = Summary(bad=[(attack, attack) for attack in ATTACKS])
    for attack in ATTACKS:
        op = OpSummary(attack, Counter({attack: 3}), source=attack, input_sizes=Counter({5: 3}))
        op.arguments = {attack: Counter({attack: 3})}
        op.shapes[attack] = op.dtypes[attack] = op.lowering[attack, attack] = 3
        run.phases["fw"][attack] = op
        run.models[attack] = run_of(op).models[attack]
    return run


@pytest.mark.parametrize(
    "text", [page.render(hostile(), ATTACK), page.compare(hostile(), Summary(), (ATTACK, ATTACK), ATTACK)]
)
def test_hostile_texts_do_nothing_and_are_shown_as_they_are(browser: Any, tmp_path: pathlib.Path, text: str):
    with opened(browser, written(tmp_path, text)) as tab:
        assert tab.title() == ATTACK
        assert sorted(names(tab)) == sorted(ATTACKS)
        for attack in ATTACKS:
            tab.goto(tab.url.split("#")[0] + "#")
            tab.get_by_role("link", name=attack, exact=True).click()
            assert tab.inner_text("main h2.name") == attack
            assert table(tab, attack)[0][0] == attack
            tab.locator("main rect.column").first.hover()
            tab.get_by_role("region", name="models").get_by_role("link").click()
            assert tab.inner_text("main h2.name") == attack
        for view in ("#view=models", "#view=charts", "#in=all&find=x"):
            tab.goto(tab.url.split("#")[0] + view)
        assert tab.evaluate("window.hit") is None
        assert tab.locator("img[src]").count() == 0


def test_a_formula_is_exported_as_text(browser: Any, tmp_path: pathlib.Path):
    op = OpSummary('=HYPERLINK("x")', Counter(m=1))
    with opened(browser, written(tmp_path, page.render(run_of(op)))) as tab:
        with tab.expect_download() as started:
            tab.get_by_role("button", name="Export CSV").click()
        rows = list(csv.reader(started.value.path().open(encoding="utf-8-sig", newline="")))
    assert rows[1][0] == '\'=HYPERLINK("x")'
