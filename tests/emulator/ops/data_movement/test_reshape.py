"""Reshapes, permutes and repeats only move values: every row equals torch bit for bit."""

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
MOVED = ("bfloat16", "float32", "int32", "uint32")
RANK_2_UP = ((32, 64), (5, 33), (3, 45, 70), (2, 3, 17, 40), (1, 2, 3, 5, 33))


def row(name: str, call: Any, reference: Any, **options: Any) -> Row:
    settings: dict[str, Any] = {"dtypes": MOVED, "low": 1, "high": 90, "ulps": EXACT} | options
    return Row(name, call, reference, **settings)


def _reversed(shape: Any) -> list[int]:
    return list(reversed(list(shape)))


def _halved(shape: Any) -> list[int]:
    """The shape with its first even dimension split in two."""
    dims = list(shape)
    at = next((index for index, size in enumerate(dims) if size % 2 == 0), None)
    return [1, *dims] if at is None else [*dims[:at], 2, dims[at] // 2, *dims[at + 1 :]]


ROWS = (
    row("reshape flat", lambda x: ttnn.reshape(x, [-1]), lambda x: x.reshape(-1)),
    row("reshape, reversed", lambda x: ttnn.reshape(x, _reversed(x.shape)), lambda x: x.reshape(_reversed(x.shape))),
    row("reshape, dimension split", lambda x: ttnn.reshape(x, _halved(x.shape)), lambda x: x.reshape(_halved(x.shape))),
    row("reshape, row major", lambda x: ttnn.reshape(x, [-1]), lambda x: x.reshape(-1), layout="ROW_MAJOR"),
    row(
        "reshape, reversed, row major",
        lambda x: ttnn.reshape(x, _reversed(x.shape)),
        lambda x: x.reshape(_reversed(x.shape)),
        layout="ROW_MAJOR",
    ),
    row("view", lambda x: ttnn.view(x, [1, *x.shape]), lambda x: x[None]),
    row("experimental.view", lambda x: ttnn.experimental.view(x, [1, *x.shape]), lambda x: x[None], shapes=RANK_2_UP),
    row("squeeze", lambda x: ttnn.squeeze(x), lambda x: x.squeeze()),
    row("unsqueeze first", lambda x: ttnn.unsqueeze(x, 0), lambda x: x.unsqueeze(0)),
    row("unsqueeze last", lambda x: ttnn.unsqueeze(x, -1), lambda x: x.unsqueeze(-1)),
    row(
        "unsqueeze_to_4D",
        lambda x: ttnn.unsqueeze_to_4D(x),
        lambda x: x.reshape((1,) * (4 - x.dim()) + tuple(x.shape)),
        shapes=RANK_2_UP[:4],
    ),
    row(
        "reshape_on_device",
        lambda x: ttnn.reshape_on_device(x, 1, 1, 64, 96),
        lambda x: x.reshape(1, 1, 64, 96),
        shapes=((1, 1, 32, 192), (2, 1, 32, 96)),
        dtypes=("bfloat16", "float32"),
    ),
    row("permute, reversed", lambda x: ttnn.permute(x, _reversed(range(len(x.shape)))), lambda x: x.permute(_order(x))),
    row(
        "permute, row major",
        lambda x: ttnn.permute(x, _reversed(range(len(x.shape)))),
        lambda x: x.permute(_order(x)),
        layout="ROW_MAJOR",
    ),
    row("transpose last two", lambda x: ttnn.transpose(x, -2, -1), lambda x: x.transpose(-2, -1), shapes=RANK_2_UP),
    row("transpose first two", lambda x: ttnn.transpose(x, 0, 1), lambda x: x.transpose(0, 1), shapes=RANK_2_UP),
    row("transpose first and last", lambda x: ttnn.transpose(x, 0, -1), lambda x: x.transpose(0, -1), shapes=RANK_2_UP),
    row("repeat", lambda x: ttnn.repeat(x, [2] * len(x.shape)), lambda x: x.repeat((2,) * x.dim())),
    row("repeat, new dim", lambda x: ttnn.repeat(x, [3, *[1] * len(x.shape)]), lambda x: x.repeat((3, *[1] * x.dim()))),
    row("repeat_interleave over 0", lambda x: ttnn.repeat_interleave(x, 3, 0), lambda x: x.repeat_interleave(3, 0)),
    row("repeat_interleave over -1", lambda x: ttnn.repeat_interleave(x, 2, -1), lambda x: x.repeat_interleave(2, -1)),
    row("expand", lambda x: ttnn.expand(x, [4, *x.shape]), lambda x: x.expand(4, *x.shape)),
)


def _order(x: torch.Tensor) -> tuple[int, ...]:
    return tuple(range(x.dim() - 1, -1, -1))


@each_dtype(ROWS, MOVED)
def test_against_torch(row: Row, dtype: str, device: Any) -> None:
    for number, shape in enumerate(row.shapes):
        check(row, dtype, shape, number, device)


ANY_SHAPE = tuple(row for row in ROWS if row.shapes not in (RANK_2_UP, RANK_2_UP[:4]) and "on_device" not in row.name)


@given(row=st.sampled_from(ANY_SHAPE), shape=shapes, dtype=st.sampled_from(MOVED), seed=st.integers(0, 999))
def test_any_shape(row: Row, shape: tuple[int, ...], dtype: str, seed: int) -> None:
    with ttnn.open_device(device_id=0) as device:
        check(row, dtype, shape, seed, device)


@given(shape=shapes, data=st.data())
def test_any_permutation(shape: tuple[int, ...], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(shape))))
    layout = data.draw(st.sampled_from(("TILE", "ROW_MAJOR")))
    with ttnn.open_device(device_id=0) as device:
        values = torch.arange(1, math.prod(shape) + 1).reshape(shape)
        moved = ttnn.permute(upload(values, "int32", layout, device), list(order))
        assert torch.equal(stored(moved), values.permute(order))


