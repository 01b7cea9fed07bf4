"""Padding on the host: writing, reading, and unchanged logical shapes."""

from __future__ import annotations

import pytest
import torch

import ttnn_emulator as ttnn

ROWS = torch.arange(1.0, 7.0).reshape(2, 3)


def row_major(values: torch.Tensor = ROWS) -> ttnn.Tensor:
    return ttnn.from_torch(values, dtype=ttnn.bfloat16)


def test_pad_keeps_the_logical_shape() -> None:
    behind, around = row_major().pad([3, 4], [0, 0], 9.0), row_major().pad([3, 4], [1, 1], 9.0)
    assert (list(behind.shape), list(behind.padded_shape)) == ([2, 3], [3, 4])
    assert ttnn.to_torch(behind).tolist() == ROWS.tolist()
    assert ttnn.to_torch(around).tolist() == [[9, 9, 9], [9, 1, 2]]
    assert around.to_torch_with_padded_shape().tolist() == [[9, 9, 9, 9], [9, 1, 2, 3], [9, 4, 5, 6]]


def test_pad_to_tile_and_back() -> None:
    padded = row_major().pad_to_tile(5.0)
    assert (list(padded.shape), list(padded.padded_shape)) == ([2, 3], [32, 32])
    assert padded.to_torch_with_padded_shape().float().sum() == ROWS.sum() + 5.0 * (32 * 32 - 6)
    assert ttnn.to_torch(padded.unpad_from_tile([2, 3])).tolist() == ROWS.tolist()
    assert list(padded.unpad_from_tile([32, 3]).shape) == [32, 3]
    tiles = row_major().to(ttnn.TILE_LAYOUT)
    assert tiles.pad_to_tile(0.0) is tiles


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda: row_major().pad_to_tile(), TypeError),  # type: ignore[call-arg]
        (lambda: row_major().pad_to_tile(pad_value=0.0), TypeError),  # type: ignore[call-arg]
        (lambda: row_major().unpad_from_tile([2, 3]), RuntimeError),
        (lambda: row_major(torch.ones(32, 64)).unpad_from_tile([5, 7]), RuntimeError),
        (lambda: row_major().to(ttnn.TILE_LAYOUT).unpad([0, 0], [1, 1]), RuntimeError),
    ],
)
def test_invalid_padding_is_refused(call, error) -> None:
    with pytest.raises(error):
        call()


def test_block_floats_of_full_tiles_stay_tiled_on_the_host(device) -> None:
    whole, part = (
        ttnn.from_torch(torch.ones(shape), dtype=ttnn.bfloat8_b, layout=ttnn.TILE_LAYOUT)
        for shape in ((32, 64), (5, 7))
    )
    kept = whole.to(ttnn.ROW_MAJOR_LAYOUT)
    assert (kept.layout, kept.dtype) == (ttnn.TILE_LAYOUT, ttnn.bfloat8_b)
    with pytest.raises(RuntimeError, match="ROW_MAJOR"):
        part.to(ttnn.ROW_MAJOR_LAYOUT)
    assert ttnn.to_layout(whole.to(device), ttnn.ROW_MAJOR_LAYOUT).dtype is ttnn.bfloat16


@pytest.mark.parametrize(
    "fill, value",
    [
        (lambda x: ttnn.to_layout(x, ttnn.TILE_LAYOUT), 0.0),
        (lambda x: ttnn.to_layout(x, ttnn.TILE_LAYOUT, pad_value=2.5), 2.5),
        (lambda x: ttnn.tilize_with_val_padding(x, [32, 32], 1.5), 1.5),
        (lambda x: ttnn.tilize_with_zero_padding(x), 0.0),
        (lambda x: ttnn.fill_implicit_tile_padding(ttnn.to_layout(x, ttnn.TILE_LAYOUT), -3.0), -3.0),
    ],
)
def test_the_device_fills_padding(device, fill, value: float) -> None:
    seen = fill(row_major().to(device)).cpu().to_torch_with_padded_shape()
    expected = torch.full((32, 32), value, dtype=torch.bfloat16)
    expected[:2, :3] = ROWS
    assert torch.equal(seen, expected)


def test_padding_after_other_operations_is_unknown(device) -> None:
    tiles = ttnn.from_torch(ROWS, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    assert tiles.to_torch_with_padded_shape().float().sum() == ROWS.sum()
    ttnn.add(tiles, 1.0, output_tensor=tiles)
    for written in (tiles, ttnn.relu(tiles)):
        with pytest.raises(ttnn.NotEmulated, match="unknown values"):
            written.to_torch_with_padded_shape()
    assert (
        ttnn.relu(ttnn.ones([32, 32], device=device, layout=ttnn.TILE_LAYOUT)).to_torch_with_padded_shape().min() == 1
    )


LARGE = [-1.7, -70000.0, 1e10, -1e10, 70000.0, 300.0, float("nan"), 3e9]


@pytest.mark.parametrize(
    "source, dtype, count, expected",
    [  # as ttnn 0.81.1 stores them: full vectors saturate, the remainder wraps
        (torch.float32, ttnn.uint16, 8, [0, 0, 0, 0, 65535, 300, 0, 0]),
        (torch.float32, ttnn.uint16, 2, [65535, 61072]),
        (torch.float32, ttnn.uint16, 6, [0, 0, 0, 0, 4464, 300]),
        (torch.float32, ttnn.uint8, 8, [0, 0, 0, 0, 255, 255, 0, 0]),
        (torch.float32, ttnn.uint32, 8, [2**32 - 1, 2**32 - 70000, 2**31, 2**31, 70000, 300, 2**31, 3000000000]),
        (torch.float32, ttnn.uint32, 3, [2**32 - 1, 2**32 - 70000, 1410065408]),
        (torch.float64, ttnn.uint16, 8, [65535, 61072, 0, 0, 4464, 300, 0, 0]),
        (torch.float32, ttnn.int32, 4, [-1, -70000, -(2**31), -(2**31)]),
        (torch.int32, ttnn.uint16, 2, [65535, 61072]),
    ],
)
def test_numbers_are_converted_to_integers_as_in_the_library(source, dtype, count: int, expected: list[int]) -> None:
    values = torch.tensor([LARGE[:count]], dtype=torch.float64).to(source)
    assert ttnn.to_torch(ttnn.from_torch(values, dtype=dtype)).long().tolist()[0] == expected
