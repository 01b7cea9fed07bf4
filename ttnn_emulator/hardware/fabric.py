"""The fabric between chips, and global semaphores, for collectives."""

from __future__ import annotations

import logging
from typing import Any

from ttnn_emulator.enums import ALL_ENUMS, BufferType
from ttnn_emulator.errors import InvalidArgument, require
from ttnn_emulator.hardware.core_grid import CoreRangeSet
from ttnn_emulator.hardware.device import MeshDevice
from ttnn_emulator.tensors.storage import Placement, Storage

FabricConfig: Any = ALL_ENUMS["FabricConfig"]
Topology: Any = ALL_ENUMS["Topology"]

# Topology along an axis; every other config is linear.
TOPOLOGIES: dict[Any, Any] = {
    FabricConfig.FABRIC_1D_RING: Topology.Ring,
    FabricConfig.FABRIC_2D: Topology.Mesh,
    FabricConfig.FABRIC_2D_TORUS_X: Topology.Torus,
    FabricConfig.FABRIC_2D_TORUS_Y: Topology.Torus,
    FabricConfig.FABRIC_2D_TORUS_XY: Topology.Torus,
}
TWO_DIMENSIONAL = frozenset(config for config in FabricConfig if "2D" in config.name)
# tt-metal v0.77.0: tt_metal/impl/buffers/global_semaphore.cpp, page_size
SEMAPHORE_BYTES = 4
HOW_TO_ENABLE = "Call ttnn.set_fabric_config(ttnn.FabricConfig.FABRIC_1D) before the mesh is opened."

logger = logging.getLogger(__name__)


class _Fabric:
    """The fabric config is per process, as in the library: it is set before devices are opened."""

    config: Any = FabricConfig.DISABLED
    noted: bool = False  # whether the warning about a disabled fabric was logged


_fabric = _Fabric()


def set_fabric_config(
    config: Any,
    reliability_mode: Any = None,
    num_planes: int | None = None,
    fabric_tensix_config: Any = None,
    fabric_udm_mode: Any = None,
    fabric_manager_mode: Any = None,
    router_config: Any = None,
) -> None:
    """Set the fabric config. Emulated chips always reach each other; argument checks depend on the config."""
    if not isinstance(config, FabricConfig):
        raise TypeError(f"set_fabric_config takes a FabricConfig, not {config!r}")
    _fabric.config = config


def get_fabric_config() -> Any:
    """The current fabric config."""
    return _fabric.config


def is_two_dimensional() -> bool:
    """Whether the fabric routes in two dimensions, so that a collective may span rows and columns at once."""
    return _fabric.config in TWO_DIMENSIONAL


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/ccl/ccl_common.cpp, get_usable_topology
def get_usable_topology(tensor: Any, topology: Any = None, cluster_axis: int | None = None) -> Any:
    """The topology that a collective uses: a ring of two chips, or one that is not closed, is linear."""
    requested = topology if topology is not None else TOPOLOGIES.get(_fabric.config, Topology.Linear)
    if requested not in (Topology.Ring, Topology.Torus):
        return requested
    device = tensor._device
    require(device is not None, "the tensor must be on a device")
    shape = tuple(device.shape)
    along = shape if cluster_axis is None else shape[cluster_axis : cluster_axis + 1]
    # No emulated board has wrap-around links along one axis, only a ring through all chips.
    closes = cluster_axis is None and 2 not in along and device.num_devices > 1
    if closes:
        return requested
    return Topology.Mesh if requested is Topology.Torus else Topology.Linear


def get_num_links(mesh_device: MeshDevice, cluster_axis: int | None = None) -> int:
    """Ethernet links between neighbours that collectives may use."""
    require(cluster_axis in (None, 0, 1), f"cluster_axis {cluster_axis} is neither 0 nor 1")
    return 1


# tt-metal v0.77.0: tt_metal/fabric/erisc_datamover_builder.hpp, default_packet_payload_size_bytes
def get_tt_fabric_max_payload_size_bytes() -> int:
    """Maximum payload of a fabric packet in bytes."""
    _require_enabled()
    return 4352


def get_tt_fabric_packet_header_size_bytes() -> int:
    """Size of a fabric packet header in bytes."""
    _require_enabled()
    return 48


def _require_enabled() -> None:
    require(_fabric.config is not FabricConfig.DISABLED, "the fabric is not configured", hint=HOW_TO_ENABLE)


def note_if_disabled() -> None:
    """Warn once that a card refuses collectives without a fabric; emulated chips reach each other anyway."""
    if _fabric.config is FabricConfig.DISABLED and not _fabric.noted:
        _fabric.noted = True
        logger.warning("on a card, collectives fail while the fabric is disabled. %s", HOW_TO_ENABLE)


class GlobalSemaphore:
    """A counter at the same L1 address of the given cores, on every chip of a mesh."""

    __slots__ = ("device", "cores", "value", "_storage", "__weakref__")

    def __init__(self, device: MeshDevice, cores: CoreRangeSet, value: int, buffer_type: BufferType) -> None:
        if buffer_type not in (BufferType.L1, BufferType.L1_SMALL):
            raise InvalidArgument(f"a global semaphore must be in L1 or L1_SMALL, not in {buffer_type.name}")
        require(cores.num_cores() > 0, "a global semaphore needs at least one core")
        box, grid = cores.bounding_box(), device.board.grid
        require(box.end.x < grid[0] and box.end.y < grid[1], f"cores {cores} exceed the grid {list(grid)}")
        self.device, self.cores, self.value = device, cores, value
        count = cores.num_cores()
        placement = Placement(device.memory(buffer_type), SEMAPHORE_BYTES * count, SEMAPHORE_BYTES, count)
        self._storage = Storage.placed(placement, device)

    @property
    def address(self) -> int:
        return self._storage.address

    def __repr__(self) -> str:
        return f"GlobalSemaphore(address={self.address}, value={self.value}, cores={self.cores})"


def create_global_semaphore(
    mesh_device: MeshDevice, cores: CoreRangeSet, initial_value: int, buffer_type: BufferType = BufferType.L1
) -> GlobalSemaphore:
    """A semaphore on `cores` of every chip; it occupies L1 for its lifetime."""
    return GlobalSemaphore(mesh_device, cores, initial_value, buffer_type)


def get_global_semaphore_address(global_semaphore: GlobalSemaphore) -> int:
    """Its L1 address, the same on every core."""
    return global_semaphore.address


def reset_global_semaphore_value(global_semaphore: GlobalSemaphore, reset_value: int) -> None:
    """Set the counter on all cores."""
    global_semaphore.value = reset_value
