"""The gated delta rule, held against torch in float64."""

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
    """Matrices as models prepare them: L unit lower triangular, attention to what came before, decay below 1."""
    square = (heads, chunks, SIDE, SIDE)
    lower = torch.tril(normal(*square, seed=1, scale=0.05), -1) + torch.eye(SIDE)
    blocks = [lower[..., at : at + 32, at : at + 32] for at in range(0, SIDE, 32)]
    inverses = torch.cat([torch.linalg.inv(block) for block in blocks], -2)
    rest = [normal(*square, seed=seed, scale=0.1) for seed in range(2, 7)]
    rest[2] = torch.tril(rest[2])
    decay = torch.rand(heads, chunks, 1, 1, generator=torch.Generator().manual_seed(7))
    return [lower, *rest, decay, inverses]


def expected(given: list[torch.Tensor], state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    lower, values, keys, attention, queries, updates, decay, _ = (each.double() for each in given)
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
    given = prepared(heads, chunks)
    state = normal(heads, SIDE, SIDE, seed=8) if with_state else torch.zeros(heads, SIDE, SIDE)
    tensors = [upload(each, "float32", "TILE", device) for each in given]
    start = upload(state, "float32", "TILE", device) if with_state else None
    made = ttnn.transformer.gated_delta_attn_seq(*tensors, initial_state=start)
    for ours, theirs in zip(made, expected(given, state)):
        assert list(stored(ours).shape) == list(theirs.shape)
        assert pcc(stored(ours), theirs) >= 0.9995  # two phases of products


def test_no_chunk_hangs_the_card(device: Any) -> None:
    tensors = [upload(each, "float32", "TILE", device) for each in prepared(1, 1)]
    none = [ttnn.zeros([1, 0, *tuple(each.shape)[2:]], ttnn.float32, ttnn.TILE_LAYOUT, device) for each in tensors]
    with pytest.raises(ChipFault, match="hang"):
        ttnn.transformer.gated_delta_attn_seq(*none)
