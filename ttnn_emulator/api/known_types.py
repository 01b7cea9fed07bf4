"""Maps recorded type names to the emulator's classes, with their implicit conversions."""

from __future__ import annotations

from typing import Any

from ttnn_emulator.api.binding import TYPES, NoMatch
from ttnn_emulator.api.config_types import ConfigRecord, make_config_types
from ttnn_emulator.hardware.core_grid import CoreCoord, CoreGrid, CoreRange, CoreRangeSet
from ttnn_emulator.hardware.device import MeshDevice
from ttnn_emulator.hardware.dispatch_cores import DispatchCoreConfig
from ttnn_emulator.hardware.fabric import GlobalSemaphore
from ttnn_emulator.hardware.mesh_coordinates import MeshCoordinate, MeshShape
from ttnn_emulator.library.devices.global_circular_buffer import global_circular_buffer
from ttnn_emulator.tensors.memory_config import MemoryConfig, NdShardSpec, ShardSpec
from ttnn_emulator.tensors.mesh_distribution import MeshComposer, MeshMapper, PlacementReplicate, PlacementShard
from ttnn_emulator.tensors.shapes import Shape, Tile
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.tensor import Tensor


def _shape(value: Any) -> Shape:
    if isinstance(value, list | tuple) and all(isinstance(dim, int) for dim in value):
        return Shape(value)
    raise NoMatch


def _core(value: Any) -> CoreCoord:
    if isinstance(value, list | tuple) and len(value) == 2 and all(isinstance(item, int) for item in value):
        return CoreCoord(*value)
    raise NoMatch


def _queue(value: Any) -> Any:
    if isinstance(value, int):
        return value
    raise NoMatch


def _semaphores(value: Any) -> tuple[GlobalSemaphore, ...]:
    if isinstance(value, list | tuple) and all(isinstance(item, GlobalSemaphore) for item in value):
        return tuple(value)
    raise NoMatch


class QueueId(int):
    """Number of a command queue; a plain integer is also accepted."""


class SubDeviceId(int):
    """Number of a sub-device; the emulator runs everything on the whole chip."""


def register_known_types() -> dict[str, type[ConfigRecord]]:
    """Fill the binder's table and return the generated config records."""
    for name, cls in (
        ("Tensor", Tensor),
        ("MemoryConfig", MemoryConfig),
        ("ShardSpec", ShardSpec),
        ("NdShardSpec", NdShardSpec),
        ("CoreRange", CoreRange),
        ("CoreRangeSet", CoreRangeSet),
        ("CoreGrid", CoreGrid),
        ("Tile", Tile),
        ("TensorSpec", Spec),
        ("MeshDevice", MeshDevice),
        ("MeshShape", MeshShape),
        ("MeshCoordinate", MeshCoordinate),
        ("DispatchCoreConfig", DispatchCoreConfig),
        ("CppTensorToMesh", MeshMapper),
        ("TensorToMesh", MeshMapper),
        ("CppMeshToTensor", MeshComposer),
        ("MeshToTensor", MeshComposer),
        ("global_semaphore", GlobalSemaphore),
        ("global_circular_buffer", global_circular_buffer),
        ("PlacementReplicate", PlacementReplicate),
        ("PlacementShard", PlacementShard),
    ):
        TYPES.register(name, cls)
    TYPES.register("Shape", Shape, implicit=_shape)
    TYPES.register("CoreCoord", CoreCoord, implicit=_core)
    TYPES.register("GlobalSemaphoreArg", GlobalSemaphore, implicit=_semaphores)
    TYPES.register("QueueId", QueueId, implicit=_queue)
    TYPES.register("SubDeviceId", SubDeviceId, implicit=_queue)
    records = make_config_types()
    TYPES.register("BlackholeComputeKernelConfig", records["WormholeComputeKernelConfig"])
    return records
