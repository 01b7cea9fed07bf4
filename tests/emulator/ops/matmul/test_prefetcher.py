"""Weights that a matmul reads from a global circular buffer."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import ttnn_emulator as ttnn

SENDERS, RING = ((0, 0), (1, 0)), ((0, 1), (1, 1), (2, 1), (3, 1))


def cores(*places: tuple[int, int]) -> Any:
    return ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(*place), ttnn.CoreCoord(*place)) for place in places])


def sharded(layout: str, buffer: str, grid: Any, shape: list[int]) -> Any:
    kind, where = getattr(ttnn.TensorMemoryLayout, layout), getattr(ttnn.BufferType, buffer)
    return ttnn.MemoryConfig(kind, where, ttnn.ShardSpec(grid, shape, ttnn.ShardOrientation.ROW_MAJOR))


OUT = sharded("WIDTH_SHARDED", "L1", cores(*RING), [32, 64])


class Line:
    """Two senders with two receivers each, and weights of the same shape in two banks."""

    def __init__(self, device: Any, inner: int = 256, weights: int = 2, order: tuple = RING, size: int = 200_000):
        self.device, self.inner = device, inner
        mapping = [(ttnn.CoreCoord(*sender), cores(*order[2 * n : 2 * n + 2])) for n, sender in enumerate(SENDERS)]
        self.buffer = ttnn.create_global_circular_buffer(device, mapping, size)
        generator = torch.Generator().manual_seed(0)
        self.values = [torch.randn(inner, 256, generator=generator) for _ in range(weights)]
        banks = sharded("WIDTH_SHARDED", "DRAM", cores((0, 0), (1, 0)), [inner, 128])
        self.weights = [self.upload(values, banks, ttnn.bfloat8_b) for values in self.values]
        self.a = torch.randn(1, 1, 32, inner, generator=generator)
        self.input = self.upload(self.a, sharded("WIDTH_SHARDED", "L1", cores(*RING), [32, 64]), ttnn.bfloat16)

    def upload(self, values: torch.Tensor, memory: Any, dtype: Any) -> Any:
        tile = ttnn.ROW_MAJOR_LAYOUT if dtype is ttnn.uint32 else ttnn.TILE_LAYOUT
        return ttnn.from_torch(values, dtype=dtype, layout=tile, device=self.device, memory_config=memory)

    def prefetch(self, layers: int = 1) -> Any:
        count = len(self.weights) // layers
        rows = torch.tensor([[each.buffer_address() for each in self.weights]] * 2)
        memory = sharded("HEIGHT_SHARDED", "L1", cores(*SENDERS), [1, len(self.weights)])
        return ttnn.dram_prefetcher(
            [*self.weights[:count], self.upload(rows, memory, ttnn.uint32)], layers, self.buffer
        )

    def program(self, buffer: bool = True, **fields: Any) -> Any:
        return ttnn.MatmulMultiCoreReuseMultiCast1DProgramConfig(
            compute_with_storage_grid_size=(4, 1),
            in0_block_w=1,
            out_subblock_h=1,
            out_subblock_w=2,
            per_core_M=1,
            per_core_N=2,
            fuse_batch=True,
            mcast_in0=False,
            gather_in0=True,
            num_global_cb_receivers=2 if buffer else 1,
            **fields,
        )

    def matmul(self, number: int = 0, buffer: bool = True, **fields: Any) -> Any:
        return ttnn.matmul(
            self.input,
            self.weights[number],
            program_config=self.program(buffer, **fields),
            memory_config=OUT,
            global_cb=self.buffer if buffer else None,
        )


@pytest.mark.parametrize("inner", [256, 224, 160])
def test_a_delivered_weight_is_the_weight_in_dram(device, inner) -> None:
    line = Line(device, inner)
    line.prefetch()
    for number in range(2):
        delivered = ttnn.to_torch(line.matmul(number))
        assert torch.equal(delivered, ttnn.to_torch(line.matmul(number, buffer=False)))
        reference = line.a @ line.values[number]
        assert torch.corrcoef(torch.stack([delivered.float().flatten(), reference.flatten()]))[0, 1] > 0.999


def test_layers_follow_each_other(device) -> None:
    line = Line(device, weights=4)
    result = line.prefetch(layers=2)
    assert (list(result.shape), result.dtype, result.layout) == ([32, 32], ttnn.bfloat8_b, ttnn.TILE_LAYOUT)
    for number in range(4):
        line.matmul(number)
    with pytest.raises(ttnn.ChipFault, match="no prefetcher has sent"):
        line.matmul(0)


def test_weights_are_used_in_the_order_in_which_they_were_sent(device) -> None:
    line = Line(device)
    line.prefetch()
    with pytest.raises(ttnn.ChipFault, match="multiply with the former"):
        line.matmul(1)


def test_a_matmul_without_a_sender_would_hang(device) -> None:
    with pytest.raises(ttnn.ChipFault, match="would hang"):
        Line(device).matmul()


def test_receivers_must_be_in_the_order_of_the_output(device) -> None:
    line = Line(device, order=(RING[2], RING[3], RING[0], RING[1]))
    line.prefetch()
    with pytest.raises(ttnn.ChipFault, match="another order"):
        line.matmul()


def test_readers_must_agree_on_addresses(device) -> None:
    line = Line(device)
    rows = torch.tensor([[each.buffer_address()] for each in line.weights])
    addresses = line.upload(rows, sharded("HEIGHT_SHARDED", "L1", cores(*SENDERS), [1, 1]), ttnn.uint32)
    with pytest.raises(ttnn.ChipFault, match="rows of addresses differ"):
        ttnn.dram_prefetcher([line.weights[0], addresses], 1, line.buffer)


def test_a_rejected_matmul_consumes_nothing(device) -> None:
    line = Line(device)
    line.prefetch()
    with pytest.raises(ttnn.InvalidArgument, match="do not belong to the global circular buffer"):
        line.matmul(hop_cores=cores((6, 6)))
    line.matmul(0)
    line.matmul(1)


def test_several_weights_in_one_call(device) -> None:
    line = Line(device)
    line.prefetch()
    results = ttnn.matmul_batched_weights(
        line.input,
        line.weights,
        program_config=line.program(),
        memory_config=OUT,
        global_cb=line.buffer,
        sub_device_id=ttnn.SubDeviceId(0),
    )
    for number, result in enumerate(results):
        assert torch.equal(ttnn.to_torch(result), ttnn.to_torch(line.matmul(number, buffer=False)))


def test_a_trace_sends_and_receives_again(device) -> None:
    line = Line(device)
    line.prefetch()
    first = [ttnn.to_torch(line.matmul(number)) for number in range(2)]
    rows = torch.tensor([[each.buffer_address() for each in line.weights]] * 2)
    addresses = line.upload(rows, sharded("HEIGHT_SHARDED", "L1", cores(*SENDERS), [1, 2]), ttnn.uint32)
    trace = ttnn.begin_trace_capture(device, cq_id=0)
    ttnn.dram_prefetcher([*line.weights, addresses], 1, line.buffer)
    results = [line.matmul(number) for number in range(2)]
    ttnn.end_trace_capture(device, trace, cq_id=0)
    for _ in range(2):
        ttnn.execute_trace(device, trace, cq_id=0)
        assert all(torch.equal(ttnn.to_torch(result), one) for result, one in zip(results, first))


def test_without_values_deliveries_are_not_tracked() -> None:
    with ttnn.open_device(device_id=0, holds_values=False) as device:
        line = Line(device)
        line.prefetch()
        assert list(line.matmul(1).shape) == [1, 1, 32, 256]


def test_a_card_without_programmable_dram_has_no_tensor_prefetcher(device) -> None:
    assert ttnn.experimental.is_tensor_prefetcher_supported(device) is False
    with pytest.raises(ttnn.InvalidArgument, match="programmable cores of DRAM"):
        ttnn.experimental.start_tensor_prefetcher(device)
    ttnn.experimental.stop_tensor_prefetcher(device)
