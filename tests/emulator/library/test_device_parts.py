"""Sub-devices, core numbering, global circular buffers, buffer reports: as the library on mock cards."""

from __future__ import annotations

import os

import pytest
import torch

import ttnn_emulator as ttnn


def part(*corners: int) -> ttnn.SubDevice:
    cores = ttnn.CoreRange(ttnn.CoreCoord(*corners[:2]), ttnn.CoreCoord(*corners[2:]))
    return ttnn.SubDevice([ttnn.CoreRangeSet([cores])])


def test_a_loaded_manager_reserves_the_lowest_bytes_of_l1(device) -> None:
    memory = device.memory(ttnn.BufferType.L1)
    before = memory.largest_free
    manager = device.create_sub_device_manager([part(0, 0, 3, 3), part(4, 4, 4, 4)], 3200)
    device.load_sub_device_manager(manager)
    assert memory.largest_free == before - 3200
    device.set_sub_device_stall_group([ttnn.SubDeviceId(1)])
    device.reset_sub_device_stall_group()
    with pytest.raises(RuntimeError, match="Cannot remove active"):
        device.remove_sub_device_manager(manager)
    device.clear_loaded_sub_device_manager()
    assert memory.largest_free == before
    device.remove_sub_device_manager(manager)
    with pytest.raises(RuntimeError, match="does not exist"):
        device.load_sub_device_manager(manager)


def test_refused_sub_devices(device) -> None:
    with pytest.raises(RuntimeError, match="intersect"):
        device.create_sub_device_manager([part(0, 0, 3, 3), part(3, 3, 4, 4)], 3200)
    with pytest.raises(RuntimeError, match="must be within device grid"):
        device.create_sub_device_manager([part(0, 0, 30, 3)], 3200)
    with pytest.raises(RuntimeError, match="SubDevice index 4 out of bounds 1"):
        device.set_sub_device_stall_group([ttnn.SubDeviceId(4)])


def test_numbers_of_cores(device) -> None:
    assert str(device.worker_core_from_logical_core(ttnn.CoreCoord(7, 7))) == "25-25"
    assert str(device.logical_core_from_worker_core(ttnn.CoreCoord(20, 21))) == "2-3"
    assert str(device.dram_core_from_logical_core(ttnn.CoreCoord(4, 0))) == "5-1"
    with pytest.raises(RuntimeError, match="No core coordinate"):
        device.worker_core_from_logical_core(ttnn.CoreCoord(8, 0))
    by_bank = device.get_optimal_dram_bank_to_logical_worker_assignment(ttnn.NOC.NOC_0, ttnn.MeshCoordinate(0, 0))
    assert str(by_bank[11]) == "4-5"


def test_global_circular_buffers_allocate_l1(device) -> None:
    one = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(3, 3), ttnn.CoreCoord(4, 4))])
    made = ttnn.create_global_circular_buffer(device, [(ttnn.CoreCoord(1, 1), one)], 3200)
    assert device.memory(ttnn.BufferType.L1).allocated == 3392
    assert (made.size(), str(made.receiver_cores())) == (3200, "{[3-3 - 4-4]}")
    del made
    assert device.memory(ttnn.BufferType.L1).allocated == 0
    with pytest.raises(RuntimeError, match="Duplicate cores"):
        ttnn.create_global_circular_buffer(device, [(ttnn.CoreCoord(3, 3), one)], 3200)


def test_pages_of_buffers(device) -> None:
    config = ttnn.create_sharded_memory_config(
        [64, 64], core_grid=ttnn.CoreGrid(x=2, y=1), strategy=ttnn.ShardStrategy.HEIGHT
    )
    kept = ttnn.from_torch(torch.ones(64, 64), layout=ttnn.TILE_LAYOUT, device=device, dtype=ttnn.bfloat16)
    assert ttnn._ttnn.reports.get_buffer_pages(device) == []
    sharded = ttnn.to_memory_config(kept, config)
    pages = ttnn._ttnn.reports.get_buffer_pages(device)
    assert [(page.core_x, page.core_y, page.bank_id, page.page_index) for page in pages] == [
        (0, 0, 34, 0), (0, 0, 34, 1), (1, 0, 63, 2), (1, 0, 63, 3)
    ]  # fmt: skip
    assert [page.page_address - page.address for page in pages] == [0, 2048, 0, 2048]
    layouts = [info.buffer_layout for info in ttnn._ttnn.reports.get_buffers([device])]
    assert layouts == [ttnn.TensorMemoryLayout.INTERLEAVED, ttnn.TensorMemoryLayout.HEIGHT_SHARDED]
    assert sharded.is_allocated() and ttnn._ttnn.reports.get_device_info(device).num_y_cores == 9


def test_dispatch_follows_the_board(monkeypatch) -> None:
    assert ttnn.DispatchCoreConfig().type is ttnn.DispatchCoreType.WORKER
    with pytest.raises(RuntimeError, match="COL axis is not supported for ETH"):
        ttnn.DispatchCoreConfig(ttnn.DispatchCoreType.ETH, ttnn.DispatchCoreAxis.COL)
    monkeypatch.setenv("TTNN_EMULATOR_BOARD", "p150")
    assert ttnn.DispatchCoreConfig().axis is ttnn.DispatchCoreAxis.COL
    with pytest.raises(RuntimeError, match="ROW dispatch core axis"):
        ttnn.DispatchCoreConfig(axis=ttnn.DispatchCoreAxis.ROW)


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="needs shared memory in /dev/shm")
def test_a_channel_counts_unread_events() -> None:
    name = f"/ttnn_emulator_channel_{os.getpid()}"
    owner = ttnn.InterProcessCounterChannel(name)
    owner.inject(10)
    reader = ttnn.InterProcessCounterChannel.connect(name)
    assert reader.had_clean_prior_shutdown() and reader.try_consume_all() == 10 and reader.pending() == 0
    with pytest.raises(RuntimeError, match="owner"):
        reader.inject(1)
    with pytest.raises(RuntimeError, match="exists"):
        ttnn.InterProcessCounterChannel(name)
    reader.shutdown()
    owner.shutdown()
    with pytest.raises(RuntimeError, match="within 10 ms"):
        ttnn.InterProcessCounterChannel.connect(name, connect_timeout_ms=10)
