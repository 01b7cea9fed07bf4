"""Layouts, memory configs and dtypes: values are unchanged, or converted as by the chip's kernels."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import Row, check, each_dtype, same_buffer, shapes, stored, upload
from ttnn_emulator.errors import ChipFault, InvalidArgument

EXACT = {"bfloat16": 0.0, "float32": 0.0}
MOVED = ("bfloat16", "float32", "int32", "uint32", "uint16")
FLOATS = ("bfloat16", "float32")
WHOLE_TILES = ((32, 64), (2, 64, 32), (1, 2, 3, 32, 32))
TILE, ROWS = ttnn.TILE_LAYOUT, ttnn.ROW_MAJOR_LAYOUT


def row(name: str, call: Any, reference: Any = lambda x: x, **options: Any) -> Row:
    settings: dict[str, Any] = {"dtypes": MOVED, "low": 0, "high": 90, "ulps": EXACT} | options
    return Row(name, call, reference, **settings)


def _shards(x: Any) -> Any:
    """Four height shards of a tensor of 128 x 64."""
    return ttnn.create_sharded_memory_config((128, 64), ttnn.CoreGrid(y=1, x=4), ttnn.ShardStrategy.HEIGHT)


def _sharded(x: Any) -> Any:
    return ttnn.interleaved_to_sharded(x, _shards(x))


def _resharded(x: Any) -> Any:
    blocks = ttnn.create_sharded_memory_config((128, 64), ttnn.CoreGrid(y=2, x=2), ttnn.ShardStrategy.BLOCK)
    return ttnn.reshard(_sharded(x), blocks)


def _copied(x: Any) -> Any:
    target = ttnn.zeros_like(x)
    return ttnn.copy(x, target)


def _in_slices(x: Any) -> Any:
    """Sharded in two slices and reassembled."""
    whole = ttnn.zeros([1, 1, 128, 64], dtype=x.dtype, layout=TILE, device=x.device())
    kind, order = ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.ShardOrientation.ROW_MAJOR
    for index in range(2):
        part = ttnn.interleaved_to_sharded_partial(x, ttnn.CoreCoord(2, 1), [32, 64], 2, index, kind, order)
        ttnn.sharded_to_interleaved_partial(part, whole, 2, index)
    return whole


ROWS_OF_DATA = (
    row("to tiles", lambda x: ttnn.to_layout(x, TILE), layout="ROW_MAJOR"),
    row("to row major", lambda x: ttnn.to_layout(x, ROWS)),
    row("to row major and back", lambda x: ttnn.to_layout(ttnn.to_layout(x, ROWS), TILE)),
    row("tilize", lambda x: ttnn.tilize(x), layout="ROW_MAJOR", shapes=WHOLE_TILES),
    row("tilize_with_zero_padding", lambda x: ttnn.tilize_with_zero_padding(x), layout="ROW_MAJOR"),
    row(
        "tilize_with_val_padding",
        lambda x: ttnn.tilize_with_val_padding(x, ttnn.Shape([64, 96]), 3.0),
        layout="ROW_MAJOR",
        shapes=((40, 70), (64, 96), (1, 1)),
    ),
    row("untilize", lambda x: ttnn.untilize(x), shapes=((32, 64), (5, 33), (3, 45, 70), (2, 3, 17, 40), (7,))),
    row(
        "untilize_with_unpadding",
        lambda x: ttnn.untilize_with_unpadding(x, ttnn.Shape([4, 9])),
        lambda x: x[:5, :10],
        shapes=((32, 64), (5, 33)),
    ),
    row("fill_implicit_tile_padding", lambda x: ttnn.fill_implicit_tile_padding(x, 1.0)),
    row("to_memory_config L1", lambda x: ttnn.to_memory_config(x, ttnn.L1_MEMORY_CONFIG)),
    row("to shards", _sharded, shapes=((128, 64), (2, 64, 64))),
    row("to shards and back", lambda x: ttnn.sharded_to_interleaved(_sharded(x)), shapes=((128, 64),)),
    row("to other shards", _resharded, shapes=((128, 64),)),
    row("in slices", _in_slices, shapes=((1, 1, 128, 64),), dtypes=FLOATS),
    row("clone", lambda x: ttnn.clone(x)),
    row("copy", _copied),
    row("assign", lambda x: ttnn.assign(x, memory_config=ttnn.L1_MEMORY_CONFIG)),
    row("move", lambda x: ttnn.move(x)),
    row("reallocate", lambda x: ttnn.reallocate(x)),
    row("bitcast there and back", lambda x: _recast(x), dtypes=("bfloat16",), low=-9, high=9),
)


def _recast(x: Any) -> Any:
    return ttnn.bitcast(ttnn.bitcast(x, ttnn.uint16), ttnn.bfloat16)


@each_dtype(ROWS_OF_DATA, MOVED)
def test_values_are_unchanged(row: Row, dtype: str, device: Any) -> None:
    for number, shape in enumerate(row.shapes):
        check(row, dtype, shape, number, device)


ANY_SHAPE = tuple(each for each in ROWS_OF_DATA if each.shapes is Row.shapes)


@given(row=st.sampled_from(ANY_SHAPE), shape=shapes, dtype=st.sampled_from(MOVED), seed=st.integers(0, 999))
def test_values_are_unchanged_in_any_shape(row: Row, shape: tuple[int, ...], dtype: str, seed: int) -> None:
    if dtype in row.dtypes:
        with ttnn.open_device(device_id=0) as device:
            check(row, dtype, shape, seed, device)


# -- casts ------------------------------------------------------------------------------------------------------------

INTEGERS = {"int32": torch.int32, "uint32": torch.int64, "uint16": torch.int32, "uint8": torch.int32}
CASTS = (
    *(
        row(
            f"typecast to {target}",
            lambda x, target=target: ttnn.typecast(x, getattr(ttnn, target)),
            (lambda x: (x + 0.5).floor().to(torch.int64))
            if target == "uint16"
            else (lambda x: x.trunc().to(torch.int64)),
            dtypes=FLOATS,
            high=250,
        )
        for target in INTEGERS
    ),
    row("typecast to float32", lambda x: ttnn.typecast(x, ttnn.float32), lambda x: x.float(), high=60000),
    row(
        "typecast to bfloat16",
        lambda x: ttnn.typecast(x, ttnn.bfloat16),
        lambda x: x.float(),
        high=60000,
        ulps={"bfloat16": 0.5},
    ),
    row(
        "typecast to bfloat8_b",
        lambda x: ttnn.typecast(x, ttnn.bfloat8_b),
        lambda x: x.float(),
        low=1,
        high=2,
        ulps={"bfloat8_b": 1.0},
    ),
    row(
        "experimental.typecast",
        lambda x: ttnn.experimental.typecast(x, ttnn.bfloat16),
        dtypes=FLOATS,
        ulps={"bfloat16": 1.0},
    ),
)


@each_dtype(CASTS, MOVED)
def test_casts(row: Row, dtype: str, device: Any) -> None:
    for number, shape in enumerate(row.shapes):
        check(row, dtype, shape, number, device)


@pytest.mark.parametrize("target", INTEGERS)
def test_integers_saturate_or_wrap_as_in_the_kernels(target: str, device: Any) -> None:
    special = torch.tensor([float("nan"), float("inf"), -float("inf"), 3e9, -3e9, -1.5, 0.5, 300.0, 70000.0])
    cast = stored(ttnn.typecast(upload(special.reshape(1, -1), "float32", "TILE", device), getattr(ttnn, target)))
    most, least = 2**31 - 1, -(2**31)
    expected = {
        "int32": [most, most, least, most, least, -1, 0, 300, 70000],
        "uint32": [2**32 - 1, 2**32 - 1, 0, 3_000_000_000, 0, 0, 0, 300, 70000],
        "uint16": [65535, 65535, 0, 65535, 0, 0, 1, 300, 65535],
        "uint8": [0, 0, 0, 0, 0, 255, 0, 44, 112],
    }
    assert cast.flatten().tolist() == expected[target]


@given(seed=st.integers(0, 999), source=st.sampled_from(("int32", "uint32")))
def test_large_integers_round_twice_to_bfloat16(seed: int, source: str) -> None:
    """First to float32, ties to even, then to bfloat16, ties away from zero."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randint(0, 2**31, (4, 40), generator=generator)
    with ttnn.open_device(device_id=0) as device:
        cast = stored(ttnn.typecast(upload(values, source, "TILE", device), ttnn.bfloat16))
    bits = values.to(torch.float32).view(torch.int32)
    assert torch.equal(cast, ((bits + 0x8000) & -0x10000).view(torch.float32))


