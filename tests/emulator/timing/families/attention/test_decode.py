"""Decode attention."""

from __future__ import annotations

import pytest

from tests.emulator.timing.families.specs import BFP8, row, row_error, tensor
from ttnn_emulator.hardware.boards import find_board
from ttnn_emulator.ops.attention.decode_checks import Settings
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG
from ttnn_emulator.timing.calls import Call
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.pricing import launches_of


def decode(users: int, heads: int, groups: int, keys: int, position: int | None = None, **more: object) -> Launch:
    q, k = tensor(1, users, heads, 128), tensor(users, groups, keys, 128, dtype=BFP8)
    where = () if position is None else (position,) * users
    settings = Settings(True, None, DRAM_MEMORY_CONFIG, None, None, 256, cur_pos=where, **more)
    call = Call(
        "ttnn.prim.sdpa_decode", (("q", q), ("k", k), ("v", k)), (q,), {"settings": settings}, find_board("n150")
    )
    (launch,) = launches_of(call)
    return launch


def test_a_row_of_a_sheet() -> None:
    """32 users with 8 heads of keys each at position 1024 on Blackhole: 282 microseconds."""
    cache = "8192x8x32x128:TILE:BFLOAT8_B:DRAM_INTERLEAVED"
    query = "1x32x32x128:TILE:BFLOAT16:L1_HEIGHT_SHARDED"
    sheet = row(
        "SdpaDecodeDeviceOperation",
        64,
        f"{query}|{cache}|{cache}",
        "1x32x32x128:TILE:BFLOAT16:DRAM_INTERLEAVED",
        grid=110,
    ) | {"attrs": "pos 1024, grid 8x8", "math_fidelity": "HiFi2"}
    assert abs(row_error(sheet, 281_932)) < 0.25


def test_time_grows_with_the_position() -> None:
    early, late = decode(32, 32, 8, 8192, 255), decode(32, 32, 8, 8192, 8191)
    assert late.kernel_ns > 10 * early.kernel_ns


def test_an_unknown_position_reads_the_whole_cache() -> None:
    assert decode(8, 8, 1, 4096).kernel_ns == decode(8, 8, 1, 4096, 4095).kernel_ns


def test_few_users_share_the_cores() -> None:
    """One user's keys are divided among cores, so that a longer cache hardly takes longer."""
    short, long = decode(1, 8, 1, 2048), decode(1, 8, 1, 4096)
    assert long.cores > short.cores > 1
    assert long.kernel_ns < 1.5 * short.kernel_ns


def test_many_users_are_bound_by_dram() -> None:
    launch = decode(32, 32, 8, 8192)
    assert launch.bound.name == "DRAM"
    assert launch.dram_bytes == pytest.approx(2 * 32 * 8 * 8192 * 128 * 1088 / 1024, rel=0.01)


def test_a_window_limits_the_keys() -> None:
    assert decode(32, 32, 8, 8192, window=1024).kernel_ns < decode(32, 32, 8, 8192).kernel_ns / 4