def test_a_reshape_that_keeps_rows_shares_the_buffer(device: Any) -> None:
    x = upload(torch.rand(4, 32, 64), "bfloat16", "TILE", device)
    seen = ttnn.reshape(x, [128, 64])
    moved = ttnn.reshape(x, [64, 128])
    assert seen.buffer_address() == x.buffer_address()
    assert moved.buffer_address() != x.buffer_address()
    ttnn.deallocate(x)
    assert not seen.is_allocated()
    assert moved.is_allocated()


def test_a_view_sees_writes_to_its_source(device: Any) -> None:
    x = upload(torch.zeros(2, 32, 64), "bfloat16", "TILE", device)
    seen = ttnn.view(x, [64, 64])
    ttnn.copy(upload(torch.ones(2, 32, 64), "bfloat16", "TILE", device), x)
    assert stored(seen).eq(1).all()


def test_an_unchecked_view_reorders_tiles(device: Any) -> None:
    values = torch.arange(32 * 64).reshape(32, 64) % 251
    seen = ttnn.experimental.view(upload(values, "int32", "TILE", device), [64, 32])
    assert torch.equal(stored(seen), torch.cat([values[:, :32], values[:, 32:]]))


def test_block_floats_are_repacked_along_the_new_rows(device: Any) -> None:
    values = torch.randn(64, 64) * torch.logspace(-3, 3, 64)[:, None]
    x = upload(values, "bfloat8_b", "TILE", device)
    transposed = stored(ttnn.transpose(x, 0, 1))
    assert (transposed - stored(x).T).abs().max() > 0, "values that share an exponent with larger ones lose bits"
    assert torch.allclose(transposed, stored(x).T, atol=values.abs().max().item() / 64)


def test_rows_of_block_floats_stay_in_their_tiles(device: Any) -> None:
    x = upload(torch.rand(2, 3, 32, 32), "bfloat4_b", "TILE", device)
    with pytest.raises(ChipFault, match="shared exponents"):
        ttnn.permute(x, [0, 2, 1, 3])


def test_special_values_survive_moves_but_not_packing(device: Any) -> None:
    values = torch.tensor([float("nan"), float("-inf"), -0.0, 1e-40]).repeat(32, 16)
    x = upload(values, "bfloat16", "TILE", device)
    kept = stored(ttnn.reshape(x, [64, 32])).reshape(32, 64)
    assert kept[:, 0].isnan().all()
    assert kept[:, 2].signbit().all()
    packed = stored(ttnn.transpose(x, 0, 1)).T
    assert packed[:, 0].isinf().all()
    assert packed[:, 1].isneginf().all()
    assert not packed[:, 2].signbit().any()
    assert packed[:, 3].eq(0).all()


def test_a_repeat_into_an_output_tensor(device: Any) -> None:
    x = upload(torch.rand(2, 5, 33), "float32", "TILE", device)
    out = upload(torch.zeros(4, 5, 33), "float32", "TILE", device)
    assert same_buffer(ttnn.repeat(x, [2, 1, 1], optional_output_tensor=out), out)
    assert torch.equal(stored(out), stored(x).repeat(2, 1, 1))


def test_a_second_minus_one_is_rejected(device: Any) -> None:
    with pytest.raises(InvalidArgument, match="more than one -1"):
        ttnn.reshape(upload(torch.rand(4, 6), "bfloat16", "TILE", device), [-1, -1])


def test_rows_that_do_not_fit_l1_are_rejected(device: Any) -> None:
    """As the library reports on a mock card: 3411232 B for the new row and 8960 B for the old ones, of 1393312 B."""
    image = ttnn.from_torch(torch.zeros(1, 3, 800, 1066), dtype=ttnn.bfloat16, device=device)
    with pytest.raises(ttnn.OutOfMemory, match=r"ttnn.reshape: .*need 3420192 B of L1"):
        ttnn.reshape(image, (1, 3, 1, 852800))
    fits = ttnn.from_torch(torch.zeros(1, 3, 512, 512), dtype=ttnn.bfloat16, device=device)
    assert tuple(ttnn.reshape(fits, (1, 3, 1, 262144)).shape) == (1, 3, 1, 262144)
