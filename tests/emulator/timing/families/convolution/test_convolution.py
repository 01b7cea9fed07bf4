"""Times of convolution programs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.emulator.timing.families.rows import predicted_ns
from ttnn_emulator.enums import Arch, DataType, MathFidelity
from ttnn_emulator.timing.families.convolution.convolution import (
    BLOCK,
    HEIGHT,
    WIDTH,
    Convolution,
    convolution_launch,
    is_relu,
)
from ttnn_emulator.timing.launches import Bound, Launch

WORMHOLE, BLACKHOLE = Arch.WORMHOLE_B0, Arch.BLACKHOLE
BF16, BF8 = DataType.BFLOAT16, DataType.BFLOAT8_B

# 3 x 3 over 64 channels, 28 x 2 tiles per core
BY_HEIGHT = Convolution(
    HEIGHT, 56, 1, 14, 6, 2, 2, 28, 2, 3, (3, 3), 128, MathFidelity.LoFi, BF16, BF8, BF8, l1_acc=True
)  # fmt: skip
# 3 x 3 over 2560 channels on 8 x 8 cores, 4 x 8 tiles of output per core
BY_BLOCK = Convolution(
    BLOCK, 8, 8, 2, 30, 1, 8, 4, 8, 3, (3, 3), 640, MathFidelity.HiFi2, BF16, BF16, BF8,
    l1_acc=True, has_bias=True, splits=True, doubles_act=True, doubles_weights=True,
)  # fmt: skip


def run(work: Convolution, arch: Arch = WORMHOLE) -> Launch:
    return convolution_launch(work, arch)


def ns(work: Convolution, arch: Arch = WORMHOLE) -> float:
    return run(work, arch).kernel_ns


@pytest.mark.parametrize("work", [BY_HEIGHT, BY_BLOCK], ids=["height", "block"])
def test_twice_the_rows_take_twice_as_long(work: Convolution) -> None:
    assert ns(replace(work, out_h=2 * work.out_h)) == pytest.approx(2 * ns(work), rel=0.1)


def test_fidelity_matters_where_products_do() -> None:
    wide = replace(BY_HEIGHT, out_w=16, sub_h=1, sub_w=8, doubles_act=True)
    high = replace(wide, fidelity=MathFidelity.HiFi4)
    assert run(wide).bound is Bound.COMPUTE
    assert ns(high) > 2 * ns(wide)
    narrow = replace(BY_HEIGHT, out_w=1, sub_w=1)
    assert ns(replace(narrow, fidelity=MathFidelity.HiFi2)) < 1.3 * ns(narrow)


def test_narrow_pixels_are_bound_by_gathering() -> None:
    first = replace(BY_HEIGHT, act_w=1, steps=7, kernel=(7, 7), stick=16)
    assert run(first).bound is Bound.NOC
    assert ns(replace(first, splits=True)) < 0.8 * ns(first)


def test_doubled_buffers_hide_gathering() -> None:
    assert ns(replace(BY_HEIGHT, doubles_act=True)) < ns(BY_HEIGHT)


def test_reused_rows_are_not_gathered_again() -> None:
    whole = replace(BY_HEIGHT, steps=1, act_w=18, reuses=True, row=56, splits=True)
    padded = replace(whole, row=33)  # every output row ends in 31 windows that cannot be reused
    assert run(whole).data_ns < run(replace(BY_HEIGHT, splits=True)).data_ns
    assert run(whole).data_ns < run(padded).data_ns


def test_weights_are_read_once_by_height_and_for_every_block_otherwise() -> None:
    assert run(replace(BY_HEIGHT, out_h=56)).dram_bytes == run(BY_HEIGHT).dram_bytes
    assert run(replace(BY_BLOCK, out_h=8)).dram_bytes == 2 * run(BY_BLOCK).dram_bytes


def test_many_weights_for_few_rows_are_bound_by_dram() -> None:
    deep = replace(BY_HEIGHT, act_h=1, out_h=1, sub_h=1, out_w=16, sub_w=8, act_w=48)
    assert run(deep).bound is Bound.DRAM
    # One core reads them all: more cores do not help.
    assert ns(replace(deep, down=8)) == ns(deep)


def test_block_sharding_waits_for_weights_without_a_second_buffer() -> None:
    assert ns(replace(BY_BLOCK, doubles_weights=False)) > 1.3 * ns(BY_BLOCK)


def test_partial_sums_that_are_reloaded_cost_time() -> None:
    assert ns(replace(BY_HEIGHT, l1_acc=False)) > ns(BY_HEIGHT)


def test_bias_and_row_major_output_cost_time() -> None:
    assert ns(BY_HEIGHT) < ns(replace(BY_HEIGHT, has_bias=True)) < ns(replace(BY_HEIGHT, has_bias=True, untilizes=True))


def test_only_relu_is_free() -> None:
    assert ns(replace(BY_HEIGHT, activation="relu")) == ns(BY_HEIGHT)
    assert ns(replace(BY_HEIGHT, activation="UnaryWithParam(op_type=UnaryOpType::SILU)")) > ns(BY_HEIGHT)
    assert is_relu("UnaryWithParam(op_type=UnaryOpType::RELU)")
    assert not is_relu("UnaryWithParam(op_type=UnaryOpType::RELU6)")


def test_depthwise_sequences_need_no_matrix_products() -> None:
    dense = replace(BY_HEIGHT, act_w=8, out_w=8, sub_h=1, sub_w=8, kernel=(1, 4), steps=4)
    assert ns(replace(dense, depthwise=True)) < ns(dense)


def test_width_sharding_gathers_every_pixel_of_a_window() -> None:
    work = Convolution(WIDTH, 1, 8, 7, 9, 1, 1, 7, 1, 1, (3, 3), 64, MathFidelity.LoFi, BF16, BF16, BF8, apart=True)
    assert ns(work) > ns(replace(work, kernel=(1, 1), act_w=1))


def test_wormhole_sdxl_convolution() -> None:
    """1280 channels of 2560 on 32 x 32 pixels: 993.5 us in the library's performance tests on n150."""
    assert ns(BY_BLOCK) == pytest.approx(993_500, rel=0.1)


