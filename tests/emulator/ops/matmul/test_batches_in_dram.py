"""matmul with batches of weights in DRAM banks: one core per bank computes the products of its batches."""

from __future__ import annotations

import pytest
import torch

import ttnn_emulator as ttnn
from tests.emulator.ops.against_torch import pcc
from ttnn_emulator.errors import InvalidArgument

BATCH, ROWS, INNER, COLUMNS = 12, 32, 128, 64


def _height_sharded(buffer, cores, shape):
    shards = ttnn.ShardSpec(cores, shape, ttnn.ShardOrientation.ROW_MAJOR)
    return ttnn.MemoryConfig(ttnn.TensorMemoryLayout.HEIGHT_SHARDED, buffer, shards)


def _cores(coordinates):
    return ttnn.CoreRangeSet([ttnn.CoreRange(core, core) for core in coordinates])


def _multiply(device, *, inputs, outputs=None, block=4, rows=1, columns=2, dtype=ttnn.bfloat16):
    x, weights = (
        torch.randn(1, BATCH, *shape, generator=torch.Generator().manual_seed(0)).bfloat16()
        for shape in ((ROWS, INNER), (INNER, COLUMNS))
    )
    banks = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(11, 0))])
    in_l1 = _height_sharded(ttnn.BufferType.L1, _cores(inputs), (ROWS * BATCH // len(inputs), INNER))
    in_dram = _height_sharded(ttnn.BufferType.DRAM, banks, (INNER, COLUMNS))
    outputs = inputs if outputs is None else outputs
    a = ttnn.from_torch(x, layout=ttnn.TILE_LAYOUT, device=device, memory_config=in_l1)
    b = ttnn.from_torch(weights, dtype=ttnn.bfloat8_b, layout=ttnn.TILE_LAYOUT, device=device, memory_config=in_dram)
    program = ttnn.MatmulMultiCoreReuseMultiCastBatchedDRAMShardedProgramConfig(
        in0_block_w=block, per_core_M=rows, per_core_N=columns, fused_activation=None
    )
    memory = _height_sharded(ttnn.BufferType.L1, _cores(outputs), (ROWS * BATCH // len(outputs), COLUMNS))
    result = ttnn.matmul(a, b, program_config=program, memory_config=memory, dtype=dtype)
    return result, memory, x.float() @ ttnn.to_torch(b).float()


@pytest.fixture
def nearest(device):
    return device.get_optimal_dram_bank_to_logical_worker_assignment(ttnn.NOC.NOC_0)


@pytest.mark.parametrize("block", (1, 2, 4))
def test_products_of_batches(device, nearest, block: int) -> None:
    result, memory, reference = _multiply(device, inputs=nearest, block=block)
    assert result.memory_config() == memory
    assert pcc(ttnn.to_torch(result).float(), reference) >= 0.999


def _line(nearest):
    return [ttnn.CoreCoord(x, 0) for x in range(8)] + [ttnn.CoreCoord(x, 1) for x in range(4)]


@pytest.mark.parametrize(
    "changed",
    (
        {"inputs": _line},
        {"outputs": _line},
        {"inputs": lambda nearest: nearest[::-1]},
        {"inputs": lambda nearest: nearest[:6]},
        {"rows": 2},
        {"columns": 1},
        {"block": 3},
    ),
)
def test_rejected(device, nearest, changed: dict) -> None:
    """As in ttnn 0.81.1: cores other than the nearest, another order, parts of a product."""
    asked = {"inputs": nearest, **changed}
    asked = {name: value(nearest) if callable(value) else value for name, value in asked.items()}
    with pytest.raises(InvalidArgument):
        _multiply(device, **asked)


# Buffer bytes per core in ttnn 0.81.1 (peak_dataflow_buffer of the captured call).
@pytest.mark.parametrize(
    ("block", "dtype", "bytes_"),
    ((4, "bfloat16", 46592), (2, "bfloat16", 25344), (4, "bfloat8_b", 44672), (1, "bfloat8_b", 16896)),
)
def test_bytes_of_circular_buffers(device, nearest, block: int, dtype: str, bytes_: int) -> None:
    ttnn.graph.begin_graph_capture(ttnn.graph.RunMode.NO_DISPATCH)
    _multiply(device, inputs=nearest, block=block, dtype=getattr(ttnn, dtype))
    use = ttnn.graph.extract_resource_usage_per_core(ttnn.graph.end_graph_capture())
    assert use.peak_cb == bytes_