def test_a_host_tensor_is_cast_on_the_host(device: Any) -> None:
    host = ttnn.from_torch(torch.tensor([[1.7, -1.7, 250.9]]), dtype=ttnn.float32)
    assert ttnn.to_torch(ttnn.to_dtype(host, ttnn.int32)).tolist() == [[1, -1, 250]]
    assert ttnn.typecast(host, ttnn.bfloat16).storage_type() == ttnn.StorageType.HOST
    with pytest.raises(InvalidArgument, match="host tensor"):
        ttnn.to_dtype(ttnn.to_device(host, device), ttnn.int32)


def test_a_cast_into_an_output_tensor(device: Any) -> None:
    x = upload(torch.rand(5, 33) * 9, "float32", "TILE", device)
    out = upload(torch.zeros(5, 33), "int32", "TILE", device)
    assert same_buffer(ttnn.typecast(x, ttnn.int32, output_tensor=out), out)
    assert torch.equal(stored(out), stored(x).trunc().to(torch.int64))


def test_a_copy_does_not_convert_integers_to_floats(device: Any) -> None:
    x = upload(torch.ones(32, 32), "int32", "TILE", device)
    with pytest.raises(ChipFault, match="reinterprets bits"):
        ttnn.clone(x, dtype=ttnn.float32)


