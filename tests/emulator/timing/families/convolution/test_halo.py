"""Times of halos."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.emulator.timing.families.rows import predicted_ns
from ttnn_emulator.enums import Arch
from ttnn_emulator.timing.families.convolution.halo import Gathering, halo_launch
from ttnn_emulator.timing.launches import Bound

WORMHOLE, BLACKHOLE = Arch.WORMHOLE_B0, Arch.BLACKHOLE
ROWS = Gathering(down=64, across=1, held=784, wanted=1000, stick=128, tiles=0)
TILES = replace(ROWS, tiles=2)


def ns(work: Gathering, arch: Arch = WORMHOLE) -> float:
    return halo_launch(work, arch).kernel_ns


def test_tiles_are_untilized_first() -> None:
    assert ns(TILES) > 1.5 * ns(ROWS)
    assert halo_launch(TILES, WORMHOLE).bound is Bound.COMPUTE
    assert halo_launch(ROWS, WORMHOLE).bound is Bound.NOC


def test_twice_the_blocks_take_twice_as_long() -> None:
    local = replace(TILES, wanted=784)
    more = replace(local, held=2 * 784, wanted=2 * 784)
    assert ns(more) == pytest.approx(2 * ns(local), rel=0.1)


def test_sticks_of_other_cores_cost_more_than_own_ones() -> None:
    own = replace(ROWS, held=1000)
    assert ns(own) < ns(ROWS)


def test_neighbours_are_slower_when_all_cores_send() -> None:
    assert ns(replace(ROWS, down=8)) < ns(ROWS)


def test_a_transposed_window_writes_stick_by_stick() -> None:
    spread = replace(ROWS, wanted=4000, scattered=1000, padded=1000)
    together = replace(ROWS, wanted=2000)
    assert ns(spread) > ns(together)


def test_blackhole_is_faster() -> None:
    assert ns(TILES, BLACKHOLE) < ns(TILES)


MEASURED = [
    ("12720[12720]x256[256]:ROW_MAJOR:BFLOAT16:L1_HEIGHT_SHARDED",
     "19440[19440]x256[256]:ROW_MAJOR:BFLOAT16:L1_HEIGHT_SHARDED", 20, 20, 8942),
    ("491520[491520]x8[3]:ROW_MAJOR:BFLOAT16:L1_HEIGHT_SHARDED",
     "658580[658580]x8[8]:ROW_MAJOR:BFLOAT16:L1_HEIGHT_SHARDED", 20, 110, 8092),
    ("122880[122880]x64[64]:TILE:BFLOAT8_B:L1_HEIGHT_SHARDED",
     "151540[151540]x64[64]:ROW_MAJOR:BFLOAT16:L1_HEIGHT_SHARDED", 20, 20, 93858),
    ("2048[2048]x2048[2048]:TILE:BFLOAT8_B:L1_WIDTH_SHARDED",
     "2048[2048]x2048[2048]:ROW_MAJOR:BFLOAT16:L1_WIDTH_SHARDED", 64, 110, 21941),
    ("8192[8192]x128[128]:TILE:BFLOAT8_B:L1_HEIGHT_SHARDED",
     "30960[30960]x128[128]:ROW_MAJOR:BFLOAT16:L1_HEIGHT_SHARDED", 86, 110, 8664),
    ("2048[2048]x512[512]:TILE:BFLOAT8_B:L1_BLOCK_SHARDED",
     "32000[32000]x512[512]:ROW_MAJOR:BFLOAT16:L1_BLOCK_SHARDED", 64, 110, 17759),
]  # fmt: skip


@pytest.mark.parametrize(("source", "target", "cores", "grid", "measured"), MEASURED)
def test_measured_rows(source: str, target: str, cores: int, grid: int, measured: float) -> None:
    assert predicted_ns("HaloDeviceOperation", source, target, cores, grid) == pytest.approx(measured, rel=0.2)
