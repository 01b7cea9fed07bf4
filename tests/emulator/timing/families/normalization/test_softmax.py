"""Times of softmax: passes over rows of tiles, masks, shards, other dimensions, and a row that was measured."""

from __future__ import annotations

from typing import Any

import pytest

from tests.emulator.timing.families.specs import BF16, FP32, height_sharded, nanoseconds, priced, row, row_error, tensor
from ttnn_emulator.enums import Layout
from ttnn_emulator.timing.launches import Bound

SHARDED = {"type": "SoftmaxShardedMultiCoreProgramConfig", "subblock_w": 4, "block_h": 4, "block_w": 8}


def test_a_measured_softmax_of_padded_rows() -> None:
    source = "1[1]x20[20]x32[19]x32[19]:TILE:BFLOAT16:DRAM_INTERLEAVED"
    measured = row("SoftmaxDeviceOperation", 64, source, source, arch="wormhole_b0", grid=64)
    assert abs(row_error(measured, 20149.5)) < 0.15


def test_rows_are_divided_among_cores() -> None:
    """64 rows of tiles take one round of the 64 cores, 128 rows two."""
    one, two = (nanoseconds("ttnn.softmax", tensor(size, 2048)) for size in (2048, 4096))
    assert 1.7 < two / one < 2.1
    assert nanoseconds("ttnn.softmax", tensor(1024, 2048)) > 0.6 * one


def test_subtracting_the_largest_value_takes_two_passes_more() -> None:
    stable, plain = (
        nanoseconds(
            "ttnn.softmax_in_place",
            height_sharded(1, 1, 16384, 256, cores=64),
            numeric_stable=given,
            program_config=SHARDED,
        )
        for given in (True, False)
    )
    assert 1.15 < stable / plain < 2.0


def in_shards(**given: Any) -> float:
    source = height_sharded(1, 1, 8192, 256, cores=64)
    return nanoseconds("ttnn.scale_mask_softmax_in_place", source, program_config=SHARDED, **given)


def test_a_mask_adds_passes_and_a_causal_one_reads_every_row() -> None:
    source = height_sharded(1, 1, 8192, 256, cores=64)
    mask = tensor(1, 1, 8, 32, layout=Layout.ROW_MAJOR)
    plain = in_shards()
    masked = nanoseconds("ttnn.scale_mask_softmax_in_place", source, mask, program_config=SHARDED)
    assert masked > 1.1 * plain
    whole = tensor(1, 1, 8192, 256)
    causal, first = (
        priced("ttnn.scale_mask_softmax_in_place", source, whole, program_config=SHARDED, is_causal_mask=each)[0]
        for each in (True, False)
    )
    assert causal.dram_bytes > 3 * first.dram_bytes


def test_shards_are_computed_where_they_are() -> None:
    (sharded,) = priced("ttnn.softmax_in_place", height_sharded(4096, 2048, cores=64), program_config=SHARDED)
    (interleaved,) = priced("ttnn.softmax", tensor(4096, 2048))
    assert sharded.bound is Bound.COMPUTE
    assert not sharded.dram_bytes
    assert sharded.cores == 64
    assert interleaved.dram_bytes == 2 * 4096 * 2048 * 2
    assert sharded.kernel_ns < interleaved.kernel_ns


@pytest.mark.parametrize("dim", [-2, 0])
def test_other_dimensions(dim: int) -> None:
    (launch,) = priced("ttnn.softmax", tensor(4, 512, 512), dim=dim)
    assert launch.kernel_ns > nanoseconds("ttnn.softmax", tensor(4, 512, 512), dim=-1)


def test_float32_takes_longer_than_bfloat16() -> None:
    times = [nanoseconds("ttnn.softmax", tensor(4096, 1024, dtype=dtype)) for dtype in (BF16, FP32)]
    assert times[1] > 1.3 * times[0]


def test_rows_that_do_not_fit_are_read_again() -> None:
    (short,), (long,) = (priced("ttnn.softmax", tensor(64, width)) for width in (4096, 65536))
    assert long.dram_bytes > 2 * 16 * short.dram_bytes * 0.9


def test_an_empty_tensor_runs_no_program() -> None:
    assert not priced("ttnn.softmax", tensor(1, 0, 32))


def test_blackhole_is_faster() -> None:
    times = [nanoseconds("ttnn.softmax", tensor(8192, 2048), board=board) for board in ("n150", "p150")]
    assert times[1] < times[0]
