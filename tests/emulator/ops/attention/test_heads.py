"""Attention heads are only moved: every row equals torch bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import same_buffer, stored, upload, values
from ttnn_emulator.errors import ChipFault

EXPERIMENTAL = ttnn.experimental
HEIGHT_SHARDS = ttnn.L1_HEIGHT_SHARDED_MEMORY_CONFIG


@dataclass(frozen=True)
class Move:
    """A call and its torch reference, which return one tensor or several."""

    name: str
    call: Callable[..., Any]
    reference: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...] = ("bfloat16", "float32", "bfloat8_b")

    def __str__(self) -> str:
        return self.name


def split(x: torch.Tensor, counts: tuple[int, ...], width: int) -> tuple[torch.Tensor, ...]:
    """[B, 1, S, W] → [B, count, S, width] for each of the counts, which are consecutive columns."""
    heads = x.reshape(x.shape[0], x.shape[2], -1, width).transpose(1, 2)
    return tuple(heads.split(counts, 1))


def joined(x: torch.Tensor) -> torch.Tensor:
    return x.transpose(1, 2).flatten(2)


def transposed(heads: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    query, key, value = heads
    return query, key.mT, value


def shards(shape: tuple[int, int], cores: int) -> Any:
    grid = ttnn.CoreGrid(x=cores, y=1)
    return ttnn.create_sharded_memory_config(
        shape, grid, ttnn.ShardStrategy.HEIGHT, use_height_and_width_as_shard_shape=True
    )


def blocks(x: Any) -> Any:
    grid = ttnn.CoreGrid(x=2, y=2)
    return ttnn.to_memory_config(x, ttnn.create_sharded_memory_config(list(x.shape), grid, ttnn.ShardStrategy.BLOCK))


def grouped(x: torch.Tensor, groups: int, counts: tuple[int, int, int], width: int) -> tuple[torch.Tensor, ...]:
    """As `split`, with queries, keys and values in every group of columns."""
    parts = [split(part, counts, width) for part in x.chunk(groups, -1)]
    return tuple(torch.cat(each, 1) for each in zip(*parts))


def pairs(x: torch.Tensor, counts: tuple[int, ...], width: int) -> tuple[torch.Tensor, ...]:
    heads = x[0].unflatten(-1, (-1, width)).permute(2, 0, 1, 3)
    return tuple(heads.split(counts, 0))


MOVES = (
    Move(
        "split_query_key_value_and_split_heads",
        lambda x: ttnn.transformer.split_query_key_value_and_split_heads(
            x, num_heads=4, num_kv_heads=2, transpose_key=False
        ),
        lambda x: split(x.unsqueeze(1), (4, 2, 2), 32),
        ((2, 50, 256),),
    ),
    Move(
        "split_query_key_value_and_split_heads, transposed key",
        lambda x: ttnn.transformer.split_query_key_value_and_split_heads(x, num_heads=2),
        lambda x: transposed(split(x.unsqueeze(1), (2, 2, 2), 64)),
        ((2, 33, 384),),
        ("bfloat16",),
    ),
    Move(
        "split_query_key_value_and_split_heads, separate keys and values",
        lambda x, y: ttnn.transformer.split_query_key_value_and_split_heads(x, y, num_heads=4, transpose_key=False),
        lambda x, y: (*split(x.unsqueeze(1), (4,), 32), *split(y.unsqueeze(1), (4, 4), 32)),
        ((2, 20, 128), (2, 20, 256)),
    ),
    Move("concatenate_heads", ttnn.transformer.concatenate_heads, joined, ((2, 3, 45, 64),)),
    Move("nlp_concat_heads", EXPERIMENTAL.nlp_concat_heads, lambda x: joined(x).unsqueeze(1), ((2, 3, 45, 64),)),
    Move(
        "nlp_create_qkv_heads",
        lambda x: EXPERIMENTAL.nlp_create_qkv_heads(x, num_heads=3, num_kv_heads=1, transpose_k_heads=False),
        lambda x: split(x, (3, 1, 1), 32),
        ((2, 1, 40, 160),),
    ),
    Move(
        "nlp_create_qkv_heads, tied",
        lambda x: EXPERIMENTAL.nlp_create_qkv_heads(
            x, num_heads=3, num_kv_heads=1, transpose_k_heads=False, kv_tied=True
        ),
        lambda x: (*split(x, (3, 1), 32), split(x, (3, 1), 32)[1]),
        ((2, 1, 40, 128),),
    ),
    Move(
        "nlp_create_qkv_heads_falcon7b",
        EXPERIMENTAL.nlp_create_qkv_heads_falcon7b,
        lambda x: split(x, (71, 1, 1), 64),
        ((1, 1, 32, 4672),),
    ),
    Move(
        "nlp_create_qkv_heads_vit",
        EXPERIMENTAL.nlp_create_qkv_heads_vit,
        lambda x: split(x, (12, 12, 12), 64),
        ((1, 1, 64, 2304),),
    ),
    Move(
        "nlp_create_qkv_heads_segformer",
        lambda x: EXPERIMENTAL.nlp_create_qkv_heads_segformer(x)[0],
        lambda x: split(x, (3,), 32)[0],
        ((2, 1, 64, 96),),
    ),
    Move(
        "nlp_create_q_heads_split",
        lambda x: EXPERIMENTAL.nlp_create_q_heads_split(x, num_heads=2, split_head_dim=32),
        lambda x: split(x, (2,), 96)[0].split((32, 64), -1),
        ((2, 1, 40, 192),),
    ),
    Move(
        "nlp_create_qkv_heads_boltz",
        lambda x: EXPERIMENTAL.nlp_create_qkv_heads_boltz(x, num_heads=2, num_kv_heads=1, transpose_k_heads=False),
        lambda x: pairs(x, (2, 1, 1), 32),
        ((1, 20, 20, 128),),
    ),
    Move(
        "nlp_concat_heads_boltz",
        EXPERIMENTAL.nlp_concat_heads_boltz,
        lambda x: x.permute(1, 2, 0, 3).flatten(2).unsqueeze(0),
        ((3, 20, 20, 32),),
    ),
    Move(
        "create_qkv_heads",
        lambda x: EXPERIMENTAL.create_qkv_heads(
            blocks(x), num_heads=4, num_kv_heads=2, transpose_k_heads=False, memory_config=HEIGHT_SHARDS
        ),
        lambda x: grouped(x, 2, (2, 1, 1), 64),
        ((2, 1, 32, 512),),
    ),
    Move(
        "create_qkv_heads_from_separate_tensors",
        lambda x, y: EXPERIMENTAL.create_qkv_heads_from_separate_tensors(
            blocks(x), blocks(y), num_heads=4, num_kv_heads=2, transpose_k_heads=False, memory_config=HEIGHT_SHARDS
        ),
        lambda x, y: (*split(x, (4,), 64), *grouped(y, 2, (0, 1, 1), 64)[1:]),
        ((2, 1, 32, 256), (2, 1, 64, 256)),
    ),
    Move(
        "split_query_key_value_and_split_heads, sharded",
        lambda x: EXPERIMENTAL.split_query_key_value_and_split_heads(
            blocks(x), ttnn.CoreCoord(2, 2), num_heads=4, memory_config=HEIGHT_SHARDS
        ),
        lambda x: transposed(grouped(x, 2, (2, 2, 2), 64)),
        ((2, 1, 64, 768),),
        ("bfloat16",),
    ),
    Move(
        "nlp_create_qkv_heads_decode",
        lambda x: EXPERIMENTAL.nlp_create_qkv_heads_decode(x, num_heads=4, num_kv_heads=1),
        lambda x: tuple(x.reshape(1, 5, 6, 64).split((4, 1, 1), 2)),
        ((1, 1, 5, 384),),
        ("bfloat16", "float32"),
    ),
    Move(
        "nlp_concat_heads_decode",
        lambda x: EXPERIMENTAL.nlp_concat_heads_decode(ttnn.to_memory_config(x, shards((32, 64), 2)), num_heads=3),
        lambda x: torch.nn.functional.pad(x[:, :, :3].reshape(1, 1, 2, -1), (0, 0, 0, 30)),
        ((1, 2, 8, 64),),
        ("bfloat16", "float32"),
    ),
    Move(
        "nlp_kv_cache_load_slice",
        lambda x: EXPERIMENTAL.nlp_kv_cache_load_slice(x, seq_len_start=32, seq_len_end=96),
        lambda x: x[:, :, 32:96],
        ((2, 3, 128, 64),),
    ),
)


def together(results: Any) -> list[Any]:
    return list(results) if isinstance(results, tuple | list) else [results]


@pytest.mark.parametrize("move", MOVES, ids=str)
def test_heads_move(move: Move, device: Any) -> None:
    for dtype in move.dtypes:
        tensors = [upload(values(shape, -4, 4, dtype, 7), dtype, "TILE", device) for shape in move.shapes]
        expected = together(move.reference(*[stored(tensor) for tensor in tensors]))
        result = together(move.call(*tensors))
        assert len(result) == len(expected)
        for ours, reference in zip(result, expected):
            assert list(ours.shape) == list(reference.shape)
            assert ttnn.to_torch(ours).is_contiguous()
            assert torch.equal(stored(ours), reference), dtype


@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 3), st.integers(1, 70), st.sampled_from([32, 64]))
def test_any_number_of_heads_round_trips(batch: int, group: int, kv_heads: int, length: int, width: int) -> None:
    heads = group * kv_heads
    with ttnn.open_device(device_id=0) as device:
        x = upload(
            values((batch, length, (heads + 2 * kv_heads) * width), -4, 4, "bfloat16", length),
            "bfloat16",
            "TILE",
            device,
        )
        query, key, value = ttnn.transformer.split_query_key_value_and_split_heads(
            x, num_heads=heads, num_kv_heads=kv_heads
        )
        assert list(key.shape) == [batch, kv_heads, width, length]
        parts = [joined(stored(query)), joined(stored(key).mT), joined(stored(value))]
        assert torch.equal(torch.cat(parts, -1), stored(x))
        assert torch.equal(stored(ttnn.transformer.concatenate_heads(query)), parts[0])


def test_a_transposed_key_is_packed(device: Any) -> None:
    """Values that are only moved keep their bits; a transposed key is flushed."""
    special = torch.zeros(1, 1, 32, 96, dtype=torch.bfloat16)
    special[..., 0], special[..., 32], special[..., 64] = torch.nan, torch.nan, torch.nan
    x = upload(special, "bfloat16", "TILE", device)
    query, key, value = EXPERIMENTAL.nlp_create_qkv_heads(x, num_heads=1)
    assert stored(query).isnan().any() and stored(value).isnan().any()
    assert stored(key).isinf().any() and not stored(key).isnan().any()


def test_transposed_float32_keys_lose_bits(device: Any) -> None:
    x = upload(torch.full((1, 1, 32, 96), 1 + 2.0**-20), "float32", "TILE", device)
    query, key, _ = EXPERIMENTAL.nlp_create_qkv_heads(x, num_heads=1)
    assert stored(query)[0, 0, 0, 0] == 1 + 2.0**-20
    assert stored(key)[0, 0, 0, 0] == 1


def test_output_tensors_are_written(device: Any) -> None:
    x = upload(values((1, 1, 64, 384), -4, 4, "bfloat16", 3), "bfloat16", "TILE", device)
    outputs = [
        ttnn.zeros((1, 2, 64, 64), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device) for _ in range(3)
    ]
    result = EXPERIMENTAL.nlp_create_qkv_heads(x, num_heads=2, transpose_k_heads=False, output_tensors=outputs)
    for output, one, reference in zip(outputs, result, split(stored(x), (2, 2, 2), 64)):
        assert same_buffer(one, output)
        assert torch.equal(stored(output), reference)


def test_segformer_does_not_write_keys_and_values(device: Any) -> None:
    x = upload(values((1, 1, 64, 64), -4, 4, "bfloat16", 3), "bfloat16", "TILE", device)
    outputs = [ttnn.ones((1, 2, 64, 32), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device) for _ in range(3)]
    query, key, value = EXPERIMENTAL.nlp_create_qkv_heads_segformer(x, output_tensors=outputs)
    assert torch.equal(stored(query), split(stored(x), (2,), 32)[0])
    assert bool((stored(key) == 1).all()) and bool((stored(value) == 1).all())


def test_padded_heads_are_a_fault(device: Any) -> None:
    x = upload(values((1, 2, 32, 40), -4, 4, "bfloat16", 3), "bfloat16", "TILE", device)
    with pytest.raises(ChipFault, match="padded to 64"):
        EXPERIMENTAL.nlp_concat_heads(x)


def test_bert_needs_a_larger_grid(device: Any) -> None:
    x = upload(torch.zeros(7, 16, 384, 64), "bfloat16", "TILE", device)
    with pytest.raises(RuntimeError, match="12 x 7 cores"):
        EXPERIMENTAL.concatenate_heads(x, ttnn.CoreCoord(8, 8))
