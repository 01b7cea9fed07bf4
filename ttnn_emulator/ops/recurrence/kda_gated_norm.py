"""Pieces of Kimi Delta Attention around its recurrence: the gated norm of its output."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from ttnn_emulator.enums import DataType, Layout, MathFidelity
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.numerics.units import reductions as numeric
from ttnn_emulator.numerics.units.compute_core import Core
from ttnn_emulator.numerics.units.packer import pack
from ttnn_emulator.ops.support.common_checks import math_config
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from ttnn_emulator.tensors.shapes import DEFAULT_TILE, TILE_SIZE
from ttnn_emulator.tensors.spec import Spec, tile_bytes

NARROW, WIDE = DataType.BFLOAT16, DataType.FLOAT32
NARROW_TILE, WIDE_TILE = tile_bytes(DEFAULT_TILE, NARROW), tile_bytes(DEFAULT_TILE, WIDE)


def require_tiles(spec: Spec, name: str, dtypes: Sequence[DataType]) -> None:
    require(spec.on_device, f"{name} must be an allocated device tensor, it is on the host")
    require(spec.is_tile, f"{name} must use TILE layout, not {spec.layout}")
    require(not spec.is_sharded, f"{name} must use interleaved memory")
    names = " or ".join(each.name for each in dtypes)
    require(spec.dtype in dtypes, f"{name} has unsupported dtype {spec.dtype}, it may be {names}")


@operation("ttnn.experimental.kda.sigmoid_gated_rms_norm")
def sigmoid_gated_rms_norm(
    input: Spec,
    gate: Spec,
    weight: Spec,
    num_heads: int,
    *,
    epsilon: float = 1e-5,
    memory_config: MemoryConfig | None = None,
    compute_kernel_config: Any = None,
    output_dtype: DataType = DataType.FLOAT32,
    gate_column_offset: int = 0,
) -> Plan:
    """RMS norm of every head × weight × sigmoid(gate), with heads joined: [B × heads, T, V] → [B, T, heads × V].

    `gate` may have more columns: those of the heads begin at `gate_column_offset`.
    """
    require_tiles(input, "input", (NARROW, WIDE))
    require(input.rank == 3, f"input must be [batch × heads, tokens, values], not {list(input.shape)}")
    require(num_heads > 0, f"num_heads must be positive, not {num_heads}")
    joined, tokens, width = input.shape
    require(joined % num_heads == 0, f"the leading dimension must be divisible by {num_heads} heads, not {joined}")
    require_tiles(gate, "gate", (NARROW,))
    require_tiles(weight, "weight", (NARROW,))
    require(output_dtype in (NARROW, WIDE), f"output_dtype must be FLOAT32 or BFLOAT16, not {output_dtype}")
    out_memory = memory_config or DRAM_MEMORY_CONFIG
    require(not out_memory.is_sharded(), "the output memory configuration must be interleaved")
    require(math.isfinite(epsilon) and epsilon > 0, f"epsilon must be finite and positive, not {epsilon}")
    config = math_config(compute_kernel_config, fidelity=MathFidelity.HiFi4, fp32_acc=True)
    require(not config.l1_acc, "packer_l1_acc=true is unsupported: this kernel adds nothing up in L1")
    batch, columns = joined // num_heads, num_heads * width
    require(batch > 0, "the batch must be positive")
    require(tokens > 0 and tokens % TILE_SIZE == 0, f"the sequence must be positive and tile aligned, not {tokens}")
    require(width > 0 and width % TILE_SIZE == 0, f"value_dim must be positive and tile aligned, not {width}")
    require(weight.shape == (width,), f"weight must be [V], which is {width} here, not {list(weight.shape)}")
    offset = gate_column_offset
    require(offset >= 0 and offset % TILE_SIZE == 0, f"gate_column_offset must be tile aligned, not {offset}")
    fits = gate.rank == 3 and gate.shape[:2] == (batch, tokens) and offset + columns <= gate.shape[2]
    wanted = f"[{batch}, {tokens}, at least {offset + columns}]"
    require(fits, f"gate must have shape {wanted}, not {list(gate.shape)}")
    mean = numeric.scaler_of(1.0 / width, wide=True)
    shift = torch.tensor(numeric.scaler_of(epsilon))

    def compute(values: torch.Tensor, gates: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        core = Core.of(config, values.numel(), WIDE)
        x = core.source(values, input.dtype)
        squares = core.through(core.mul(x, x))
        variance = core.through(core.row_sums(squares, mean))
        inverse = core.through(core.apply("rsqrt", core.add(variance, shift.expand_as(variance)), approx=config.approx))
        normal = core.through(core.mul(core.through(core.mul(x, inverse)), weights))
        seen = gates[..., offset : offset + columns].unflatten(-1, (num_heads, width)).transpose(1, 2)
        opened = core.through(core.apply("sigmoid", seen.reshape(values.shape)))
        made = pack(core.mul(normal, opened), output_dtype, from_fp32=core.wide)
        return made.unflatten(0, (batch, num_heads)).transpose(1, 2).reshape(batch, tokens, columns)

    tiles = width // TILE_SIZE
    l1_bytes = 2 * tiles * (tile_bytes(DEFAULT_TILE, input.dtype) + tile_bytes(DEFAULT_TILE, output_dtype))
    l1_bytes += 3 * tiles * NARROW_TILE + 2 * tiles * WIDE_TILE  # gates, weights, two intermediate rows
    l1_bytes += 3 * WIDE_TILE + NARROW_TILE  # mean, its inverse root, scaler; epsilon
    out = Spec.of((batch, tokens, columns), output_dtype, Layout.TILE, out_memory)
    # The program hash contains the config with its defaults resolved.
    full_sync = compute_kernel_config is not None and compute_kernel_config.dst_full_sync_en
    program = ("sigmoid_gated_rms_norm", input, gate, weight, num_heads, epsilon, out, offset, config, full_sync)
    return Plan(out, compute, reads=("input", "gate", "weight"), l1_bytes=l1_bytes, program=program)
