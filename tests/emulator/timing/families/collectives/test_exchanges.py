"""Collectives."""

from __future__ import annotations

import pytest

from tests.emulator.timing.families.specs import BF16, BFP8, nanoseconds, priced, row, row_error, tensor
from ttnn_emulator.enums import DataType

GATHER, SCATTER = "ttnn.prim.all_gather_async", "ttnn.prim.reduce_scatter"


def gather_us(
    rows: int, width: int, chips: int, dtype: DataType = BFP8, board: str = "galaxy", **given: object
) -> float:
    source, out = tensor(1, 1, rows, width, dtype=dtype), tensor(1, 1, rows, width * chips, dtype=dtype)
    return nanoseconds(GATHER, source, out=out, board=board, **given) / 1e3


def scatter_us(
    rows: int, width: int, chips: int, dtype: DataType = BFP8, board: str = "galaxy", **given: object
) -> float:
    source, out = tensor(1, 1, rows, width, dtype=dtype), tensor(1, 1, rows, width // chips, dtype=dtype)
    return nanoseconds(SCATTER, source, out=out, board=board, **given) / 1e3


# tt-metal v0.77.0: tests/ttnn/unit_tests/operations/ccl/test_llama_prefill_ccl_ops_perf_nightly_TG.py, test_ag_ring
GATHERS = [
    (128, 256, 8, BFP8, 26),
    (128, 320, 4, BFP8, 20),
    (128, 896, 4, BFP8, 30),
    (128, 32, 4, BF16, 16),
    (4096, 320, 4, BFP8, 285),
    (8192, 256, 8, BFP8, 960),
    (8192, 320, 4, BFP8, 550),
    (8192, 896, 4, BFP8, 1485),
]
# tt-metal v0.77.0: tests/ttnn/unit_tests/operations/ccl/test_llama_prefill_ccl_ops_perf_nightly_TG.py, test_rs_ring
SCATTERS = [
    (128, 2048, 8, 48),
    (128, 1280, 4, 25),
    (128, 3584, 4, 50),
    (4096, 2048, 8, 490),
    (4096, 1280, 4, 280),
    (4096, 3584, 4, 750),
    (8192, 2048, 8, 950),
    (8192, 1280, 4, 540),
]


@pytest.mark.parametrize(("rows", "width", "chips", "dtype", "measured"), GATHERS)
def test_gathers_on_a_galaxy(rows: int, width: int, chips: int, dtype: DataType, measured: float) -> None:
    within = 0.12 if rows > 128 else 0.30
    assert gather_us(rows, width, chips, dtype) == pytest.approx(measured, rel=within)


@pytest.mark.parametrize(("rows", "width", "chips", "measured"), SCATTERS)
def test_scattered_sums_on_a_galaxy(rows: int, width: int, chips: int, measured: float) -> None:
    within = 0.12 if rows > 128 else 0.30
    assert scatter_us(rows, width, chips) == pytest.approx(measured, rel=within)


def test_a_scattered_sum_of_a_sheet() -> None:
    sheet = row(
        "ReduceScatterMinimalAsyncDeviceOperation",
        34,
        "1x1x3200x7168:TILE:BFLOAT16:DRAM_INTERLEAVED",
        "2x1x3200x7168:TILE:BFLOAT16:DRAM_INTERLEAVED|1x1x3200x1792:TILE:BFLOAT16:DRAM_INTERLEAVED",
        grid=110,
    )
    assert abs(row_error(sheet, 817_644)) < 0.1


def test_more_links_take_less_time() -> None:
    one, four = (gather_us(4096, 320, 4, num_links=links) for links in (1, 4))
    assert one > 3 * four


def test_a_line_takes_longer_than_a_ring() -> None:
    line, ring = gather_us(4096, 320, 8, board="t3000", num_links=4), gather_us(4096, 320, 8, num_links=4)
    assert line == pytest.approx(2 * ring, rel=0.2)


def test_more_chips_take_more_time() -> None:
    assert gather_us(4096, 320, 8) > 2 * gather_us(4096, 320, 4)


def test_a_partition_crosses_no_link() -> None:
    whole, part = tensor(1, 1, 32, 8192), tensor(1, 1, 32, 1024)
    (launch,) = priced("ttnn.prim.mesh_partition", whole, out=part, board="t3000")
    assert launch.kernel_ns < 5_000


# tt-metal v0.77.0: tests/ttnn/multidevice_perf_tests/test_all_to_all_dispatch_perf.py, T3K_prefill
def test_tokens_sent_to_their_experts() -> None:
    """1,024 tokens of 7,168 values on each of four chips; the test sends them to all chips, the model to a part."""
    from ttnn_emulator.enums import Layout

    tokens = tensor(8, 1, 128, 7168, layout=Layout.ROW_MAJOR)
    chosen = tensor(8, 1, 128, 8, layout=Layout.ROW_MAJOR, dtype=DataType.UINT16)
    measured = 4_050_000
    found = nanoseconds("ttnn.prim.all_to_all_dispatch", tokens, chosen, board="t3000", cluster_axis=1, num_links=1)
    assert 0.5 * measured < found < 1.1 * measured
