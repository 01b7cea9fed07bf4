"""All forms of attention, compared with torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention as sdpa

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import pcc, stored, upload
from ttnn_emulator.errors import ChipFault
from ttnn_emulator.numerics.mode import numerics

transformer = ttnn.transformer
# The default exponential of scores is accurate to two digits, that of precise kernels to bfloat16.
ROUGH, PRECISE_ERROR = 0.06, 0.02
PRECISE = ttnn.WormholeComputeKernelConfig(
    math_fidelity=ttnn.MathFidelity.HiFi4, math_approx_mode=False, fp32_dest_acc_en=True
)


def normal(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).bfloat16().float()


def on(device: Any, values: torch.Tensor, dtype: str = "bfloat16", layout: str = "TILE") -> Any:
    return upload(values, dtype, layout, device)


def indices(device: Any, *values: int, shape: tuple[int, ...] | None = None) -> Any:
    numbers = torch.tensor(values, dtype=torch.int32)
    return on(device, numbers if shape is None else numbers.reshape(shape), "int32", "ROW_MAJOR")


def program(rows: int, columns: int, **more: Any) -> Any:
    return ttnn.SDPAProgramConfig(
        compute_with_storage_grid_size=(8, 8), q_chunk_size=rows, k_chunk_size=columns, **more
    )


def reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **options: Any) -> torch.Tensor:
    """torch's attention, with keys and values repeated for the heads of the queries."""
    k, v = (each.repeat_interleave(q.shape[1] // each.shape[1], 1) for each in (k, v))
    return sdpa(q, k, v, **options)


def near(ours: Any, expected: torch.Tensor, error: float = ROUGH, least: float = 0.999) -> None:
    result = stored(ours)
    assert list(result.shape) == list(expected.shape)
    assert (result - expected).abs().max() <= error * max(1.0, expected.abs().max().item())
    assert pcc(result, expected) >= least


def triple(batch: int, heads: int, groups: int, rows: int, keys: int, width: int, seed: int) -> list[torch.Tensor]:
    return [
        normal(batch, heads, rows, width, seed=seed),
        normal(batch, groups, keys, width, seed=seed + 1),
        normal(batch, groups, keys, width, seed=seed + 2),
    ]


# -- whole sequences --------------------------------------------------------------------------------------------------

SHAPES = (
    (1, 1, 1, 32, 32, 32),
    (1, 4, 2, 64, 64, 64),
    (2, 3, 1, 45, 45, 32),
    (1, 2, 2, 7, 7, 96),
    (1, 2, 1, 100, 100, 64),
)
CHUNKS = ((32, 32), (64, 32), (32, 96), (128, 128))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("causal", (True, False))
def test_whole_sequences(device: Any, shape: tuple[int, ...], causal: bool) -> None:
    q, k, v = triple(*shape, seed=1)
    ours = transformer.scaled_dot_product_attention(on(device, q), on(device, k), on(device, v), is_causal=causal)
    near(ours, reference(q, k, v, is_causal=causal))


@pytest.mark.parametrize("chunks", CHUNKS)
@pytest.mark.parametrize("precise", (True, False))
@pytest.mark.parametrize("approx", (True, False))
def test_chunks_and_modes(device: Any, chunks: tuple[int, int], precise: bool, approx: bool) -> None:
    q, k, v = triple(1, 2, 1, 70, 110, 64, seed=4)
    ours = transformer.scaled_dot_product_attention(
        on(device, q),
        on(device, k),
        on(device, v),
        is_causal=False,
        program_config=program(*chunks, exp_approx_mode=approx),
        compute_kernel_config=PRECISE if precise else None,
    )
    near(ours, reference(q, k, v), PRECISE_ERROR if precise and not approx else ROUGH)


@pytest.mark.parametrize("heads", (1, 4))
@pytest.mark.parametrize("batch", (1, 2))
@pytest.mark.parametrize("dtype", ("bfloat16", "bfloat8_b"))
def test_masks_of_every_broadcast_form(device: Any, heads: int, batch: int, dtype: str) -> None:
    q, k, v = triple(2, 4, 2, 40, 70, 32, seed=7)
    mask = on(device, normal(batch, heads, 40, 70, seed=8), dtype)
    ours = transformer.scaled_dot_product_attention(
        on(device, q), on(device, k), on(device, v), attn_mask=mask, is_causal=False
    )
    near(ours, reference(q, k, v, attn_mask=stored(mask)), 0.1, least=0.998)


def test_masked_keys_have_no_effect(device: Any) -> None:
    q, k, v = triple(1, 2, 2, 40, 70, 32, seed=9)
    mask = torch.zeros(1, 1, 40, 70)
    mask[..., 50:] = float("-inf")
    results = []
    for filling in (0.0, 50.0):
        k[..., 50:, :], v[..., 50:, :] = filling, filling
        results.append(
            stored(
                transformer.scaled_dot_product_attention(
                    on(device, q), on(device, k), on(device, v), attn_mask=on(device, mask), is_causal=False
                )
            )
        )
    assert torch.equal(*results)


@pytest.mark.parametrize("causal", (True, False))
@pytest.mark.parametrize("window", (1, 20, 32, 75))
def test_sliding_windows(device: Any, causal: bool, window: int) -> None:
    q, k, v = triple(1, 2, 1, 100, 100, 32, seed=10)
    row, column = torch.arange(100).unsqueeze(-1), torch.arange(100)
    seen = (column <= row) & (column > row - window) if causal else (column - row).abs() <= window // 2
    ours = transformer.scaled_dot_product_attention(
        on(device, q), on(device, k), on(device, v), is_causal=causal, sliding_window_size=window
    )
    near(ours, reference(q, k, v, attn_mask=seen))


@pytest.mark.parametrize("causal", (True, False))
def test_windows_from_their_boundaries(device: Any, causal: bool) -> None:
    q, k, v = triple(1, 2, 1, 96, 96, 32, seed=13)
    number = torch.bucketize(torch.arange(96), torch.tensor([40, 70]), right=True)
    seen = number.unsqueeze(-1) == number
    seen = seen & torch.ones(96, 96, dtype=torch.bool).tril() if causal else seen
    ours = transformer.scaled_dot_product_attention(
        on(device, q),
        on(device, k),
        on(device, v),
        is_causal=causal,
        cu_window_seqlens=indices(device, 0, 40, 70, 96),
        program_config=program(32, 64),
    )
    near(ours, reference(q, k, v, attn_mask=seen))


@pytest.mark.parametrize("config", (None, PRECISE))
def test_a_sink_takes_a_share_of_the_weights(device: Any, config: Any) -> None:
    q, k, v = triple(1, 2, 2, 64, 64, 32, seed=16)
    sink = normal(1, 2, 1, 1, seed=17)
    scores = (q @ k.mT).masked_fill(torch.ones(64, 64, dtype=torch.bool).triu(1), float("-inf"))
    shares = (torch.cat([scores, sink.expand(1, 2, 64, 1)], -1) * 32**-0.5).softmax(-1)
    ours = transformer.scaled_dot_product_attention(
        on(device, q), on(device, k), on(device, v), attention_sink=on(device, sink), compute_kernel_config=config
    )
    near(ours, shares[..., :64] @ v)


def test_interleaved_heads(device: Any) -> None:
    q, k, v = (on(device, each) for each in triple(2, 3, 3, 45, 45, 32, seed=19))
    apart = stored(transformer.scaled_dot_product_attention(q, k, v))
    together = stored(transformer.scaled_dot_product_attention(q, k, v, output_concat_heads=True))
    assert torch.equal(together, apart.transpose(1, 2).reshape(2, 1, 45, 96))


def test_scale_and_other_dtypes(device: Any) -> None:
    q, k, v = triple(1, 2, 2, 64, 64, 64, seed=22)
    coarse = [on(device, each, "bfloat8_b") for each in (k, v)]
    ours = transformer.scaled_dot_product_attention(on(device, q), *coarse, scale=0.05)
    near(ours, reference(q, *map(stored, coarse), is_causal=True, scale=0.05))


def test_large_inputs_agree_with_exact_emulation(device: Any) -> None:
    q, k, v = (on(device, each) for each in triple(1, 2, 1, 128, 128, 64, seed=25))
    results = []
    for mode in ("exact", "fast"):
        with numerics(mode):
            results.append(stored(transformer.scaled_dot_product_attention(q, k, v)))
    assert (results[0] - results[1]).abs().max() <= ROUGH
    assert pcc(*results) >= 0.9995


@settings(max_examples=25, deadline=None)
@given(
    batch=st.integers(1, 2),
    groups=st.integers(1, 2),
    repeats=st.integers(1, 3),
    rows=st.integers(1, 70),
    keys=st.integers(1, 70),
    width=st.sampled_from((32, 64)),
    causal=st.booleans(),
    masked=st.booleans(),
    chunks=st.sampled_from((None, *CHUNKS)),
    seed=st.integers(0, 1000),
)
def test_any_shape(device: Any, batch, groups, repeats, rows, keys, width, causal, masked, chunks, seed) -> None:
    keys = rows if causal else keys
    q, k, v = triple(batch, groups * repeats, groups, rows, keys, width, seed)
    options: dict[str, Any] = {"is_causal": causal}
    mask = None
    if masked and not causal:
        mask = normal(1, 1, rows, keys, seed=seed)
        options["attn_mask"] = on(device, mask)
    options["program_config"] = None if chunks is None else program(*chunks)
    ours = transformer.scaled_dot_product_attention(on(device, q), on(device, k), on(device, v), **options)
    near(ours, reference(q, k, v, attn_mask=mask, is_causal=causal), 0.1, least=0.995)


# -- paged caches, latent values, joint sequences --------------------------------------------------------------------


def paged(values: torch.Tensor, order: list[int], block: int) -> torch.Tensor:
    """[1, groups, keys, width] split into blocks in the order `order`."""
    blocks = values[0].unflatten(1, (-1, block)).transpose(0, 1)
    shuffled = torch.empty_like(blocks)
    shuffled[torch.tensor(order)] = blocks
    return shuffled


@pytest.mark.parametrize("as_tensor", (True, False))
def test_a_chunk_of_a_long_sequence(device: Any, as_tensor: bool) -> None:
    q, k, v = triple(1, 4, 2, 256, 256, 32, seed=28)
    order = [2, 0, 3, 1, 5, 4, 7, 6]
    cache = [on(device, paged(each, order, 32)) for each in (k, v)]
    table = indices(device, *order, shape=(1, 8))
    start = {"chunk_start_idx_tensor": indices(device, 64)} if as_tensor else {"chunk_start_idx": 64}
    ours = transformer.chunked_scaled_dot_product_attention(on(device, q[:, :, 64:128]), *cache, table, **start)
    near(ours, reference(q, k, v, is_causal=True)[:, :, 64:128])


def test_latent_values(device: Any) -> None:
    q, k = normal(1, 4, 64, 96, seed=31), normal(1, 1, 64, 96, seed=32)
    expected = reference(q, k, k[..., :64], is_causal=True)
    near(transformer.flash_mla_prefill(on(device, q), on(device, k), 64), expected)
    order = [1, 0]
    cache, table = on(device, paged(k, order, 32)), indices(device, *order, shape=(1, 2))
    near(transformer.chunked_flash_mla_prefill(on(device, q), cache, 64, table, 0), expected)
    ours = transformer.flash_mla_prefill(on(device, q), on(device, k), on(device, k[..., :64]))
    near(ours, expected)


@pytest.mark.parametrize("mode", ("exact", "fast"))
def test_values_of_more_heads_than_latent_keys(device: Any, mode: str) -> None:
    q, k, v = normal(1, 4, 64, 96, seed=37), normal(1, 1, 64, 96, seed=38), normal(1, 4, 64, 64, seed=39)
    with numerics(mode):
        ours = transformer.flash_mla_prefill(*[on(device, each) for each in (q, k, v)])
    near(ours, reference(q, k, v, is_causal=True))


def test_unsupported_value_layouts_are_a_fault(device: Any) -> None:
    q, k = on(device, normal(1, 4, 64, 96, seed=31)), on(device, normal(1, 1, 64, 96, seed=32))
    with pytest.raises(ChipFault):
        transformer.flash_mla_prefill(q, k, on(device, normal(1, 4, 64, 64, seed=1), layout="ROW_MAJOR"))


@pytest.mark.parametrize("lengths", ((64, 32), (45, 70), (33, 1)))
def test_two_joint_sequences(device: Any, lengths: tuple[int, int]) -> None:
    first, second = (triple(1, 2, 2, each, each, 32, seed=34 + each) for each in lengths)
    ours = transformer.joint_scaled_dot_product_attention(
        *[on(device, each) for each in (*first, *second)], joint_strategy="rear", program_config=program(32, 64)
    )
    q, k, v = (torch.cat(pair, 2) for pair in zip(first, second))
    for result, expected in zip(ours, reference(q, k, v).split(lengths, 2)):
        near(result, expected, least=0.99 if expected.shape[2] == 1 else 0.999)


# -- decoding ---------------------------------------------------------------------------------------------------------


def decoded(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, positions: list[int], **options: Any) -> torch.Tensor:
    """Attention of [1, users, heads, width] to [users, groups, keys, width], user by user."""
    result = []
    for user, position in enumerate(positions):
        seen = slice(max(position + 1 - options.get("window", position + 1), 0), position + 1)
        query = q[:, user].unsqueeze(2)
        result.append(reference(query, k[user : user + 1, :, seen], v[user : user + 1, :, seen])[:, :, 0])
    return torch.stack(result, 1)


@pytest.mark.parametrize("heads", (4, 8, 40))
@pytest.mark.parametrize("groups", (1, 2))
@pytest.mark.parametrize("config", (None, PRECISE))
def test_decoding(device: Any, heads: int, groups: int, config: Any) -> None:
    q = normal(1, 2, heads, 64, seed=40)
    k, v = normal(2, groups, 128, 64, seed=41), normal(2, groups, 128, 64, seed=42)
    positions = [100, 9]
    tensors = [on(device, each) for each in (q, k, v)]
    expected = decoded(q, k, v, positions)
    by_list = transformer.scaled_dot_product_attention_decode(*tensors, cur_pos=positions, compute_kernel_config=config)
    near(by_list, expected)
    by_tensor = transformer.scaled_dot_product_attention_decode(
        *tensors, cur_pos_tensor=indices(device, *positions), compute_kernel_config=config
    )
    assert torch.equal(stored(by_list), stored(by_tensor))


@pytest.mark.parametrize("cores", (1, 2, 3, 5))
def test_cores_share_a_head(device: Any, cores: int) -> None:
    q, k, v = normal(1, 1, 8, 32, seed=43), normal(1, 1, 256, 32, seed=44), normal(1, 1, 256, 32, seed=45)
    given_program = program(32, 32, max_cores_per_head_batch=cores)
    ours = transformer.scaled_dot_product_attention_decode(
        on(device, q), on(device, k), on(device, v), cur_pos=[200], program_config=given_program
    )
    near(ours, decoded(q, k, v, [200]))


def test_decoding_with_a_mask_and_without(device: Any) -> None:
    q, k, v = normal(1, 2, 8, 64, seed=46), normal(2, 1, 128, 64, seed=47), normal(2, 1, 128, 64, seed=48)
    tensors = [on(device, each) for each in (q, k, v)]
    near(transformer.scaled_dot_product_attention_decode(*tensors, is_causal=False), decoded(q, k, v, [127, 127]))
    mask = torch.where(torch.arange(128) < 50, 0.0, float("-inf")).expand(2, 1, 8, 128)
    ours = transformer.scaled_dot_product_attention_decode(*tensors, is_causal=False, attn_mask=on(device, mask))
    near(ours, decoded(q, k, v, [49, 49]))


def test_padding_of_keys_never_leaks(device: Any) -> None:
    q, k, v = normal(1, 1, 8, 32, seed=49), normal(1, 1, 45, 32, seed=50), normal(1, 1, 45, 32, seed=51)
    tensors = [on(device, each) for each in (q, k, v)]
    ours = transformer.scaled_dot_product_attention_decode(*tensors, cur_pos=[44], program_config=program(32, 32))
    near(ours, decoded(q, k, v, [44]))
    with pytest.raises(ChipFault):
        transformer.scaled_dot_product_attention_decode(*tensors, is_causal=False, program_config=program(32, 32))


@pytest.mark.parametrize("block", (16, 32, 64))
@pytest.mark.parametrize("window", (None, 40))
def test_decoding_from_pages(device: Any, block: int, window: int | None) -> None:
    q, k, v = normal(1, 1, 8, 32, seed=52), normal(1, 2, 128, 32, seed=53), normal(1, 2, 128, 32, seed=54)
    count = 128 // block
    order = torch.randperm(count, generator=torch.Generator().manual_seed(1)).tolist()
    cache = [on(device, paged(each, order, block)) for each in (k, v)]
    options = {"cur_pos_tensor": indices(device, 90), "sliding_window_size": window if block >= 32 else None}
    table = indices(device, *order, shape=(1, count))
    ours = transformer.paged_scaled_dot_product_attention_decode(on(device, q), *cache, table, **options)
    used = options["sliding_window_size"]
    near(ours, decoded(q, k, v, [90], **({"window": used} if used else {})))


def in_tiles(pages: torch.Tensor, heads: int, rows: int, width: int) -> torch.Tensor:
    """Pages [P, …] as heads × rows × width per page, with the same tiles in the same order."""
    tiles = pages.unflatten(2, (-1, 32)).unflatten(4, (-1, 32)).transpose(3, 4)
    tiles = tiles.reshape(pages.shape[0], heads, rows // 32, width // 32, 32, 32)
    return tiles.transpose(3, 4).reshape(pages.shape[0], heads, rows, width)


@pytest.mark.parametrize("stored_as", ((1, 128, 64), (1, 32, 256), (2, 32, 128), (4, 64, 32)))
def test_a_geometry_relabels_the_tiles_of_pages(device: Any, stored_as: tuple[int, int, int]) -> None:
    k, v = normal(1, 2, 128, 64, seed=71), normal(1, 2, 128, 64, seed=72)
    order, geometry = [1, 0], ttnn.PagedCacheGeometryOverride(block_size=64, num_kv_heads=2)
    cache = [on(device, in_tiles(paged(each, order, 64), *stored_as)) for each in (k, v)]
    table = indices(device, *order, shape=(1, 2))
    q = normal(1, 1, 4, 64, seed=73)
    ours = transformer.paged_scaled_dot_product_attention_decode(
        on(device, q), *cache, table, cur_pos_tensor=indices(device, 100), paged_cache_geometry=geometry
    )
    near(ours, decoded(q, k, v, [100]))
    q = normal(1, 4, 128, 64, seed=74)
    table = indices(device, *order, *[0] * 6, shape=(1, 8))
    ours = transformer.chunked_scaled_dot_product_attention(
        on(device, q[:, :, 64:]), *cache, table, 64, paged_cache_geometry=geometry
    )
    near(ours, reference(q, k, v, is_causal=True)[:, :, 64:])


def test_decoding_with_latent_values(device: Any) -> None:
    q, k = normal(1, 1, 8, 96, seed=55), normal(1, 1, 64, 96, seed=56)
    expected = decoded(q, k, k[..., :64], [40])
    near(
        transformer.flash_multi_latent_attention_decode(on(device, q), on(device, k), None, 64, cur_pos=[40]), expected
    )
    table = indices(device, 1, 0, shape=(1, 2))
    ours = transformer.paged_flash_multi_latent_attention_decode(
        on(device, q), on(device, paged(k, [1, 0], 32)), None, 64, table, cur_pos_tensor=indices(device, 40)
    )
    near(ours, expected)


def test_a_user_can_be_skipped(device: Any) -> None:
    q, k, v = normal(1, 2, 8, 32, seed=57), normal(2, 1, 64, 32, seed=58), normal(2, 1, 64, 32, seed=59)
    ours = stored(
        transformer.scaled_dot_product_attention_decode(
            *[on(device, each) for each in (q, k, v)], cur_pos_tensor=indices(device, 40, -1)
        )
    )
    near_one = decoded(q[:, :1], k[:1], v[:1], [40])
    assert pcc(ours[:, :1], near_one) >= 0.999


@settings(max_examples=15, deadline=None)
@given(
    users=st.integers(1, 3),
    groups=st.integers(1, 2),
    repeats=st.integers(1, 4),
    position=st.integers(0, 127),
    window=st.sampled_from((None, 1, 33, 64)),
    cores=st.integers(1, 4),
    seed=st.integers(0, 1000),
)
def test_decoding_at_any_position(device: Any, users, groups, repeats, position, window, cores, seed) -> None:
    q = normal(1, users, groups * repeats, 32, seed=seed)
    k, v = (normal(users, groups, 128, 32, seed=seed + each) for each in (1, 2))
    positions = [(position + 40 * user) % 128 for user in range(users)]
    ours = transformer.scaled_dot_product_attention_decode(
        *[on(device, each) for each in (q, k, v)],
        cur_pos=positions,
        sliding_window_size=window,
        program_config=program(32, 32, max_cores_per_head_batch=cores),
    )
    expected = decoded(q, k, v, positions, **({"window": window} if window else {}))
    near(ours, expected, 0.1, least=0.995)
