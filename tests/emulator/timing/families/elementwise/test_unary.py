"""Unary operations and casts: what their time depends on, and rows that were measured."""

from __future__ import annotations

import pytest

from tests.emulator.timing.families.specs import (
    BF16,
    BFP8,
    DRAM,
    FP32,
    L1,
    height_sharded,
    nanoseconds,
    priced,
    row,
    row_error,
    tensor,
)
from ttnn_emulator.enums import DataType, Layout
from ttnn_emulator.timing.launches import Bound
from ttnn_emulator.timing.releases import Release

DATA = "1[1]x1[1]x{0}[{0}]x{1}[{1}]:{2}"
ROWS = [
    ("UnaryDeviceOperation", 20, (7680, 128, "TILE:BFLOAT16:L1_HEIGHT_SHARDED"), None, 10271.5),
    ("UnaryDeviceOperation", 20, (1920, 256, "ROW_MAJOR:BFLOAT16:L1_HEIGHT_SHARDED"), None, 5384.0),
    ("UnaryDeviceOperation", 20, (480, 512, "TILE:BFLOAT16:L1_BLOCK_SHARDED"), None, 2784.5),
    ("UnaryDeviceOperation", 20, (25312, 256, "TILE:BFLOAT16:DRAM_INTERLEAVED"), None, 151342.5),
    ("UnaryDeviceOperation", 110, (32768, 128, "TILE:BFLOAT8_B:DRAM_INTERLEAVED"), None, 27801.0),
    ("UnaryDeviceOperation", 8, (32, 256, "TILE:BFLOAT8_B:DRAM_INTERLEAVED"), None, 1309.0),
    ("TypecastDeviceOperation", 110, (8192, 256, "TILE:BFLOAT16:DRAM_INTERLEAVED"), "BFLOAT8_B", 18974.0),
    ("TypecastDeviceOperation", 20, (7680, 256, "TILE:UINT32:DRAM_INTERLEAVED"), "BFLOAT16", 54365.0),
    ("TypecastDeviceOperation", 20, (2304, 256, "TILE:BFLOAT16:DRAM_INTERLEAVED"), "UINT32", 30746.0),
]


@pytest.mark.parametrize(("code", "cores", "source", "cast", "measured"), ROWS)
def test_measured_rows(code: str, cores: int, source: tuple, cast: str | None, measured: float) -> None:
    text = DATA.format(*source)
    out = text if cast is None else text.replace(text.split(":")[2], cast)
    assert abs(row_error(row(code, cores, text, out, grid=110 if cores in (8, 110) else 20), measured)) < 0.12


@pytest.mark.parametrize(
    ("shape", "dtype", "memory", "measured"),
    [
        ((4, 53, 32, 160), BF16, DRAM, 36691.0),
        ((4, 53, 32, 160), BF16, L1, 36553.0),
        ((4, 53, 32, 160), BFP8, DRAM, 36281.0),
    ],
)
def test_the_exponential_of_an_earlier_release(shape: tuple, dtype: DataType, memory: object, measured: float) -> None:
    """2,087 nanoseconds per tile on Wormhole, whatever the memory: the vector unit is the bottleneck."""
    source = tensor(*shape, dtype=dtype, memory=memory)  # type: ignore[arg-type]
    assert nanoseconds("ttnn.exp", source, release=Release.AUTUMN_2025) == pytest.approx(measured, rel=0.04)


def test_functions_that_take_longer() -> None:
    source = height_sharded(8192, 256, cores=64)
    relu, gelu = nanoseconds("ttnn.relu", source), nanoseconds("ttnn.gelu", source)
    fast = nanoseconds("ttnn.gelu", source, fast_and_approximate_mode=True)
    assert relu < gelu and fast < gelu / 2
    assert priced("ttnn.gelu", source)[0].bound is Bound.COMPUTE


def test_half_the_cores_take_twice_as_long() -> None:
    whole = nanoseconds("ttnn.gelu", height_sharded(8192, 256, cores=64))
    half = nanoseconds("ttnn.gelu", height_sharded(8192, 256, cores=32))
    assert half == pytest.approx(2 * whole, rel=0.05)


def test_shards_need_no_memory() -> None:
    sharded = nanoseconds("ttnn.relu", height_sharded(8192, 256, cores=64))
    in_l1, in_dram = (nanoseconds("ttnn.relu", tensor(8192, 256, memory=memory)) for memory in (L1, DRAM))
    assert sharded < in_l1 < in_dram
    assert priced("ttnn.relu", height_sharded(8192, 256, cores=64))[0].dram_bytes == 0


def test_wider_values_take_longer() -> None:
    narrow, wide = (nanoseconds("ttnn.relu", tensor(4096, 4096, dtype=dtype)) for dtype in (BFP8, FP32))
    assert wide > 1.8 * narrow
    assert priced("ttnn.relu", tensor(4096, 4096, dtype=FP32))[0].bound is Bound.DRAM


def test_short_rows_are_slower_than_tiles() -> None:
    rows = nanoseconds("ttnn.relu", tensor(65536, 32, memory=L1, layout=Layout.ROW_MAJOR))
    assert rows > 1.5 * nanoseconds("ttnn.relu", tensor(65536, 32, memory=L1))


def test_blackhole_is_faster() -> None:
    source = tensor(4096, 4096)
    assert nanoseconds("ttnn.relu", source, board="p150") < nanoseconds("ttnn.relu", source) / 1.5


def test_a_cast_to_the_same_dtype_launches_nothing() -> None:
    assert priced("ttnn.typecast", tensor(64, 64)) == ()
    (cast,) = priced("ttnn.typecast", tensor(64, 64), out=tensor(64, 64, dtype=DataType.UINT32))
    assert cast.program == "TypecastDeviceOperation"


def test_a_chain_is_one_program() -> None:
    chain = ["UnaryWithParam(op_type=UnaryOpType::EXP)", "UnaryWithParam(op_type=UnaryOpType::GELU, params=[0.0])"]
    (launch,) = priced("ttnn.unary_chain", tensor(1024, 1024), ops_chain=chain)
    assert launch.kernel_ns > nanoseconds("ttnn.gelu", tensor(1024, 1024))
