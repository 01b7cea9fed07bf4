"""Rotary embeddings compared with torch: four rounded steps in bfloat16, and the library's output shapes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import EPSILON, LEAST_PCC, pcc, stored, upload, values
from ttnn_emulator.errors import ChipFault

EXPERIMENTAL = ttnn.experimental
LARGEST = 4.0  # input magnitude; errors are relative to it where a sum cancels
STEPS = 2.0  # units in the last place: two products and a sum, each rounded


def half_rotated(x: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, -1)
    return torch.cat([-second, first], -1)


def pair_matrix() -> torch.Tensor:
    """The matrix that swaps pairs of columns and negates the second."""
    matrix = torch.zeros(32, 32)
    even = torch.arange(0, 32, 2)
    matrix[even, even + 1], matrix[even + 1, even] = 1.0, -1.0
    return matrix.reshape(1, 1, 32, 32)


def pair_rotated(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([-x[..., 1::2], x[..., 0::2]], -1).flatten(-2)


def angles(shape: tuple[int, ...], seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    angle = values(shape, -3.2, 3.2, "float32", seed)
    return angle.cos(), angle.sin()


def assert_near(ours: torch.Tensor, reference: torch.Tensor, dtype: str = "bfloat16", steps: float = STEPS) -> None:
    scale = reference.abs().clamp(min=LARGEST)
    error = ((ours - reference).abs() / (scale * EPSILON[dtype])).max().item()
    assert error <= steps, f"error of {error:.3g} ulp"
    assert pcc(ours, reference) >= LEAST_PCC[dtype]


def on(device: Any, *tensors: torch.Tensor, dtype: str = "bfloat16", layout: str = "TILE") -> list[Any]:
    return [upload(tensor, dtype, layout, device) for tensor in tensors]


def shards(width: int, cores: int, *, first: int = 0, rows: int = 32) -> Any:
    grid = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(first, 0), ttnn.CoreCoord(first + cores - 1, 0))])
    place = ttnn.ShardSpec(grid, [rows, width], ttnn.ShardOrientation.ROW_MAJOR)
    return ttnn.MemoryConfig(ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.BufferType.L1, place)


@pytest.mark.parametrize("width", [32, 64, 128])
@pytest.mark.parametrize("name", ["rotary_embedding", "rotary_embedding_hf"])
def test_halves(name: str, width: int, device: Any) -> None:
    x, cos, sin = on(device, values((2, 3, 64, width), -4, 4, "float32", 1), *angles((1, 1, 96, width), 2))
    ours = getattr(EXPERIMENTAL, name)(x, cos, sin)
    rows = [stored(each)[..., :64, :] for each in (cos, sin)]
    assert_near(stored(ours), stored(x) * rows[0] + half_rotated(stored(x)) * rows[1])


def test_halves_in_float32(device: Any) -> None:
    """A 16-bit destination register rounds to bfloat16; a 32-bit one keeps 11 bits of the operands."""
    tensors = on(device, values((1, 2, 32, 64), -4, 4, "float32", 1), *angles((1, 1, 32, 64), 2), dtype="float32")
    x, cos, sin = (stored(tensor) for tensor in tensors)
    reference = x * cos + half_rotated(x) * sin
    assert_near(stored(EXPERIMENTAL.rotary_embedding(*tensors)), reference)
    full = ttnn.WormholeComputeKernelConfig(math_fidelity=ttnn.MathFidelity.HiFi4, fp32_dest_acc_en=True)
    better = stored(EXPERIMENTAL.rotary_embedding_hf(*tensors, compute_kernel_config=full))
    assert (better - reference).abs().max() < 2.0**-6
    assert pcc(better, reference) >= LEAST_PCC["float32"]


def test_a_config_applies_only_to_cores_with_less_work(device: Any) -> None:
    """100 tile rows on 64 cores: 36 cores process two with the defaults, 28 process one with the config."""
    tensors = on(device, values((1, 100, 32, 64), -4, 4, "float32", 1), *angles((1, 1, 32, 64), 2))
    quick = ttnn.WormholeComputeKernelConfig(math_fidelity=ttnn.MathFidelity.LoFi)
    plain = stored(EXPERIMENTAL.rotary_embedding(*tensors))
    ours = stored(EXPERIMENTAL.rotary_embedding(*tensors, compute_kernel_config=quick))
    assert torch.equal(ours[:, :72], plain[:, :72])
    assert not torch.equal(ours[:, 72:], plain[:, 72:])


@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 70), st.sampled_from([32, 64, 128]), st.integers(0, 99))
def test_halves_of_any_shape(batch: int, heads: int, length: int, width: int, seed: int) -> None:
    with ttnn.open_device(device_id=0) as device:
        x, cos, sin = on(
            device, values((batch, heads, length, width), -4, 4, "float32", seed), *angles((1, 1, 96, width), seed)
        )
        ours = EXPERIMENTAL.rotary_embedding(x, cos, sin)
        assert list(ours.shape) == [batch, heads, -(-length // 32) * 32, width]  # the library keeps the padding
        rows = [stored(each)[..., :length, :] for each in (cos, sin)]
        assert_near(stored(ours)[..., :length, :], stored(x) * rows[0] + half_rotated(stored(x)) * rows[1])


def test_one_position_for_all_rows(device: Any) -> None:
    x, cos, sin = on(device, values((1, 3, 32, 64), -4, 4, "float32", 1), *angles((1, 1, 96, 64), 2))
    ours = EXPERIMENTAL.rotary_embedding(x, cos, sin, 37)
    rows = [stored(each)[..., 37:38, :] for each in (cos, sin)]
    assert_near(stored(ours), stored(x) * rows[0] + half_rotated(stored(x)) * rows[1])


def test_halves_while_decoding(device: Any) -> None:
    x, cos, sin = on(device, values((1, 2, 8, 64), -4, 4, "float32", 1), *angles((1, 2, 1, 64), 2))
    reference = stored(x) * stored(cos) + half_rotated(stored(x)) * stored(sin)
    placed = [ttnn.to_memory_config(each, shards(64, 2)) for each in (x, cos, sin)]
    assert_near(stored(EXPERIMENTAL.rotary_embedding_hf(*placed, is_decode_mode=True)), reference)


def test_pairs(device: Any) -> None:
    x, cos, sin, turn = on(
        device, values((2, 3, 50, 64), -4, 4, "float32", 1), *angles((1, 1, 64, 64), 2), pair_matrix()
    )
    ours = EXPERIMENTAL.rotary_embedding_llama(x, cos, sin, turn)
    rows = [stored(each)[..., :50, :] for each in (cos, sin)]
    assert_near(stored(ours), stored(x) * rows[0] + pair_rotated(stored(x)) * rows[1])


def test_pairs_beyond_the_cache_are_zero(device: Any) -> None:
    x, cos, sin, turn = on(device, torch.ones(1, 1, 96, 64), *angles((1, 1, 32, 64), 2), pair_matrix())
    ours = stored(EXPERIMENTAL.rotary_embedding_llama(x, cos, sin, turn))
    assert bool(ours[..., :32, :].any()) and not bool(ours[..., 32:, :].any())


def test_pairs_of_query_and_key(device: Any) -> None:
    query, key = (values((1, 2, heads, 64), -4, 4, "float32", heads) for heads in (8, 4))
    q, k, cos, sin, turn = on(device, query, key, *angles((1, 4, 1, 64), 2), pair_matrix().repeat(1, 1, 4, 1))
    alone = ttnn.to_memory_config(turn, shards(32, 4))
    trig = [ttnn.to_memory_config(each, shards(64, 4)) for each in (cos, sin)]
    placed = [ttnn.to_memory_config(each, shards(64, 2, first=first)) for each, first in ((q, 0), (k, 2))]
    result = EXPERIMENTAL.rotary_embedding_llama_fused_qk(*placed, *trig, alone)
    for ours, tensor, users in zip(result, (q, k), (slice(0, 2), slice(2, 4))):
        x, rows = stored(tensor), [stored(each)[:, users] for each in (cos, sin)]
        assert_near(stored(ours), x * rows[0] + pair_rotated(x) * rows[1])
        assert ours.memory_config() == placed[0 if tensor is q else 1].memory_config()


def test_rotate_half(device: Any) -> None:
    for shape in ((1, 2, 40, 64), (3, 33, 192), (64, 128)):
        (x,) = on(device, values(shape, -4, 4, "float32", 1))
        assert torch.equal(stored(EXPERIMENTAL.rotate_half(x)), half_rotated(stored(x)))


def test_repeated_operands(device: Any) -> None:
    a, b = on(device, values((1, 1, 32, 32), -2, 2, "float32", 1), values((1, 1, 32, 5120), -2, 2, "float32", 2))
    ours = stored(EXPERIMENTAL.repeat_and_interleave_eltwise_mul(a, b))
    reference = stored(a).repeat(1, 1, 1, 5120) * stored(b).repeat_interleave(32, -1)
    assert_near(ours, reference, steps=1.0)


def test_infinities_and_nan(device: Any) -> None:
    """NaN becomes infinity in the matrix unit."""
    x = torch.ones(1, 1, 32, 64)
    x[..., 3] = torch.nan
    tensors = on(device, x, torch.ones(1, 1, 32, 64), torch.zeros(1, 1, 32, 64))
    ours = stored(EXPERIMENTAL.rotary_embedding(*tensors))
    assert not ours.isnan().any() and ours[..., 3].isinf().all()


def test_narrow_heads_of_float32_are_a_fault(device: Any) -> None:
    tensors = on(device, torch.ones(1, 1, 32, 32), *angles((1, 1, 32, 32), 1), dtype="float32")
    with pytest.raises(ChipFault, match="float32"):
        EXPERIMENTAL.rotary_embedding(*tensors)
