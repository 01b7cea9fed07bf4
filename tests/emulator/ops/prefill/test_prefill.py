"""Chunked prefill: cache rows, rotary embeddings, and the exchange of tokens with experts."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import same_buffer, stored, upload, values
from ttnn_emulator.errors import ChipFault

PREFILL = ttnn.experimental.deepseek_prefill


def random(shape: tuple[int, ...], device: Any, seed: int, dtype: str = "bfloat16", layout: str = "TILE") -> Any:
    return upload(values(shape, -4, 4, dtype, seed), dtype, layout, device)


def row(content: Any, device: Any, dtype: Any = ttnn.uint32) -> Any:
    return ttnn.from_torch(torch.tensor(content), dtype=dtype, layout=ttnn.ROW_MAJOR_LAYOUT, device=device)


# -- caches -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype, layout", [("bfloat16", "TILE"), ("bfloat8_b", "TILE"), ("bfloat16", "ROW_MAJOR")])
@pytest.mark.parametrize("in_tensors", [False, True])
def test_a_chunk_is_appended_to_the_cached_rows(in_tensors: bool, dtype: str, layout: str, device: Any) -> None:
    cache, x = random((4, 2, 128, 64), device, 1, dtype, layout), random((1, 2, 64, 64), device, 2, dtype, layout)
    reference = stored(cache).clone()
    reference[3, :, 32:96] = stored(x)[0]
    if in_tensors:
        result = PREFILL.update_padded_kv_cache(cache, x, row([1], device), row([32], device), 1, 2, 0)
    else:
        result = PREFILL.update_padded_kv_cache(cache, x, 1, 1, 2, 32, 0)
    assert same_buffer(result, cache)
    assert torch.equal(stored(cache), reference)


def test_only_blocks_of_32_rows_with_valid_rows_are_written(device: Any) -> None:
    cache, x = random((1, 1, 128, 32), device, 1), random((1, 1, 64, 32), device, 2)
    reference = stored(cache).clone()
    reference[0, :, 96:128] = stored(x)[0, :, :32]
    PREFILL.update_padded_kv_cache(cache, x, 0, 0, 1, 96, 0, 100)
    assert torch.equal(stored(cache), reference)


def test_latent_and_rope_are_concatenated(device: Any) -> None:
    cache = random((1, 1, 64, 96), device, 1, layout="ROW_MAJOR")
    latent, rope = random((1, 1, 32, 64), device, 2), random((1, 1, 32, 32), device, 3)
    PREFILL.update_padded_kv_cache(cache, latent, 0, 0, 1, 32, 0, rope=rope)
    assert torch.equal(stored(cache)[:, :, 32:], torch.cat([stored(latent), stored(rope)], -1))


def test_a_slot_outside_the_cache_is_a_fault(device: Any) -> None:
    cache, x = random((2, 1, 64, 32), device, 1), random((1, 1, 32, 32), device, 2)
    with pytest.raises(ChipFault, match="slot 5"):
        PREFILL.update_padded_kv_cache(cache, x, row([5], device), row([0], device), 0, 1, 0)


@pytest.mark.parametrize("dtype, layout", [("bfloat16", "TILE"), ("float32", "TILE"), ("bfloat16", "ROW_MAJOR")])
@given(valid=st.integers(0, 256))
def test_rows_up_to_the_next_boundary_are_zeroed(dtype: str, layout: str, valid: int) -> None:
    with ttnn.open_device(device_id=0) as device:
        content = values((2, 1, 256, 32), -4, 4, "bfloat16", 1).to(torch.bfloat16)
        cache = upload(content.float() if dtype == "float32" else content, dtype, layout, device)
        reference = stored(cache).clone()
        reference[1, :, valid : -(-valid // 64) * 64] = 0
        PREFILL.zero_padded_kv_cache(cache, 1, 0, 1, valid, 128, 0, 64)
        assert torch.equal(stored(cache), reference)


# -- rotary embeddings ------------------------------------------------------------------------------------------------


def rotation(device: Any) -> Any:
    matrix = torch.zeros(1, 1, 32, 32)
    even = torch.arange(0, 32, 2)
    matrix[..., even, even + 1], matrix[..., even + 1, even] = 1.0, -1.0
    return upload(matrix, "bfloat16", "TILE", device)


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    other = torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)
    return x * cos + other * sin


@pytest.mark.parametrize("position", [0, 32, 64])
def test_cos_and_sin_start_at_the_position(position: int, device: Any) -> None:
    x, cos, sin = (
        random(shape, device, n) for n, shape in enumerate(((1, 2, 64, 64), (1, 1, 128, 64), (1, 1, 128, 64)))
    )
    rows = slice(position, position + 64)
    expected = rotated(stored(x), stored(cos)[..., rows, :], stored(sin)[..., rows, :])
    for where in (position, row([position], device)):
        result = stored(PREFILL.rotary_embedding_indexed(x, cos, sin, rotation(device), where, 0))
        assert (result - expected).abs().max() < 0.25  # of values up to 32, in bfloat16


def test_other_columns_are_unchanged_and_a_prefix_is_prepended(device: Any) -> None:
    x, prefix = random((1, 2, 32, 96), device, 1), random((1, 2, 32, 32), device, 2)
    cos, sin = random((1, 1, 64, 32), device, 3), random((1, 1, 64, 32), device, 4)
    result = stored(
        PREFILL.rotary_embedding_indexed(
            x, cos, sin, rotation(device), 32, 0, rotary_dim=32, rotary_offset=32, concat_prefix=prefix
        )
    )
    whole = stored(x)
    assert torch.equal(result[..., :64], torch.cat([stored(prefix), whole[..., :32]], -1))
    assert torch.equal(result[..., 96:], whole[..., 64:])
    expected = rotated(whole[..., 32:64], stored(cos)[..., 32:, :], stored(sin)[..., 32:, :])
    assert (result[..., 64:96] - expected).abs().max() < 0.25


# -- experts ----------------------------------------------------------------------------------------------------------


def test_rows_of_an_expert_are_extracted_and_inserted(device: Any) -> None:
    everything, own = random((256, 64), device, 1, "bfloat8_b"), random((96, 64), device, 2, "bfloat8_b")
    start, counts, table = row([0, 64, 128], device), row([40, 33, 70], device), row([2, 1], device)
    before = stored(everything).clone()
    taken = PREFILL.extract(everything, start, counts, table, local_expert_id=1, max_dispatched_tokens_per_expert=96)
    assert torch.equal(stored(taken)[:64], before[64:128])
    result = PREFILL.insert(everything, own, start, counts, table, local_expert_id=0)
    assert same_buffer(result, everything)
    before[128:224] = stored(own)
    assert torch.equal(stored(everything), before)


@pytest.mark.parametrize("start, counts", [([240], [64]), ([0], [200])])
def test_rows_outside_a_tensor_are_a_fault(start: list[int], counts: list[int], device: Any) -> None:
    with pytest.raises(ChipFault, match="outside"):
        PREFILL.extract(
            random((256, 32), device, 1),
            row(start, device),
            row(counts, device),
            row([0], device),
            local_expert_id=0,
            max_dispatched_tokens_per_expert=128,
        )


@given(st.integers(1, 40), st.integers(1, 8), st.integers(0, 99))
def test_experts_are_counted(experts: int, columns: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.randint(0, 48, (64, 8), generator=generator)
    mask = torch.randint(-1, 2, (48,), generator=generator)
    with ttnn.open_device(device_id=0) as device:
        x = ttnn.from_torch(chosen, dtype=ttnn.uint16, layout=ttnn.TILE_LAYOUT, device=device)
        result = PREFILL.masked_bincount(x, row(mask.tolist(), device, ttnn.int32), experts, columns)
        kept = chosen[:, :columns]
        expected = [int((kept == expert).sum()) * int(mask[expert] >= 0) for expert in range(experts)]
        assert stored(result).tolist() == expected


@pytest.mark.parametrize("start, end, real", [(0, 40, 40), (0, 64, 64), (32, 70, 38), (48, 130, 64), (100, 100, 0)])
def test_real_tokens_are_counted(start: int, end: int, real: int, device: Any) -> None:
    config = row([[7, 7, 7], [7, 7, 7]], device)
    result = PREFILL.moe_padding_config(config, row([start], device), row([end], device), 64, 1, 0)
    assert same_buffer(result, config)
    assert stored(config).tolist() == [[real, 1, 0], [7, 7, 7]]


@pytest.mark.parametrize("width", [64, 1056])
def test_outputs_of_experts_are_weighted_and_added(width: int, device: Any) -> None:
    x = random((1, 32, 4, width), device, 1, layout="ROW_MAJOR")
    weights = random((1, 32, 4, 1), device, 2, layout="ROW_MAJOR")
    result = stored(PREFILL.post_combine_reduce(x, weights, expert_dim=2))
    expected = (stored(x) * stored(weights)).sum(2)
    assert (result - expected).abs().max() < 0.5  # four sums of up to 64, rounded to bfloat16
    chosen = torch.randint(0, 6, (1, 32, 4), generator=torch.Generator().manual_seed(3))
    chosen[0, 5] = 1
    table = torch.tensor([0, -1, 2, -1, 0, 0])
    routed = ttnn.from_torch(chosen, dtype=ttnn.uint16, layout=ttnn.ROW_MAJOR_LAYOUT, device=device)
    result = stored(
        PREFILL.post_combine_reduce(x, weights, routed, row(table.tolist(), device, ttnn.int32), expert_dim=2)
    )
    present = (table[chosen] >= 0).unsqueeze(-1)
    expected = (stored(x) * stored(weights) * present).sum(2)
    assert (result - expected).abs().max() < 0.5
    assert not result[0, 5].any()


# -- meshes -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def mesh() -> Any:
    ttnn.set_fabric_config(ttnn.FabricConfig.FABRIC_1D)
    device = ttnn.open_mesh_device(ttnn.MeshShape(1, 2), board="n300")
    yield device
    ttnn.close_mesh_device(device)
    ttnn.set_fabric_config(ttnn.FabricConfig.DISABLED)


def test_a_sequence_is_distributed_round_robin(mesh: Any) -> None:
    """Chunks of 64 rows on two chips from position 96 on: chip 1 continues its first chunk, chip 0 starts a new one."""
    chunk = values((1, 1, 128, 32), -4, 4, "bfloat16", 1).to(torch.bfloat16)
    cut = ttnn.ShardTensorToMesh(mesh, dim=2)
    place: dict[str, Any] = {"dtype": ttnn.bfloat16, "layout": ttnn.TILE_LAYOUT, "device": mesh, "mesh_mapper": cut}
    cache = ttnn.from_torch(torch.zeros(1, 1, 256, 32), **place)
    PREFILL.update_padded_kv_cache(cache, ttnn.from_torch(chunk, **place), 0, 0, 1, 96, 1)
    chips = [ttnn.to_torch(part) for part in ttnn.get_device_tensors(cache)]
    assert torch.equal(chips[0][:, :, 64:], chunk[:, :, :64]) and not chips[0][:, :, :64].any()
    assert torch.equal(chips[1][:, :, 32:96], chunk[:, :, 64:]) and not chips[1][:, :, :32].any()


def test_offsets_of_chips_and_experts(mesh: Any) -> None:
    counts = torch.tensor([[3, 40, 0, 1], [30, 2, 64, 0]])
    x = ttnn.from_torch(
        counts,
        dtype=ttnn.uint32,
        layout=ttnn.ROW_MAJOR_LAYOUT,
        device=mesh,
        mesh_mapper=ttnn.ShardTensorToMesh(mesh, dim=0),
    )
    results = PREFILL.offset_cumsum(x, 1, 1, 2, ttnn.DRAM_MEMORY_CONFIG)
    own, totals, regions, rows = (
        [ttnn.to_torch(part).tolist() for part in ttnn.get_device_tensors(result)] for result in results
    )
    assert totals == [[[33, 42, 64, 1]]] * 2
    assert regions == [[[0, 64, 0, 64]]] * 2
    assert rows == [[[0, 64, 0, 64], [3, 104, 0, 65]]] * 2
    assert own == [[[0, 64, 0, 64]], [[3, 104, 0, 65]]]
