"""Caches are updated in place: the selected rows, and the rest of their tiles as the kernels write it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import same_buffer, stored, upload, values
from ttnn_emulator.errors import ChipFault

EXPERIMENTAL = ttnn.experimental


def random(shape: tuple[int, ...], device: Any, seed: int, dtype: str = "bfloat16") -> Any:
    return upload(values(shape, -4, 4, dtype, seed), dtype, "TILE", device)


def numbers(content: Any, device: Any) -> Any:
    return ttnn.from_torch(
        torch.tensor(content, dtype=torch.int32), dtype=ttnn.int32, layout=ttnn.ROW_MAJOR_LAYOUT, device=device
    )


def on_cores(tensor: Any, first: int = 0) -> Any:
    """[1, users, heads, D], one user per core."""
    users, width = tensor.shape[1], tensor.shape[3]
    grid = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(first, 0), ttnn.CoreCoord(first + users - 1, 0))])
    place = ttnn.ShardSpec(grid, [32, width], ttnn.ShardOrientation.ROW_MAJOR)
    config = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.BufferType.L1, place)
    return ttnn.to_memory_config(tensor, config)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "bfloat8_b"])
@pytest.mark.parametrize("fill", [ttnn.fill_cache, ttnn.kv_cache.fill_cache_for_user_], ids=["plain", "kv_cache"])
def test_fill(fill: Any, dtype: str, device: Any) -> None:
    cache, x = random((3, 2, 128, 64), device, 1, dtype), random((1, 2, 64, 64), device, 2, dtype)
    reference = stored(cache).clone()
    reference[1, :, 32:96] = stored(x)[0]
    result = fill(cache, x, 1, update_idx=32)
    assert same_buffer(result, cache)
    assert torch.equal(stored(cache), reference)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize(
    "update", [ttnn.update_cache, ttnn.kv_cache.update_cache_for_token_], ids=["plain", "kv_cache"]
)
def test_update(update: Any, dtype: str, device: Any) -> None:
    cache, x = random((4, 2, 128, 64), device, 1, dtype), random((1, 2, 32, 64), device, 2, dtype)
    reference = stored(cache).clone()
    reference[:, :, 70] = stored(x)[0, :, 3:7].transpose(0, 1)
    assert same_buffer(update(cache, x, 70, batch_offset=3), cache)
    assert torch.equal(stored(cache), reference)


def test_update_packs_what_it_writes(device: Any) -> None:
    """float32 is truncated to bfloat16 for a narrower cache, and block floats are packed again."""
    x = random((1, 1, 32, 64), device, 2, "float32")
    cut = (stored(x).view(torch.int32) & -0x10000).view(torch.float32)[0, 0, :2]
    plain, packed = random((2, 1, 64, 64), device, 1), random((2, 1, 64, 64), device, 1, "bfloat8_b")
    assert torch.equal(stored(ttnn.update_cache(plain, x, 5))[:, 0, 5], cut)
    before = stored(packed).clone()
    after = stored(ttnn.update_cache(packed, x, 5))
    assert (after[:, 0, 5] - cut).abs().max() < 2.0**-4
    assert torch.equal(after[:, :, 32:], before[:, :, 32:])


def test_tiles_around_a_new_row_are_flushed(device: Any) -> None:
    content = torch.zeros(2, 1, 64, 32, dtype=torch.bfloat16)
    content[:, :, 7] = content[:, :, 40] = torch.nan
    cache = upload(content, "bfloat16", "TILE", device)
    ttnn.update_cache(cache, random((1, 1, 32, 32), device, 2), 3)
    after = stored(cache)
    assert after[:, :, 7].isinf().all() and after[:, :, 40].isnan().all()


@given(st.integers(1, 8), st.integers(1, 3), st.integers(0, 95), st.integers(0, 24))
def test_update_of_any_position(half_users: int, heads: int, position: int, offset: int) -> None:
    users = 2 * half_users
    offset = min(offset, 32 - users)
    with ttnn.open_device(device_id=0) as device:
        cache, x = random((users, heads, 96, 32), device, 1), random((1, heads, 32, 32), device, 2)
        reference = stored(cache).clone()
        reference[:, :, position] = stored(x)[0, :, offset : offset + users].transpose(0, 1)
        ttnn.update_cache(cache, x, position, batch_offset=offset)
        assert torch.equal(stored(cache), reference)


# -- pages ------------------------------------------------------------------------------------------------------------

TABLE = [[0, 1, 2, 3], [5, 4, -1, 6]]


def test_paged_update_by_users(device: Any) -> None:
    cache, x = random((2, 3, 64, 64), device, 1), random((1, 2, 3, 64), device, 2)
    reference = stored(cache).clone()
    reference[0, :, 5], reference[1, :, 40] = stored(x)[0]
    assert same_buffer(EXPERIMENTAL.paged_update_cache(cache, on_cores(x), update_idxs=[5, 40]), cache)
    assert torch.equal(stored(cache), reference)


def test_paged_update_skips(device: Any) -> None:
    cache, x = random((2, 3, 64, 64), device, 1), random((1, 2, 3, 64), device, 2)
    reference = stored(cache).clone()
    reference[1, :, 40] = stored(x)[0, 1]
    EXPERIMENTAL.paged_update_cache(cache, on_cores(x), update_idxs_tensor=numbers([-1, 40], device))
    assert torch.equal(stored(cache), reference)


def test_paged_update_by_pages(device: Any) -> None:
    cache, x = random((8, 2, 64, 64), device, 1), random((1, 2, 2, 64), device, 2)
    reference = stored(cache).clone()
    reference[1, :, 6], reference[5, :, 10] = stored(x)[0]
    EXPERIMENTAL.paged_update_cache(
        cache, on_cores(x), update_idxs_tensor=numbers([70, 10], device), page_table=numbers(TABLE, device)
    )
    assert torch.equal(stored(cache), reference)


def test_pages_with_another_number_of_heads(device: Any) -> None:
    """A page of 2 heads × 64 rows has the same tiles as one of 4 heads × 32 rows."""
    cache, x = random((8, 2, 64, 64), device, 1), random((1, 2, 4, 64), device, 2)
    reference = stored(cache).clone().reshape(8, 4, 32, 64)
    reference[1, :, 8], reference[5, :, 10] = stored(x)[0]
    EXPERIMENTAL.paged_update_cache(
        cache,
        on_cores(x),
        update_idxs_tensor=numbers([40, 10], device),
        page_table=numbers(TABLE, device),
        block_size=32,
        num_kv_heads=4,
    )
    assert torch.equal(stored(cache), reference.reshape(8, 2, 64, 64))


def test_a_page_out_of_range_is_a_fault(device: Any) -> None:
    cache, x = random((4, 2, 64, 64), device, 1), random((1, 2, 2, 64), device, 2)
    with pytest.raises(ChipFault, match="page 5"):
        EXPERIMENTAL.paged_update_cache(
            cache, on_cores(x), update_idxs_tensor=numbers([70, 10], device), page_table=numbers(TABLE, device)
        )


def test_paged_fused_update(device: Any) -> None:
    keys, others = random((2, 3, 64, 64), device, 1), random((2, 3, 64, 64), device, 2)
    x, y = random((1, 2, 3, 64), device, 3), random((1, 2, 3, 64), device, 4)
    expected = [stored(keys).clone(), stored(others).clone()]
    for reference, tensor in zip(expected, (x, y)):
        reference[0, :, 5], reference[1, :, 40] = stored(tensor)[0]
    results = EXPERIMENTAL.paged_fused_update_cache(
        keys, on_cores(x), others, on_cores(y, first=2), update_idxs=[5, 40]
    )
    assert same_buffer(results[0], keys) and same_buffer(results[1], others)
    assert torch.equal(stored(keys), expected[0]) and torch.equal(stored(others), expected[1])


def test_paged_fill(device: Any) -> None:
    cache, x = random((8, 2, 64, 64), device, 1), random((1, 2, 200, 64), device, 2)
    reference, rows = stored(cache).clone(), torch.nn.functional.pad(stored(x)[0], (0, 0, 0, 24))
    reference[5], reference[4], reference[6, :, :32] = rows[:, :64], rows[:, 64:128], rows[:, 192:224]
    assert same_buffer(EXPERIMENTAL.paged_fill_cache(cache, x, numbers(TABLE, device), batch_idx=1), cache)
    assert torch.equal(stored(cache), reference)


def test_paged_fill_of_a_window(device: Any) -> None:
    """A bounded cache keeps the last rows, wrapped around."""
    cache, x = random((8, 2, 64, 64), device, 1), random((1, 2, 192, 64), device, 2)
    reference, rows = stored(cache).clone(), stored(x)[0]
    reference[1], reference[0] = rows[:, 64:128], rows[:, 128:192]
    EXPERIMENTAL.paged_fill_cache(cache, x, numbers(TABLE, device), cache_position_modulo=128)
    assert torch.equal(stored(cache), reference)


def test_indexed_update(device: Any) -> None:
    keys, others = random((4, 2, 64, 64), device, 1), random((4, 2, 64, 64), device, 2)
    x, y = random((1, 2, 4, 64), device, 3), random((1, 2, 4, 64), device, 4)
    expected = [stored(keys).clone(), stored(others).clone()]
    for reference, tensor in zip(expected, (x, y)):
        rows = stored(tensor)[0]
        reference[0, :, 3], reference[3, :, 8], reference[1, :, 0] = rows[:, 0], rows[:, 1], rows[:, 3]
    EXPERIMENTAL.indexed_fused_update_cache(keys, x, others, y, numbers([[3, 200, -1, 64]], device))
    assert torch.equal(stored(keys), expected[0]) and torch.equal(stored(others), expected[1])
