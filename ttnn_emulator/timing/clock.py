"""The device's clock: the predicted time of everything that a device did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ttnn_emulator.timing.dispatch import DISPATCH
from ttnn_emulator.timing.pricing import launches_of_record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ttnn_emulator.hardware.activity import CallRecord
    from ttnn_emulator.hardware.boards import Board
    from ttnn_emulator.hardware.device import MeshDevice


@dataclass(frozen=True, slots=True)
class DeviceTime:
    """Predicted nanoseconds on the device since it was opened.

    kernels_ns    programs at work
    gaps_ns       between programs, and waiting for the host where it calls operations one by one
    transfers_ns  tensors that crossed between host and device
    programs      number of programs
    """

    kernels_ns: float
    gaps_ns: float
    transfers_ns: float
    programs: int

    @property
    def total_ns(self) -> float:
        return self.kernels_ns + self.gaps_ns + self.transfers_ns


def device_time(device: MeshDevice) -> DeviceTime:
    """The predicted time of a device since it was opened."""
    board, activity = device.board, device.activity
    dispatch = DISPATCH[board.arch]
    kernels = gaps = 0.0
    programs = 0
    for record in activity.calls:
        if record.count <= 0 or not record.runs_program:
            continue
        times = _kernel_times((record,), board)
        kernels += record.count * sum(times)
        gaps += record.count * sum(max(dispatch.gap_ns, dispatch.call_ns / len(times) - each) for each in times)
        programs += record.count * len(times)
    for trace in activity.traces:
        if not trace.executions:
            continue
        times = _kernel_times(trace.calls, board)
        kernels += trace.executions * sum(times)
        gaps += trace.executions * (len(times) * dispatch.gap_ns + dispatch.trace_ns)
        programs += trace.executions * len(times)
    up, down = dispatch.write, dispatch.read
    transfers = activity.uploaded_bytes / up.bytes_per_ns + activity.uploads * up.latency_ns
    transfers += activity.downloaded_bytes / down.bytes_per_ns + activity.downloads * down.latency_ns
    return DeviceTime(kernels, gaps, transfers, programs)


def _kernel_times(records: Iterable[CallRecord], board: Board) -> list[float]:
    return [
        launch.kernel_ns for record in records if record.runs_program for launch in launches_of_record(record, board)
    ]


def get_device_time(device: MeshDevice) -> float:
    """Predicted nanoseconds that the device has worked and waited since it was opened; not a time of this machine."""
    return device_time(device).total_ns
