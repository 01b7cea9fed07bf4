"""Fused products, and sums of latents, compared with torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import LEAST_PCC, pcc, stored, upload, values
from ttnn_emulator.errors import ChipFault

FLOATS = ("bfloat16", "float32", "bfloat8_b")
GRID = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(3, 1))])


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return values(shape, -2, 2, "float32", seed)


def close(ours: Any, reference: torch.Tensor, dtype: str = "bfloat16") -> None:
    assert list(ours.shape) == list(reference.shape)
    assert pcc(stored(ours), reference) >= LEAST_PCC[dtype]


def columns(tensor: torch.Tensor, cores: int, dtype: str, device: Any, height: int | None = None) -> Any:
    """Width-sharded over the first cores of a row."""
    grid = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(cores - 1, 0))])
    shard = (height or tensor.shape[:-1].numel(), tensor.shape[-1] // cores)
    spec = ttnn.ShardSpec(grid, shard, ttnn.ShardOrientation.ROW_MAJOR)
    config = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.WIDTH_SHARDED, ttnn.BufferType.L1, spec)
    return ttnn.to_memory_config(upload(tensor, dtype, "TILE", device), config)


# -- dit_minimal_matmul_addcmul_fused ---------------------------------------------------------------------------------


@pytest.mark.parametrize("wide", (True, False))
@pytest.mark.parametrize("gate_rows", (1, 64))
@pytest.mark.parametrize("gate_dtype", ("bfloat16", "float32"))
@pytest.mark.parametrize("bias", (True, False))
def test_addcmul(bias: bool, gate_dtype: str, gate_rows: int, wide: bool, device: Any) -> None:
    x, weight, residual = drawn(2, 64, 96), drawn(96, 128, seed=1) / 8, drawn(2, 64, 128, seed=2)
    gate = drawn(1, 128, seed=3) if gate_rows == 1 else drawn(2, gate_rows, 128, seed=3)
    row = drawn(1, 128, seed=4)
    operands = [upload(each, "bfloat16", "TILE", device) for each in (x, weight, residual, row)]
    ours = ttnn.experimental.dit_minimal_matmul_addcmul_fused(
        operands[0],
        operands[1],
        0.5,
        operands[2],
        upload(gate, gate_dtype, "TILE", device),
        operands[3] if bias else None,
        compute_kernel_config=ttnn.WormholeComputeKernelConfig(
            math_fidelity=ttnn.MathFidelity.HiFi4, fp32_dest_acc_en=wide, packer_l1_acc=True
        ),
    )
    close(ours, residual + 0.5 * (x @ weight + (row if bias else 0.0)) * gate)


def test_addcmul_reports_faults_of_the_card(device: Any) -> None:
    x, weight, residual = (upload(drawn(*size), "bfloat16", "TILE", device) for size in ((5, 32), (32, 64), (5, 64)))
    call = ttnn.experimental.dit_minimal_matmul_addcmul_fused
    with pytest.raises(ChipFault, match="the first for all"):
        call(x, weight, 1.0, residual, upload(drawn(5, 64), "bfloat16", "TILE", device))
    batches = upload(drawn(2, 5, 32), "bfloat16", "TILE", device)
    with pytest.raises(ChipFault, match="reads past"):
        call(batches, weight, 1.0, residual, upload(drawn(1, 64), "bfloat16", "TILE", device))


# -- matmul_decode ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("rows", (1, 32, 64))
def test_decode(rows: int, dtype: str, device: Any) -> None:
    x, weight = drawn(rows, 256), drawn(256, 512, seed=1)
    ours = ttnn.experimental.matmul_decode(
        columns(x, 4, dtype, device, height=-(-rows // 32) * 32), columns(weight, 8, dtype, device)
    )
    close(ours, x @ weight, "bfloat8_b" if dtype == "bfloat8_b" else "bfloat16")


@pytest.mark.parametrize("blocks", (2, 4))
def test_decode_sums_blocks_of_the_inner_dimension(blocks: int, device: Any) -> None:
    x, weight = drawn(32, 256), drawn(256, 128, seed=1)
    folded = weight.reshape(blocks, 256 // blocks, 128).permute(1, 0, 2).reshape(256 // blocks, blocks * 128)
    ours = ttnn.experimental.matmul_decode(
        columns(x, 4, "bfloat16", device), columns(folded, 2 * blocks, "bfloat16", device), partial_width_sharded=True
    )
    close(ours, x @ weight)


@pytest.mark.parametrize("blocks", (1, 2, 4))
def test_decode_of_batches(blocks: int, device: Any) -> None:
    x, weight = drawn(2, 2, 32, 64), drawn(4, 64, 64, seed=1)
    folded = weight.reshape(blocks, 4 // blocks, 64, 64).permute(1, 2, 0, 3).reshape(1, 1, -1, blocks * 64)
    ours = ttnn.experimental.matmul_decode(
        columns(x, 2, "bfloat16", device), columns(folded, 2 * blocks, "bfloat16", device)
    )
    close(ours, (x.reshape(4, 32, 64) @ weight).reshape(2, 2, 32, 64))


def test_decode_reports_faults_of_the_card(device: Any) -> None:
    x = upload(drawn(32, 256), "bfloat16", "TILE", device)
    spec = ttnn.ShardSpec(GRID, (32, 64), ttnn.ShardOrientation.ROW_MAJOR)  # eight cores, four of them with data
    config = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.WIDTH_SHARDED, ttnn.BufferType.L1, spec)
    with pytest.raises(ChipFault, match="are not exactly the 256 columns"):
        weight = columns(drawn(256, 256), 4, "bfloat16", device)
        ttnn.experimental.matmul_decode(ttnn.to_memory_config(x, config), weight)


# -- hc_sum_reduce ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ("bfloat16", "bfloat8_b"))
@pytest.mark.parametrize("size", ((32, 1024), (64, 2048)))
def test_sums_of_latents(size: tuple[int, int], dtype: str, device: Any) -> None:
    x = drawn(1, 1, *size)
    ours = ttnn.experimental.hc_sum_reduce(upload(x, dtype, "TILE", device))
    close(ours, x.unflatten(-1, (-1, 32)).sum(-1), dtype)


def test_sums_of_latents_do_not_convert(device: Any) -> None:
    x = upload(drawn(1, 1, 32, 1024), "bfloat16", "TILE", device)
    with pytest.raises(ChipFault, match="tiles of"):
        ttnn.experimental.hc_sum_reduce(x, dtype=ttnn.bfloat8_b)


# -- matmul_wo --------------------------------------------------------------------------------------------------------


def on_cores(cores: list[Any], shard: tuple[int, int], kind: str, where: str) -> Any:
    """Shards on these cores, in this order."""
    grid = ttnn.CoreRangeSet([ttnn.CoreRange(core, core) for core in cores])
    spec = ttnn.ShardSpec(grid, shard, ttnn.ShardOrientation.ROW_MAJOR)
    return ttnn.MemoryConfig(getattr(ttnn.TensorMemoryLayout, kind), getattr(ttnn.BufferType, where), spec)


def test_output_projection(device: Any) -> None:
    near = device.get_optimal_dram_bank_to_logical_worker_assignment(ttnn.NOC.NOC_0)
    grid = device.compute_with_storage_grid_size()
    last = [ttnn.CoreCoord(x, y) for y in reversed(range(grid.y)) for x in reversed(range(grid.x))]
    collectors = [core for core in last if core not in near][:7]
    tiles = (44, 44, 42, 42, 42, 42, 42, 42, 44, 44, 42, 42)
    x, weight = drawn(32, 16384).bfloat16().float(), drawn(16384, 896, seed=1)
    banks, start = [], 0
    for count in tiles:
        own = weight[start * 32 : (start + count) * 32].reshape(count * 32, 4, 224).transpose(0, 1).reshape(-1, 224)
        banks.append(torch.nn.functional.pad(own, (0, 0, 0, 5632 - own.shape[0])))
        start += count
    stacked = torch.stack(banks).unsqueeze(0)
    in_dram = [ttnn.CoreCoord(bank, 0) for bank in range(12)]

    def placed(
        values: torch.Tensor, dtype: Any, cores: list[Any], shard: tuple[int, int], kind: str, where: str
    ) -> Any:
        config = on_cores(cores, shard, kind, where)
        return ttnn.from_torch(values, dtype=dtype, layout=ttnn.TILE_LAYOUT, device=device, memory_config=config)

    out = placed(torch.zeros(32, 896), ttnn.bfloat16, collectors, (32, 128), "WIDTH_SHARDED", "L1")
    ttnn.experimental.deepseek.mla.matmul_wo(
        placed(x.expand(12, -1, -1), ttnn.bfloat16, near, (32, 16384), "HEIGHT_SHARDED", "L1"),
        w_tensor=placed(stacked, ttnn.bfloat8_b, in_dram, (5632, 224), "HEIGHT_SHARDED", "DRAM"),
        output_tensor=out,
        layer_id=0,
    )
    ours = stored(out).reshape(32, 7, 4, 32).transpose(1, 2).reshape(32, 896)
    assert pcc(ours, x @ weight) >= LEAST_PCC["bfloat8_b"]
