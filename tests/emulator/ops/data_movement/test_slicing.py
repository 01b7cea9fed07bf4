"""Slicing, padding and concatenation only move values: every row equals torch bit for bit."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import Row, check, each_dtype, shapes, stored, upload

EXACT = {"bfloat16": 0.0, "float32": 0.0}
MOVED = ("bfloat16", "float32", "int32", "uint32")


def row(name: str, call: Any, reference: Any, **options: Any) -> Row:
    settings: dict[str, Any] = {"dtypes": MOVED, "low": 0, "high": 90, "ulps": EXACT} | options
    return Row(name, call, reference, **settings)


def _inner(x: torch.Tensor) -> tuple[list[int], list[int]]:
    return [size // 3 for size in x.shape], [size - size // 4 for size in x.shape]


def _sliced(x: Any) -> Any:
    return ttnn.slice(x, *_inner(x))


def _sliced_reference(x: torch.Tensor) -> torch.Tensor:
    return x[tuple(slice(start, end) for start, end in zip(*_inner(x)))]


def _stepped(x: Any) -> Any:
    rank = len(x.shape)
    return ttnn.slice(x, [0] * rank, list(x.shape), [2] * rank)


def _stepped_reference(x: torch.Tensor) -> torch.Tensor:
    return x[(slice(None, None, 2),) * x.dim()]


def _padded(x: Any) -> Any:
    return ttnn.pad(x, [(0, 3)] * len(x.shape), 5.0)


def _padded_reference(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.pad(x, (0, 3) * x.dim(), value=5)


ROWS = (
    row("concat over -1", lambda x, y: ttnn.concat([x, y], -1), lambda x, y: torch.cat([x, y], -1), inputs=2),
    row("concat over 0", lambda x, y: ttnn.concat([x, y], 0), lambda x, y: torch.cat([x, y], 0), inputs=2),
    row("stack", lambda x, y: ttnn.stack([x, y], 0), lambda x, y: torch.stack([x, y], 0), inputs=2),
    row("split", lambda x: ttnn.split(x, 4, -1)[0], lambda x: torch.split(x, 4, -1)[0]),
    row("chunk", lambda x: ttnn.chunk(x, 3, -1)[-1], lambda x: torch.chunk(x, 3, -1)[-1]),
    row("slice", _sliced, _sliced_reference),
    row("slice with steps", _stepped, _stepped_reference),
    row("roll", lambda x: ttnn.roll(x, 3, -1), lambda x: torch.roll(x, 3, -1)),
    row("pad", _padded, _padded_reference, shapes=((32, 64), (5, 33), (3, 45, 70), (2, 3, 17, 40))),
    row("pad, row major", _padded, _padded_reference, layout="ROW_MAJOR", dtypes=("bfloat16", "int32", "uint32")),
    row("slice, row major", _sliced, _sliced_reference, layout="ROW_MAJOR"),
    row(
        "concat, row major",
        lambda x, y: ttnn.concat([x, y], -1),
        lambda x, y: torch.cat([x, y], -1),
        inputs=2,
        layout="ROW_MAJOR",
    ),
)


@each_dtype(ROWS, MOVED)
def test_against_torch(row: Row, dtype: str, device: Any) -> None:
    for seed, shape in enumerate(row.shapes):
        check(row, dtype, shape, seed, device)


@given(shape=shapes, which=st.integers(0, len(ROWS) - 4), seed=st.integers(0, 1000))
def test_any_shape(shape: tuple[int, ...], which: int, seed: int) -> None:
    row = ROWS[which]
    if row.name == "pad" and len(shape) == 1:
        return  # one tile row cannot be padded on the card
    with ttnn.open_device(device_id=0) as device:
        check(row, "bfloat16", shape, seed, device)


def image(device: Any, *shape: int, layout: str = "ROW_MAJOR") -> tuple[torch.Tensor, Any]:
    values = torch.arange(math.prod(shape), dtype=torch.float32).reshape(shape) % 251
    return values, upload(values, "bfloat16", layout, device)


def test_groups_of_columns_alternate_in_a_grouped_concat(device: Any) -> None:
    shards = ttnn.create_sharded_memory_config((1, 1, 32, 64), ttnn.CoreGrid(y=1, x=1), ttnn.ShardStrategy.HEIGHT)
    wide = ttnn.create_sharded_memory_config((1, 1, 32, 128), ttnn.CoreGrid(y=1, x=1), ttnn.ShardStrategy.HEIGHT)
    values, tensor = image(device, 1, 1, 32, 64)
    tensor = ttnn.to_memory_config(tensor, shards)
    joined = ttnn.concat([tensor, tensor], 3, groups=2, memory_config=wide)
    left, right = values.chunk(2, -1)
    assert torch.equal(stored(joined), torch.cat([left, left, right, right], -1))


def test_a_slice_of_everything_is_the_tensor_itself(device: Any) -> None:
    _, tensor = image(device, 4, 32, layout="TILE")
    assert ttnn.slice(tensor, [0, 0], [4, 32]).buffer_address() == tensor.buffer_address()


def test_a_slice_into_an_output_tensor(device: Any) -> None:
    values, tensor = image(device, 2, 64, 96, layout="TILE")
    target = ttnn.empty([1, 32, 64], ttnn.bfloat16, ttnn.TILE_LAYOUT, device, ttnn.DRAM_MEMORY_CONFIG)
    result = ttnn.slice(tensor, [1, 32, 32], [2, 64, 96], output_tensor=target)
    assert result.buffer_address() == target.buffer_address()
    assert torch.equal(stored(target), values[1:2, 32:64, 32:96])


def test_indexing_a_tensor_slices_and_squeezes(device: Any) -> None:
    values, tensor = image(device, 3, 45, 70, layout="TILE")
    for index in (1, (slice(1, 3), 5), (..., slice(3, 60, 7)), (0, slice(2, 40), -1), -1):
        assert torch.equal(stored(tensor[index]), values[index])


def test_a_view_reads_its_buffer(device: Any) -> None:
    values, tensor = image(device, 24, 64, 64, layout="TILE")
    window = ttnn.narrow(tensor, 0, 12, 6)
    assert torch.equal(stored(window), values[12:18])


def test_slice_write_changes_the_output_in_place(device: Any) -> None:
    values, target = image(device, 1, 8, 8, 32)
    part, source = image(device, 1, 4, 8, 32)
    written = ttnn.experimental.slice_write(source, target, [0, 2, 0, 0], [1, 6, 8, 32], [1, 1, 1, 1])
    values[:, 2:6] = part
    assert torch.equal(stored(written), values)
    assert torch.equal(stored(target), values)


def test_fold_moves_patches_into_channels(device: Any) -> None:
    values, tensor = image(device, 2, 8, 6, 16)
    expected = values.reshape(2, 4, 2, 3, 2, 16).permute(0, 1, 3, 2, 4, 5).reshape(2, 4, 3, 64)
    assert torch.equal(stored(ttnn.fold(tensor, 2, 2)), expected)


def test_padding_float32_rows_repeats_the_value_in_its_low_half(device: Any) -> None:
    tensor = upload(torch.zeros(1, 1, 2, 8), "float32", "ROW_MAJOR", device)
    padded = stored(ttnn.pad(tensor, [(0, 0), (0, 0), (0, 0), (0, 8)], 7.0))
    assert padded[0, 0, 0, 8].view(torch.int32).item() == 0x40E040E0


def test_rejected_arguments(device: Any) -> None:
    _, tensor = image(device, 3, 45, 70, layout="TILE")
    for rejected in (
        lambda: ttnn.concat([], 0),
        lambda: ttnn.concat([tensor, tensor], 3),
        lambda: ttnn.slice(tensor, [0, 0, 0], [3, 100, 70]),
        lambda: ttnn.pad(tensor, [(1, 0), (0, 0), (0, 0)], 0.0),
        lambda: ttnn.split(tensor, [40, 4], 1),
    ):
        with pytest.raises(RuntimeError):
            rejected()
