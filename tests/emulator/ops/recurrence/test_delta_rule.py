"""The gated delta rule, compared with torch in float64."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import pcc, stored, upload
from ttnn_emulator.errors import ChipFault

SIDE = 128


def normal(*shape: int, seed: int, scale: float = 1.0) -> torch.Tensor:
    return scale * torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def prepared(heads: int, chunks: int) -> list[torch.Tensor]:
    """Matrices as prepared by models: L unit lower triangular, causal attention, decay below 1."""
    square = (heads, chunks, SIDE, SIDE)
    lower = torch.tril(normal(*square, seed=1, scale=0.05), -1) + torch.eye(SIDE)
    blocks = [lower[..., at : at + 32, at : at + 32] for at in range(0, SIDE, 32)]
    inverses = torch.cat([torch.linalg.inv(block) for block in blocks], -2)
    rest = [normal(*square, seed=seed, scale=0.1) for seed in range(2, 7)]
    rest[2] = torch.tril(rest[2])
    decay = torch.rand(heads, chunks, 1, 1, generator=torch.Generator().manual_seed(7))
    return [lower, *rest, decay, inverses]


def expected(operands: list[torch.Tensor], state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    lower, values, keys, attention, queries, updates, decay, _ = (each.double() for each in operands)
    out = torch.empty_like(values)
    state = state.double()
    for at in range(lower.shape[1]):
        inverse = torch.linalg.inv(lower[:, at])
        fresh = inverse @ values[:, at] - inverse @ keys[:, at] @ state
        out[:, at] = queries[:, at] @ state + attention[:, at] @ fresh
        state = state * decay[:, at] + updates[:, at] @ fresh
    return out, state


@pytest.mark.parametrize(("heads", "chunks"), ((1, 1), (2, 3)))
@pytest.mark.parametrize("with_state", (False, True))
def test_prepared_chunks(device: Any, heads: int, chunks: int, with_state: bool) -> None:
    operands = prepared(heads, chunks)
    state = normal(heads, SIDE, SIDE, seed=8) if with_state else torch.zeros(heads, SIDE, SIDE)
    tensors = [upload(each, "float32", "TILE", device) for each in operands]
    start = upload(state, "float32", "TILE", device) if with_state else None
    result = ttnn.transformer.gated_delta_attn_seq(*tensors, initial_state=start)
    for ours, theirs in zip(result, expected(operands, state)):
        assert list(stored(ours).shape) == list(theirs.shape)
        assert pcc(stored(ours), theirs) >= 0.9995  # two fidelity phases


def test_zero_chunks_would_hang(device: Any) -> None:
    tensors = [upload(each, "float32", "TILE", device) for each in prepared(1, 1)]
    none = [ttnn.zeros([1, 0, *tuple(each.shape)[2:]], ttnn.float32, ttnn.TILE_LAYOUT, device) for each in tensors]
    with pytest.raises(ChipFault, match="hang"):
        ttnn.transformer.gated_delta_attn_seq(*none)


# -- whole sequences --------------------------------------------------------------------------------------------------


def sequence(tokens: int, heads: int, value_heads: int, keys: int, values: int) -> list[torch.Tensor]:
    """Queries and keys of unit length, values, gates below 0 and beta between 0 and 1, as in models."""
    q, k = (normal(2, tokens, heads, keys, seed=seed) for seed in (1, 2))
    q, k = (torch.nn.functional.normalize(each, dim=-1).bfloat16().float() for each in (q, k))
    v = normal(2, tokens, value_heads, values, seed=3).bfloat16().float()
    g, beta = (normal(2, tokens, value_heads, seed=seed).sigmoid() for seed in (4, 5))
    return [q, k, v, g.log(), beta]


def recurrence(operands: list[torch.Tensor], state: torch.Tensor, scale: float) -> tuple[torch.Tensor, torch.Tensor]:
    """[B, T, HV, V] and the final state, token by token in float64."""
    q, k, v, g, beta = (each.double() for each in operands)
    q, k = (each.repeat_interleave(v.shape[2] // each.shape[2], 2) for each in (q, k))
    out, state = torch.empty_like(v), state.double()
    for at in range(v.shape[1]):
        state = state * g[:, at].exp()[..., None, None]
        known = torch.einsum("bhk,bhkv->bhv", k[:, at], state)
        fresh = beta[:, at].unsqueeze(-1) * (v[:, at] - known)
        state = state + torch.einsum("bhk,bhv->bhkv", k[:, at], fresh)
        out[:, at] = scale * torch.einsum("bhk,bhkv->bhv", q[:, at], state)
    return out, state


MONO, PHASED = ttnn.ChunkGdnMonoProgramConfig(), ttnn.ChunkGdnPhasedProgramConfig()


@pytest.mark.parametrize("board", ("n150", "p150"))
@pytest.mark.parametrize(("tokens", "chunk"), ((64, 64), (100, 32), (150, 64)))
@pytest.mark.parametrize("program", (None, MONO, PHASED), ids=("auto", "mono", "phased"))
@pytest.mark.parametrize("head_major", (False, True))
def test_sequences(board: str, tokens: int, chunk: int, program: Any, head_major: bool) -> None:
    operands = sequence(tokens, 2, 4, 32, 64)
    state = normal(2, 4, 32, 64, seed=6)
    with ttnn.open_device(device_id=0, board=board) as card:
        on_card = [upload(each, "bfloat16", "TILE", card) for each in operands[:3]]
        on_card += [upload(each, "float32", "TILE", card) for each in operands[3:]]
        result, last = ttnn.transformer.chunk_gated_delta_rule(
            *on_card,
            initial_state=upload(state, "float32", "TILE", card),
            output_final_state=True,
            chunk_size=chunk,
            program_config=program,
            output_head_major=head_major,
        )
        result, last = stored(result), stored(last)
    out, end = recurrence(operands, state, 32**-0.5)
    if head_major:
        out = out.transpose(1, 2).flatten(0, 1)
    assert list(result.shape) == list(out.shape) and list(last.shape) == list(end.shape)
    assert pcc(result, out) >= 0.9995
    assert pcc(last, end) >= 0.9995


def test_flat_queries_and_keys_are_normalized(device: Any) -> None:
    operands = sequence(64, 2, 4, 64, 64)
    flat = [operands[0].flatten(2) * 3, operands[1].flatten(2) * 2, operands[2].flatten(2)]
    on_card = [upload(each, "bfloat16", "TILE", device) for each in flat]
    on_card += [upload(each, "float32", "TILE", device) for each in operands[3:]]
    result, last = ttnn.transformer.chunk_gated_delta_rule(*on_card, chunk_size=32, scale=0.5)
    assert last is None
    assert pcc(stored(result), recurrence(operands, torch.zeros(2, 4, 64, 64), 0.5)[0]) >= 0.9995


def test_constant_operands_are_checked(device: Any) -> None:
    on_card = [upload(each, "bfloat16", "TILE", device) for each in sequence(32, 1, 1, 32, 32)]
    square = torch.ones(1, 1, 32, 32)
    names = {"eye": torch.eye(32).expand_as(square), "tril": square.tril(), "ones": square}
    names["masks"] = torch.ones(1, 1, 32, 96)
    constants = {name: upload(each, "float32", "TILE", device) for name, each in names.items()}
    ttnn.transformer.chunk_gated_delta_rule(*on_card, chunk_size=32, **constants)
    with pytest.raises(ChipFault, match="eye"):
        ttnn.transformer.chunk_gated_delta_rule(*on_card, chunk_size=32, **constants | {"eye": constants["ones"]})
