"""Regressions are found, named, and distinguished from improvements."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.results.invented import results
from torch_ttnn.results import Row
from torch_ttnn.results.check import check
from torch_ttnn.results.record import Task

GOOD = Row(
    "resnet18", status="device", programs=1, uploads=1, downloads=1, pcc=0.9995, gradient_pcc=0.995, conversions=4,
    original_seconds=1.0, compiled_seconds=2.0, calls=3, tasks=(Task("digits", "accuracy, %", 1000, 99.0, 98.9),),
)  # fmt: skip


def changed(**fields: Any):
    return check([replace(GOOD, **fields)], [GOOD])


def test_equal_rows_pass() -> None:
    rows = results(40)
    verdict = check(rows, rows)
    assert verdict.ok
    assert (verdict.worse, verdict.better, verdict.new, verdict.vanished, verdict.other_conditions) == ((),) * 5
    assert verdict.compared == len(rows)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("ops_remaining", 1),
        ("uploads", 2),
        ("downloads", 3),
        ("crossings_within", 1),
        ("conversions", 5),
        ("pcc", 0.998),
        ("gradient_pcc", 0.98),
    ],
)
def test_each_field_that_got_worse_is_named(field: str, value: float) -> None:
    verdict = changed(**{field: value})
    assert not verdict.ok
    (change,) = verdict.worse
    assert (change.key, change.field, change.before, change.after) == ("resnet18", field, getattr(GOOD, field), value)
    back = check([GOOD], [replace(GOOD, **{field: value})])
    assert back.ok
    assert [each.field for each in back.better] == [field]


def test_a_status_that_got_worse_says_why() -> None:
    verdict = changed(status="fails", reason="no room", pcc=None, uploads=9)
    assert [str(each) for each in verdict.worse] == ["resnet18: status device → fails (no room)"]
    assert changed(status="host").worse[0].field == "status"
    assert check([GOOD], [replace(GOOD, status="fails", reason="no room")]).ok


def test_a_correlation_may_be_lower_by_the_tolerance() -> None:
    assert changed(pcc=0.9986).ok
    assert not check([replace(GOOD, pcc=0.9986)], [GOOD], tolerance=1e-4).ok


def test_times_count_only_on_request_and_against_the_original() -> None:
    slower = replace(GOOD, compiled_seconds=3.2)
    assert check([slower], [GOOD]).ok
    assert check([slower], [GOOD], times=2).ok
    assert [each.field for each in check([slower], [GOOD], times=1.5).worse] == ["compiled over original time"]
    slow_machine = replace(GOOD, original_seconds=5.0, compiled_seconds=10.0)
    assert check([slow_machine], [GOOD], times=1.1).ok
    with pytest.raises(ValueError, match=r"the allowed slowdown must be at least 1, not 0\.5"):
        check([GOOD], [GOOD], times=0.5)


def test_a_task_may_lose_half_a_point() -> None:
    def with_points(points: float) -> Row:
        return replace(GOOD, tasks=(Task("digits", "accuracy, %", 1000, 99.0, points),))

    assert check([with_points(98.5)], [GOOD]).ok
    assert [each.field for each in check([with_points(98.3)], [GOOD]).worse] == ["task digits"]
    without = check([replace(GOOD, tasks=())], [GOOD])
    assert without.ok, "its data may not be installed here"
    assert [each.field for each in without.other_conditions] == ["tasks"]


def test_missing_rows_count_only_if_expected() -> None:
    other = replace(GOOD, model="gone")
    assert check([GOOD], [GOOD, other]).ok
    verdict = check([GOOD], [GOOD, other], expected=lambda row: True)
    assert not verdict.ok
    assert verdict.vanished == ("gone",)
    assert check([GOOD], [GOOD, other], expected=lambda row: row.model != "gone").ok


def test_new_rows_are_reported() -> None:
    verdict = check([GOOD, replace(GOOD, mode="train")], [GOOD])
    assert verdict.ok
    assert verdict.new == ("resnet18 (train)",)


def test_other_conditions_are_reported() -> None:
    verdict = changed(device="ttnn:0", batch=8)
    assert [str(each) for each in verdict.other_conditions] == ["resnet18: device  → ttnn:0", "resnet18: batch 1 → 8"]
