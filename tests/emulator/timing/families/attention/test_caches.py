"""Key-value caches."""

from __future__ import annotations

import pytest

from tests.emulator.timing.families.specs import BFP8, height_sharded, nanoseconds, priced, row, row_error, tensor


def test_a_filled_cache_was_measured() -> None:
    """3,200 rows of 576 values on Blackhole: 11.8 microseconds."""
    sheet = row(
        "UpdateKVCacheOperation",
        100,
        "1x1x3200x576:TILE:BFLOAT8_B:DRAM_INTERLEAVED|1x1x3200x576:TILE:BFLOAT8_B:DRAM_INTERLEAVED",
        "1x1x3200x576:TILE:BFLOAT8_B:DRAM_INTERLEAVED",
        grid=110,
    ) | {"attrs": "UpdateCacheOpType::FILL"}
    assert abs(row_error(sheet, 11_765)) < 0.2


# tt-metal v0.77.0: models/demos/llama3_70b_galaxy/tests/qwen_decoder_perf_targets_4u.json, PagedUpdateCache
def test_tokens_of_eight_users_in_pages() -> None:
    cache, token = tensor(64, 1, 32, 128, dtype=BFP8), height_sharded(1, 8, 32, 128, cores=8)
    assert nanoseconds("ttnn.experimental.paged_update_cache", cache, token) == pytest.approx(4_450, rel=0.35)


def test_users_follow_each_other_on_one_core() -> None:
    (launch,) = priced("ttnn.update_cache", tensor(32, 1, 2048, 64), tensor(1, 1, 32, 64))
    (half,) = priced("ttnn.update_cache", tensor(16, 1, 2048, 64), tensor(1, 1, 32, 64))
    assert launch.cores == half.cores == 1
    assert launch.kernel_ns == pytest.approx(2 * half.kernel_ns, rel=0.15)


def test_heads_are_divided_among_cores() -> None:
    one, eight = (
        priced("ttnn.update_cache", tensor(32, heads, 2048, 64), tensor(1, heads, 32, 64))[0] for heads in (1, 8)
    )
    assert eight.cores == 8
    assert eight.kernel_ns == pytest.approx(one.kernel_ns, rel=0.2)


def test_a_filled_cache_does_not_depend_on_its_length() -> None:
    source = tensor(1, 1, 128, 64)
    short, long = (nanoseconds("ttnn.fill_cache", tensor(1, 1, length, 64), source) for length in (256, 8192))
    assert short == long
