"""moe_gate_mm: a gate whose kernels use the L1 of twelve cores; the library checks little else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ttnn_emulator.conformance.case import Case, T, call, height_sharded, width_sharded

GATE = "ttnn.experimental.deepseek.moe.moe_gate_mm"
# Cores nearest to the DRAM banks of an n150 with a row of dispatch cores, in descending order, and their banks.
NEAR = ((7, 7), (3, 7), (4, 6), (4, 5), (0, 5), (4, 4), (0, 4), (6, 3), (4, 2), (4, 1), (4, 0), (0, 0))
BANKS = (5, 0, 7, 11, 3, 10, 2, 8, 9, 6, 4, 1)
CORES = [[x, y, x, y] for x, y in NEAR]
IN_DRAM = [[bank, 0, bank, 0] for bank in BANKS]


def placed(kind: str, shard: tuple[int, int], grid: list[list[int]], buffer: str = "L1") -> dict[str, Any]:
    return {"layout": kind, "buffer": buffer, "shard": list(shard), "grid": grid, "orient": "ROW_MAJOR"}


def rows_on(shard: tuple[int, int], grid: list[list[int]], buffer: str = "L1") -> dict[str, Any]:
    return placed("HEIGHT_SHARDED", shard, grid, buffer)


X = T((12, 32, 7168), mem=rows_on((32, 7168), CORES))
WEIGHT = T((12, 1, 2464, 64), mem=rows_on((2464, 64), IN_DRAM, "DRAM"))
OUT = T((32, 384), mem=placed("WIDTH_SHARDED", (32, 32), CORES))


def cases() -> Iterator[Case]:
    def gate(x: Case = X, weight: Case = WEIGHT, out: Case = OUT, layer: int = 0, column: int = 0) -> Case:
        return call(GATE, x, w_tensor=weight, output_tensor=out, layer_id=layer, column_id=column)

    for layer, column in ((0, 0), (3, 7), (0, 63), (0, 64), (1 << 31, 1 << 31)):
        yield gate(layer=layer, column=column)
    for layer, column in ((-1, 0), (0, -1), (1 << 32, 0), (0, 1 << 32)):
        yield gate(layer=layer, column=column)
    for x in (
        T((12, 32, 7168)),
        T((12, 32, 7168), mem="L1"),
        T((128, 32, 3584), mem="L1"),
        T((12, 32, 7168), host=True),
        T((12, 30, 7168), mem=rows_on((32, 7168), CORES)),
        T((12, 32, 7136), mem=rows_on((32, 7136), CORES)),
        T((12, 32, 3584), mem=rows_on((32, 3584), CORES)),
        T((12, 32, 3584), "float32", mem=rows_on((32, 3584), CORES)),
        T((12, 32, 7168), "bfloat8_b", mem=rows_on((32, 7168), CORES)),
        T((12, 32, 7168), "uint16", mem=rows_on((32, 7168), CORES)),
        T((12, 32, 7168), layout="ROW_MAJOR", mem=rows_on((32, 7168), CORES)),
        T((24, 32, 7168), mem=rows_on((64, 7168), CORES)),
        T((1, 1, 32, 7168), mem=height_sharded([32, 7168], 1)),
        T((16, 32, 7168), mem=height_sharded([32, 7168], 16)),
        T((32, 14336), mem=width_sharded([32, 7168], 2)),
        T((7168,), mem=rows_on((32, 7168), [[0, 0, 0, 0]])),
    ):
        yield gate(x)
    for weight in (
        T((12, 2, 2464, 64), mem=rows_on((4928, 64), IN_DRAM, "DRAM")),
        T((12, 1, 2464, 64)),
        T((12, 1, 2464, 64), "bfloat8_b"),
        T((32, 32), "float32"),
        T((3, 5), layout="ROW_MAJOR"),
        T((7,), "int32", "ROW_MAJOR"),
        T((32, 32), mem="L1"),
        T((32, 32), host=True),
    ):
        yield gate(weight=weight)
    for out in (
        T((32, 384)),
        T((32, 384), mem="L1"),
        T((32, 384), host=True),
        T((5,), mem="L1"),
        T((1, 2, 3, 5, 33), mem="L1"),
        T((1, 1, 32, 384), mem=placed("WIDTH_SHARDED", (32, 32), CORES)),
        T((30, 384), mem=placed("WIDTH_SHARDED", (32, 32), CORES)),
        T((64, 384), mem=placed("WIDTH_SHARDED", (64, 32), CORES)),
        T((32, 384), "float32", mem=placed("WIDTH_SHARDED", (32, 32), CORES)),
        T((32, 384), "bfloat8_b", mem=placed("WIDTH_SHARDED", (32, 32), CORES)),
        T((32, 384), "uint16", mem=placed("WIDTH_SHARDED", (32, 32), CORES)),
        T((32, 384), "uint8", mem=placed("WIDTH_SHARDED", (32, 32), CORES)),
        T((32, 384), layout="ROW_MAJOR", mem=placed("WIDTH_SHARDED", (32, 32), CORES)),
        T((16, 384), layout="ROW_MAJOR", mem=placed("WIDTH_SHARDED", (16, 32), CORES)),
        T((64, 64), mem=height_sharded([32, 64], 2)),
        T((32, 384), mem=rows_on((32, 384), [[0, 0, 0, 0]])),
    ):
        yield gate(out=out)
    # The two tensors and the buffers of the kernels do not fit into L1 together.
    large = T((24, 32, 7168), mem=rows_on((64, 7168), CORES))
    for height in (3072, 3840):
        yield gate(large, out=T((height, 384), mem=placed("WIDTH_SHARDED", (height, 32), CORES)))
