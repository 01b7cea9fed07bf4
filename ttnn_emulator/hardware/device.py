"""Devices: a mesh of one or more emulated chips with their memories, program cache and settings."""

from __future__ import annotations

import contextlib
import itertools
import logging
import threading
from collections import deque
from collections.abc import Iterator
from typing import Any

from ttnn_emulator.api.binding import TYPES
from ttnn_emulator.enums import ALL_ENUMS, Arch, BufferType
from ttnn_emulator.errors import InvalidArgument, require
from ttnn_emulator.hardware.allocator import BankedMemory, MemoryView
from ttnn_emulator.hardware.boards import Board, board_names, default_board_name, find_board
from ttnn_emulator.hardware.core_grid import CoreCoord, CoreGrid
from ttnn_emulator.hardware.core_numbering import CoreNumbers
from ttnn_emulator.hardware.sub_devices import SubDevices
from ttnn_emulator.tensors.shapes import div_up, round_up

DispatchCoreType = ALL_ENUMS["DispatchCoreType"]
DispatchCoreAxis = ALL_ENUMS["DispatchCoreAxis"]

DEFAULT_L1_SMALL_SIZE = 0
DEFAULT_TRACE_REGION_SIZE = 0
MAX_CARDS = 64

logger = logging.getLogger(__name__)

_ids = itertools.count(1)
_default_device: MeshDevice | None = None


class MeshShape:
    """Rows and columns of chips: `MeshShape(1, 2)`, `MeshShape([2, 4])`."""

    __slots__ = ("_dims",)

    def __init__(self, *dims: Any, x: int | None = None, y: int | None = None) -> None:
        if len(dims) == 1 and not isinstance(dims[0], int):
            dims = tuple(dims[0])
        if x is not None and y is not None:
            dims = (y, x)
        self._dims = tuple(int(dim) for dim in dims)

    def dims(self) -> int:
        return len(self._dims)

    def mesh_size(self) -> int:
        size = 1
        for dim in self._dims:
            size *= dim
        return size

    def __iter__(self) -> Iterator[int]:
        return iter(self._dims)

    def __len__(self) -> int:
        return len(self._dims)

    def __getitem__(self, index: int) -> int:
        return self._dims[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MeshShape | tuple | list) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(self._dims)

    def __repr__(self) -> str:
        return f"MeshShape({list(self._dims)})"


class MeshCoordinate:
    """The coordinate of a chip in a mesh: `MeshCoordinate(row, column)`."""

    __slots__ = ("_values",)

    def __init__(self, *values: Any) -> None:
        self._values = tuple(values[0]) if len(values) == 1 and not isinstance(values[0], int) else values

    def dims(self) -> int:
        return len(self._values)

    def number_in(self, shape: MeshShape) -> int:
        """The row-major index of the chip."""
        inside = len(self._values) == len(shape) and all(0 <= v < s for v, s in zip(self._values, shape))
        require(inside, f"{self!r} does not lie in a mesh of {list(shape)}")
        number = 0
        for value, size in zip(self._values, shape):
            number = number * size + value
        return number

    def __iter__(self) -> Iterator[int]:
        return iter(self._values)

    def __getitem__(self, index: int) -> int:
        return self._values[index]

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MeshCoordinate) and self._values == other._values

    def __hash__(self) -> int:
        return hash(self._values)

    def __repr__(self) -> str:
        return f"MeshCoordinate({list(self._values)})"


class DispatchCoreConfig:
    """Which cores dispatch work: their type and axis decide how large the compute grid is."""

    def __init__(self, type: Any = None, axis: Any = None, fabric_tensix_config: Any = None) -> None:
        board = find_board(default_board_name())
        by_ethernet = board.dispatch == "eth" and axis is None
        self.type = type or (DispatchCoreType.ETH if by_ethernet else DispatchCoreType.WORKER)
        blackhole = board.arch is Arch.BLACKHOLE
        # Blackhole dispatches from rows only if the fabric multiplexers occupy the columns.
        with_mux = fabric_tensix_config is not None and fabric_tensix_config.name == "MUX"
        usual = DispatchCoreAxis.COL if blackhole and not with_mux else DispatchCoreAxis.ROW
        self.axis = axis or (DispatchCoreAxis.ROW if self.type is DispatchCoreType.ETH else usual)
        on_columns = self.type is DispatchCoreType.ETH and self.axis is DispatchCoreAxis.COL
        require(not on_columns, "COL axis is not supported for ETH dispatch core type")
        on_rows = blackhole and self.axis is DispatchCoreAxis.ROW and self.type is DispatchCoreType.WORKER
        require(
            with_mux or not on_rows,
            "ROW dispatch core axis is not supported for blackhole arch unless fabric tensix MUX is enabled",
        )
        self._as_board = type is None and axis is None

    def dispatch_name(self) -> str | None:
        """The key into a board's table of grids, or None for the board's default dispatch."""
        if self._as_board:
            return None
        if self.type is DispatchCoreType.ETH:
            return "eth"
        return "worker_col" if self.axis is DispatchCoreAxis.COL else "worker_row"


