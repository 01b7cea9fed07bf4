"""Top-k, sorting, arguments of extremes, sampling."""

from __future__ import annotations

import pytest

from tests.emulator.timing.families.specs import nanoseconds, priced, tensor
from ttnn_emulator.enums import Layout


def test_top_k_of_a_vocabulary_was_measured() -> None:
    """32 rows of 16,032 logits on Wormhole: 180 microseconds."""
    assert nanoseconds("ttnn.prim.topk", tensor(1, 1, 32, 16032), k=32) == pytest.approx(180_000, rel=0.2)


def test_wide_rows_are_divided_among_cores() -> None:
    whole, part = (nanoseconds("ttnn.prim.topk", tensor(1, 1, 32, width), k=32) for width in (8192, 4096))
    assert whole < part
    assert priced("ttnn.prim.topk", tensor(1, 1, 32, 4096), k=32)[0].cores == 1


def test_sorting_takes_longer_the_wider_the_rows() -> None:
    narrow, wide = (nanoseconds("ttnn.prim.sort", tensor(1, 1, 32, width)) for width in (128, 1024))
    assert wide > 8 * narrow


def test_rows_are_sorted_at_the_same_time() -> None:
    one, many = (nanoseconds("ttnn.prim.sort", tensor(1, 1, rows, 256)) for rows in (32, 2048))
    assert many == pytest.approx(one, rel=0.05)


def test_sampling_of_32_users_was_measured() -> None:
    """Between 68 and 76 microseconds on Wormhole for 256 candidates."""
    assert 55_000 < nanoseconds("ttnn.sampling", tensor(1, 1, 32, 256)) < 90_000


def test_values_are_compared_one_by_one() -> None:
    small, large = (
        nanoseconds("ttnn.prim.argmax", tensor(1, 1, 1, width, layout=Layout.ROW_MAJOR)) for width in (512, 1024)
    )
    assert large > 1.5 * small
