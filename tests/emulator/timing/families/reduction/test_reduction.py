"""Reductions, scans, and their moreh forms: what their time depends on, and rows that were measured."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.emulator.timing.families.specs import FP32, L1, nanoseconds, priced, row, row_error, tensor
from ttnn_emulator.tensors.spec import Spec

ROWS = [
    ("AccumulationDeviceOperation", 20, "24x1x96x256:TILE:BFLOAT16:DRAM_INTERLEAVED", 20, 24635.0),
    ("AccumulationDeviceOperation", 20, "48x1x160x256:TILE:BFLOAT16:DRAM_INTERLEAVED", 20, 48665.0),
    ("AccumulationDeviceOperation", 20, "160x48x32x256:TILE:BFLOAT16:DRAM_INTERLEAVED", 20, 1477805.0),
    ("AccumulationDeviceOperation", 20, "40x12x32x256:TILE:BFLOAT16:L1_INTERLEAVED", 20, 58856.0),
]


@pytest.mark.parametrize(("code", "cores", "source", "grid", "measured"), ROWS)
def test_measured_scans(code: str, cores: int, source: str, grid: int, measured: float) -> None:
    assert abs(row_error(row(code, cores, source, source, grid=grid), measured)) < 0.12


def test_a_measured_sum_of_tiles() -> None:
    source = "1[1]x4[4]x3200[3200]x576[576]:TILE:BFLOAT16:DRAM_INTERLEAVED"
    out = source.replace("x4[4]", "x1[1]")
    assert abs(row_error(row("FastReduceNCDeviceOperation", 110, source, out, grid=110), 49441.0)) < 0.15


def test_a_row_of_tiles_is_one_cores() -> None:
    """64 rows of tiles keep all cores busy; the same values in one row of tiles keep one."""
    many = nanoseconds("ttnn::prim::reduce", tensor(2048, 256), out=tensor(2048, 1))
    one = nanoseconds("ttnn::prim::reduce", tensor(32, 16384), out=tensor(32, 1))
    assert one > 10 * many
    columns = nanoseconds("ttnn::prim::reduce", tensor(32, 16384), out=tensor(1, 16384))
    assert columns < one / 10


def test_steps_of_a_reduction() -> None:
    def reduced(source: Spec, out: Spec, axis: str, *, vector: bool = False) -> float:
        step = SimpleNamespace(axis=axis, vector=vector, negate=False)
        return nanoseconds("ttnn::prim::reduce", source, out=out, step=step)

    rows = reduced(tensor(2048, 2048), tensor(2048, 1), "W")
    assert reduced(tensor(2048, 2048, dtype=FP32), tensor(2048, 1, dtype=FP32), "W", vector=True) > rows
    assert reduced(tensor(2048, 2048), tensor(1, 1), "HW") > 30 * rows


def test_l1_is_faster_than_dram() -> None:
    shapes = (64, 32, 1024), (1, 32, 1024)
    in_dram = nanoseconds("ttnn::prim::fast_reduce_nc", tensor(*shapes[0]), out=tensor(*shapes[1]))
    in_l1 = nanoseconds("ttnn::prim::fast_reduce_nc", tensor(*shapes[0], memory=L1), out=tensor(*shapes[1], memory=L1))
    assert in_l1 < in_dram


def test_variances_take_longer_than_sums() -> None:
    source, out = tensor(2048, 512), tensor(2048, 1)
    assert nanoseconds("ttnn::prim::welford_reduce", source, out=out, axis="W") > 2 * nanoseconds(
        "ttnn::prim::reduce", source, out=out
    )


def test_the_axis_of_a_scan_cannot_be_divided() -> None:
    along = nanoseconds("ttnn.prim.accumulation", tensor(256, 1, 32, 64), dim=0)
    across = nanoseconds("ttnn.prim.accumulation", tensor(2, 1, 32, 8192), dim=0)
    assert along > 5 * across


@pytest.mark.parametrize("name", ["ttnn.prim.moreh_sum", "ttnn.prim.moreh_mean", "ttnn.prim.moreh_norm"])
def test_moreh_reductions(name: str) -> None:
    (launch,) = priced(name, tensor(8, 64, 64), out=tensor(1, 64, 64))
    assert launch.program.startswith("Moreh") and launch.kernel_ns > 1000


def test_powers_take_longer_than_sums() -> None:
    source, out = tensor(8, 512, 512), tensor(1, 512, 512)
    assert nanoseconds("ttnn.prim.moreh_norm", source, out=out) > nanoseconds("ttnn.prim.moreh_sum", source, out=out)


def test_moreh_products_read_both_operands_per_tile() -> None:
    small, large = (
        nanoseconds("ttnn.moreh_matmul", tensor(512, k), tensor(k, 512), out=tensor(512, 512)) for k in (64, 512)
    )
    assert large > 4 * small
