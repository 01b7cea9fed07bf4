"""The errors of the timing model on times measured on silicon stay within their bars."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from ttnn_emulator.timing.calibration import ERRORS, SCARCE
from ttnn_emulator.timing.evaluation import report

DATA = Path(__file__).parents[1] / "data"
Scores = dict[tuple[str, str], report.Score]


@functools.cache
def scores_of(name: str) -> Scores:
    return report.scores(report.predictions_of(DATA / f"{name}.csv"))


@functools.cache
def all_rows() -> list[report.Prediction]:
    return list(report.predictions_of(DATA / "measured_ops.csv"))


@pytest.mark.parametrize(
    ("family", "board", "median", "percentile"),
    [
        ("matmul (oob)", "n150", 0.08, 0.20),
        ("matmul (oob)", "p150", 0.05, 0.20),
        ("matmul (tuned)", "n150", 0.05, 0.15),
        ("matmul (tuned)", "p150", 0.05, 0.15),
    ],
)
def test_matmuls(family: str, board: str, median: float, percentile: float) -> None:
    score = scores_of("gemm_flops")[family, board]
    assert score.misses == 0
    assert score.quantile(0.5) <= median
    assert score.quantile(0.9) <= percentile


def test_height_sharded_matmuls() -> None:
    score = scores_of("matmul_height_sharded_n150")["matmul (height-sharded)", "n150"]
    assert score.misses == 0
    assert score.quantile(0.5) <= 0.08
    assert score.quantile(0.9) <= 0.25


def test_exp() -> None:
    """A sixth of the shapes of this file are wrong, see README.md beside it: only the median counts."""
    score = scores_of("exp_n150")["exp", "n150"]
    assert score.misses == 0
    assert score.quantile(0.5) <= 0.025


def test_programs_of_real_models() -> None:
    """The median error, and every family of five rows or more against the library's own ideal."""
    everything = report.Score(all_rows())
    assert everything.misses == 0
    assert everything.quantile(0.5) <= 0.08
    assert everything.quantile(0.9) <= 0.40
    for key, score in report.scores(all_rows()).items():
        if score.rows >= 5 and score.ideal is not None:
            assert score.quantile(0.5) < score.ideal, key


LISTS = {
    "bert_large_metal_n150_b8": 0.15,
    "falcon7b_decode128_n150_b32": 0.15,
    "falcon7b_prefill128_n150_b1": 0.15,
    "mobilenetv2_n150_b10": 0.15,
    "resnet50_n150_b16": 0.15,
    "resnet50_p150_b16": 0.15,
    "sd14_unet_n150_b2": 0.15,
    "vanilla_unet_n150_b1": 0.15,
    "vit_base_n150_b8": 0.15,
    "vit_base_p150_b10": 0.15,
}


@pytest.mark.parametrize(("name", "most"), LISTS.items())
def test_whole_models(name: str, most: float) -> None:
    model = report.time_of_list(DATA / f"{name}.jsonl")
    assert not model.misses
    assert model.ratio == pytest.approx(1.0, abs=most)


def test_stated_errors_are_those_of_the_data() -> None:
    """`Launch.error` is not smaller than what was measured, and not much larger."""
    families: dict[str, report.Score] = {}
    for row in all_rows():
        families.setdefault(row.measurement.family, report.Score()).predictions.append(row)
    for family, stated in ERRORS.items():
        score = families[family]
        measured = score.quantile(0.9) if score.rows >= 5 else max(score.quantile(0.9), SCARCE)
        assert measured <= stated + 0.01 <= measured + 0.07, (family, measured)
    assert set(families) <= set(ERRORS), "families with measured rows state no error"