def test_wormhole_vae_convolution() -> None:
    """A slice of 256 x 128 pixels, 512 to 512 channels, without doubled buffers: 3083 us on n150."""
    work = replace(
        BY_BLOCK, act_h=8, act_w=6, sub_h=4, sub_w=2, out_h=128, out_w=2, stick=128, fidelity=MathFidelity.LoFi,
        l1_acc=False, doubles_act=False, doubles_weights=False,
    )  # fmt: skip
    assert ns(work) == pytest.approx(3_082_972, rel=0.1)


MEASURED = [
    ("7020[7020]x128[128]:ROW_MAJOR:BFLOAT16:L1_HEIGHT_SHARDED|128[128]x256[256]:TILE:BFLOAT8_B:DRAM_INTERLEAVED",
     "1920[1920]x256[256]:TILE:BFLOAT16:L1_HEIGHT_SHARDED", 20, 20, "HiFi2", 5772),
    ("14320[14320]x128[128]:ROW_MAJOR:BFLOAT16:L1_HEIGHT_SHARDED|1152[1152]x128[128]:TILE:BFLOAT8_B:DRAM_INTERLEAVED",
     "7680[7680]x128[128]:TILE:BFLOAT16:L1_HEIGHT_SHARDED", 20, 20, "HiFi2", 82252),
    ("14320[14320]x128[128]:ROW_MAJOR:BFLOAT16:L1_HEIGHT_SHARDED|1152[1152]x128[128]:TILE:BFLOAT8_B:DRAM_INTERLEAVED",
     "7680[7680]x128[128]:ROW_MAJOR:BFLOAT16:L1_HEIGHT_SHARDED", 20, 110, "HiFi4", 130407),
    ("1800[1800]x512[512]:ROW_MAJOR:BFLOAT16:L1_HEIGHT_SHARDED|4608[4608]x512[512]:TILE:BFLOAT8_B:DRAM_INTERLEAVED",
     "480[480]x512[512]:TILE:BFLOAT16:L1_HEIGHT_SHARDED", 15, 20, "HiFi2", 167453),
    ("39360[39360]x32[32]:ROW_MAJOR:BFLOAT16:L1_HEIGHT_SHARDED|800[25]x32[1]:TILE:BFLOAT16:DRAM_INTERLEAVED",
     "25312[25281]x32[1]:ROW_MAJOR:BFLOAT16:L1_HEIGHT_SHARDED", 20, 20, "HiFi4", 170079),
    ("14128[14128]x256[256]:ROW_MAJOR:BFLOAT16:L1_BLOCK_SHARDED|2304[2304]x256[256]:TILE:BFLOAT8_B:DRAM_INTERLEAVED",
     "12576[12561]x256[256]:TILE:BFLOAT16:L1_BLOCK_SHARDED", 16, 110, "HiFi4", 2433786),
]  # fmt: skip


@pytest.mark.parametrize(("inputs", "output", "cores", "grid", "fidelity", "measured"), MEASURED)
def test_measured_rows(inputs: str, output: str, cores: int, grid: int, fidelity: str, measured: float) -> None:
    predicted = predicted_ns("Conv2dDeviceOperation", inputs, output, cores, grid, fidelity)
    assert predicted == pytest.approx(measured, rel=0.15)
