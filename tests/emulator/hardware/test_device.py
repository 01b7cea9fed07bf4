"""Devices, boards and their memory."""

from __future__ import annotations

import threading

import pytest
import torch

import ttnn_emulator as ttnn
from ttnn_emulator.hardware.boards import BOARD_VARIABLE, find_board

GRIDS = {"e150": (12, 9), "n150": (8, 8), "n300": (8, 8), "t3000": (8, 8), "p150": (11, 10)}
GRIDS |= {"p150-12x10": (12, 10), "p150-13x10": (13, 10)}


def upload(shape, device, memory_config=None, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT):
    return ttnn.from_torch(torch.zeros(shape), dtype=dtype, layout=layout, device=device, memory_config=memory_config)


@pytest.mark.parametrize("name", sorted(GRIDS))
def test_boards_open_with_their_grid(name: str) -> None:
    with ttnn.open_device(device_id=0, board=name) as device:
        grid = device.compute_with_storage_grid_size()
        assert (grid.x, grid.y) == GRIDS[name]
        assert ttnn.get_memory_view(device, ttnn.BufferType.L1).num_banks == grid.x * grid.y
        assert device.dram_grid_size().x == find_board(name).dram_banks


def test_the_error_of_an_unknown_board_lists_the_boards() -> None:
    with pytest.raises(ttnn.InvalidArgument, match="known boards: e150, n150"):
        ttnn.open_device(device_id=0, board="n151")


def test_bank_sizes_are_those_of_the_real_n150() -> None:
    with ttnn.open_device(device_id=0, l1_small_size=24576, trace_region_size=1 << 20) as device:
        sizes = {
            kind.name: ttnn.get_memory_view(device, kind).total_bytes_per_bank
            for kind in (ttnn.BufferType.L1, ttnn.BufferType.DRAM, ttnn.BufferType.L1_SMALL, ttnn.BufferType.TRACE)
        }
    # read from ttnn 0.81.1 on a mock n150 opened with the same arguments
    assert sizes == {"L1": 1368736, "DRAM": 1072603072, "L1_SMALL": 24576, "TRACE": 90112}


def test_addresses_are_those_of_the_real_allocator() -> None:
    with ttnn.open_device(device_id=0) as device:
        first = [upload((1, 1, 32, 32), device) for _ in range(4)]
        assert [tensor.buffer_address() for tensor in first] == [1048640, 1050688, 1052736, 1054784]
        ttnn.deallocate(first[1])
        small = upload((1, 1, 32, 32), device, dtype=ttnn.bfloat8_b)
        next_one = upload((1, 1, 32, 32), device)
        rows = upload((1, 1, 32, 8), device, layout=ttnn.ROW_MAJOR_LAYOUT)
        assert [t.buffer_address() for t in (small, next_one, rows)] == [1050688, 1056832, 1051776]
        in_l1 = [upload((1, 1, 32, 32), device, ttnn.L1_MEMORY_CONFIG) for _ in range(4)]
        assert [tensor.buffer_address() for tensor in in_l1] == [1497088, 1495040, 1492992, 1490944]


def test_memory_is_freed_immediately_and_completely(device) -> None:
    def allocated() -> int:
        return ttnn.get_memory_view(device, ttnn.BufferType.DRAM).total_bytes_allocated_per_bank

    before = allocated()
    tensor = upload((256, 256), device)
    assert allocated() - before == -(-64 // 12) * 2048
    ttnn.deallocate(tensor)
    assert allocated() == before
    dropped = upload((256, 256), device)
    del dropped
    assert allocated() == before
    assert ttnn.get_memory_view(device, ttnn.BufferType.DRAM).peak_bytes_allocated_per_bank >= before + 6 * 2048


def test_out_of_memory_has_sizes_and_a_hint(device) -> None:
    with pytest.raises(ttnn.OutOfMemory) as caught:
        ttnn.empty(
            (1, 1, 96000, 3200), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device,
            memory_config=ttnn.L1_MEMORY_CONFIG,
        )  # fmt: skip
    text = str(caught.value)
    assert "ttnn.empty" in text
    assert "614400000 B L1 buffer across 64 banks" in text
    assert "keep it in DRAM" in text


def test_shards_outside_the_core_grid_are_refused(device) -> None:
    grid = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(9, 9))])
    config = ttnn.MemoryConfig(
        ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.BufferType.L1, ttnn.ShardSpec(grid, [32, 32])
    )
    with pytest.raises(ttnn.InvalidArgument, match="exceeds the 8 x 8 L1 banks"):
        upload((1, 1, 2560, 32), device, config)


