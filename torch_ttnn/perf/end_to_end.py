"""Latency and throughput of a model with its transfers: call by call, as a trace, and with two command queues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch_ttnn.perf.calls import Calls, OnHost, PlannedCall
from torch_ttnn.perf.program_time import Mode
from ttnn_emulator.execution.listeners import Transfer
from ttnn_emulator.timing import dispatch
from ttnn_emulator.timing.dispatch import DISPATCH, EndToEnd, Iteration

_TIMES = {
    Mode.AS_IS: dispatch.as_is,
    Mode.TRACED: dispatch.traced,
    Mode.TWO_QUEUES: dispatch.traced_on_two_queues,
}


@dataclass(frozen=True)
class EndToEndTimes:
    """Times by mode; operations on the host have no predicted time, and a trace cannot contain them."""

    times: Mapping[Mode, EndToEnd]
    host_ops: int


def end_to_end(calls: Calls, planned: Sequence[PlannedCall]) -> EndToEndTimes:
    """The times of one call of the model, or one run of the script."""
    transfers = [step for step in calls.steps if isinstance(step, Transfer)]
    host_ops = sum(1 for step in calls.steps if isinstance(step, OnHost))
    kernels = [launch.kernel_ns for each in planned for launch in each.launches(calls.board) * each.call.times]
    iteration = Iteration(
        [_crossing(each) for each in transfers if each.is_upload],
        kernels,
        [_crossing(each) for each in transfers if not each.is_upload],
    )
    modes = [Mode.AS_IS] if host_ops else list(Mode)
    return EndToEndTimes({mode: _TIMES[mode](iteration, DISPATCH[calls.board.arch]) for mode in modes}, host_ops)


def _crossing(transfer: Transfer) -> dispatch.Transfer:
    return dispatch.Transfer(transfer.spec.num_pages, transfer.spec.page_bytes)
