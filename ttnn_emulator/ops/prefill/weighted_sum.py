"""The weighted sum of expert outputs."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from ttnn_emulator.enums import DataType, Layout, MathFidelity
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.numerics.formats.carriers import flush, round_bf16_nearest_even
from ttnn_emulator.numerics.units.compute_core import Core
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.ops.attention.heads.common import faulty
from ttnn_emulator.ops.prefill.mesh_positions import PREFILL, require_unsigned, row_bytes, rows_are_cut
from ttnn_emulator.ops.support.common_checks import require_on_device
from ttnn_emulator.tensors.memory_config import L1_MEMORY_CONFIG, MemoryConfig
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import Spec

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/deepseek_prefill/post_combine_reduce/device/post_combine_reduce_program_factory.cpp,  # noqa: E501
# compute_kernel_desc
WEIGHTING = MathConfig(MathFidelity.HiFi4)
TILE_VALUES = TILE_SIZE * TILE_SIZE
TILES_IN_REGISTER = 8
ABSENT = -1


@operation(f"{PREFILL}.post_combine_reduce")
def post_combine_reduce(
    combine_output: Spec,
    weights: Spec,
    indices: Spec | None = None,
    expert_dispatch_table: Spec | None = None,
    *,
    expert_dim: int = 3,
    output_memory_config: MemoryConfig | None = None,
) -> Plan:
    """The sum over experts of outputs [..., tokens, experts, D] times weights [..., tokens, experts, 1], in tiles.

    With a table, only the experts that it does not mark with -1 are added.
    """
    require_unsigned(expert_dim=expert_dim)
    spec, table = combine_output, expert_dispatch_table
    named = ((spec, "combine_output"), (weights, "weights"), (indices, "indices"), (table, "the dispatch table"))
    for each, name in named:
        if each is not None:
            require_on_device(each, name)
            require(each.layout is Layout.ROW_MAJOR, f"{name} must be in ROW_MAJOR layout")
    require((indices is None) == (table is None), "indices and the dispatch table must be passed together")
    shape, of_weights = spec.padded_shape, weights.padded_shape
    require(len(shape) >= 2, f"combine_output has rank {len(shape)}, it must be at least 2")
    require(expert_dim < len(shape), f"expert_dim {expert_dim} is out of range for rank {len(shape)}")
    same = len(shape) == len(of_weights) and shape[:-1] == of_weights[:-1]
    require(same, f"weights {list(of_weights)} do not fit outputs {list(shape)}")
    for each, name, dtype in (
        (spec, "combine_output", DataType.BFLOAT16),
        (weights, "weights", DataType.BFLOAT16),
        (indices, "indices", DataType.UINT16),
        (table, "the dispatch table", DataType.INT32),
    ):
        require(each is None or each.dtype is dtype, f"{name} must be {dtype}")
    width, experts, tokens = shape[-1], shape[expert_dim], math.prod(shape[:expert_dim])
    require(width % TILE_SIZE == 0, f"a width of {width} is not a multiple of {TILE_SIZE}")
    kept = div_up(width, TILE_VALUES)
    require(kept <= TILES_IN_REGISTER, f"a width of {width} does not fit into the destination register")
    require(tokens > 0 and tokens % TILE_SIZE == 0, f"{tokens} tokens are no positive multiple of {TILE_SIZE}")
    config = output_memory_config if output_memory_config is not None else L1_MEMORY_CONFIG
    out = Spec.of((*shape[:expert_dim], *shape[expert_dim + 1 :]), spec.dtype, Layout.TILE, config)
    compute: Callable[..., torch.Tensor] = _weighted(out.shape, tokens, experts, width)
    if expert_dim != len(shape) - 2 or rows_are_cut(spec) or rows_are_cut(weights):
        compute = faulty("outputs are read row by row, one expert after the other")
    elif indices is not None and (math.prod(indices.shape[:-1]) < tokens or indices.shape[-1] < experts):
        compute = faulty(f"indices {list(indices.shape)} are fewer than {tokens} x {experts}")
    l1_bytes = (kept * (1 + 2 * TILE_SIZE) + 1) * 2 * TILE_VALUES
    if indices is not None and table is not None:
        l1_bytes += TILE_SIZE * row_bytes(indices) + table.num_pages * row_bytes(table)
    reads = ("combine_output", "weights", *(("indices", "expert_dispatch_table") if indices is not None else ()))
    return Plan(out, compute, reads=reads, l1_bytes=l1_bytes)


def _weighted(shape: tuple[int, ...], tokens: int, experts: int, width: int) -> Callable[..., torch.Tensor]:
    def compute(values: torch.Tensor, weights: torch.Tensor, *routing: torch.Tensor) -> torch.Tensor:
        outputs = values.reshape(tokens, experts, width)
        factors = weights.reshape(tokens, experts, -1)[:, :, :1]
        adds = _present(routing[0], routing[1], tokens, experts) if routing else factors[..., 0] != 0
        if not routing:
            adds[:, 0] = True  # the first expert starts the sum, whatever its weight
        core = Core.of(WEIGHTING, outputs.numel())
        total, started = torch.zeros(tokens, width), torch.zeros(tokens, 1, dtype=torch.bool)
        for expert in range(experts):
            chosen = adds[:, expert : expert + 1]
            if not bool(chosen.any()):
                continue
            factor = factors[:, expert].expand(tokens, width).contiguous()
            product = core.packed(core.mul(outputs[:, expert].contiguous(), factor), DataType.BFLOAT16)
            # The packer accumulates in L1, rounding to nearest even.
            added = torch.where(started, flush(round_bf16_nearest_even(total + product)), product)
            total = torch.where(chosen, added, total)
            started = started | chosen
        return flush(total).reshape(shape)

    return compute


def _present(indices: torch.Tensor, table: torch.Tensor, tokens: int, experts: int) -> torch.Tensor:
    """Which experts of a token are here."""
    chosen = indices.reshape(-1, indices.shape[-1])[:tokens, :experts].long()
    entries = table.reshape(-1)
    if int(chosen.max()) >= entries.numel():
        raise ChipFault(f"expert {int(chosen.max())} is not in a table of {entries.numel()}")
    return entries[chosen] != ABSENT
