"""Parts of Kimi Delta Attention, compared with torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import pcc, stored, upload
from ttnn_emulator.enums import MathFidelity
from ttnn_emulator.numerics.mode import numerics
from ttnn_emulator.numerics.programs.attention.indexer_scores import multiplied_onto
from ttnn_emulator.numerics.units.matrix_unit import MathConfig, matmul


def normal(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).bfloat16().float()


@pytest.mark.parametrize(("batch", "heads", "tokens", "width"), ((1, 2, 32, 64), (2, 3, 64, 128)))
@pytest.mark.parametrize("dtype", ("float32", "bfloat16"))
@pytest.mark.parametrize("out", ("float32", "bfloat16"))
@pytest.mark.parametrize("mode", ("exact", "fast"))
def test_gated_norm(
    device: Any, batch: int, heads: int, tokens: int, width: int, dtype: str, out: str, mode: str
) -> None:
    x, gate = normal(batch * heads, tokens, width, seed=1), normal(batch, tokens, 32 + heads * width, seed=2)
    weight = normal(width, seed=3)
    with numerics(mode):
        ours = ttnn.experimental.kda.sigmoid_gated_rms_norm(
            upload(x, dtype, "TILE", device),
            upload(gate, "bfloat16", "TILE", device),
            upload(weight, "bfloat16", "TILE", device),
            heads,
            epsilon=1e-5,
            output_dtype=getattr(ttnn, out),
            gate_column_offset=32,
        )
    result = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * weight
    result = result.unflatten(0, (batch, heads)).transpose(1, 2).flatten(2)
    expected = result * torch.sigmoid(gate[..., 32:])
    assert list(stored(ours).shape) == list(expected.shape)
    assert pcc(stored(ours), expected) >= 0.9999
    assert (stored(ours) - expected).abs().max() <= 0.02 * expected.abs().max()


@pytest.mark.parametrize("layout", ("TILE", "ROW_MAJOR"))
@pytest.mark.parametrize("offset", (0, 32))
@pytest.mark.parametrize("mode", ("exact", "fast"))
def test_convolution(device: Any, layout: str, offset: int, mode: str) -> None:
    x, history, taps = normal(64, 160, seed=1), normal(3, 128, seed=2), normal(4, 128, seed=3)
    with numerics(mode):
        result = ttnn.experimental.kda.qkv_causal_conv1d_silu(
            upload(x.unsqueeze(0), "bfloat16", layout, device),
            upload(history.unsqueeze(0), "bfloat16", "ROW_MAJOR", device),
            *(upload(tap, "bfloat16", "TILE", device) for tap in taps),
            64,
            32,
            32,
            program_config=ttnn.QkvCausalConv1dSiluProgramConfig(channel_chunk_size=64),
            actual_start=upload(torch.tensor([96]), "uint32", "ROW_MAJOR", device),
            predecessor_carry=upload(torch.zeros(1, 3, 128), "bfloat16", "ROW_MAJOR", device),
            input_column_offset=offset,
        )
    tokens = torch.cat([history, x[:, offset : offset + 128]])
    sums = sum(taps[number] * tokens[number : number + 64] for number in range(4))
    assert isinstance(sums, torch.Tensor)
    expected = torch.nn.functional.silu(sums)
    assert [list(each.shape) for each in result] == [[1, 64, 64], [1, 64, 32], [1, 64, 32]]
    assert pcc(torch.cat([stored(each)[0] for each in result], -1), expected) >= 0.9998


@pytest.mark.parametrize("fidelity", (MathFidelity.LoFi, MathFidelity.HiFi2, MathFidelity.HiFi4))
@pytest.mark.parametrize("wide", (False, True))
def test_a_product_with_a_diagonal_is_elementwise(fidelity: MathFidelity, wide: bool) -> None:
    """So the convolution can skip the zeros of its diagonal matrices and stay bit-exact."""
    config = MathConfig(fidelity, wide)
    rows, weight = normal(32, 32, seed=4), normal(1, 32, seed=5)
    with numerics("exact"):
        whole = matmul(rows, torch.diag(weight[0]), config)
    assert torch.equal(whole, multiplied_onto(torch.zeros(32, 32), weight, rows, config, exact=True))
