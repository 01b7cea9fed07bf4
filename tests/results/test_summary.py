"""Totals, families and headlines of rows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.results.invented import results
from torch_ttnn.results.record import EVAL, FAILS, ON_DEVICE, TRAIN, WITH_HOST_OPS, Row
from torch_ttnn.results.summary import HEADLINES, accuracy, families, headlines, is_near, ordered, totals

ROWS = [
    Row("b", status=ON_DEVICE, pcc=0.995, family="x"),
    Row("b", TRAIN, status=ON_DEVICE, pcc=0.999, gradient_pcc=0.98, family="x"),
    Row("a", status=WITH_HOST_OPS, pcc=0.9999, family="x"),
    Row("c", status=ON_DEVICE, pcc=0.9, family="y"),
    Row("d", status=FAILS, reason="no memory", family="y"),
]


def test_totals_count_every_row_once():
    found = totals(ROWS)
    assert found.models == 4
    assert (found.eval.rows, found.eval.on_device, found.eval.with_host_ops, found.eval.failing) == (4, 2, 1, 1)
    assert (found.eval.near, found.eval.good) == (2, 1)
    assert found.eval.worst is ROWS[3]
    assert (found.train.rows, found.train.near) == (1, 0)  # what counts in training are the gradients


@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_a_pcc_that_is_no_number_is_not_near(value: float | None):
    row = Row("a", status=ON_DEVICE, pcc=value)
    assert accuracy(row) is None
    assert not is_near(row)
    assert totals([row]).eval.worst is None


def test_failed_rows_are_not_near():
    assert not is_near(Row("a", status=FAILS, pcc=1.0))


def test_families_come_largest_first():
    assert [(family.name, family.models, family.totals.rows) for family in families(ROWS)] == [("x", 2, 2), ("y", 2, 2)]
    assert [family.name for family in families([*ROWS, Row("e", family="y")])] == ["y", "x"]


def test_headlines_are_a_dozen_measured_rows_inference_first():
    assert len(set(HEADLINES)) == len(HEADLINES) > 12
    rows = [Row(model, mode) for model, mode in HEADLINES]
    shown = headlines(reversed(rows))
    assert len(shown) == 12
    modes = [row.mode for row in shown]
    assert modes == sorted(modes)  # eval, train
    assert {EVAL, TRAIN} == set(modes)
    assert [row.model for row in headlines([Row("x"), Row("resnet18")])] == ["resnet18"]


@given(st.permutations(results(6)))
def test_the_order_of_rows_does_not_depend_on_their_input_order(rows: list[Row]):
    assert ordered(rows) == ordered(results(6))
    assert totals(rows) == totals(results(6))


def test_models_that_differ_in_capitals_have_one_order():
    rows = [Row("A"), Row("a"), replace(Row("A"), mode=TRAIN)]
    assert [row.key for row in ordered(rows)] == ["A", "A (train)", "a"]
