"""What happens between programs: gaps, the host's calls, transfers, and how traces and two queues overlap them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ttnn_emulator.enums import Arch
from ttnn_emulator.timing.chips import Path


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Costs around the programs of a chip.

    gap_ns         from the last core's end of a program to the first core's start of the next, if that is enqueued
    call_ns        the host's time for one call of an operation from Python
    trace_ns       the host's time to start a trace
    write, read    transfers of tensors between host and device, per page
    """

    gap_ns: float
    call_ns: float
    trace_ns: float
    write: Path
    read: Path


# Gaps: the median OP TO OP LATENCY of traced rows of performance sheets (tests/emulator/timing/data/measured_ops.csv).
# Calls: the time per call of the smallest untraced matmuls of gemm_flops.csv there. It depends on the host.
# Transfers: golden bandwidths of Write and Read by page size, and a latency that is the host's time for one call.
# tt-metal v0.77.0: tests/tt_metal/tt_metal/perf_microbenchmark/dispatch/benchmark_rw_buffer_golden.json, Write and Read
DISPATCH = {
    Arch.WORMHOLE_B0: Dispatch(660.0, 45_000.0, 10_000.0, Path(60.0, 14.0, 45_000.0), Path(49.0, 12.9, 45_000.0)),
    Arch.BLACKHOLE: Dispatch(555.0, 18_000.0, 6_000.0, Path(24.0, 21.5, 18_000.0), Path(30.0, 14.6, 18_000.0)),
    Arch.GRAYSKULL: Dispatch(660.0, 45_000.0, 10_000.0, Path(60.0, 10.0, 45_000.0), Path(49.0, 9.0, 45_000.0)),
}


@dataclass(frozen=True, slots=True)
class Transfer:
    """Tensors that cross between host and device."""

    pages: int
    page_bytes: int
    calls: int = 1


@dataclass(frozen=True, slots=True)
class Iteration:
    """One call of a model: what goes up, the programs by kernel time, what comes down."""

    uploads: Sequence[Transfer]
    kernels_ns: Sequence[float]
    downloads: Sequence[Transfer]


@dataclass(frozen=True, slots=True)
class EndToEnd:
    """Latency of one call, and calls per second when they follow each other."""

    latency_ns: float
    interval_ns: float

    @property
    def per_second(self) -> float:
        return 1e9 / self.interval_ns if self.interval_ns else float("inf")


def transfer_ns(path: Path, transfers: Sequence[Transfer]) -> float:
    return sum(path.ns(each.page_bytes, each.pages) + path.latency_ns * each.calls for each in transfers)


def as_is(iteration: Iteration, dispatch: Dispatch) -> EndToEnd:
    """Call by call: the host enqueues while the device works; each waits for the other where it is slower."""
    up = transfer_ns(dispatch.write, iteration.uploads)
    host = device = up
    for kernel in iteration.kernels_ns:
        host += dispatch.call_ns
        device = max(host, device + dispatch.gap_ns) + kernel
    total = max(host, device) + transfer_ns(dispatch.read, iteration.downloads)
    return EndToEnd(total, total)


def traced(iteration: Iteration, dispatch: Dispatch) -> EndToEnd:
    """One trace on one queue: the host writes inputs, starts the trace and reads results, one after the other."""
    total = transfer_ns(dispatch.write, iteration.uploads) + dispatch.trace_ns + _trace_ns(iteration, dispatch)
    total += transfer_ns(dispatch.read, iteration.downloads)
    return EndToEnd(total, total)


def traced_on_two_queues(iteration: Iteration, dispatch: Dispatch) -> EndToEnd:
    """The inputs of the next call are written on a second queue while the trace runs."""
    one = traced(iteration, dispatch)
    up, down = transfer_ns(dispatch.write, iteration.uploads), transfer_ns(dispatch.read, iteration.downloads)
    return EndToEnd(one.latency_ns, max(_trace_ns(iteration, dispatch), up + dispatch.trace_ns + down))


def _trace_ns(iteration: Iteration, dispatch: Dispatch) -> float:
    return sum(iteration.kernels_ns) + dispatch.gap_ns * len(iteration.kernels_ns)
