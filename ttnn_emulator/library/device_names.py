"""Names of `ttnn.device` and `ttnn._ttnn.device` that are about the card's own machinery."""

from __future__ import annotations

import os
from typing import Any

from ttnn_emulator.device import MeshDevice, get_memory_view
from ttnn_emulator.enums import BufferType
from ttnn_emulator.errors import NotEmulated

DEFAULT_WORKER_L1_SIZE = 0
SLOW_DISPATCH = "TT_METAL_SLOW_DISPATCH_MODE"


def setup_fast_dispatch(*args: Any, **kwargs: Any) -> None:
    """Commands reach the emulated card in one way only."""
    os.environ.pop(SLOW_DISPATCH, None)


def IsProgramRealtimeProfilerActive(*args: Any) -> bool:
    """Kernels are timed by a card; here there are none."""
    return False


def RegisterProgramRealtimeProfilerCallback(*args: Any, **kwargs: Any) -> Any:
    raise NotEmulated("ttnn.device.RegisterProgramRealtimeProfilerCallback: there are no kernels to time")


def UnregisterProgramRealtimeProfilerCallback(*args: Any, **kwargs: Any) -> Any:
    raise NotEmulated("ttnn.device.UnregisterProgramRealtimeProfilerCallback: there are no kernels to time")


def dump_device_memory_state(device: MeshDevice, prefix: str = "") -> None:
    """Print what every memory of the device holds."""
    for kind in (BufferType.DRAM, BufferType.L1, BufferType.L1_SMALL, BufferType.TRACE):
        view = get_memory_view(device, kind)
        print(
            f"{prefix}{kind.name}: {view.total_bytes_allocated_per_bank} B of {view.total_bytes_per_bank} B a bank "
            f"in use, largest free block {view.largest_contiguous_bytes_free_per_bank} B"
        )
