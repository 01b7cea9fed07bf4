"""Queries of a tensor about its buffer and its distribution over chips."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from ttnn_emulator.errors import NotEmulated, require

if TYPE_CHECKING:
    from ttnn_emulator.hardware.device import MeshDevice
    from ttnn_emulator.tensors.spec import Spec
    from ttnn_emulator.tensors.storage import Storage


class TensorFacts:
    """The tensor methods for these queries."""

    __slots__ = ()

    if TYPE_CHECKING:
        _spec: Spec
        _storage: Storage
        _device: MeshDevice | None

    def to_torch_with_padded_shape(self) -> torch.Tensor:
        """The values of a host tensor with its padding, which is zeros."""
        require(not self._spec.on_device, "to_torch_with_padded_shape takes a tensor on the host")
        values: torch.Tensor = self.to_torch()  # type: ignore[attr-defined]
        padded = torch.zeros(self._spec.padded_shape, dtype=values.dtype)
        padded[tuple(slice(0, size) for size in values.shape)] = values
        return padded

    def buffer_unique_id(self) -> int | None:
        """The id of the buffer that holds the values; views share that of their source."""
        root = self._storage.root
        return id(root) if self._spec.on_device and root.is_allocated else None

    def is_per_core_allocated(self) -> bool:
        return self._spec.memory_config.per_core_allocation

    def is_range_lockstep_allocated(self) -> bool:
        return self._spec.memory_config.range_lockstep_allocation

    def tensor_topology(self) -> Any:
        """The distribution of the tensor over chips; replicated on a single chip."""
        from ttnn_emulator.hardware.mesh_coordinates import MeshCoordinate, MeshShape
        from ttnn_emulator.library.devices.tensor_topology import TensorTopology
        from ttnn_emulator.tensors.mesh_distribution import PlacementReplicate

        if self._device is not None and self._device.num_devices > 1:
            raise NotEmulated("the topology of a tensor on several chips is not emulated")
        return TensorTopology(MeshShape([1]), [PlacementReplicate()], [MeshCoordinate(0, 0)])

    def update_tensor_topology(self, topology: Any) -> None:
        raise NotEmulated("Tensor.update_tensor_topology exists in ttnn but is not emulated")

    def experimental_per_core_buffer_address(self, device_coord: Any, core: Any) -> int:
        raise NotEmulated("Tensor.experimental_per_core_buffer_address: addresses per core are not emulated")

    def extract_shard(self, core: Any) -> Any:
        raise NotEmulated("Tensor.extract_shard exists in ttnn but is not emulated")

    def host_buffer(self) -> Any:
        raise NotEmulated("Tensor.host_buffer exists in ttnn but is not emulated")
