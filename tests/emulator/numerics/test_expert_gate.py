"""The sorting steps of the gate select the best, also with ties."""

from __future__ import annotations

import numpy as np
import pytest

from ttnn_emulator.numerics.programs.experts.gate import best_eight, best_eight_of_groups


def coarse(rows: int, columns: int) -> np.ndarray:
    """Few distinct values, so that many are equal."""
    return np.random.default_rng(columns).integers(-40, 40, (rows, columns)).astype(np.float32)


@pytest.mark.parametrize("experts", (256, 512))
def test_the_best_are_sorted_and_distinct(experts: int) -> None:
    keys = coarse(200, experts)
    places = best_eight(keys)
    assert (np.take_along_axis(keys, places, -1) == -np.sort(-keys, -1)[:, :8]).all()
    assert all(len(set(row)) == 8 for row in places)


def test_groups_are_selected_by_their_two_best() -> None:
    keys = coarse(200, 256)
    groups = keys.reshape(-1, 8, 32)
    sums = -np.sort(-groups, -1)[..., :2].sum(-1)
    for row, places in enumerate(best_eight_of_groups(keys)):
        chosen = {place // 32 for place in places}
        least = np.sort(sums[row])[-4]
        assert all(sums[row, group] >= least for group in chosen)
        assert len(set(places)) == 8
