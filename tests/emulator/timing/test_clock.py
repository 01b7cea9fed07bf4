"""The device's clock."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import ttnn_emulator as ttnn
from ttnn_emulator.timing.clock import DeviceTime, device_time
from ttnn_emulator.timing.dispatch import DISPATCH

WIDE = {"dtype": ttnn.bfloat16, "layout": ttnn.TILE_LAYOUT}


def uploaded(device: Any, *shape: int) -> Any:
    return ttnn.from_torch(torch.ones(shape), device=device, **WIDE)


def since(device: Any, before: DeviceTime) -> DeviceTime:
    now = device_time(device)
    return DeviceTime(*[getattr(now, name) - getattr(before, name) for name in DeviceTime.__slots__])


def test_a_new_device_has_done_nothing() -> None:
    with ttnn.open_device(device_id=0) as device:
        assert ttnn.get_device_time(device) == 0.0


def test_calls_take_time_and_the_same_call_takes_the_same_time() -> None:
    with ttnn.open_device(device_id=0) as device:
        x = uploaded(device, 1024, 1024)
        start = device_time(device)
        ttnn.exp(x)
        one = since(device, start)
        ttnn.exp(x)
        two = since(device, start)
        assert one.programs == 1 and two.programs == 2
        assert one.kernels_ns > 1_000
        assert two.kernels_ns == pytest.approx(2 * one.kernels_ns)
        assert two.total_ns == pytest.approx(2 * one.total_ns)
        assert ttnn.get_device_time(device) == device_time(device).total_ns


def test_views_and_refused_calls_take_no_time() -> None:
    with ttnn.open_device(device_id=0) as device:
        x = uploaded(device, 64, 64)
        before = ttnn.get_device_time(device)
        ttnn.reshape(x, (1, 64, 64))
        with pytest.raises(ttnn.EmulatorError):
            ttnn.matmul(x, uploaded(device, 32, 32))
        after = device_time(device)
        assert after.kernels_ns == 0 and after.programs == 0
        assert after.total_ns > before  # the second tensor was uploaded


def test_transfers_take_time_by_their_bytes() -> None:
    with ttnn.open_device(device_id=0) as device:
        x = uploaded(device, 4096, 4096)
        up = device_time(device)
        assert up.transfers_ns == pytest.approx(2 * 4096**2 / 14.0, rel=0.1)
        ttnn.to_torch(x)
        assert since(device, up).transfers_ns == pytest.approx(2 * 4096**2 / 12.9, rel=0.1)


def test_every_event_has_its_programs() -> None:
    class Times(ttnn.Listener):
        def __init__(self) -> None:
            self.found: dict[str, float] = {}

        def ended(self, event: ttnn.OperationEvent) -> None:
            if event.is_composite:
                assert event.launches == ()
            else:
                self.found[event.name] = event.device_ns
                assert event.device_ns == sum(launch.kernel_ns for launch in event.launches) > 0

    with ttnn.open_device(device_id=0) as device:
        x, w = uploaded(device, 512, 512), uploaded(device, 512, 512)
        start = device_time(device)
        with ttnn.listening(Times()) as heard:
            ttnn.relu(ttnn.matmul(x, w))
        assert since(device, start).kernels_ns == pytest.approx(sum(heard.found.values()))
        assert list(heard.found) == ["ttnn.matmul", "ttnn.relu"]


def test_a_trace_saves_the_time_of_the_hosts_calls() -> None:
    with ttnn.open_device(device_id=0, trace_region_size=1 << 20) as device:
        x = uploaded(device, 256, 256)

        def run() -> Any:
            y = x
            for _ in range(10):
                y = ttnn.relu(y)
            return y

        run()
        start = device_time(device)
        run()
        called = since(device, start)
        trace = ttnn.begin_trace_capture(device, cq_id=0)
        kept = run()
        ttnn.end_trace_capture(device, trace, cq_id=0)
        assert since(device, start) == called, "a capture executes nothing"
        start = device_time(device)
        ttnn.execute_trace(device, trace, cq_id=0)
        traced = since(device, start)
        assert kept is not None
        assert traced.kernels_ns == pytest.approx(called.kernels_ns)
        assert traced.programs == called.programs == 10
        assert traced.total_ns < called.total_ns / 5
        ttnn.execute_trace(device, trace, cq_id=0)
        assert since(device, start).total_ns == pytest.approx(2 * traced.total_ns)
        ttnn.release_trace(device, trace)
        assert since(device, start).total_ns == pytest.approx(2 * traced.total_ns)


def test_transfers_on_a_second_queue_run_beside_the_programs() -> None:
    with ttnn.open_device(device_id=0, num_command_queues=2) as device:
        x = uploaded(device, 1024, 1024)
        host = ttnn.from_torch(torch.ones(1024, 1024), **WIDE)
        start = device_time(device)
        for _ in range(5):
            ttnn.copy_host_to_device_tensor(host, x, cq_id=1)
        beside = device_time(device)
        assert beside.transfers_ns == start.transfers_ns
        assert beside.total_ns == beside.beside_ns > start.total_ns
        ttnn.relu(x)
        assert device_time(device).total_ns == beside.total_ns  # hidden by the transfers
        ttnn.copy_host_to_device_tensor(host, x, cq_id=0)
        assert since(device, beside).transfers_ns == pytest.approx(beside.beside_ns / 5)


def test_devices_without_values_keep_the_same_time() -> None:
    def run(**options: Any) -> DeviceTime:
        with ttnn.open_device(device_id=0, **options) as device:
            x = uploaded(device, 128, 1024)
            y = ttnn.softmax(ttnn.linear(x, uploaded(device, 1024, 1024), activation="gelu"), dim=-1)
            ttnn.to_torch(y)
            return device_time(device)

    assert run() == run(holds_values=False)


def test_the_chips_of_a_mesh_work_at_the_same_time() -> None:
    with ttnn.open_device(device_id=0, board="n300") as device:
        ttnn.relu(uploaded(device, 1024, 1024))
        single = device_time(device).kernels_ns
    mesh = ttnn.open_mesh_device(ttnn.MeshShape(1, 2), board="n300")
    try:
        ttnn.relu(uploaded(mesh, 1024, 1024))
        assert device_time(mesh).kernels_ns == single
    finally:
        ttnn.close_mesh_device(mesh)


@pytest.mark.parametrize("board", ["e150", "n150", "n300", "t3000", "p150", "galaxy"])
def test_every_board_keeps_time(board: str) -> None:
    with ttnn.open_device(device_id=0, board=board, holds_values=False) as device:
        x = uploaded(device, 2048, 2048)
        ttnn.matmul(x, x)
        found = device_time(device)
        assert found.kernels_ns > 50_000
        assert found.uncalibrated == 0.0
        assert found.gaps_ns >= DISPATCH[device.board.arch].gap_ns


def test_the_uncalibrated_share_is_kept() -> None:
    with ttnn.open_device(device_id=0, holds_values=False) as device:
        x = ttnn.from_torch(torch.ones(1, 1, 64, 128), device=device, **WIDE)
        ttnn.ema(x, 0.5)
        found = device_time(device)
        assert found.uncalibrated == 1.0


def test_without_the_program_cache_calls_are_counted_too() -> None:
    with ttnn.open_device(device_id=0) as device:
        device.disable_and_clear_program_cache()
        x = uploaded(device, 64, 64)
        for _ in range(3):
            ttnn.relu(x)
        assert device_time(device).programs == 3


def test_times_are_loaded_only_if_somebody_asks() -> None:
    import subprocess
    import sys

    code = (
        "import sys, torch, ttnn_emulator as ttnn\n"
        "with ttnn.open_device(device_id=0) as device:\n"
        "    ttnn.relu(ttnn.from_torch(torch.ones(32, 32), layout=ttnn.TILE_LAYOUT, device=device))\n"
        "assert not any('timing' in name for name in sys.modules if name.startswith('ttnn_emulator')), 'loaded'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
