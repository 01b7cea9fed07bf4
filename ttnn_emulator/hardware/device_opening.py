"""Opens and closes devices; the default device."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ttnn_emulator.errors import InvalidArgument, require
from ttnn_emulator.hardware.boards import Board, board_names, default_board_name, find_board
from ttnn_emulator.hardware.device import DEFAULT_L1_SMALL_SIZE, DEFAULT_TRACE_REGION_SIZE, MeshDevice
from ttnn_emulator.hardware.dispatch_cores import DispatchCoreConfig
from ttnn_emulator.hardware.mesh_coordinates import MeshShape

MAX_CARDS = 64

_default_device: MeshDevice | None = None


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

    A mesh larger than the named board opens on the smallest board of the same architecture with enough chips.
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
            f"no board of {described.arch} has {chips} chips", hint="the largest emulated mesh is that of t3000"
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
