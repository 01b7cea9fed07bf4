"""PM IDEAL, PM COMPUTE and PM BANDWIDTH agree with sheets that were published.

Sheets of Blackhole boards were written before the formula knew them: with 96 GB/s of DRAM and a clock of 1.2 GHz.
"""

from __future__ import annotations

import dataclasses

import pytest

from ttnn_emulator.enums import Arch, MathFidelity
from ttnn_emulator.hardware.boards import Board, find_board
from ttnn_emulator.profiling import performance_models
from ttnn_emulator.profiling.performance_models import NO_FORMULA, Modelled, ideal_of
from ttnn_emulator.timing.evaluation.profiler_rows import spec_of
from ttnn_emulator.timing.launches import Bound, Launch

N150 = find_board("n150")
P150 = find_board("p150")
EARLIER = dataclasses.replace(P150, clock_ghz=1.2)
SMALL = dataclasses.replace(EARLIER, grid=(5, 4))
CLIP = dataclasses.replace(EARLIER, grid=(8, 8))

# Sheets of tenstorrent/tt-perf-report at commit 00b7324, tests/data, by their names; the last column is
# PM IDEAL, PM COMPUTE, PM BANDWIDTH.
NEW = [  # bh_8xp150_deepseek_v3_d_p.csv and wh_clip_encoder_2.csv
    (
        "MatmulDeviceOperation",
        P150,
        "HiFi2",
        "1x1x3200x1536:TILE:BFLOAT16:DRAM_INTERLEAVED|1x1x1536x6144:TILE:BFLOAT8_B:DRAM_INTERLEAVED",
        "1x1x3200x6144:TILE:BFLOAT16:L1_INTERLEAVED",
        (198595, 198595, 17881),
    ),
    (
        "ConcatDeviceOperation",
        P150,
        "",
        "1x1x3200x512:TILE:BFLOAT16:DRAM_INTERLEAVED|1x1x3200x64:TILE:BFLOAT16:DRAM_INTERLEAVED",
        "1x1x3200x576:TILE:BFLOAT16:DRAM_INTERLEAVED",
        (6705, 1, 6705),
    ),
    (
        "SoftmaxDeviceOperation",
        N150,
        "HiFi4",
        "1[1]x20[20]x32[19]x32[19]:TILE:BFLOAT16:DRAM_INTERLEAVED",
        "1[1]x20[20]x32[19]x32[19]:TILE:BFLOAT16:DRAM_INTERLEAVED",
        (648, 648, 147),
    ),
]
OLD = [  # bh20_oft.csv, bh_p100_dlv3.csv and bh_64_clip_encoder_1.csv
    (
        "MoveDeviceOperation",
        SMALL,
        "",
        "1x1x151540x64:ROW_MAJOR:BFLOAT16:L1_HEIGHT_SHARDED",
        "1x1x151540x64:ROW_MAJOR:BFLOAT16:L1_HEIGHT_SHARDED",
        (20970, 20970, 1),
    ),
    (
        "SliceDeviceOperation",
        SMALL,
        "",
        "1x1x25344x256:TILE:BFLOAT16:DRAM_INTERLEAVED",
        "1x1x25312x256:TILE:BFLOAT16:DRAM_INTERLEAVED",
        (125885, 44390, 125885),
    ),
    (
        "SliceDeviceOperation",
        SMALL,
        "",
        "1x160x160x3:ROW_MAJOR:BFLOAT16:DRAM_INTERLEAVED",
        "1x159x159x3:ROW_MAJOR:BFLOAT16:DRAM_INTERLEAVED",
        (52741, 52741, 1490),
    ),
    (
        "UntilizeDeviceOperation",
        SMALL,
        "HiFi4",
        "1x1x122880x32:TILE:BFLOAT16:L1_HEIGHT_SHARDED",
        "1x1x122880x32:ROW_MAJOR:BFLOAT16:L1_HEIGHT_SHARDED",
        (8539, 8539, 1),
    ),
    (
        "UntilizeWithUnpaddingDeviceOperation",
        EARLIER,
        "HiFi4",
        "1[1]x1[1]x32[1]x256[256]:TILE:BFLOAT8_B:DRAM_INTERLEAVED",
        "1[1]x1[1]x1[1]x256[256]:ROW_MAJOR:BFLOAT16:DRAM_INTERLEAVED",
        (525, 525, 79),
    ),
    (
        "PermuteDeviceOperation",
        EARLIER,
        "",
        "1x128x256x32:ROW_MAJOR:BFLOAT16:L1_INTERLEAVED",
        "1x32x128x256:ROW_MAJOR:BFLOAT16:L1_INTERLEAVED",
        (7472, 7472, 1),
    ),
    (
        "PermuteDeviceOperation",
        SMALL,
        "",
        "1[1]x3[3]x160[159]x160[159]:TILE:BFLOAT16:L1_INTERLEAVED",
        "1[1]x159[159]x160[159]x32[3]:TILE:BFLOAT16:L1_INTERLEAVED",
        (3705, 3705, 1),
    ),
    (
        "TransposeDeviceOperation",
        CLIP,
        "",
        "1[1]x19[19]x32[12]x64[64]:TILE:BFLOAT16:DRAM_INTERLEAVED",
        "1[1]x12[12]x32[19]x64[64]:TILE:BFLOAT16:DRAM_INTERLEAVED",
        (900, 900, 754),
    ),
    (
        "TransposeDeviceOperation",
        EARLIER,
        "HiFi4",
        "1x128x256x32:TILE:BFLOAT8_B:DRAM_INTERLEAVED",
        "1x128x32x256:TILE:BFLOAT8_B:DRAM_INTERLEAVED",
        (10172, 8233, 10172),
    ),
]


def ideal(code: str, board: Board, fidelity: str, inputs: str, outputs: str) -> tuple[int, int, int]:
    given, made = (tuple(spec_of(each, 20, board) for each in text.split("|")) for text in (inputs, outputs))
    launch = Launch(code, "", 20, 1.0, Bound.DRAM)
    found = ideal_of(Modelled(given, made, launch, board, MathFidelity[fidelity] if fidelity else None, {}))
    return found.ideal_ns, found.compute_ns, found.bandwidth_ns


@pytest.mark.parametrize("row", NEW, ids=lambda row: row[0])
def test_published_rows(row) -> None:
    assert ideal(*row[:-1]) == row[-1]


@pytest.mark.parametrize("row", OLD, ids=lambda row: row[0])
def test_published_rows_of_earlier_releases(row, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(performance_models.PEAK_DRAM_GB, Arch.BLACKHOLE, 96.0)
    assert ideal(*row[:-1]) == row[-1]


def test_a_program_without_a_formula_has_the_librarys_default() -> None:
    spec = spec_of("1x1x32x32:TILE:BFLOAT16:DRAM_INTERLEAVED", 1, N150)
    launch = Launch("UnaryDeviceOperation", "", 1, 1.0, Bound.DRAM)
    assert ideal_of(Modelled((spec,), (spec,), launch, N150, MathFidelity.HiFi4, {})) is NO_FORMULA
    assert (NO_FORMULA.ideal_ns, NO_FORMULA.compute_ns, NO_FORMULA.bandwidth_ns) == (1, 1, 1)
