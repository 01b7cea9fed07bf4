"""Statistics that the cores of a line exchange: every core sums some rows, and the first one sends the sums to all."""

from __future__ import annotations

from dataclasses import dataclass

from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.tensors.shapes import div_up
from ttnn_emulator.timing.chips import CHIPS
from ttnn_emulator.timing.families.normalization.passes import PASS_CYCLES, Passes
from ttnn_emulator.timing.movement import KERNELS
from ttnn_emulator.timing.tile_kernels import HANDOVER_CYCLES


@dataclass(frozen=True, slots=True)
class Line:
    """Cores that share rows.

    cores   of the line
    rows    rows of tiles that each of them has a part of
    second  lines whose sums are added in a second stage
    """

    cores: int
    rows: int
    second: int = 1


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/normalization/layernorm/device/kernels/dataflow/reader_mcast_sender_unary_sharded_ln.cpp,  # noqa: E501
# global_reduce_sender: wait for all partial sums, read those of some rows
# from all cores, add them, gather the sums, and send those of every worker with a barrier of its own
def exchange_ns(line: Line, passes: Passes, board: Board, tiles: int = 1) -> float:
    """One exchange of `tiles` statistics per row of tiles."""
    if line.cores <= 1:
        return 0.0
    chip, kernels = CHIPS[board.arch], KERNELS[board.arch]
    size = float(passes.middle)
    first = div_up(line.cores, line.second)
    share = div_up(line.rows, first)
    workers = div_up(line.rows, share)
    meeting = 2 * chip.semaphore_ns + chip.receiver_ns * (line.cores - 1)
    parts = first + line.second - 1
    stages = 2 if line.second > 1 else 1
    gathered = share * tiles * (kernels.l1_read.stream_ns(size, parts) + stages * kernels.l1_read.wait_ns(size))
    added = share * tiles * (parts * passes.summed(size) + HANDOVER_CYCLES) + 2 * PASS_CYCLES
    collected = kernels.l1_read.ns(share * size * tiles, workers) + chip.semaphore_ns
    sent = share * tiles * size / chip.multicast_bytes_per_ns + chip.l1_write.latency_ns
    return meeting + gathered + chip.ns(added) + collected + workers * sent + chip.semaphore_ns
