"""Tensors from nothing: empty, zeros, ones, full."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ttnn_emulator.device import MeshDevice
from ttnn_emulator.enums import DataType, Layout
from ttnn_emulator.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from ttnn_emulator.numerics.formats import CARRIER
from ttnn_emulator.spec import Spec
from ttnn_emulator.table import Plan, operation


def filled(spec: Spec, value: float) -> Plan:
    """A plan that makes a tensor of one value."""
    return Plan(spec, lambda: torch.full(spec.shape, value, dtype=CARRIER[spec.dtype]), reads=())


@operation("ttnn.empty")
def empty(
    shape: Sequence[int],
    dtype: DataType = DataType.BFLOAT16,
    layout: Layout = Layout.ROW_MAJOR,
    device: MeshDevice | None = None,
    memory_config: MemoryConfig | None = None,
) -> Plan:
    """Room for a tensor; the emulator fills it with zeros."""
    return filled(Spec.of(shape, dtype, layout, memory_config or DRAM_MEMORY_CONFIG), 0)


@operation("ttnn.zeros")
def zeros(
    shape: Sequence[int],
    dtype: DataType | None = None,
    layout: Layout | None = None,
    device: MeshDevice | None = None,
    memory_config: MemoryConfig | None = None,
) -> Plan:
    """A tensor of zeros, on the host when no device is given."""
    spec = Spec.of(
        shape,
        dtype or DataType.BFLOAT16,
        layout or Layout.ROW_MAJOR,
        memory_config or DRAM_MEMORY_CONFIG,
        on_device=device is not None,
    )
    return filled(spec, 0)
