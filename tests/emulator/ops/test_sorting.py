"""Sorting and scans compared with torch; equal values in the order of the chip's network."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import Row, check, each_dtype, shapes, stored, upload

EXACT = {"bfloat16": 0.0, "float32": 0.0}
SUMS = {"bfloat16": 1.0, "float32": 64.0}
FLOATS = ("bfloat16", "float32")


def _best(x: Any, **options: Any) -> Any:
    return ttnn.topk(x, min(x.shape[-1], 10), -1, **options)[0]


def _ema_reference(x: torch.Tensor) -> torch.Tensor:
    averages, average = [], torch.zeros(x.shape[:-1])
    for step in range(x.shape[-1]):
        average = 0.25 * average + 0.75 * x[..., step]
        averages.append(average)
    return torch.stack(averages, -1)


ROWS = (
    Row("sort", lambda x: ttnn.sort(x)[0], lambda x: x.sort(-1)[0], ulps=EXACT),
    Row("sort, descending", lambda x: ttnn.sort(x, -1, True)[0], lambda x: x.sort(-1, descending=True)[0], ulps=EXACT),
    Row("sort over 0", lambda x: ttnn.sort(x, 0)[0], lambda x: x.sort(0)[0], ulps=EXACT),
    Row("topk", _best, lambda x: x.topk(min(x.shape[-1], 10), -1)[0], ulps=EXACT),
    Row("least", lambda x: _best(x, largest=False), lambda x: x.topk(min(x.shape[-1], 10), -1, False)[0], ulps=EXACT),
    Row("argmax", lambda x: ttnn.argmax(x, -1), lambda x: x.argmax(-1), shapes=((32, 64), (5, 33), (2, 3, 17, 40))),
    Row("argmax over 0", lambda x: ttnn.argmax(x, 0, True), lambda x: x.argmax(0, keepdim=True), shapes=((3, 45, 70),)),
    Row("cumsum", lambda x: ttnn.cumsum(x, -1), lambda x: x.cumsum(-1), ulps=SUMS, floor=1.0),
    Row("cumsum over 0", lambda x: ttnn.cumsum(x, 0), lambda x: x.cumsum(0), ulps=SUMS, floor=1.0),
    Row(
        "cumsum, reversed",
        lambda x: ttnn.cumsum(x, 0, reverse_order=True),
        lambda x: x.flip(0).cumsum(0).flip(0),
        ulps=SUMS,
        floor=1.0,
    ),
    Row("cumprod", lambda x: ttnn.cumprod(x, -1), lambda x: x.cumprod(-1), low=0.5, high=1.5, ulps=SUMS),
    Row("moreh_cumsum", lambda x: ttnn.moreh_cumsum(x, 0), lambda x: x.cumsum(0), ulps=SUMS, floor=1.0),
    Row(
        "ema",
        lambda x: ttnn.ema(x, 0.25),
        _ema_reference,
        dtypes=("bfloat16",),
        ulps={"bfloat16": 1.0},
        floor=0.1,
        shapes=((1, 2, 40, 70), (1, 1, 32, 64)),
    ),
)


@each_dtype(ROWS, FLOATS)
def test_against_torch(row: Row, dtype: str, device: Any) -> None:
    for seed, shape in enumerate(row.shapes):
        check(row, dtype, shape, seed, device)


@given(shape=shapes, which=st.sampled_from([0, 1, 3, 4, 7, 8, 10]), seed=st.integers(0, 1000))
def test_any_shape(shape: tuple[int, ...], which: int, seed: int) -> None:
    with ttnn.open_device(device_id=0) as device:
        check(ROWS[which], "bfloat16", shape, seed, device)


@pytest.mark.parametrize("dtype", ["int32", "uint32"])
def test_integers_wrap(device: Any, dtype: str) -> None:
    base = torch.tensor([[2**31 - 1, 5, 2**31 - 7]])
    total = stored(ttnn.cumsum(upload(base, dtype, "TILE", device), 1))
    span = 2**32
    expected = base.cumsum(1) % span
    assert torch.equal(total % span, expected)


@pytest.mark.parametrize("descending", [False, True])
def test_indices_are_the_original_positions(device: Any, descending: bool) -> None:
    base = torch.randint(0, 9, (8, 256)).float()
    ordered, places = ttnn.sort(upload(base, "bfloat16", "TILE", device), -1, descending)
    assert places.dtype == ttnn.uint16
    assert torch.equal(base.gather(-1, stored(places)), stored(ordered))
    assert torch.equal(stored(places).sort(-1)[0], torch.arange(256).expand(8, -1))


def test_a_stable_sort_keeps_the_order_of_equal_values(device: Any) -> None:
    base = torch.randint(0, 9, (8, 128)).float()
    for descending in (False, True):
        _, places = ttnn.sort(upload(base, "bfloat16", "TILE", device), -1, descending, True)
        assert torch.equal(stored(places), base.sort(dim=-1, descending=descending, stable=True)[1])


def test_equal_values_follow_the_order_of_the_network(device: Any) -> None:
    _, places = ttnn.sort(upload(torch.zeros(1, 64), "bfloat16", "TILE", device))
    assert sorted(stored(places).reshape(-1).tolist()) == list(range(64))
    assert stored(places).reshape(-1).tolist() != list(range(64))


def test_sorting_flushes_like_the_packer(device: Any) -> None:
    base = torch.tensor([[float("nan"), -0.0, 1e-40, float("-inf"), 2.0] + [1.0] * 59])
    ordered = stored(ttnn.sort(upload(base, "bfloat16", "TILE", device))[0]).reshape(-1)
    assert ordered[0] == float("-inf") and ordered[-1] == float("inf")
    assert ordered[1:3].view(torch.int32).tolist() == [0, 0]


def test_results_into_output_tensors(device: Any) -> None:
    base = torch.randn(4, 64)
    values = ttnn.zeros((4, 64), ttnn.bfloat16, ttnn.TILE_LAYOUT, device)
    indices = ttnn.zeros((4, 64), ttnn.uint16, ttnn.TILE_LAYOUT, device)
    ttnn.sort(upload(base, "bfloat16", "TILE", device), out=(values, indices))
    assert torch.equal(stored(values), base.bfloat16().float().sort(-1)[0])
    total = ttnn.zeros((4, 64), ttnn.bfloat16, ttnn.TILE_LAYOUT, device)
    ttnn.cumsum(upload(torch.ones(4, 64), "bfloat16", "TILE", device), 1, out=total)
    assert stored(total)[0].tolist() == [float(step) for step in range(1, 65)]


def test_argmax_returns_the_first_maximum(device: Any) -> None:
    base = torch.tensor([[1.0, 5.0, 5.0, 2.0], [0.0, 5.0, 1.0, 1.0]])
    tensor = upload(base, "bfloat16", "ROW_MAJOR", device)
    assert stored(ttnn.argmax(tensor, -1)).tolist() == [1, 1]
    assert stored(ttnn.argmax(tensor)).item() == 1


def test_sampling_with_k_1_returns_the_largest(device: Any) -> None:
    # Distinct values: the card may select any of equal ones.
    base = torch.stack([torch.randperm(64) for _ in range(32)]).reshape(1, 1, 32, 64).bfloat16()
    tokens = torch.arange(64).expand(1, 1, 32, 64) + 100
    rows = {"dtype": "bfloat16", "layout": "ROW_MAJOR", "device": device}
    drawn = ttnn.sampling(
        upload(base, "bfloat16", "TILE", device),
        upload(tokens, "int32", "ROW_MAJOR", device),
        upload(torch.ones(32), "uint32", "ROW_MAJOR", device),
        upload(torch.zeros(32), **rows),
        upload(torch.ones(32), **rows),
        seed=3,
    )
    assert torch.equal(stored(drawn).reshape(-1), base.float().argmax(-1).reshape(-1) + 100)


def test_prefix_scan_leaves_the_last_state(device: Any) -> None:
    a, bx, state = torch.rand(1, 1, 32, 32), torch.rand(1, 1, 32, 32), torch.rand(1, 1, 1, 32)
    grid = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(0, 0))])

    def placed(values: torch.Tensor, height: int, layout: Any) -> Any:
        shards = ttnn.ShardSpec(grid, [height, 32], ttnn.ShardOrientation.ROW_MAJOR)
        config = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.WIDTH_SHARDED, ttnn.BufferType.L1, shards)
        return ttnn.from_torch(values, ttnn.bfloat16, layout=layout, device=device, memory_config=config)

    previous = placed(state, 1, ttnn.ROW_MAJOR_LAYOUT)
    states = ttnn.experimental.prefix_scan(placed(a, 32, ttnn.TILE_LAYOUT), placed(bx, 32, ttnn.TILE_LAYOUT), previous)
    hidden, expected = state[0, 0, 0], []
    for step in range(32):
        hidden = a[0, 0, step] * hidden + bx[0, 0, step]
        expected.append(hidden)
    torch.testing.assert_close(stored(states)[0, 0], torch.stack(expected), rtol=0.05, atol=0.05)
    assert torch.equal(stored(previous)[0, 0, 0], stored(states)[0, 0, -1])
