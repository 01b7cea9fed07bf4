"""Recurrences along a sequence: the exponential moving average, and the scan of state-space models."""

from __future__ import annotations

import math

import numpy as np
import torch

from ttnn_emulator.enums import DataType, Layout, MathFidelity, ShardOrientation
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, composite, internal, operation
from ttnn_emulator.hardware.core_grid import CoreCoord, CoreGrid, num_cores_to_corerangeset
from ttnn_emulator.numerics.formats.carriers import CARRIER, bits_of, flush, from_bits
from ttnn_emulator.numerics.kernels.elementwise import add_16bit, multiply_in_phases
from ttnn_emulator.numerics.units import vector_unit
from ttnn_emulator.numerics.units.matrix_unit import PHASES
from ttnn_emulator.numerics.units.packer import pack
from ttnn_emulator.ops.support.common_checks import into, math_config, memory_of, require_on_device
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.shapes import TILE_SIZE
from ttnn_emulator.tensors.spec import Spec, tile_bytes
from ttnn_emulator.tensors.tensor import Tensor


@operation("ttnn.ema")
def ema(
    input_tensor: Spec,
    alpha: float,
    *,
    out: Spec | None = None,
    core_grid: CoreGrid | None = None,
    memory_config: MemoryConfig | None = None,
    compute_kernel_config: object = None,
) -> Plan:
    """[1, B, C, T]: every value alpha × the average before it + (1 - alpha) × the input, along T."""
    spec, config = input_tensor, memory_of(memory_config, input_tensor)
    require_on_device(spec)
    require(spec.dtype is DataType.BFLOAT16, f"the input must be bfloat16, not {spec.dtype}")
    require(spec.is_tile, "the input must be in TILE layout")
    require(spec.rank == 4 and spec.shape[0] == 1, f"the input must be [1, B, C, T], not {list(spec.shape)}")
    if out is not None:
        require(out.dtype is DataType.BFLOAT16, f"the output must be bfloat16, not {out.dtype}")
        require(out.is_tile, "the output must be in TILE layout")
        require(math.prod(out.padded_shape) == math.prod(spec.padded_shape), "the output must be as large as the input")
    require(not math.isnan(alpha), "alpha must be a number")
    result = out or spec.with_(memory_config=config)
    _require_on_used_cores(spec, result.memory_config, core_grid)
    wide = math_config(compute_kernel_config, fidelity=MathFidelity.HiFi4, approx=False, fp32_acc=True).fp32_acc
    kept = np.float32(alpha)
    fresh = np.float32(1.0) - kept

    def compute(values: torch.Tensor) -> torch.Tensor:
        columns = values.reshape(-1, values.shape[-1]).numpy().T
        average = np.zeros(columns.shape[1], np.float32)
        averages = np.empty(columns.shape, np.float32)
        for step, column in enumerate(columns):
            average = vector_unit.mad(fresh, np.ascontiguousarray(column), vector_unit.mul(kept, average))
            averages[step] = average
        stored = torch.from_numpy(np.ascontiguousarray(averages.T)).reshape(values.shape)
        return pack(stored, DataType.BFLOAT16, from_fp32=wide)

    return Plan(result, compute, reads=("input_tensor",), into=into(out, "out"))


def _require_on_used_cores(spec: Spec, config: MemoryConfig, core_grid: CoreGrid | None) -> None:
    if config.shard_spec is None:
        return
    grid = (core_grid.x, core_grid.y) if core_grid is not None else current_board().grid
    tiles = spec.padded_shape[1] * (spec.padded_shape[2] // TILE_SIZE)
    count = max(cores for cores in range(1, min(tiles, grid[0] * grid[1]) + 1) if tiles % cores == 0)
    used = num_cores_to_corerangeset(count, CoreCoord(*grid), False)
    cores = set(used.cores())
    require(
        all(core in cores for core in config.shard_spec.grid.cores()),
        f"the shards' grid {config.shard_spec.grid} reaches beyond the cores {used} that the program uses",
    )


@composite("ttnn.experimental.prefix_scan")
def prefix_scan(
    a: Tensor,
    bx: Tensor,
    h_prev: Tensor,
    *,
    memory_config: MemoryConfig | None = None,
    dtype: DataType | None = None,
    math_fidelity: MathFidelity | None = None,
) -> Tensor:
    """h = a × h + bx row after row, starting from `h_prev`; the last row is written back to `h_prev`."""
    config = memory_config if memory_config is not None else a._spec.memory_config
    fidelity = math_fidelity if math_fidelity is not None else MathFidelity.HiFi4
    return scan_states(a, bx, h_prev, config, dtype or a._spec.dtype, fidelity)[0]


@internal("ttnn.prim.prefix_scan")
def scan_states(
    a: Spec, bx: Spec, h_prev: Spec, memory_config: MemoryConfig, dtype: DataType, fidelity: MathFidelity
) -> Plan:
    for spec in (a, bx, h_prev):
        require_on_device(spec)
    require(a.dtype is bx.dtype, f"a and bx must be of one dtype, not {a.dtype} and {bx.dtype}")
    require(a.is_tile and bx.is_tile, "a and bx must be in TILE layout")
    require(a.padded_shape == bx.padded_shape, "a and bx must have the same shape")
    shape = a.padded_shape
    require(len(shape) == 4 and shape[:2] == (1, 1), f"a must be [1, 1, rows, columns], not {list(shape)}")
    require(h_prev.dtype is DataType.BFLOAT16 and not h_prev.is_tile, "h_prev must be bfloat16 in ROW_MAJOR layout")
    for spec in (a, bx, h_prev):
        shards = spec.shard_spec
        require(
            shards is not None and shards.orientation is ShardOrientation.ROW_MAJOR,
            "all tensors must be sharded in ROW_MAJOR orientation",
        )
    out = Spec.of(a.shape, dtype, Layout.TILE, memory_config)
    require(
        not out.is_sharded or tile_bytes(out.tile, dtype) >= tile_bytes(a.tile, a.dtype),
        f"shards of {dtype} are too small for the circular buffer of {a.dtype}",
    )
    phases = PHASES[fidelity]

    def compute(factors: torch.Tensor, terms: torch.Tensor, state: torch.Tensor) -> list[torch.Tensor]:
        rows, width = factors.shape[-2:]
        hidden = state.reshape(-1)[:width].contiguous()
        states = torch.empty(rows, width)
        for row in range(rows):
            hidden = _flat(multiply_in_phases, factors[0, 0, row], hidden, phases, False)
            hidden = _flat(add_16bit, hidden, terms[0, 0, row], np.int32(0))
            states[row] = hidden
        left = state.clone()
        left.reshape(-1)[:width] = hidden
        result = states.reshape(factors.shape)
        return [pack(result, dtype, from_fp32=False).to(CARRIER[dtype]), left]

    return Plan([out, h_prev], compute, reads=("a", "bx", "h_prev"), into=(None, "h_prev"))


def _flat(loop: object, left: torch.Tensor, right: torch.Tensor, *arguments: object) -> torch.Tensor:
    """One step of the matrix unit on rows of bfloat16, packed."""
    bits = np.empty(left.numel(), np.int32)
    loop(bits_of(left).numpy(), bits_of(right).numpy(), *arguments, bits)  # type: ignore[operator]
    return flush(from_bits(torch.from_numpy(bits)))
