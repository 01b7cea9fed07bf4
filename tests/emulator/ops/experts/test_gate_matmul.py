"""moe_gate_mm compared with torch: a matrix product on twelve cores, and the best experts of the best groups."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import LEAST_PCC, pcc, stored
from tests.emulator.ops.matmul.test_fused_products import on_cores
from ttnn_emulator.numerics.programs.experts import gate_on_ring as numeric

INNER, EXPERTS, LAYER = 7168, 256, 2464
OWN, SENT = 152, 72  # tiles of the inner dimension
SENDERS = (0, 3, 6, 9)


def ring(device: Any) -> tuple[list[Any], list[Any]]:
    """The cores next to the DRAM banks, from the highest to the lowest, and their banks."""
    near = device.get_optimal_dram_bank_to_logical_worker_assignment(ttnn.NOC.NOC_0)
    order = sorted(range(len(near)), key=lambda bank: (near[bank].y, near[bank].x), reverse=True)
    return [near[bank] for bank in order], [ttnn.CoreCoord(bank, 0) for bank in order]


def in_banks(weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """[12, 1, 2464, 64]: the contents that the kernels expect in the bank of each core of the ring."""
    tiles = weight.reshape(OWN + SENT, 32, 8, 32).permute(2, 0, 1, 3)  # [column, tile, 32, 32]
    banks, column = [], 0
    for number in range(12):
        bank = torch.zeros(LAYER, 64)
        if number in SENDERS:
            pairs = torch.cat((tiles[column, OWN:], tiles[column + 1, OWN:]), -1)
        else:
            pairs = torch.cat((tiles[column, :OWN:2], tiles[column, 1:OWN:2]), -1)
            bank[76 * 32, :32] = bias[column * 32 : column * 32 + 32]
            column += 1
        bank[: pairs.shape[0] * 32] = pairs.reshape(-1, 64)
        banks.append(bank)
    return torch.stack(banks).unsqueeze(1)


class Gate:
    def __init__(self, device: Any, x: torch.Tensor, banks: torch.Tensor) -> None:
        self.device = device
        self.cores, self.banks = ring(device)
        self.x = self.placed(x.expand(12, -1, -1), self.cores, (32, INNER), "HEIGHT_SHARDED", "L1")
        rows = banks.shape[1] * banks.shape[2]
        self.weight = self.placed(banks, self.banks, (rows, 64), "HEIGHT_SHARDED", "DRAM")
        self.out = self.placed(torch.zeros(32, 384), self.cores, (32, 32), "WIDTH_SHARDED", "L1")

    def placed(self, values: torch.Tensor, cores: list[Any], shard: tuple[int, int], kind: str, where: str) -> Any:
        config = on_cores(cores, shard, kind, where)
        return ttnn.from_torch(
            values, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=self.device, memory_config=config
        )

    def run(self, *, layer: int = 0, column: int = 0, **others: Any) -> torch.Tensor:
        arguments = {"w_tensor": self.weight, "output_tensor": self.out} | others
        x = arguments.pop("x", self.x)
        result = ttnn.experimental.deepseek.moe.moe_gate_mm(x, **arguments, layer_id=layer, column_id=column)
        return stored(result)


def numbers(rows: torch.Tensor) -> torch.Tensor:
    """Integers below 256 in the exponent bits of bfloat16."""
    return (rows.bfloat16().view(torch.int16).int() >> 7) & 0xFF


def drawn() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(2)
    x = (torch.rand(32, INNER, generator=generator) - 0.5).bfloat16().float()
    weight = ((torch.rand(INNER, EXPERTS, generator=generator) - 0.5) / 8).bfloat16().float()
    # Distant biases, so that the last bits of the scores do not affect the selection.
    bias = (torch.randperm(EXPERTS, generator=generator) * 4.0).bfloat16().float()
    return x, weight, bias


@pytest.mark.parametrize("column", (0, 5))
def test_gate_selects_the_best_experts(column: int, device: Any) -> None:
    x, weight, bias = drawn()
    tiles = Gate(device, x, in_banks(weight, bias)).run(column=column).reshape(32, 12, 32).transpose(0, 1)
    product = x @ weight
    scores = torch.sigmoid(product) + bias
    groups = scores.reshape(32, 8, 32).topk(2).values.sum(-1).topk(4).indices
    inside = torch.zeros(32, 8).scatter(1, groups, 1.0).repeat_interleave(32, 1)
    best = torch.where(inside > 0, scores, -torch.inf).topk(8)
    indices, values = numbers(tiles[11, 8:16]).T, tiles[11, :8].T
    assert torch.equal(indices, best.indices.int())
    assert ((values - best.values) / best.values).abs().max() <= 2**-7
    in_column = best.indices // 32 == column
    for half, row in enumerate(tiles[11, 16:18]):
        bits = torch.where(in_column & (best.indices % 32 // 16 == half), 1 << best.indices % 16, 0).sum(-1)
        # The exponent bits are the mask's low byte: if it is 0, the value is a denormal, which the packer flushes.
        assert torch.equal(numbers(row), torch.where(bits & 0xFF == 0, 0, bits & 0xFF).int())
    receivers = [number for number in range(11) if number not in SENDERS]
    for group, number in enumerate(receivers):
        own = scores[:, group * 32 : group * 32 + 32]
        assert ((tiles[number] - own) / own.clamp(min=1)).abs().max() <= 0.02
    for number in SENDERS:
        first = 2 * SENDERS.index(number) * 32
        part = x[:, OWN * 32 :] @ weight[OWN * 32 :, first : first + 32]
        assert pcc(tiles[number], part) >= LEAST_PCC["bfloat16"] - 0.01


def test_scores_without_biases(device: Any) -> None:
    x, weight, _ = drawn()
    tiles = Gate(device, x, in_banks(weight, torch.zeros(EXPERTS))).run().reshape(32, 12, 32).transpose(0, 1)
    scores = torch.sigmoid(x @ weight)
    ours = torch.cat([tiles[number] for number in range(11) if number not in SENDERS], -1)
    assert pcc(ours, scores[:, : 7 * 32]) >= 0.98
    indices = numbers(tiles[11, 8:16]).T.long()
    assert (tiles[11, :8].T - scores.gather(1, indices)).abs().max() <= 0.06
    assert all(len(set(row.tolist())) == 8 for row in indices)


# -- selection--------------------------------------------------------------------------------------------------------


def test_equal_scores_prefer_higher_indices() -> None:
    tile = numeric.collected(torch.ones(8, 32, 32), 7)
    assert torch.equal(tile[:8], torch.ones(8, 32))
    assert torch.equal(numbers(tile[8:16])[:, 0], torch.arange(255, 247, -1).int())
    tile = numeric.collected(-torch.ones(8, 32, 32), 0)
    # For equal negative scores the lower index is the larger key; groups 0 to 3 are selected.
    assert torch.equal(numbers(tile[8:16])[:, 0], torch.arange(8).int())
    assert numbers(tile[16])[0] == 0xFF


def test_the_rest_of_the_tile_has_stale_registers() -> None:
    scores = torch.arange(1, 33).float().expand(8, 32, -1).contiguous()
    tile = numeric.collected(scores, 7)
    assert tile[20:24, 0].tolist() == [20.0, 19.0, 18.0, 17.0]
    assert tile[24:, 0].tolist() == [32.0, 31.0, 30.0, 29.0, 28.0, 27.0, 26.0, 25.0]
    # Experts 31, 30 of groups 7 to 4; those of group 7 are bits 15 and 14 of the upper mask: no low byte is left.
    assert numbers(tile[8:16])[:, 0].tolist() == [255, 223, 191, 159, 254, 222, 190, 158]
    assert numbers(tile[16:18])[:, 0].tolist() == [0, 0]


# -- calls that the library accepts-----------------------------------------------------------------------------------


def test_the_kernels_support_one_shape(device: Any) -> None:
    x, weight, bias = drawn()
    gate = Gate(device, x, in_banks(weight, bias).expand(-1, 2, -1, -1).contiguous())
    interleaved = ttnn.to_memory_config(gate.out, ttnn.L1_MEMORY_CONFIG)
    elsewhere = [ttnn.CoreCoord(x, y) for y in (1, 2) for x in range(6)]
    moved = gate.placed(torch.zeros(32, 384), elsewhere, (32, 32), "WIDTH_SHARDED", "L1")
    small = ttnn.from_torch(torch.zeros(32, 32), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    for arguments, match in (
        ({"layer": 1}, "not layer 1"),
        ({"output_tensor": interleaved}, "WIDTH_SHARDED"),
        ({"output_tensor": moved}, "all of the cores"),
        ({"w_tensor": small}, "the weight for BFLOAT16 in tiles"),
    ):
        with pytest.raises(ttnn.ChipFault, match=match):
            gate.run(**arguments)


def test_rejected_arguments(device: Any) -> None:
    x, weight, bias = drawn()
    gate = Gate(device, x, in_banks(weight, bias))
    in_dram = ttnn.to_memory_config(gate.out, ttnn.DRAM_MEMORY_CONFIG)
    interleaved = ttnn.to_memory_config(gate.x, ttnn.L1_MEMORY_CONFIG)
    for arguments, match in (
        ({"output_tensor": in_dram}, "the output must be in L1"),
        ({"x": interleaved}, "bytes per core"),
        ({"column": -1}, "column_id"),
    ):
        with pytest.raises(ttnn.EmulatorError, match=match):
            gate.run(**arguments)
