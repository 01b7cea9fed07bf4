"""Number formats compared with their definitions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ttnn_emulator.enums import DataType
from ttnn_emulator.numerics.formats import carriers
from ttnn_emulator.numerics.units import packer

floats = st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**100), max_value=2.0**100)
blocks = st.lists(floats, min_size=1, max_size=40)


def reference_block(values: list[float], bits: int) -> list[float]:
    """Block floats by their definition, value by value: 16 values share the exponent of the largest."""
    out: list[float] = []
    for start in range(0, len(values), 16):
        block = [np.float32(value) for value in values[start : start + 16]]
        raw = [int(value.view(np.uint32)) for value in block]
        shared = max((pattern >> 23) & 0xFF for pattern in raw)
        for pattern in raw:
            exponent = (pattern >> 23) & 0xFF
            mantissa = 0 if exponent == 0 else ((pattern & 0x7FFFFF) | 0x800000) >> min(shared - exponent, 31)
            kept, rest = mantissa >> (24 - bits), mantissa & ((1 << (24 - bits)) - 1)
            half = 1 << (23 - bits)
            kept += rest > half or (rest == half and kept & 1 == 1)
            kept = min(kept, (1 << bits) - 1)
            size = kept * 2.0 ** (shared - 126 - bits)
            out.append(-size if pattern >> 31 and kept else size)
    return out


@given(blocks)
def test_host_packing_of_block_floats(values: list[float]) -> None:
    for dtype, bits in carriers.MANTISSA_BITS.items():
        ours = carriers.host_pack_block_float(torch.tensor(values, dtype=torch.float32), dtype)
        assert ours.tolist() == reference_block(values, bits)


@given(blocks)
def test_block_floats_are_bfloat16_values(values: list[float]) -> None:
    for dtype in carriers.MANTISSA_BITS:
        packed = carriers.host_pack_block_float(torch.tensor(values, dtype=torch.float32), dtype)
        assert torch.equal(packed.bfloat16().float(), packed)


@given(blocks)
def test_packing_twice_changes_nothing(values: list[float]) -> None:
    for dtype in carriers.MANTISSA_BITS:
        for pack in (carriers.host_pack_block_float, packer.device_pack_block_float):
            once = pack(torch.tensor(values, dtype=torch.float32).bfloat16().float(), dtype)
            assert torch.equal(pack(once, dtype), once)


@given(st.lists(st.floats(width=32), min_size=1, max_size=50))
def test_nearest_even(values: list[float]) -> None:
    tensor = torch.tensor(values, dtype=torch.float32)
    raw = tensor.numpy().view(np.uint32).astype(np.uint64)
    expected = ((raw + 0x7FFF + ((raw >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    ours = carriers.round_bf16_nearest_even(tensor).numpy()
    finite = np.isfinite(tensor.numpy())
    assert np.array_equal(ours[finite], expected[finite])


def test_what_the_packer_flushes() -> None:
    special = torch.tensor([float("nan"), -float("nan"), 1e-40, -1e-40, -0.0, float("-inf"), 1.0])
    assert carriers.flush(special).tolist()[:2] in ([float("inf"), float("inf")], [float("inf"), float("-inf")])
    flushed = carriers.flush(special)[2:]
    assert flushed.tolist() == [0.0, 0.0, 0.0, float("-inf"), 1.0]
    assert not torch.signbit(flushed[:3]).any()


def test_half_away_from_zero() -> None:
    tie = torch.tensor([1.0 + 2.0**-8, -(1.0 + 2.0**-8), 1.0 + 2.0**-9])
    assert carriers.round_bf16_half_away(tie).tolist() == [1.0 + 2.0**-7, -(1.0 + 2.0**-7), 1.0]


def test_integers_from_floats_on_the_host() -> None:
    values = torch.tensor([1.5, -2.5, 3e9, -3e9, 70000.0, float("nan")])
    assert carriers.host_convert(values, DataType.INT32).tolist()[:2] == [1, -2]
    assert carriers.host_convert(values, DataType.INT32).tolist()[2] == -(2**31)
    assert carriers.host_convert(values, DataType.UINT32).tolist()[2] == 3000000000
    # Vectors of four saturate, the rest wraps; values outside int32 become the smallest int32 first.
    assert carriers.host_convert(values, DataType.UINT16).tolist() == [1, 0, 0, 0, 70000 - 65536, 0]


@pytest.mark.parametrize("shape", [(512, 512), (513, 700), (7, 40_000), (40_000, 5)], ids=str)
def test_a_large_column_major_matrix_is_the_same_in_bfloat16(shape: tuple[int, int]) -> None:
    values = torch.randn(shape[1], shape[0])
    values[0, :3] = torch.tensor([float("nan"), float("inf"), 3.4e38])
    result = carriers.host_convert(values.mT, DataType.BFLOAT16)
    assert result.is_contiguous()
    plain = carriers.host_convert(values.mT.contiguous(), DataType.BFLOAT16)
    assert torch.equal(result.view(torch.int16), plain.view(torch.int16))
