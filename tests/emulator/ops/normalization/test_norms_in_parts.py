"""Norms of rows distributed over devices, compared with torch: one device after another."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import LEAST_PCC, pcc, stored, upload
from ttnn_emulator.errors import ChipFault
from ttnn_emulator.numerics.mode import numerics
from ttnn_emulator.numerics.programs.normalization.distributed_norms import running_statistics

EPSILON = 1e-5
FAST, EXACT = "fast", "exact"


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def config(wide: bool) -> Any:
    return ttnn.WormholeComputeKernelConfig(
        math_fidelity=ttnn.MathFidelity.HiFi4, fp32_dest_acc_en=wide, math_approx_mode=False
    )


def reciprocals(device: Any, width: int) -> Any:
    grid = device.compute_with_storage_grid_size()
    cores = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(grid.x - 1, grid.y - 1))])
    return ttnn.create_layer_norm_reciprocals(device, cores, width)


# -- layer norm -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wide", (True, False))
def test_running_statistics_are_mean_and_variance(wide: bool) -> None:
    values = drawn(3, 5, 96) * 2 + 1
    shares = 1.0 / torch.arange(1, 97)
    statistics = running_statistics(values, shares, wide)
    expected = torch.stack([values.mean(-1), values.var(-1, correction=0)], -1)
    assert (statistics - expected).abs().max() <= (1e-5 if wide else 0.04)


@pytest.mark.parametrize("how", (FAST, EXACT))
@pytest.mark.parametrize("dtype", ("bfloat16", "float32"))
@pytest.mark.parametrize("devices", (1, 2, 4))
@pytest.mark.parametrize("rows", (None, "TILE", "ROW_MAJOR"))
def test_layer_norm(rows: str | None, devices: int, dtype: str, how: str, device: Any) -> None:
    width = 256
    x, weight, bias = drawn(1, 2, 40, width) * 3 - 1, drawn(width, seed=1), drawn(width, seed=2)
    parts = [upload(part.contiguous(), dtype, "TILE", device) for part in x.chunk(devices, -1)]
    known = reciprocals(device, width // devices)
    options = {"compute_kernel_config": config(True)}
    with numerics(how):
        stats = [
            ttnn.experimental.dit_layernorm_pre_allgather(part, known, dtype=ttnn.float32, **options) for part in parts
        ]
        assert all(list(each.shape) == [1, 2, 40, 64] for each in stats)
        gathered = ttnn.concat(stats, dim=-1)
        result = []
        for number, part in enumerate(parts):
            affine = {}
            if rows is not None:
                cut = [each.chunk(devices)[number] for each in (weight, bias)]
                cut = [each.reshape(-1, 32) if rows == "ROW_MAJOR" else each.reshape(1, -1) for each in cut]
                affine = dict(zip(("weight", "bias"), (upload(each, "bfloat16", rows, device) for each in cut)))
            after = ttnn.experimental.dit_layernorm_post_allgather
            result.append(stored(after(part, gathered, epsilon=EPSILON, **affine, **options)))
    reference = torch.nn.functional.layer_norm(x, (width,), weight if rows else None, bias if rows else None, EPSILON)
    assert pcc(torch.cat(result, -1), reference) >= LEAST_PCC["bfloat16"]


def test_weights_may_differ_by_batch(device: Any) -> None:
    x, weight, bias = drawn(1, 3, 32, 64), drawn(3, 1, 64, seed=1), drawn(3, 1, 64, seed=2)
    known = reciprocals(device, 64)
    part = upload(x, "bfloat16", "TILE", device)
    stats = ttnn.experimental.dit_layernorm_pre_allgather(part, known, compute_kernel_config=config(True))
    result = ttnn.experimental.dit_layernorm_post_allgather(
        part,
        stats,
        weight=upload(weight, "bfloat16", "TILE", device),
        bias=upload(bias, "bfloat16", "TILE", device),
        compute_kernel_config=config(True),
    )
    reference = torch.nn.functional.layer_norm(x, (64,), eps=EPSILON) * weight + bias
    assert pcc(stored(result), reference) >= LEAST_PCC["bfloat16"]


@pytest.mark.parametrize("dtype", ("bfloat16", "bfloat8_b"))
def test_layer_norm_in_sixteen_bits(dtype: str, device: Any) -> None:
    x = drawn(1, 1, 64, 96)
    part = upload(x, dtype, "TILE", device)
    stats = ttnn.experimental.dit_layernorm_pre_allgather(part, reciprocals(device, 96), dtype=getattr(ttnn, dtype))
    result = ttnn.experimental.dit_layernorm_post_allgather(part, stats)
    assert pcc(stored(result), torch.nn.functional.layer_norm(x, (96,), eps=EPSILON)) >= LEAST_PCC["bfloat8_b"]


def test_padded_columns_are_a_fault(device: Any) -> None:
    part = upload(drawn(1, 1, 32, 90), "bfloat16", "TILE", device)
    with pytest.raises(ChipFault, match="counts like values"):
        ttnn.experimental.dit_layernorm_pre_allgather(part, reciprocals(device, 96))


# -- RMS norm ---------------------------------------------------------------------------------------------------------


def rotation_matrix() -> torch.Tensor:
    """Pairs of columns: (a, b) → (-b, a)."""
    matrix = torch.zeros(1, 1, 32, 32)
    even = torch.arange(0, 32, 2)
    matrix[0, 0, even, even + 1] = 1.0
    matrix[0, 0, even + 1, even] = -1.0
    return matrix


@pytest.mark.parametrize("how", (FAST, EXACT))
@pytest.mark.parametrize("wide", (True, False))
@pytest.mark.parametrize("heads", (1, 2))
@pytest.mark.parametrize("rotates", (True, False))
@pytest.mark.parametrize("weighs", (True, False))
def test_rms_norm(weighs: bool, rotates: bool, heads: int, wide: bool, how: str, device: Any) -> None:
    devices, width, length = 2, 256, 40
    x, weight = drawn(1, 1, length, width), drawn(width, seed=1)
    head = width // devices // heads
    angles = drawn(1, 1, length, head // 2, seed=2).repeat_interleave(2, -1)
    parts = [upload(part.contiguous(), "bfloat16", "TILE", device) for part in x.chunk(devices, -1)]
    options = {"compute_kernel_config": config(wide)}
    with numerics(how):
        stats = [ttnn.experimental.wan_fused_rmsnorm_pre_allgather(part, **options) for part in parts]
        assert all(list(each.shape) == [1, 1, length, 32] for each in stats)
        gathered = ttnn.concat(stats, dim=-1)
        result = []
        for number, part in enumerate(parts):
            operands = {}
            if weighs:
                row = weight.chunk(devices)[number].reshape(1, -1)
                operands["weight"] = upload(row, "bfloat16", "TILE", device)
            if rotates:
                operands["transformation_mat"] = upload(rotation_matrix(), "bfloat16", "TILE", device)
                operands["rope_cos"] = upload(angles.cos(), "bfloat16", "TILE", device)
                operands["rope_sin"] = upload(angles.sin(), "float32", "TILE", device)
            after = ttnn.experimental.wan_fused_rmsnorm_post_allgather
            result.append(stored(after(part, gathered, num_heads_per_device=heads, **operands, **options)))
    reference = x / (x.pow(2).mean(-1, keepdim=True) + EPSILON).sqrt() * (weight if weighs else 1.0)
    reference = reference.reshape(1, length, devices * heads, head).transpose(1, 2)
    if rotates:
        rotated = torch.stack([-reference[..., 1::2], reference[..., ::2]], -1).flatten(-2)
        reference = reference * angles.cos() + rotated * angles.sin()
    assert pcc(torch.cat(result, 1), reference) >= LEAST_PCC["bfloat16" if wide else "bfloat8_b"]


def test_heads_must_be_whole_tiles(device: Any) -> None:
    part, stats = (upload(drawn(1, 1, 32, size), "bfloat16", "TILE", device) for size in (96, 32))
    with pytest.raises(ChipFault, match="not whole tiles"):
        ttnn.experimental.wan_fused_rmsnorm_post_allgather(part, stats, num_heads_per_device=2)