def test_packing_flushes_bfloat16_only(device: Any) -> None:
    special = torch.tensor([float("nan"), -0.0, 1e-40]).repeat(32, 11)[:, :32].contiguous()
    for dtype, survives in (("bfloat16", False), ("float32", True)):
        result = stored(ttnn.to_layout(upload(special, dtype, "ROW_MAJOR", device), TILE))
        assert bool(result[:, 0].isnan().all()) is survives
        assert bool(result[:, 1].signbit().all()) is survives
        assert bool(result[:, 2].ne(0).all()) is survives


# -- memory -----------------------------------------------------------------------------------------------------------


def test_tensors_in_the_target_memory_are_not_copied(device: Any) -> None:
    x = upload(torch.rand(32, 64), "bfloat16", "TILE", device)
    assert ttnn.to_layout(x, TILE).buffer_address() == x.buffer_address()
    assert ttnn.to_memory_config(x, ttnn.DRAM_MEMORY_CONFIG).buffer_address() == x.buffer_address()
    assert ttnn.clone(x).buffer_address() != x.buffer_address()


def test_a_move_fills_the_gap_before_it(device: Any) -> None:
    first = upload(torch.rand(320, 320), "bfloat16", "TILE", device)
    values = torch.rand(320, 320)
    second = upload(values, "float32", "TILE", device)
    ttnn.deallocate(first)
    moved = ttnn.move(second)
    assert not second.is_allocated()
    assert moved.buffer_address() < second._storage.address
    assert torch.equal(stored(moved), values)


def test_padding_beyond_tiles_is_kept_in_the_spec(device: Any) -> None:
    x = upload(torch.rand(40, 70), "bfloat16", "ROW_MAJOR", device)
    result = ttnn.tilize_with_val_padding(x, ttnn.Shape([96, 128]), 0.0)
    assert (list(result.shape), list(result.padded_shape)) == ([40, 70], [96, 128])
    assert math.prod(result.padded_shape) == result.volume()


def test_shards_too_small_for_the_tensor_are_rejected(device: Any) -> None:
    x = upload(torch.rand(128, 64), "bfloat16", "TILE", device)
    grid = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(1, 0))])
    shards = ttnn.ShardSpec(grid, [32, 64], ttnn.ShardOrientation.ROW_MAJOR)
    config = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.BufferType.L1, shards)
    with pytest.raises(InvalidArgument, match="do not fit on 2 cores"):
        ttnn.to_memory_config(x, config)


def test_block_floats_on_the_host_stay_tiled() -> None:
    whole = ttnn.from_torch(torch.randn(32, 64), ttnn.bfloat8_b, layout=ttnn.TILE_LAYOUT)
    for same in (whole.to(ttnn.ROW_MAJOR_LAYOUT), ttnn.to_layout(whole, ttnn.ROW_MAJOR_LAYOUT)):
        assert (same.layout, same.dtype) == (ttnn.TILE_LAYOUT, ttnn.bfloat8_b)
        assert torch.equal(ttnn.to_torch(same), ttnn.to_torch(whole))
    odd = ttnn.from_torch(torch.randn(40, 40), ttnn.bfloat8_b, layout=ttnn.TILE_LAYOUT)
    with pytest.raises(ttnn.InvalidArgument, match="for unpadding"):
        odd.to(ttnn.ROW_MAJOR_LAYOUT)
