"""The emulator agrees with recorded answers of the real library, and with the bits of the chip's kernels."""

from __future__ import annotations

import itertools
import pathlib

import pytest

from ttnn_emulator.api.recorded import ttnn_version
from ttnn_emulator.conformance import golden, recorded
from ttnn_emulator.conformance.case import case_id
from ttnn_emulator.conformance.case_tables import cases_of, families
from ttnn_emulator.conformance.compare import agree, score
from ttnn_emulator.conformance.environment import existing_python
from ttnn_emulator.conformance.real import RealTtnn
from ttnn_emulator.conformance.report import family_section, golden_section

LEAST_SHARE = 0.99
PAGE = pathlib.Path(__file__).parents[3] / "docs" / "conformance.md"
OLD_PAGE = "docs/conformance.md is out of date: run `python -m ttnn_emulator.conformance report`"


@pytest.mark.parametrize("family", recorded.recorded_families())
def test_same_verdict_and_spec_as_the_real_library(family: str) -> None:
    result = score(family)
    differences = "\n".join(str(difference) for difference in result.differences[:10])
    assert result.share >= LEAST_SHARE, f"{result.share:.2%} of {result.total} cases agree\n{differences}"
    assert family_section(family, result) in PAGE.read_text(encoding="utf-8"), OLD_PAGE


@pytest.mark.parametrize("family", families())
def test_every_case_is_recorded(family: str) -> None:
    recorded_ids = {case_id(case) for case, _ in recorded.read(family)}
    missing = {case_id(case) for case in cases_of(family)} - recorded_ids
    # Cases whose inputs the library refuses to create are left out when recording.
    assert len(missing) <= 0.05 * len(recorded_ids) + 2, sorted(missing)[:5]


def test_golden_vectors() -> None:
    results = golden.judge_all()
    failed = [result for result in results if not result.passes]
    assert not failed, "\n".join(str(result) for result in failed)
    assert golden_section(results) in PAGE.read_text(encoding="utf-8"), OLD_PAGE


@pytest.mark.skipif(not existing_python(ttnn_version()), reason="the real ttnn comes with `make conformance`")
@pytest.mark.parametrize("board", sorted({recorded.header(family)["board"] for family in recorded.recorded_families()}))
def test_the_real_library_reproduces_the_recorded_answers(board: str) -> None:
    families = [family for family in recorded.recorded_families() if recorded.header(family)["board"] == board]
    with RealTtnn(board=board) as real:
        for family in families:
            for case, answer in itertools.islice(recorded.read(family), 0, None, 200):
                assert agree(answer, real.ask(case)), case_id(case)