MOST_SEEDED = 1024


class ProgramCache:
    """Prepared plans, one per distinct call: operation, tensor specs, other arguments.

    `programs` and `own_programs` mirror the library's program cache: views and host-filled tensors launch no program,
    and calls that differ only in shapes or scalars may share one.
    """

    def __init__(self) -> None:
        self.enabled = True
        self.misses_allowed = True
        self.hits = 0
        self.misses = 0
        self.plans: dict[Any, Any] = {}
        self.programs: set[Any] = set()  # keys of programs that several calls may share
        self.own_programs = 0  # programs of calls that share with no other
        self._seeded: deque[Any] = deque()  # keys of plans whose arguments include a seed

    def has_program(self, program: Any) -> bool:
        """Whether the program of a call without a plan is cached; None stands for an unshared program."""
        return program is not None and program in self.programs

    def add_program(self, program: Any) -> None:
        if program is None:
            self.own_programs += 1
        else:
            self.programs.add(program)

    def keep(self, key: Any, prepared: Any, *, is_seeded: bool) -> None:
        """Add a plan. Only the latest seeded plans are kept: a new seed per call would add without bound."""
        self.plans[key] = prepared
        if is_seeded:
            self._seeded.append(key)
            if len(self._seeded) > MOST_SEEDED:
                self.plans.pop(self._seeded.popleft(), None)

    def clear(self) -> None:
        self.plans.clear()
        self.programs.clear()
        self.own_programs = 0
        self._seeded.clear()


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
        made = MeshDevice(
            self.board,
            shape=shape,
            device_ids=self._device_ids[: shape.mesh_size()],
            l1_small_size=self.l1_small_size,
            trace_region_size=self.trace_region_size,
            num_command_queues=self.num_command_queues,
            holds_values=self.holds_values,
        )
        self.submeshes.append(made)
        return made

    def get_submeshes(self) -> list[MeshDevice]:
        """The submeshes of this mesh."""
        return list(self.submeshes)

    def create_submeshes(self, shape: MeshShape) -> list[MeshDevice]:
        return [self.create_submesh(shape) for _ in range(self.num_devices // shape.mesh_size())]

    def reshape(self, shape: MeshShape) -> None:
        require(shape.mesh_size() == self.num_devices, f"{self.shape} cannot be reshaped to {shape}")
        self.shape = shape

    def get_view(self) -> Any:
        """The mesh as a table of its chips."""
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
            logger.warning("device %d holds no values: what is read from it is zeros", self._id)

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
        f"l1_small_size {l1_small_size} must be less than the L1 of a core ({worker_l1})",
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


# -- opening and closing ----------------------------------------------------------------------------------------------


def open_device(
    *,
    device_id: int,
    l1_small_size: int = DEFAULT_L1_SMALL_SIZE,
    trace_region_size: int = DEFAULT_TRACE_REGION_SIZE,
    dispatch_core_config: DispatchCoreConfig | None = None,
    num_command_queues: int = 1,
    worker_l1_size: int = 0,
    board: str | None = None,
    holds_values: bool = True,
) -> MeshDevice:
    """Open one chip.

    `board` (default: the environment variable TTNN_EMULATOR_BOARD, or n150) selects the board; a device with
    `holds_values=False` infers specs and memory only. Both parameters are the emulator's own. Any number of cards can
    be opened at once, each with its own memory.

    >>> import ttnn_emulator as ttnn
    >>> with ttnn.open_device(device_id=0) as device:
    ...     print(device.compute_with_storage_grid_size())
    8-8
    """
    require(
        0 <= device_id < MAX_CARDS, f"device_id {device_id} is out of range: at most {MAX_CARDS} cards are emulated"
    )
    described = find_board(board or default_board_name(), _dispatch(dispatch_core_config))
    return MeshDevice(
        described,
        shape=MeshShape(1, 1),
        device_ids=[device_id],
        l1_small_size=l1_small_size,
        trace_region_size=trace_region_size,
        num_command_queues=num_command_queues,
        worker_l1_size=worker_l1_size,
        holds_values=holds_values,
    )


def open_mesh_device(
    mesh_shape: MeshShape | None = None,
    l1_small_size: int = DEFAULT_L1_SMALL_SIZE,
    trace_region_size: int = DEFAULT_TRACE_REGION_SIZE,
    num_command_queues: int = 1,
    dispatch_core_config: DispatchCoreConfig | None = None,
    offset: Any = None,
    physical_device_ids: list[int] | None = None,
    worker_l1_size: int = 0,
    *,
    board: str | None = None,
    holds_values: bool = True,
) -> MeshDevice:
    """Open a mesh of chips; without a shape, all chips of the board.

    A mesh larger than the named board opens on the smallest board that has enough chips of the same kind.
    """
    name = board or default_board_name()
    dispatch = _dispatch(dispatch_core_config)
    described = find_board(name, dispatch)
    shape = mesh_shape if mesh_shape is not None else MeshShape(*described.mesh)
    if shape.mesh_size() > described.chips:
        described = _board_with_chips(described, shape.mesh_size(), dispatch)
    return MeshDevice(
        described,
        shape=shape,
        device_ids=list(physical_device_ids or range(shape.mesh_size())),
        l1_small_size=l1_small_size,
        trace_region_size=trace_region_size,
        num_command_queues=num_command_queues,
        worker_l1_size=worker_l1_size,
        holds_values=holds_values,
    )


def _board_with_chips(described: Board, chips: int, dispatch: str | None) -> Board:
    candidates = [find_board(name, dispatch) for name in board_names() if find_board(name).arch is described.arch]
    enough = sorted((b for b in candidates if b.chips >= chips), key=lambda b: b.chips)
    if not enough:
        raise InvalidArgument(
            f"no board of {described.arch} has {chips} chips", hint="the largest mesh that is emulated is t3000's"
        )
    return enough[0]


def _dispatch(config: DispatchCoreConfig | None) -> str | None:
    return None if config is None else config.dispatch_name()


def close_device(device: MeshDevice) -> None:
    """Close a device and free its memory, including the tensors on it."""
    global _default_device
    device.close()
    if _default_device is device:
        _default_device = None


close_mesh_device = close_device


def CreateDevice(
    device_id: int,
    num_command_queues: int = 1,
    l1_small_size: int = DEFAULT_L1_SMALL_SIZE,
    trace_region_size: int = DEFAULT_TRACE_REGION_SIZE,
    dispatch_core_config: DispatchCoreConfig | None = None,
    *,
    worker_l1_size: int = 0,
) -> MeshDevice:
    return open_device(
        device_id=device_id,
        num_command_queues=num_command_queues,
        l1_small_size=l1_small_size,
        trace_region_size=trace_region_size,
        dispatch_core_config=dispatch_core_config,
        worker_l1_size=worker_l1_size,
    )


def CreateDevices(device_ids: list[int], *args: Any, **kwargs: Any) -> dict[int, MeshDevice]:
    return {device_id: CreateDevice(device_id, *args, **kwargs) for device_id in device_ids}


CloseDevice = close_device


def CloseDevices(devices: dict[int, MeshDevice]) -> None:
    for device in devices.values():
        close_device(device)


@contextlib.contextmanager
def manage_device(device_id: int) -> Iterator[MeshDevice]:
    """Open a device for a block and close it afterwards, also on errors."""
    device = open_device(device_id=device_id)
    try:
        yield device
    finally:
        close_device(device)


@contextlib.contextmanager
def create_mesh_device(*args: Any, **kwargs: Any) -> Iterator[MeshDevice]:
    """Open a mesh for a block and close it afterwards."""
    device = open_mesh_device(*args, **kwargs)
    try:
        yield device
    finally:
        close_device(device)


def synchronize_device(device: MeshDevice, cq_id: Any = None, sub_device_ids: Any = ()) -> None:
    """Wait for the device; emulated calls are synchronous."""
    device.require_open()


def SetDefaultDevice(device: MeshDevice | None) -> None:
    global _default_device
    _default_device = device


def GetDefaultDevice() -> MeshDevice | None:
    return _default_device


def GetNumAvailableDevices() -> int:
    return find_board(default_board_name()).chips


GetNumPCIeDevices = GetNumAvailableDevices


def GetPCIeDeviceID(device_id: int) -> int:
    return device_id


def get_arch_name() -> str:
    return find_board(default_board_name()).arch.name.lower()


def is_wormhole_b0(device: MeshDevice | None = None) -> bool:
    return (device.arch() if device is not None else find_board(default_board_name()).arch) is Arch.WORMHOLE_B0


def is_blackhole(device: MeshDevice | None = None) -> bool:
    return (device.arch() if device is not None else find_board(default_board_name()).arch) is Arch.BLACKHOLE


def get_memory_view(device: MeshDevice, buffer_type: BufferType) -> MemoryView:
    """Bank sizes, what is allocated, what is free, the largest free block, and the peak."""
    return device.memory(buffer_type).view()


def get_allocator_base_address(device: MeshDevice, buffer_type: BufferType) -> int:
    return device.memory(buffer_type).base


def get_l1_alignment() -> int:
    return find_board(default_board_name()).l1_alignment


def get_dram_alignment() -> int:
    return find_board(default_board_name()).dram_alignment


def get_max_worker_l1_unreserved_size() -> int:
    return find_board(default_board_name()).l1_max_unreserved


def ReadDeviceProfiler(device: MeshDevice) -> None:
    """Flush the device profiler; the emulator has nothing to flush."""
