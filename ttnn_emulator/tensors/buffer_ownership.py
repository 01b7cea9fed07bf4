"""Buffer ownership: views and second handles share a buffer, and only the last of them frees it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ttnn_emulator.execution.trace import references_to
from ttnn_emulator.tensors.tensor import caller

if TYPE_CHECKING:
    from ttnn_emulator.hardware.device import MeshDevice
    from ttnn_emulator.tensors.storage import Storage
    from ttnn_emulator.tensors.tensor import Tensor

# References to a storage during the check: its tensor or view, a variable, and the argument of getrefcount.
REFERENCES_HERE = 3


def release_buffer(tensor: Tensor, force: bool) -> None:
    """Deallocate a tensor on a device, without `force` only if it is the last one; host tensors keep their values."""
    if tensor._device is not None and (force or not has_other_owners(tensor)):
        tensor._storage.release(f"ttnn.deallocate at {caller()}")


def has_other_owners(tensor: Tensor) -> bool:
    """Whether another tensor shares the buffer. A trace refers to buffers without owning them."""
    storage = tensor._storage
    while True:
        others = sys.getrefcount(storage) - REFERENCES_HERE
        if others > 0 and others > _references_in_traces(storage, tensor._device):
            return True
        if storage.root is storage:
            return False
        storage = storage.owner  # type: ignore[attr-defined]


def _references_in_traces(storage: Storage, device: MeshDevice | None) -> int:
    if device is None:
        return 0
    traces = [*device.traces.values(), *([] if device.capturing is None else [device.capturing])]
    return references_to(storage, traces)