def test_use_after_free_reports_the_deallocation(device) -> None:
    tensor = upload((32, 32), device)
    ttnn.deallocate(tensor)
    assert not tensor.is_allocated()
    assert "<buffer is not allocated>" in repr(tensor)
    with pytest.raises(ttnn.UseAfterFree, match=r"freed by ttnn.deallocate at .*test_device.py:\d+"):
        ttnn.to_torch(tensor)


def test_devices_have_separate_memory_and_do_not_mix() -> None:
    with ttnn.open_device(device_id=0) as first, ttnn.open_device(device_id=1) as second:
        one, two = upload((32, 32), first), upload((32, 32), second)
        assert one.buffer_address() == two.buffer_address()
        with pytest.raises(ttnn.DeviceMismatch, match="are on two devices"):
            ttnn.add(one, two)


def test_a_closed_device_raises() -> None:
    device = ttnn.open_device(device_id=0)
    tensor = upload((32, 32), device)
    ttnn.close_device(device)
    with pytest.raises(ttnn.UseAfterFree, match="device was closed"):
        ttnn.to_torch(tensor)
    with pytest.raises(ttnn.InvalidArgument, match="is closed"):
        upload((32, 32), device)


def test_default_device_and_older_names() -> None:
    device = ttnn.CreateDevice(0)
    ttnn.SetDefaultDevice(device)
    assert ttnn.GetDefaultDevice() is device
    ttnn.CloseDevice(device)
    assert ttnn.GetDefaultDevice() is None
    with ttnn.manage_device(0) as managed:
        assert managed.arch() is ttnn.Arch.WORMHOLE_B0
        ttnn.synchronize_device(managed)


def test_board_from_the_environment(monkeypatch) -> None:
    monkeypatch.setenv(BOARD_VARIABLE, "n300")
    assert ttnn.GetNumAvailableDevices() == 2
    with ttnn.create_mesh_device() as mesh:
        assert tuple(mesh.shape) == (1, 2)


def test_dispatch_on_columns_changes_the_grid() -> None:
    config = ttnn.DispatchCoreConfig(axis=ttnn.DispatchCoreAxis.COL)
    with ttnn.open_device(device_id=0, dispatch_core_config=config) as device:
        assert device.compute_with_storage_grid_size() == ttnn.CoreCoord(7, 9)


def test_program_cache_counts_hits_and_misses(device) -> None:
    tensor = upload((32, 32), device)
    device.clear_program_cache()
    hits, misses = device.program_cache.hits, device.program_cache.misses
    for _ in range(3):
        ttnn.relu(tensor)
    assert (device.program_cache.hits - hits, device.program_cache.misses - misses) == (2, 1)
    assert device.num_program_cache_entries() == 1
    device.disable_and_clear_program_cache()
    ttnn.relu(tensor)
    assert device.num_program_cache_entries() == 0


def test_threads_share_a_device_without_losing_memory(device) -> None:
    def work() -> None:
        for _ in range(50):
            tensor = upload((64, 64), device)
            ttnn.relu(tensor)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ttnn.get_memory_view(device, ttnn.BufferType.DRAM).total_bytes_allocated_per_bank == 0


@pytest.mark.parametrize(("axis", "first", "sixth"), [("ROW", "3-7", "7-7"), ("COL", "0-8", "4-8")])
def test_cores_near_dram_are_cores_of_the_grid(axis, first, sixth):
    config = ttnn.DispatchCoreConfig(axis=getattr(ttnn.DispatchCoreAxis, axis))
    with ttnn.open_device(device_id=0, dispatch_core_config=config) as device:
        cores = device.get_optimal_dram_bank_to_logical_worker_assignment(ttnn.NOC.NOC_0)
        grid = device.compute_with_storage_grid_size()
        assert (str(cores[0]), str(cores[5])) == (first, sixth)
        assert all(core.x < grid.x and core.y < grid.y for core in cores)
