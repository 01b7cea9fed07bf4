"""ttnn.nonzero and ttnn.isin."""

from __future__ import annotations

import torch

from ttnn_emulator.enums import FLOAT_DTYPES, DataType, Layout, TensorMemoryLayout
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, composite, internal, operation, ttnn
from ttnn_emulator.numerics.formats.carriers import bits_of
from ttnn_emulator.ops.support.common_checks import into, require_on_device
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from ttnn_emulator.tensors.shapes import round_up
from ttnn_emulator.tensors.spec import ROW_MAJOR_BYTES, Spec
from ttnn_emulator.tensors.tensor import Tensor

# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/experimental/isin/device/kernels/dataflow/isin_reader.cpp,
# output_subchunk_ptr
TRUE = 0xFFFFFFFF  # result of isin for an element of the set


@operation("ttnn.nonzero")
def nonzero(input_tensor: Spec, *, memory_config: MemoryConfig | None = None) -> Plan:
    """The number of nonzero elements, and four coordinates of each; the remaining rows are undefined."""
    spec = input_tensor
    config = memory_config if memory_config is not None else DRAM_MEMORY_CONFIG
    require(spec.rank == 4, f"the input must be of rank 4, not {spec.rank}")
    require_on_device(spec)
    require(config.interleaved, "the output must be interleaved")
    require(
        spec.is_tile or spec.padded_shape == spec.shape,
        f"rows with padding are not supported: {list(spec.padded_shape)} for {list(spec.shape)}",
    )
    needed, room = 2 * round_up(spec.volume * 16, 32), current_board().l1_bytes
    require(needed <= room, f"the indices need {needed} B of {room} B of L1")
    interleaved = MemoryConfig(TensorMemoryLayout.INTERLEAVED, config.buffer_type)
    count = Spec.of((1, 1, 1, 8), DataType.UINT32, Layout.ROW_MAJOR, interleaved)
    indices = Spec.of((1, 1, 1, spec.volume * 4), DataType.UINT32, Layout.ROW_MAJOR, interleaved)

    def compute(values: torch.Tensor) -> list[torch.Tensor]:
        magnitude = bits_of(values) & 0x7FFFFFFF if values.is_floating_point() else values
        found = torch.nonzero(magnitude)
        number, places = torch.zeros(count.shape, dtype=torch.int64), torch.zeros(spec.volume * 4, dtype=torch.int64)
        number[..., 0] = found.shape[0]
        places[: found.numel()] = found.reshape(-1)
        return [number, places.reshape(indices.shape)]

    return Plan([count, indices], compute)


@composite("ttnn.experimental.isin")
def isin(
    elements: Tensor,
    test_elements: Tensor,
    *,
    assume_unique: bool = False,
    invert: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """All ones in 32 bits for every element that is one of `test_elements`, else 0; `invert` the other way round."""
    spec, test = elements._spec, test_elements._spec
    require(spec.dtype is test.dtype, f"elements must be of one dtype, not {spec.dtype} and {test.dtype}")
    require(spec.on_device and test.on_device, "both tensors must be on a device")
    rows = [
        ttnn.to_layout(tensor, Layout.ROW_MAJOR) if tensor._spec.is_tile else tensor
        for tensor in (elements, test_elements)
    ]
    flat = [ttnn.reshape(tensor, [tensor._spec.volume]) if tensor._spec.rank > 1 else tensor for tensor in rows]
    result = find(*flat, invert, out)
    if spec.rank != 1:
        result = ttnn.reshape(result, list(spec.shape))
    return ttnn.to_layout(result, Layout.TILE) if spec.is_tile else result


@internal("ttnn.prim.isin")
def find(elements: Spec, test: Spec, invert: bool, out: Spec | None = None) -> Plan:
    require(not elements.is_sharded and not test.is_sharded, "sharded tensors are not supported")
    require(out is None or out.dtype is DataType.UINT32, "the output tensor must be uint32")
    result = out or Spec.of((elements.volume,), DataType.UINT32, Layout.ROW_MAJOR, elements.memory_config)
    by_bits = elements.dtype in FLOAT_DTYPES and elements.dtype is not DataType.FLOAT32
    narrow = ROW_MAJOR_BYTES[elements.dtype] < 4

    def compute(values: torch.Tensor, candidates: torch.Tensor) -> torch.Tensor:
        if invert and narrow:
            raise ChipFault(f"isin of {elements.dtype} with invert leaves a part of its output unwritten")
        if by_bits:
            values, candidates = bits_of(values), bits_of(candidates)
        hit = torch.isin(values, candidates) ^ invert
        return torch.where(hit, TRUE, 0).reshape(result.shape)

    return Plan(result, compute, reads=("elements", "test"), into=into(out, "out"))
