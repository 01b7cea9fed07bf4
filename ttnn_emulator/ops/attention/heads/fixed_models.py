"""Attention heads of models whose numbers of heads are fixed: Falcon 7B, ViT, SegFormer."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ttnn_emulator.enums import Layout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.ops.attention.heads.common import (
    divided,
    faulty,
    grouped_heads,
    grown,
    heads_plan,
    outputs_given,
    require_heads,
    require_interleaved,
    unchanged,
)
from ttnn_emulator.ops.attention.heads.split_concatenate import taking_apart
from ttnn_emulator.ops.support.common_checks import memory_of
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import TILE_SIZE
from ttnn_emulator.tensors.spec import Spec

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/transformer/nlp_create_qkv_heads_falcon7b/device/nlp_create_qkv_heads_falcon7b_device_operation.cpp,  # noqa: E501
# input_shape and output specs
FALCON_HEADS, FALCON_WIDTH = 71, 4672
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/transformer/nlp_create_qkv_heads_vit/device/nlp_create_qkv_heads_vit_device_operation.cpp,  # noqa: E501
# input_shape and output specs
VIT_HEADS, VIT_WIDTH = 12, 2304
FIXED_HEAD_DIM = 64
SEGFORMER_HEAD_DIM = 32


def _fixed_heads(
    input: Spec,
    memory_config: MemoryConfig | None,
    output_tensors: Sequence[Spec | None] | None,
    counts: tuple[int, int],
    head_dim: int,
) -> Plan:
    config, given = _interleaved_outputs(input, memory_config, output_tensors)
    padded = input.padded_shape
    heads = (counts[0], counts[1], counts[1])
    specs = [Spec.of((padded[0], count, padded[2], head_dim), input.dtype, Layout.TILE, config) for count in heads]
    apart = taking_apart(counts, 1, head_dim, unchanged)
    return heads_plan(specs, lambda values: apart(grown(values, padded)), ("input",), given, _row_buffers(input))


def _interleaved_outputs(
    input: Spec, memory_config: MemoryConfig | None, output_tensors: Sequence[Spec | None] | None
) -> tuple[MemoryConfig, tuple[Spec, ...] | None]:
    """The memory config of the heads, and their preallocated tensors if there are any."""
    config = memory_of(memory_config, input)
    require_heads(input)
    require_interleaved(config)
    given = outputs_given(output_tensors)
    require(given is not None or not output_tensors, "output_tensors must hold a query, a key and a value")
    return config, given


def _row_buffers(spec: Spec) -> int:
    """A double-buffered row of tiles."""
    return 2 * spec.padded_shape[-1] // TILE_SIZE * spec.page_bytes


@operation("ttnn.experimental.nlp_create_qkv_heads_falcon7b")
def nlp_create_qkv_heads_falcon7b(input: Spec, *, memory_config: MemoryConfig | None = None) -> Plan:
    """[B, 1, S, 4672] → 71 query heads, one key head and one value head of 64 columns."""
    _require_width(input, FALCON_WIDTH)
    return _fixed_heads(input, memory_config, None, (FALCON_HEADS, 1), FIXED_HEAD_DIM)


@operation("ttnn.experimental.nlp_create_qkv_heads_vit")
def nlp_create_qkv_heads_vit(
    input: Spec,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensors: Sequence[Spec | None] | None = None,
) -> Plan:
    """[B, 1, S, 2304] → 12 heads of 64 columns, three times."""
    _require_width(input, VIT_WIDTH)
    require(output_tensors is None or len(output_tensors) == 3, "output_tensors must hold a query, a key and a value")
    return _fixed_heads(input, memory_config, output_tensors, (VIT_HEADS, VIT_HEADS), FIXED_HEAD_DIM)


def _require_width(spec: Spec, width: int) -> None:
    padded = spec.padded_shape
    require(len(padded) == 4, f"the input must have rank 4, not {len(padded)}")
    require(padded[1] == 1 and padded[3] == width, f"the input must be [B, 1, S, {width}], not {list(padded)}")


@operation("ttnn.experimental.nlp_create_qkv_heads_segformer")
def nlp_create_qkv_heads_segformer(
    input: Spec,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensors: Sequence[Spec | None] | None = None,
) -> Plan:
    """[B, 1, S, H × 32] → H heads of 32 columns. The kernel writes only the query; key and value are not written."""
    config, given = _interleaved_outputs(input, memory_config, output_tensors)
    padded = input.padded_shape
    require(padded[2] % TILE_SIZE == 0, f"a length of {padded[2]} is not a multiple of {TILE_SIZE}")
    heads = divided(padded[3], SEGFORMER_HEAD_DIM, "the input") if padded[3] else 0
    shape = (padded[0], heads, padded[2], SEGFORMER_HEAD_DIM)
    spec = Spec.of(shape, input.dtype, Layout.TILE, config)

    def compute(values: torch.Tensor, rest: Sequence[torch.Tensor] = ()) -> tuple[torch.Tensor, ...]:
        query = grouped_heads(grown(values, padded), 1, SEGFORMER_HEAD_DIM).flatten(1, 2).contiguous()
        return (query, *rest[1:]) if rest else (query, torch.zeros_like(query), torch.zeros_like(query))

    run = compute if padded[1] == 1 else faulty(f"dimension 1 must be 1, it is {padded[1]}")
    reads = ("input",) if given is None else ("input", "output_tensors")
    return heads_plan((spec,) * 3, run, reads, given, _row_buffers(input))
