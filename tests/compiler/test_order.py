"""The order of stages and of fusions."""

from __future__ import annotations

import itertools

import pytest

from torch_ttnn.compiler.fusion.families import FAMILIES
from torch_ttnn.compiler.order import violations
from torch_ttnn.compiler.pipeline import STAGES


@pytest.mark.parametrize("members", [STAGES, FAMILIES], ids=["stages", "fusions"])
def test_everything_runs_after_what_it_needs(members):
    assert not violations(members)
    assert len({member.name for member in members}) == len(members)


@pytest.mark.parametrize("members", [STAGES, FAMILIES], ids=["stages", "fusions"])
def test_a_violated_order_is_detected(members):
    stated = [(member, name) for member in members for name in member.after]
    assert stated
    for member, name in stated:
        first = next(each for each in members if each.name == name)
        swapped = [first if each is member else member if each is first else each for each in members]
        assert f"{member.name!r} must run after {name!r}" in violations(swapped)


def test_an_unknown_name_is_detected():
    assert violations(itertools.islice(STAGES, 1, None))
