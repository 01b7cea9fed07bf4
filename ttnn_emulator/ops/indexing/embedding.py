"""Embedding lookup, and the gradient of the table."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ttnn_emulator.enums import ALL_ENUMS, DataType, Layout
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.operation_table import Plan, composite, internal, ttnn
from ttnn_emulator.numerics.formats.carriers import flushed_rows
from ttnn_emulator.numerics.units import vector_unit
from ttnn_emulator.numerics.units.packer import device_pack_block_float
from ttnn_emulator.ops.support.common_checks import into, require_on_device
from ttnn_emulator.ops.support.derived_shards import HEIGHT
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import TILE_SIZE
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.tensors.tensor import Tensor

EmbeddingsType = ALL_ENUMS["EmbeddingsType"]
TOKEN_DTYPES = (DataType.UINT32, DataType.BFLOAT16)


@composite("ttnn.embedding")
def embedding(
    input_tensor: Tensor,
    weight: Tensor,
    *,
    padding_idx: int | None = None,
    layout: Layout | None = None,
    embeddings_type: Any = EmbeddingsType.GENERIC,
    dtype: DataType | None = None,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
) -> Tensor:
    """The table row of every token."""
    kind = EmbeddingsType.PADDED if padding_idx is not None else embeddings_type
    tokens, table = input_tensor, weight
    if table._spec.is_tile:
        table = ttnn.to_layout(table, Layout.ROW_MAJOR)
    width = table._spec.shape[-1]
    table = ttnn.unsqueeze_to_4D(table)
    shape = tokens._spec.shape
    require(len(shape) > 0, "the input tensor must not be a scalar")
    batch, length = (1 if len(shape) == 1 else shape[0]), shape[-1]
    if not tokens._spec.is_tile:
        tokens = first_rows(tokens, batch)
    wanted = layout if layout is not None else weight._spec.layout
    aligned = tokens._spec.padded_shape[-1] % TILE_SIZE == 0 and table._spec.padded_shape[-1] % TILE_SIZE == 0
    as_tiles = aligned and wanted is Layout.TILE
    if aligned and layout is None and not as_tiles:
        require(dtype is None or dtype is table._spec.dtype, "embeddings are converted only if the output is in tiles")
    result = look_up(tokens, table, as_tiles, kind, padding_idx, memory_config, output_tensor)
    result = ttnn.reshape(result, [length, width] if len(shape) == 1 else [batch, length, width])
    if result._spec.layout is not wanted:
        result = ttnn.to_layout(result, wanted)
    final = dtype if dtype is not None else table._spec.dtype
    if result._spec.is_tile and result._spec.dtype is not final:
        result = ttnn.typecast(result, final)
    return result


@internal("ttnn.reshape")
def first_rows(tokens: Spec, count: int) -> Plan:
    """The tokens as [count, 1, 1, length]. The library reads only the first rows of a larger tensor."""
    require(not tokens.is_sharded, "tokens must be interleaved")
    length = tokens.shape[-1]
    out = tokens.with_(shape=(count, 1, 1, length))
    return Plan(out, lambda ids: ids.reshape(-1)[: count * length].reshape(out.shape), shares="tokens")


@internal("ttnn.prim.embedding")
def look_up(
    input_tensor: Spec,
    weight: Spec,
    as_tiles: bool,
    kind: Any,
    padding_idx: int | None,
    memory_config: MemoryConfig | None,
    output_tensor: Spec | None = None,
) -> Plan:
    """The embedding kernels: rows are copied, or tilized, which flushes; the padding token's row is prefetched."""
    tokens, config = input_tensor, memory_config if memory_config is not None else input_tensor.memory_config
    require_on_device(tokens)
    require_on_device(weight, "the table")
    require(tokens.dtype in TOKEN_DTYPES, f"tokens must be uint32 or bfloat16, not {tokens.dtype}")
    require(weight.dtype is DataType.BFLOAT16, f"the table must be bfloat16, not {weight.dtype}")
    require(not tokens.is_sharded and not weight.is_sharded, "tokens and table must be interleaved")
    require(weight.padded_shape[:2] == (1, 1), f"the table must be of two dimensions, not {list(weight.shape)}")
    shards = config.shard_spec
    if config.is_sharded() and as_tiles:
        require(shards is not None, "a sharded memory config needs a shard spec")
        assert shards is not None
        rows, width = int(np.prod(tokens.padded_shape)), weight.padded_shape[-1]
        require(
            shards.shape[0] % TILE_SIZE == 0 and shards.shape[1] % TILE_SIZE == 0,
            f"shards {list(shards.shape)} must be whole tiles",
        )
        require(
            rows % shards.shape[0] == 0 and width % shards.shape[1] == 0,
            f"shards {list(shards.shape)} must divide {rows} x {width}",
        )
    elif config.is_sharded():
        require(config.memory_layout is HEIGHT, "rows of embeddings are sharded by height only")
    require(
        tokens.is_tile or tokens.padded_shape[1:3] == (1, 1), f"tokens {list(tokens.shape)} must be of two dimensions"
    )
    if kind is EmbeddingsType.PADDED:
        require(padding_idx is not None, "embeddings of type PADDED need a padding_idx")
    elif kind is EmbeddingsType.BINARY:
        require(weight.padded_shape[-2] == 2, f"a binary table has 2 rows, not {weight.padded_shape[-2]}")
    shape = (tokens.shape[0], 1, tokens.shape[-1], weight.shape[-1])
    layout = Layout.TILE if as_tiles and not tokens.is_tile else Layout.ROW_MAJOR
    out = output_tensor or Spec.of(shape, weight.dtype, layout, config)
    count = weight.shape[-2]

    def compute(ids: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        places = ids.reshape(-1).long()
        if places.numel() and (int(places.max()) >= count or int(places.min()) < 0):
            raise ChipFault(f"token {int(places.max())} is beyond {count} rows: the kernel reads what is there")
        rows = table.reshape(count, -1)
        found = flushed_rows(rows, places) if layout is Layout.TILE else rows.index_select(0, places)
        return found.reshape(out.shape)

    return Plan(out, compute, reads=("input_tensor", "weight"), into=into(output_tensor), narrow=True)


@composite("ttnn.embedding_bw")
def embedding_bw(
    input_tensor: Tensor,
    weight_tensor: Tensor,
    output_gradient_tensor: Tensor,
    *,
    dtype: DataType | None = None,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
) -> Tensor:
    """The gradient of the table: every row of the output's gradient added to the row of its token."""
    gradient, shape = output_gradient_tensor._spec, input_tensor._spec.shape
    require(len(shape) > 0 and weight_tensor._spec.rank > 1, "the input needs one dimension and the table two")
    tokens = ttnn.reshape(input_tensor, [shape[0], 1, 1, shape[-1]])
    config = memory_config if memory_config is not None else gradient.memory_config
    wanted = dtype if dtype is not None else gradient.dtype
    return add_rows(tokens, output_gradient_tensor, weight_tensor._spec.shape[-2], wanted, config, output_tensor)


@internal("ttnn.prim.embedding_backward")
def add_rows(
    tokens: Spec,
    gradient: Spec,
    count: int,
    dtype: DataType,
    memory_config: MemoryConfig,
    output_tensor: Spec | None = None,
) -> Plan:
    """The kernel adds row after row in a 16-bit destination register, which truncates every sum to bfloat16."""
    require_on_device(tokens)
    require_on_device(gradient, "the gradient")
    require(not tokens.is_tile, "tokens must be in ROW_MAJOR layout")
    require(tokens.dtype in TOKEN_DTYPES, f"tokens must be uint32 or bfloat16, not {tokens.dtype}")
    require(tokens.padded_shape[-1] % TILE_SIZE == 0, f"rows of {tokens.padded_shape[-1]} tokens are not whole tiles")
    require(gradient.is_tile, "the gradient must be in TILE layout")
    require(
        gradient.dtype in (DataType.BFLOAT16, DataType.BFLOAT8_B),
        f"the gradient must be bfloat16 or bfloat8_b, not {gradient.dtype}",
    )
    require(gradient.dtype is dtype, f"the gradient's dtype {gradient.dtype} must be that of the output, {dtype}")
    padded = gradient.padded_shape
    require(len(padded) == 4 and padded[:2] == (1, 1), f"the gradient must be [1, 1, rows, width], not {list(padded)}")
    rows = tokens.padded_shape[0] * tokens.padded_shape[-1]
    require(padded[2] == rows, f"{rows} tokens do not fit {padded[2]} rows of the gradient")
    out = Spec.of((1, 1, count, gradient.shape[-1]), dtype, Layout.TILE, memory_config)

    def compute(ids: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        places = ids.reshape(-1).long().tolist()
        given = values.reshape(-1, values.shape[-1]).numpy()
        sums = np.zeros((count, given.shape[1]), np.float32)
        for start in range(0, len(places), TILE_SIZE):
            block = range(start, min(start + TILE_SIZE, len(places)))
            for row in block:
                row_of_table = places[row]
                if row_of_table < count:
                    sums[row_of_table] = vector_unit.store_bf16(vector_unit.add(given[row], sums[row_of_table]))
            if dtype is DataType.BFLOAT8_B:  # the sums go back to memory after every 32 rows
                touched = sorted({places[row] for row in block if places[row] < count})
                packed = device_pack_block_float(torch.from_numpy(sums[touched]), dtype)
                sums[touched] = packed.numpy()
        return torch.from_numpy(sums).reshape(out.shape)

    return Plan(out, compute, reads=("tokens", "gradient"), into=into(output_tensor))
