"""apply_device_delay: keeps the chips of a mesh busy for a number of cycles each."""

from __future__ import annotations

from collections.abc import Sequence

from ttnn_emulator.api.known_types import SubDeviceId
from ttnn_emulator.errors import SignatureError, require
from ttnn_emulator.execution.operation_table import composite
from ttnn_emulator.hardware.device import MeshDevice

MOST_CYCLES = 0xFFFFFFFF  # of 32 bits


@composite("ttnn.apply_device_delay")
def apply_device_delay(
    mesh_device: MeshDevice, delays: Sequence[Sequence[int]], *, subdevice_id: SubDeviceId | None = None
) -> None:
    """Wait on every chip; a no-op here, because the emulated chips run one after the other."""
    if any(not 0 <= cycles <= MOST_CYCLES for row in delays for cycles in row):
        raise SignatureError(f"delays are numbers of 32 bits without a sign, not {delays}")
    if not isinstance(subdevice_id, SubDeviceId | None):  # unlike other operations, this one accepts no plain number
        raise SignatureError(f"subdevice_id is a ttnn.SubDeviceId, not {subdevice_id!r}")
    rows, columns = (1, *mesh_device.shape)[-2:]
    require(len(delays) == rows, f"{len(delays)} rows of delays do not fit a mesh of {rows} rows")
    for number, row in enumerate(delays):
        require(len(row) == columns, f"{len(row)} delays in row {number} do not fit a mesh of {columns} columns")
    if subdevice_id is not None:
        mesh_device.require_sub_device(subdevice_id)
    if mesh_device.program_cache.enabled:
        mesh_device.program_cache.programs.add(("apply_device_delay", tuple(map(tuple, delays))))
