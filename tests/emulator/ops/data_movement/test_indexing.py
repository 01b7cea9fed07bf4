"""Indexed reads and writes, compared with torch; resampled images within a unit in the last place."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import Row, check, each_dtype, same_buffer, shapes, stored, upload, values

EXACT = {"bfloat16": 0.0, "float32": 0.0}
FLOATS = ("bfloat16", "float32")


def places(shape: tuple[int, ...], size: int, seed: int = 3) -> torch.Tensor:
    return values(shape, 0, size - 1, "int32", seed)


def on_device(tensor: torch.Tensor, dtype: str, like: Any, layout: str = "TILE") -> Any:
    return upload(tensor, dtype, layout, like.device())


def _gathered(x: Any) -> Any:
    shape = tuple(x.shape)
    return ttnn.gather(x, -1, on_device(places(shape, shape[-1]), "uint32", x))


def _gathered_first(x: Any) -> Any:
    shape = tuple(x.shape)
    return ttnn.gather(x, 0, on_device(places(shape, shape[0]), "uint16", x))


def _scattered(x: Any, y: Any, **options: Any) -> Any:
    shape = tuple(x.shape)
    index = torch.argsort(torch.rand(shape, generator=torch.Generator().manual_seed(5)), dim=-1)
    return ttnn.scatter(x, -1, on_device(index, "int32", x, "ROW_MAJOR"), y, **options)


def _scattered_reference(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    index = torch.argsort(torch.rand(x.shape, generator=torch.Generator().manual_seed(5)), dim=-1)
    return x.scatter(-1, index, y)


ROWS = (
    Row(
        "gather",
        _gathered,
        lambda x: x.gather(-1, places(x.shape, x.shape[-1])),
        ulps=EXACT,
        shapes=((5, 33), (3, 45, 70)),
    ),
    Row(
        "gather first",
        _gathered_first,
        lambda x: x.gather(0, places(x.shape, x.shape[0])),
        ulps=EXACT,
        shapes=((32, 64), (5, 33), (3, 45, 70), (2, 3, 17, 40)),
    ),
    Row("scatter", _scattered, _scattered_reference, inputs=2, ulps=EXACT, layout="ROW_MAJOR"),
    Row(
        "upsample",
        lambda x: ttnn.upsample(x, 2),
        lambda x: x.repeat_interleave(2, 1).repeat_interleave(2, 2),
        ulps=EXACT,
        layout="ROW_MAJOR",
        shapes=((1, 4, 5, 32), (2, 3, 17, 40)),
    ),
    Row(
        "upsample bilinear",
        lambda x: ttnn.upsample(x, 2, mode="bilinear"),
        lambda x: torch.nn.functional.interpolate(x.movedim(-1, 1), scale_factor=2, mode="bilinear").movedim(1, -1),
        dtypes=("bfloat16",),
        ulps={"bfloat16": 2.0},
        floor=0.5,
        layout="ROW_MAJOR",
        shapes=((1, 4, 5, 32), (2, 3, 6, 64)),
    ),
)


@each_dtype(ROWS, FLOATS)
def test_against_torch(row: Row, dtype: str, device: Any) -> None:
    for seed, shape in enumerate(row.shapes):
        check(row, dtype, shape, seed, device)


@given(shape=shapes, which=st.integers(0, 2), seed=st.integers(0, 1000))
def test_any_shape(shape: tuple[int, ...], which: int, seed: int) -> None:
    if len(shape) == 1 and which < 2:
        return  # one tile row cannot be gathered on the card
    with ttnn.open_device(device_id=0) as device:
        check(ROWS[which], "bfloat16", shape, seed, device)


@pytest.mark.parametrize("layout", ["TILE", "ROW_MAJOR"])
def test_embedding(device: Any, layout: str) -> None:
    tokens, table = places((3, 40), 50), torch.randn(50, 96).bfloat16()
    result = ttnn.embedding(
        upload(tokens, "uint32", "ROW_MAJOR", device),
        upload(table, "bfloat16", "ROW_MAJOR", device),
        layout=getattr(ttnn, f"{layout}_LAYOUT"),
    )
    assert torch.equal(stored(result), torch.nn.functional.embedding(tokens, table.float()))


def test_gradient_of_embedding_truncates_every_sum_to_bfloat16(device: Any) -> None:
    tokens, gradient = places((2, 32), 10), values((1, 1, 64, 32), -2.0, 2.0, "float32", 1).bfloat16().float()
    table = upload(torch.zeros(10, 32), "bfloat16", "TILE", device)
    result = ttnn.embedding_bw(
        upload(tokens, "uint32", "ROW_MAJOR", device), table, upload(gradient, "bfloat16", "TILE", device)
    )
    sums = torch.zeros(10, 32)
    for token, row in zip(tokens.reshape(-1).tolist(), gradient.reshape(64, 32)):
        sums[token] = ((sums[token] + row).view(torch.int32) & -0x10000).view(torch.float32)
    assert torch.equal(stored(result).reshape(10, 32), sums)


@pytest.mark.parametrize(("reduce", "reference"), [("add", "sum"), ("multiply", "prod")])
def test_scatter_reduces_repeated_indices(device: Any, reduce: str, reference: str) -> None:
    base, source, index = torch.randn(5, 12), torch.randn(5, 30), places((5, 30), 12)
    result = ttnn.scatter(
        upload(base, "float32", "ROW_MAJOR", device),
        1,
        upload(index, "int32", "ROW_MAJOR", device),
        upload(source, "float32", "ROW_MAJOR", device),
        reduce=reduce,
    )
    torch.testing.assert_close(stored(result), base.scatter_reduce(1, index, source, reference))


def test_scatter_uses_the_last_repeated_index_and_skips_out_of_range_ones(device: Any) -> None:
    result = ttnn.scatter(
        upload(torch.zeros(1, 8), "bfloat16", "ROW_MAJOR", device),
        1,
        upload(torch.tensor([[2, 2, 9, 5]]), "int32", "ROW_MAJOR", device),
        upload(torch.tensor([[1.0, 2.0, 3.0, 4.0]]), "bfloat16", "ROW_MAJOR", device),
    )
    assert stored(result).tolist() == [[0, 0, 2, 0, 0, 4, 0, 0]]


def test_an_index_beyond_the_tensor_is_a_fault(device: Any) -> None:
    tensor = upload(torch.zeros(4, 32), "bfloat16", "TILE", device)
    with pytest.raises(ttnn.ChipFault if hasattr(ttnn, "ChipFault") else RuntimeError):
        ttnn.gather(tensor, 1, upload(torch.full((4, 32), 40), "uint32", "TILE", device))


def test_fills(device: Any) -> None:
    base = torch.arange(4 * 6 * 32).reshape(4, 6, 32) % 100
    tensor = upload(base, "int32", "ROW_MAJOR", device)
    filled = ttnn.index_fill(tensor, 1, upload(torch.tensor([1, 4]), "uint32", "ROW_MAJOR", device), 7)
    assert torch.equal(stored(filled), base.index_fill(1, torch.tensor([1, 4]), 7))
    whole, part = torch.randn(5, 1, 32, 32).bfloat16(), torch.randn(2, 1, 32, 32).bfloat16()
    replaced = ttnn.indexed_fill(
        upload(torch.tensor([3, 0]), "uint32", "ROW_MAJOR", device),
        upload(whole, "bfloat16", "TILE", device),
        upload(part, "bfloat16", "TILE", device),
    )
    whole[3], whole[0] = part[0], part[1]
    assert torch.equal(stored(replaced), whole.float())


def test_nonzero_returns_a_count_and_coordinates(device: Any) -> None:
    base = (places((1, 2, 3, 16), 3) == 0).float()
    count, indices = ttnn.nonzero(upload(base, "bfloat16", "ROW_MAJOR", device))
    expected = torch.nonzero(base)
    assert stored(count).reshape(-1)[0] == len(expected)
    assert torch.equal(stored(indices).reshape(-1)[: expected.numel()].reshape(-1, 4), expected)


@pytest.mark.parametrize("invert", [False, True])
def test_isin_returns_all_ones_for_true(device: Any, invert: bool) -> None:
    elements, test = places((4, 33), 50), places((9,), 50, seed=8)
    result = ttnn.experimental.isin(
        upload(elements, "int32", "TILE", device), upload(test, "int32", "ROW_MAJOR", device), invert=invert
    )
    assert torch.equal(stored(result) == 0xFFFFFFFF, torch.isin(elements, test) ^ invert)


def test_plus_one_is_in_place(device: Any) -> None:
    tensor = upload(torch.tensor([-1, 0, 5]), "int32", "ROW_MAJOR", device)
    result = ttnn.plus_one(tensor, skip_negative_entries=True)
    assert same_buffer(result, tensor)
    assert stored(tensor).tolist() == [-1, 1, 6]


def test_moreh_getitem(device: Any) -> None:
    base, index = torch.randn(3, 8, 40).bfloat16(), torch.tensor([5, 0, 7])
    picked = ttnn.moreh_getitem(
        upload(base, "bfloat16", "TILE", device), [upload(index, "int32", "ROW_MAJOR", device)], [1]
    )
    assert torch.equal(stored(picked), base.float()[:, index])


def test_grid_sample_and_rotate(device: Any) -> None:
    base = torch.rand(1, 8, 9, 32)
    image = upload(base, "bfloat16", "ROW_MAJOR", device)
    grid = torch.rand(1, 5, 6, 2) * 1.6 - 0.8
    sampled = ttnn.grid_sample(image, upload(grid, "float32", "ROW_MAJOR", device))
    expected = torch.nn.functional.grid_sample(base.movedim(-1, 1), grid, align_corners=False).movedim(1, -1)
    assert (stored(sampled) - expected).abs().max() < 0.02
    assert torch.equal(stored(ttnn.rotate(image, 180.0)), stored(image).flip(1, 2))
