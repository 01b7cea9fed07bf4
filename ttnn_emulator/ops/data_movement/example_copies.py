"""The library's examples of operations: they copy their input."""

from __future__ import annotations

import torch

from ttnn_emulator.enums import DataType
from ttnn_emulator.errors import NotEmulated, require
from ttnn_emulator.execution.operation_table import Plan, composite, internal
from ttnn_emulator.numerics.formats.carriers import flush
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.tensor import Tensor

COPIED = (DataType.BFLOAT16, DataType.BFLOAT8_B, DataType.BFLOAT4_B)


@internal("ttnn.prim.example")
def _copy(input_tensor: Spec) -> Plan:
    spec = input_tensor
    require(spec.on_device, "Device Operations expect device tensors as inputs")
    out = Spec.of(spec.shape, spec.dtype, spec.layout, DRAM_MEMORY_CONFIG)
    return Plan(out, _copied if spec.is_tile and spec.dtype in COPIED else _unknown)


def _copied(values: torch.Tensor) -> torch.Tensor:
    return flush(values).clone()


def _unknown(values: torch.Tensor) -> torch.Tensor:
    raise NotEmulated("the example copies tiles of bfloat16 and block floats; other dtypes are not emulated")


@composite("ttnn.composite_example")
def composite_example(input_tensor: Tensor) -> Tensor:
    """A copy in DRAM."""
    return _copy(input_tensor)


@composite("ttnn.composite_example_multiple_return")
def composite_example_multiple_return(
    input_tensor: Tensor, *, return_output1: bool = True, return_output2: bool = True
) -> list[Tensor | None]:
    """Two copies, or one of them."""
    require(return_output1 or return_output2, "at least one output must be returned")
    return [_copy(input_tensor) if wanted else None for wanted in (return_output1, return_output2)]
