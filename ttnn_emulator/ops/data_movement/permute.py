"""Reordered dimensions: permute and transpose."""

from __future__ import annotations

from collections.abc import Sequence

from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.ops.flows.permute import permute_flow, transpose_flow
from ttnn_emulator.ops.flows.value_flow import Flow
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.spec import Spec


@operation("ttnn.permute")
def permute(
    input_tensor: Spec, dims: Sequence[int], *, memory_config: MemoryConfig | None = None, pad_value: float = 0.0
) -> Plan:
    """The dimensions in the given order."""
    return permute_flow(Flow(input_tensor), dims, memory_config, pad_value).plan("input_tensor")


@operation("ttnn.transpose")
def transpose(
    input_tensor: Spec, dim1: int, dim2: int, *, memory_config: MemoryConfig | None = None, pad_value: float = 0.0
) -> Plan:
    """Two dimensions swapped."""
    return transpose_flow(Flow(input_tensor), dim1, dim2, memory_config, pad_value).plan("input_tensor")
