"""fp8_e4m3: how values are rounded to it, and operations of chunked prefill on Blackhole that use it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

import ttnn_emulator as ttnn
from ttnn_emulator.errors import InvalidArgument, NotEmulated

PREFILL = ttnn.experimental.deepseek_prefill


@pytest.fixture
def blackhole() -> Iterator[Any]:
    device = ttnn.open_device(device_id=0, board="p150")
    yield device
    ttnn.close_device(device)


def rows(content: torch.Tensor, device: Any, dtype: Any = ttnn.fp8_e4m3) -> Any:
    return ttnn.from_torch(content, dtype=dtype, layout=ttnn.ROW_MAJOR_LAYOUT, device=device)


def read(tensor: Any, device: Any) -> torch.Tensor:
    return ttnn.to_torch(tensor, mesh_composer=ttnn.ConcatMeshToTensor(device, dim=0))


def values(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def test_rounding_matches_the_library(blackhole: Any) -> None:
    """Bytes as returned by `ttnn` 0.81.1."""
    inputs = [448.0, 464, 1e9, torch.inf, torch.nan, -torch.nan, -500, 2**-6, 0.0156, -(2**-7), 17, 18, 19, 432, 1.1875]
    result = read(rows(torch.tensor([inputs]), blackhole), blackhole)
    assert result.dtype is torch.float8_e4m3fn
    expected = [126, 126, 126, 126, 127, 127, 254, 8, 0, 128, 88, 89, 90, 126, 58]
    assert result.view(torch.uint8).tolist() == [expected]


def test_rejected_arguments(blackhole: Any, device: Any) -> None:
    x = torch.ones(32, 128)
    with pytest.raises(InvalidArgument, match="BLACKHOLE"):
        rows(x, device)
    with pytest.raises(InvalidArgument, match="ROW_MAJOR"):
        ttnn.from_torch(x, dtype=ttnn.fp8_e4m3, layout=ttnn.TILE_LAYOUT)
    with pytest.raises(InvalidArgument, match="float32"):
        rows(x.bfloat16(), blackhole)
    with pytest.raises(InvalidArgument, match="mesh_composer"):
        ttnn.to_torch(rows(x, blackhole))
    with pytest.raises(NotEmulated):
        ttnn.relu(rows(x, blackhole))
    assert "448.0000" in repr(rows(448 * x, blackhole))


def test_casts(blackhole: Any) -> None:
    x = values(5, 100)
    small = ttnn.typecast(rows(x, blackhole, ttnn.float32), ttnn.fp8_e4m3)
    assert torch.equal(ttnn.to_torch(ttnn.typecast(small, ttnn.float32)), read(small, blackhole).float())
    large = x.abs() >= 2**-6
    assert (read(small, blackhole).float() - x)[large].abs().div(x.abs()[large]).max() <= 2**-3  # truncated


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("power_of_two", [False, True])
def test_round_trip(power_of_two: bool, dtype: str, blackhole: Any) -> None:
    x = values(3, 7, 256) * torch.logspace(-3, 3, 7).reshape(1, 7, 1)
    source = ttnn.from_torch(x, dtype=getattr(ttnn, dtype), layout=ttnn.TILE_LAYOUT, device=blackhole)
    small, scales = PREFILL.per_token_cast_to_fp8(source, round_scale_to_power_of_two=power_of_two)
    factors = ttnn.to_torch(scales)
    largest = x.reshape(3, 7, 2, 128).abs().amax(-1).clamp(1e-4)
    expected = largest / 448
    if power_of_two:
        assert torch.equal(factors, torch.exp2(factors.log2().round()))
        assert ((factors >= 0.99 * expected) & (factors <= 2.02 * expected)).all()
    else:
        assert (factors / expected - 1).abs().max() < 2**-7
    for narrow in (False, True):
        result = ttnn.to_torch(PREFILL.per_token_cast_back(small, scales, ttnn.float32, None, narrow))
        error = (result - x).reshape(3, 7, 2, 128).abs() / largest.unsqueeze(-1)
        assert error.max() < 2**-3 + 2**-7  # truncated, not rounded


def test_rows_of_experts_are_cast_back(blackhole: Any) -> None:
    x = rows(values(128, 128), blackhole)
    scales = values(128, 1, seed=2)
    tail = torch.cat([torch.zeros(128, 3, dtype=torch.int32), scales.view(torch.int32)], 1)

    def numbers(content: list[int]) -> Any:
        return rows(torch.tensor(content), blackhole, ttnn.uint32)

    experts: dict[str, Any] = {
        "token_count_aware": True,
        "expert_region_offsets": numbers([0, 32, 64]),
        "expert_token_counts": numbers([10, 5, 64]),
        "global_expert_idx_table": numbers([1, 0]),
        "experts_per_chip": 2,
    }
    expected = read(x, blackhole).float() * scales
    for source in (
        {"input_scale": rows(scales, blackhole, ttnn.float32)},
        {"metadata": rows(tail, blackhole, ttnn.int32)},
    ):
        result = ttnn.to_torch(PREFILL.per_token_cast_back(x, output_dtype=ttnn.float32, **source, **experts))
        error = (result[:64] - expected[:64]).abs() / expected[:64].abs().clamp(1e-3)
        assert error.max() < 2**-9


@pytest.mark.parametrize("layout", ["TILE", "ROW_MAJOR"])
def test_rows_are_packed_into_a_cache(layout: str, blackhole: Any) -> None:
    latent, scales = rows(values(1, 1, 32, 512), blackhole), rows(values(1, 1, 32, 4), blackhole, ttnn.float32)
    content = values(1, 1, 32, 64, seed=3)
    rope = rows(content, blackhole, ttnn.bfloat16)
    packed = PREFILL.pack_scaled_fp8_kv_cache(latent, scales, rope)
    whole = read(packed, blackhole).view(torch.uint8)
    assert torch.equal(whole[..., :512], read(latent, blackhole).view(torch.uint8))
    assert torch.equal(whole[..., 512:528].contiguous().view(torch.float32), ttnn.to_torch(scales))
    assert torch.equal(whole[..., 528:].contiguous().view(torch.bfloat16), content.bfloat16())
    cache = ttnn.empty([2, 1, 64, 656], ttnn.fp8_e4m3, ttnn.ROW_MAJOR_LAYOUT, blackhole)
    rope_tensor = ttnn.from_torch(
        content, dtype=ttnn.bfloat16, layout=getattr(ttnn, f"{layout}_LAYOUT"), device=blackhole
    )
    PREFILL.update_padded_kv_cache(cache, latent, 1, 0, 1, 32, 0, rope=rope_tensor, scales=scales)
    stored = read(cache, blackhole).view(torch.uint8)
    assert torch.equal(stored[1, :, 32:], whole[0]) and not stored[0].any() and not stored[1, :, :32].any()
    PREFILL.zero_padded_kv_cache(cache, 1, 0, 1, 40, 64, 0, 32)
    stored = read(cache, blackhole).view(torch.uint8)
    assert torch.equal(stored[1, :, 32:40], whole[0, :, :8]) and not stored[1, :, 40:].any()
