"""Program configs of matmul in one record type, from the user or chosen as the library does."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from ttnn_emulator.api.config_types import UnaryWithParam
from ttnn_emulator.hardware.core_grid import CoreCoord, CoreRange, CoreRangeSet


class Kind(enum.Enum):
    """The programs that multiply matrices."""

    MULTI_CORE = "MatmulMultiCoreProgramConfig"
    REUSE = "MatmulMultiCoreReuseProgramConfig"
    MCAST_2D = "MatmulMultiCoreReuseMultiCastProgramConfig"
    MCAST_1D = "MatmulMultiCoreReuseMultiCast1DProgramConfig"
    DRAM_SHARDED = "MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig"
    BATCHED_DRAM_SHARDED = "MatmulMultiCoreReuseMultiCastBatchedDRAMShardedProgramConfig"

    __hash__ = object.__hash__


BLOCKED = frozenset({Kind.REUSE, Kind.MCAST_2D, Kind.MCAST_1D})
MULTICAST = frozenset({Kind.MCAST_2D, Kind.MCAST_1D})
TRANSPOSES_ITSELF = BLOCKED


@dataclass(frozen=True)
class Delivery:
    """A global circular buffer that delivers weights: bytes per core, senders, and the receivers of each sender."""

    size: int
    senders: tuple[tuple[int, int], ...]
    receivers: tuple[tuple[tuple[int, int], ...], ...]

    @property
    def cores(self) -> frozenset[tuple[int, int]]:
        return frozenset(self.senders).union(*self.receivers)


@dataclass(frozen=True)
class Program:
    """A program config; sizes are in tiles, `grid` is (columns, rows) of cores."""

    kind: Kind
    grid: tuple[int, int] = (0, 0)
    in0_block_w: int = 0
    out_subblock_h: int = 0
    out_subblock_w: int = 0
    out_block_h: int = 0
    out_block_w: int = 0
    per_core_M: int = 0
    per_core_N: int = 0
    transpose_mcast: bool = False
    fuse_batch: bool = False
    fused_activation: UnaryWithParam | None = None
    mcast_in0: bool = False
    gather_in0: bool = False
    hop_cores: CoreRangeSet | None = None
    num_global_cb_receivers: int = 1
    untilize_out: bool = False
    allowed_worker_cores: CoreRangeSet | None = None
    stream_in1: bool = False
    num_workers_per_dram_bank: int = 1
    delivery: Delivery | None = None

    @property
    def workers(self) -> CoreRange:
        """The rectangle of cores that the program may use."""
        if self.allowed_worker_cores is not None:
            return self.allowed_worker_cores.bounding_box()
        return CoreRange(CoreCoord(0, 0), CoreCoord(self.grid[0] - 1, self.grid[1] - 1))

    @property
    def worker_grid(self) -> tuple[int, int]:
        extent = self.workers.grid_size()
        return extent.x, extent.y


MULTI_CORE = Program(Kind.MULTI_CORE)
_KINDS = {kind.value: kind for kind in Kind}
_FIELDS = frozenset(Program.__dataclass_fields__)


def program_of(record: Any) -> Program:
    """The user's program config."""
    kind = _KINDS[type(record).__name__]
    given = {name: getattr(record, name) for name in record._fields if name in _FIELDS}
    if kind in BLOCKED:
        given["grid"] = tuple(record.compute_with_storage_grid_size)
    if kind in MULTICAST:
        given["out_block_h"] = record.per_core_M if record.out_block_h is None else record.out_block_h
        given["out_block_w"] = record.per_core_N if record.out_block_w is None else record.out_block_w
    if given.get("hop_cores") is not None and given["hop_cores"].empty():
        given["hop_cores"] = None
    return Program(kind, **given)
