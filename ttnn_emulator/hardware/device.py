"""Devices: a mesh of one or more emulated chips with their memories, program cache and settings."""

from __future__ import annotations

import itertools
import logging
import threading
from typing import Any

from ttnn_emulator.api.binding import TYPES
from ttnn_emulator.enums import Arch, BufferType
from ttnn_emulator.errors import InvalidArgument, require
from ttnn_emulator.hardware.activity import Activity
from ttnn_emulator.hardware.allocator import BankedMemory
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.hardware.core_grid import CoreCoord, CoreGrid
from ttnn_emulator.hardware.core_numbering import CoreNumbers
from ttnn_emulator.hardware.mesh_coordinates import MeshCoordinate, MeshShape
from ttnn_emulator.hardware.program_cache import ProgramCache
from ttnn_emulator.hardware.sub_devices import SubDevices
from ttnn_emulator.tensors.shapes import div_up, round_up

DEFAULT_L1_SMALL_SIZE = 0
DEFAULT_TRACE_REGION_SIZE = 0

logger = logging.getLogger(__name__)

_ids = itertools.count(1)


class MeshDevice(SubDevices, CoreNumbers):
    """One or more chips that run the same program on their own data, with memory kept in lockstep."""

    def __init__(
        self,
        described: Board,
        *,
        shape: MeshShape,
        device_ids: list[int],
        l1_small_size: int = DEFAULT_L1_SMALL_SIZE,
        trace_region_size: int = DEFAULT_TRACE_REGION_SIZE,
        num_command_queues: int = 1,
        worker_l1_size: int = 0,
        holds_values: bool = True,
    ) -> None:
        require(1 <= num_command_queues <= 2, f"num_command_queues must be 1 or 2, not {num_command_queues}")
        self.board = described
        self.shape = shape
        self.num_devices = shape.mesh_size()
        self.num_command_queues = num_command_queues
        self.holds_values = holds_values
        self.program_cache = ProgramCache()
        self.activity = Activity()
        self.memories = _memories(described, l1_small_size, trace_region_size, worker_l1_size)
        self.l1_small_size = l1_small_size
        self.trace_region_size = trace_region_size
        self.traces: dict[int, Any] = {}
        self.capturing: Any = None  # the trace being captured, if any
        self.is_open = True
        self.lock = threading.RLock()
        self.submeshes: list[MeshDevice] = []
        self._device_ids = device_ids
        self._id = next(_ids)
        self._read_zeros = False

    # -- identity -------------------------------------------------------------------------------------------------

    def id(self) -> int:
        return self._id

    def get_device_ids(self) -> list[int]:
        return list(self._device_ids)

    def get_device_id(self, coordinate: Any = None) -> int:
        return self._device_ids[0]

    def get_num_devices(self) -> int:
        return self.num_devices

    def arch(self) -> Arch:
        return self.board.arch

    def compute_with_storage_grid_size(self) -> CoreCoord:
        return CoreCoord(*self.board.grid)

    @property
    def core_grid(self) -> CoreGrid:
        return CoreGrid(x=self.board.grid[0], y=self.board.grid[1])

    def dram_grid_size(self) -> CoreCoord:
        return CoreCoord(self.board.dram_banks, 1)

    # tt-metal v0.77.0: tt_metal/llrt/hal/tt-1xx/wormhole/wh_hal.cpp, EPS_WHB0, NAN_WHB0, INF_WHB0
    def sfpu_eps(self) -> float:
        return 1.1920899822825959e-07

    def sfpu_nan(self) -> float:
        return 7.0039998997052e19

    def sfpu_inf(self) -> float:
        return 1.7013999693950742e38

    # -- program cache --------------------------------------------------------------------------------------------

    def enable_program_cache(self) -> None:
        self.program_cache.enabled = True

    def disable_and_clear_program_cache(self) -> None:
        self.program_cache.enabled = False
        self.program_cache.clear()

    def clear_program_cache(self) -> None:
        self.program_cache.clear()

    def num_program_cache_entries(self) -> int:
        return len(self.program_cache.programs) + self.program_cache.own_programs

    def set_program_cache_misses_allowed(self, allowed: bool) -> None:
        self.program_cache.misses_allowed = allowed

    # -- mesh -----------------------------------------------------------------------------------------------------

    def create_submesh(self, shape: MeshShape, offset: Any = None) -> MeshDevice:
        """A submesh of this board with its own memory."""
        require(shape.mesh_size() <= self.num_devices, f"a submesh of {shape} does not fit into {self.shape}")
        submesh = MeshDevice(
            self.board,
            shape=shape,
            device_ids=self._device_ids[: shape.mesh_size()],
            l1_small_size=self.l1_small_size,
            trace_region_size=self.trace_region_size,
            num_command_queues=self.num_command_queues,
            holds_values=self.holds_values,
        )
        self.submeshes.append(submesh)
        return submesh

    def get_submeshes(self) -> list[MeshDevice]:
        """The submeshes of this mesh."""
        return list(self.submeshes)

    def create_submeshes(self, shape: MeshShape) -> list[MeshDevice]:
        return [self.create_submesh(shape) for _ in range(self.num_devices // shape.mesh_size())]

    def reshape(self, shape: MeshShape) -> None:
        require(shape.mesh_size() == self.num_devices, f"{self.shape} cannot be reshaped to {shape}")
        self.shape = shape

    def get_view(self) -> Any:
        """A view of the mesh by chip coordinates."""
        from ttnn_emulator.tensors.mesh_distribution import MeshDeviceView

        return MeshDeviceView(self)

    def get_system_mesh_id(self) -> int:
        """The mesh id; a host has one mesh."""
        return 0

    def get_fabric_node_id(self, coord: MeshCoordinate) -> Any:
        """Mesh and chip id, as the fabric names them."""
        types = TYPES.classes
        return types["FabricNodeId"](types["MeshId"](0), self._device_ids[coord.number_in(self.shape)])

    def quiesce_devices(self) -> None:
        """Wait for outstanding work; emulated calls are synchronous."""

    def note_reading_zeros(self) -> None:
        """Warn once that this device computes nothing."""
        if not self._read_zeros:
            self._read_zeros = True
            logger.warning("device %d holds no values: tensors read from it are zero", self._id)

    # -- lifetime -------------------------------------------------------------------------------------------------

    def memory(self, buffer_type: BufferType) -> BankedMemory:
        return self.memories[buffer_type]

    def require_open(self) -> None:
        if not self.is_open:
            raise InvalidArgument(f"device {self._id} is closed", hint="Open a device with ttnn.open_device.")

    def close(self) -> None:
        self.is_open = False
        self.program_cache.clear()
        self.traces.clear()

    def __enter__(self) -> MeshDevice:
        return self

    def __exit__(self, *exc_info: object) -> None:
        from ttnn_emulator.hardware.device_opening import close_device

        close_device(self)

    def __repr__(self) -> str:
        rows = "x".join(str(dim) for dim in self.shape)
        return f"MeshDevice({rows} grid, {self.num_devices} devices)"


Device = MeshDevice


# tt-metal v0.77.0: tt_metal/impl/allocator/l1_banking_allocator.cpp, L1BankingAllocator::generate_config
def _memories(
    described: Board, l1_small_size: int, trace_region_size: int, worker_l1_size: int
) -> dict[BufferType, BankedMemory]:
    """Split a chip's DRAM and L1 as the library does: L1_SMALL on top of L1, the trace region on top of DRAM."""
    alignment = described.dram_alignment
    worker_l1 = worker_l1_size or described.l1_bank_bytes
    require(worker_l1 <= described.l1_bank_bytes, f"worker_l1_size {worker_l1_size} exceeds {described.l1_bank_bytes}")
    require(
        0 <= l1_small_size < worker_l1,
        f"l1_small_size {l1_small_size} must be less than the L1 per core ({worker_l1})",
    )
    l1_base = described.l1_bytes - worker_l1
    trace_bank = round_up(div_up(trace_region_size, described.dram_banks), 4096) if trace_region_size else 0
    dram_bank = described.dram_usable_bank_bytes - trace_bank
    require(dram_bank > 0, f"trace_region_size {trace_region_size} exceeds the DRAM of the board")

    def memory(kind: BufferType, banks: int, size: int, base: int, bottom_up: bool) -> BankedMemory:
        return BankedMemory(kind, banks=banks, bank_bytes=size, base=base, alignment=alignment, bottom_up=bottom_up)

    l1_bank = worker_l1 - l1_small_size
    return {
        BufferType.DRAM: memory(BufferType.DRAM, described.dram_banks, dram_bank, described.dram_base, True),
        BufferType.L1: memory(BufferType.L1, described.cores, l1_bank, l1_base, False),
        BufferType.L1_SMALL: memory(
            BufferType.L1_SMALL, described.cores if l1_small_size else 0, l1_small_size, l1_base + l1_bank, False
        ),
        BufferType.TRACE: memory(
            BufferType.TRACE, described.dram_banks, trace_bank, described.dram_base + dram_bank, True
        ),
    }
