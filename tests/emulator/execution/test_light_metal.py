"""Light metal: capture the buffers of a program, replay them."""

from __future__ import annotations

import pytest
import torch

import ttnn_emulator as ttnn


def _used(device):
    return device.memories[ttnn.BufferType.DRAM].allocated


def _capture(device, size=64):
    ttnn.light_metal_begin_capture()
    x = ttnn.from_torch(torch.ones(size, size), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    kept = ttnn.add(x, x)
    del x
    return ttnn.light_metal_end_capture(), kept


def test_replays_buffers_and_frees_them(device, tmp_path):
    binary, _kept = _capture(device)
    assert not binary.is_empty()
    assert binary.size() == len(binary.get_data())
    path = str(tmp_path / "program.bin")
    binary.save_to_file(path)
    loaded = type(binary).load_from_file(path)
    before, peak = _used(device), device.memories[ttnn.BufferType.DRAM].peak
    device.memories[ttnn.BufferType.DRAM].peak = before
    assert ttnn.LightMetalReplay.create(loaded, device).run()
    assert _used(device) == before
    assert device.memories[ttnn.BufferType.DRAM].peak > before
    device.memories[ttnn.BufferType.DRAM].peak = peak


def test_a_failed_replay_returns_false(device):
    empty = ttnn._ttnn.core.LightMetalBinary()
    assert empty.is_empty()
    assert not ttnn.LightMetalReplay.create(empty, device).run()
    binary, kept = _capture(device)
    ttnn.deallocate(kept)
    memory = device.memories[ttnn.BufferType.DRAM]
    everything = memory.bank_bytes - memory.allocated
    address = memory.allocate(everything, everything, memory.banks)
    try:
        assert not ttnn.LightMetalReplay.create(binary, device).run()
    finally:
        memory.free(address)
    with pytest.raises(ttnn.NotEmulated):
        ttnn.LightMetalReplay.create(binary)
