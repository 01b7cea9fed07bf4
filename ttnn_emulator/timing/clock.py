"""The device's clock: the predicted time of everything that a device did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ttnn_emulator.timing.dispatch import DISPATCH, Dispatch
from ttnn_emulator.timing.pricing import launches_of_record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ttnn_emulator.hardware.activity import CallRecord, Transfers
    from ttnn_emulator.hardware.boards import Board
    from ttnn_emulator.hardware.device import MeshDevice
    from ttnn_emulator.timing.launches import Launch


@dataclass(frozen=True, slots=True)
class DeviceTime:
    """Predicted nanoseconds on a device since it was opened. The chips of a mesh work at the same time.

    kernels_ns       programs at work
    gaps_ns          between programs, and waiting for the host where it calls operations one by one
    transfers_ns     tensors that crossed between host and device on the first command queue
    beside_ns        tensors that crossed on the second one, which works beside the first
    uncalibrated_ns  the part of kernels_ns that comes from families without measured times
    programs         number of programs
    """

    kernels_ns: float
    gaps_ns: float
    transfers_ns: float
    beside_ns: float
    uncalibrated_ns: float
    programs: int

    @property
    def total_ns(self) -> float:
        return max(self.kernels_ns + self.gaps_ns + self.transfers_ns, self.beside_ns)

    @property
    def uncalibrated(self) -> float:
        """The share of the kernels' time that comes from families without measured times."""
        return self.uncalibrated_ns / self.kernels_ns if self.kernels_ns else 0.0


def device_time(device: MeshDevice) -> DeviceTime:
    """The predicted time of a device since it was opened."""
    board, activity = device.board, device.activity
    dispatch = DISPATCH[board.arch]
    kernels = gaps = uncalibrated = 0.0
    programs = 0
    for record in activity.calls:
        if record.count <= 0 or not record.runs_program:
            continue
        launches = _launches((record,), board)
        kernels += record.count * _sum(launches)
        uncalibrated += record.count * _sum([each for each in launches if not each.calibrated])
        gaps += record.count * sum(
            [max(dispatch.gap_ns, dispatch.call_ns / len(launches) - each.kernel_ns) for each in launches]
        )
        programs += record.count * len(launches)
    for trace in activity.traces:
        if not trace.executions:
            continue
        launches = _launches(trace.calls, board)
        kernels += trace.executions * _sum(launches)
        uncalibrated += trace.executions * _sum([each for each in launches if not each.calibrated])
        gaps += trace.executions * (len(launches) * dispatch.gap_ns + dispatch.trace_ns)
        programs += trace.executions * len(launches)
    transfers = {queue: _transfers_ns(each, dispatch) for queue, each in activity.transfers.items()}
    first = transfers.pop(0, 0.0)
    return DeviceTime(kernels, gaps, first, max(transfers.values(), default=0.0), uncalibrated, programs)


def _transfers_ns(transfers: Transfers, dispatch: Dispatch) -> float:
    return sum(
        [
            count * (spec.total_bytes / path.bytes_per_ns + path.latency_ns)
            for moved, path in ((transfers.uploads, dispatch.write), (transfers.downloads, dispatch.read))
            for spec, count in moved.items()
        ]
    )


def _launches(records: Iterable[CallRecord], board: Board) -> list[Launch]:
    return [launch for record in records if record.runs_program for launch in launches_of_record(record, board)]


def _sum(launches: Iterable[Launch]) -> float:
    return sum([launch.kernel_ns for launch in launches])


def get_device_time(device: MeshDevice) -> float:
    """Predicted nanoseconds that the device has worked and waited since it was opened; not a time of this machine."""
    return device_time(device).total_ns
