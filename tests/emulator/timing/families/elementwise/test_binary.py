"""Binary operations: units, broadcasting, numbers, fused functions, and rows that were measured."""

from __future__ import annotations

import pytest

from tests.emulator.timing.families.specs import (
    BF16,
    BFP8,
    FP32,
    INT32,
    L1,
    height_sharded,
    nanoseconds,
    priced,
    row,
    row_error,
    tensor,
)
from ttnn_emulator.enums import Layout
from ttnn_emulator.timing.launches import Bound

WHOLE = "1[1]x1[1]x{0}[{0}]x{1}[{1}]:{2}"
ROWS = [
    (20, (480, 512, "TILE:BFLOAT16:L1_HEIGHT_SHARDED"), None, "blackhole", 20, 1195.5),
    (20, (2304, 1792, "TILE:BFLOAT16:L1_HEIGHT_SHARDED"), None, "blackhole", 20, 11901.0),
    (20, (30720, 64, "TILE:BFLOAT16:L1_HEIGHT_SHARDED"), "DRAM_INTERLEAVED", "blackhole", 20, 46296.0),
    (110, (8192, 512, "TILE:BFLOAT8_B:L1_HEIGHT_SHARDED"), None, "blackhole", 110, 2150.0),
    (110, (8192, 512, "TILE:BFLOAT8_B:L1_HEIGHT_SHARDED"), "DRAM_INTERLEAVED", "blackhole", 110, 21942.5),
    (20, (176967, 256, "TILE:BFLOAT16:DRAM_INTERLEAVED"), None, "blackhole", 20, 1271404.0),
    (64, (32, 1280, "TILE:BFLOAT16:DRAM_INTERLEAVED"), None, "wormhole_b0", 64, 2803.0),
]


@pytest.mark.parametrize(("cores", "operand", "other", "arch", "grid", "measured"), ROWS)
def test_measured_rows(cores: int, operand: tuple, other: str | None, arch: str, grid: int, measured: float) -> None:
    text = WHOLE.format(*operand)
    second = text if other is None else text.replace(text.split(":")[3], other)
    made = row("BinaryNgDeviceOperation", cores, f"{text}|{second}", text, arch=arch, grid=grid)
    assert abs(row_error(made, measured)) < 0.12


def test_a_row_that_the_reader_fills_was_measured() -> None:
    a = "1[1]x384[384]x1280[1280]x32[3]:TILE:BFLOAT16:DRAM_INTERLEAVED"
    b = "1[1]x1[1]x32[1]x32[3]:TILE:BFLOAT16:DRAM_INTERLEAVED"
    assert abs(row_error(row("BinaryNgDeviceOperation", 20, f"{a}|{b}", a), 1241853.0)) < 0.1


def test_the_matrix_unit_is_faster_than_the_vector_unit() -> None:
    a = height_sharded(8192, 256, cores=64)
    fast, accurate = (nanoseconds("ttnn.multiply", a, a, fast_and_approximate_mode=mode) for mode in (True, False))
    assert fast < accurate / 2
    assert nanoseconds("ttnn.divide", a, a) > accurate


def test_products_take_phases_that_sums_do_not() -> None:
    a = height_sharded(8192, 256, cores=64, dtype=BFP8)
    assert nanoseconds("ttnn.multiply", a, a) > nanoseconds("ttnn.add", a, a) * 1.2


def test_fused_functions() -> None:
    a = height_sharded(8192, 256, cores=64)
    plain = nanoseconds("ttnn.add", a, a)
    assert nanoseconds("ttnn.add", a, a, activations=["UnaryWithParam(op_type=UnaryOpType::RELU)"]) == plain
    after = nanoseconds("ttnn.add", a, a, activations=["silu"])
    before = nanoseconds("ttnn.add", a, a, input_tensor_a_activations=["silu"])
    assert plain * 3 < after < before


def test_sharded_operands_do_not_pay_for_dram() -> None:
    sharded = height_sharded(8192, 256, cores=64)
    (launch,) = priced("ttnn.add", sharded, sharded)
    assert launch.dram_bytes == 0 and launch.bound is Bound.COMPUTE
    interleaved = tensor(8192, 256)
    in_dram = priced("ttnn.add", interleaved, interleaved)[0]
    in_l1 = nanoseconds("ttnn.add", *[tensor(8192, 256, memory=L1)] * 2)
    assert launch.kernel_ns < in_l1 < in_dram.kernel_ns
    assert in_dram.dram_bytes == pytest.approx(3 * 8192 * 256 * 2)


def test_broadcasting() -> None:
    a = tensor(4, 1024, 1024)
    whole = nanoseconds("ttnn.add", a, a)
    value = nanoseconds("ttnn.add", a, tensor(4, 1, 1))
    assert value < whole
    mixed = nanoseconds("ttnn.add", a, tensor(4, 1, 1024, dtype=FP32))
    assert mixed > nanoseconds("ttnn.add", a, tensor(4, 1, 1024))


def test_a_number_fills_a_tile_first() -> None:
    a = tensor(32, 32)
    assert nanoseconds("ttnn.add", a, input_b=1.0) > nanoseconds("ttnn.relu", a) + 1000


def test_numbers_as_parameters_of_unary_kernels() -> None:
    (launch,) = priced("ttnn.maximum", tensor(64, 64), input_b=1.0)
    assert launch.program == "UnaryDeviceOperation"
    square, power = (nanoseconds("ttnn.pow", tensor(512, 512), exponent=number) for number in (2, 2.5))
    assert square < power


def test_integers_that_meet_floats_are_cast() -> None:
    programs = [launch.program for launch in priced("ttnn.multiply", tensor(64, 64), tensor(64, 64, dtype=INT32))]
    assert programs == ["TypecastDeviceOperation", "BinaryNgDeviceOperation"]


def test_integers_are_on_the_vector_unit() -> None:
    a = height_sharded(8192, 256, cores=64, dtype=INT32)
    assert nanoseconds("ttnn.multiply", a, a) > 2 * nanoseconds("ttnn.add", a, a) > 2 * 1000
    assert nanoseconds("ttnn.gcd", a, a) > nanoseconds("ttnn.multiply", a, a)


def test_functions_of_both_operands() -> None:
    a = height_sharded(8192, 256, cores=64, dtype=BF16)
    assert nanoseconds("ttnn.logaddexp", a, a) > nanoseconds("ttnn.add", a, a) * 5
    assert nanoseconds("ttnn.hypot", a, a) > nanoseconds("ttnn.add", a, a) * 3


def test_operands_in_rows_are_converted_to_tiles() -> None:
    rows = tensor(1024, 1024, layout=Layout.ROW_MAJOR)
    assert [launch.program for launch in priced("ttnn.add", rows, rows)] == ["BinaryNgDeviceOperation"]
    mixed = [launch.program for launch in priced("ttnn.add", tensor(1024, 1024), rows)]
    assert mixed[-1] == "BinaryNgDeviceOperation"
