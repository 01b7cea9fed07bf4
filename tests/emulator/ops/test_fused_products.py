"""Products with something around them, and sums of latents, against torch."""

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


def test_addcmul_tells_what_the_card_gets_wrong(device: Any) -> None:
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
def test_decode_adds_up_blocks_of_the_inner_dimension(blocks: int, device: Any) -> None:
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


def test_decode_tells_what_the_card_gets_wrong(device: Any) -> None:
    x = upload(drawn(32, 256), "bfloat16", "TILE", device)
    spec = ttnn.ShardSpec(GRID, (32, 64), ttnn.ShardOrientation.ROW_MAJOR)  # eight cores, of which four hold something
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
