"""The gate of a mixture of experts as one operation: one core per token, its best experts and their weights."""

from __future__ import annotations

import numpy as np
import torch

from ttnn_emulator.enums import BufferType, DataType, MathFidelity, TensorMemoryLayout
from ttnn_emulator.errors import NotEmulated, require
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.hardware.core_grid import CoreCoord
from ttnn_emulator.numerics.formats.carriers import CARRIER
from ttnn_emulator.numerics.programs.experts import gate as numeric
from ttnn_emulator.numerics.units.compute_core import Core
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.ops.support.common_checks import require_on_device
from ttnn_emulator.tensors.memory_config import ShardSpec
from ttnn_emulator.tensors.shapes import TILE_SIZE
from ttnn_emulator.tensors.spec import Spec

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/deepseek/moe/generalized_moe_gate/device/generalized_moe_gate_device_operation.cpp,  # noqa: E501
# topk
COUNTS = (4, 6, 8)  # supported numbers of experts per token
FACE = 16  # a block of 256 experts is the first face of a tile, and nothing else of it is read
MOST_BLOCKS = 2
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/deepseek/moe/generalized_moe_gate/device/generalized_moe_gate_program_descriptor_builder.cpp,  # noqa: E501
# make_run_cb
BUFFERS = 6  # tiles per block besides the tensors: three runs, two tilized bfloat16 ones and one of indices
TILE_BYTES = 2 * TILE_SIZE * TILE_SIZE
BF16 = DataType.BFLOAT16
MATH = MathConfig(MathFidelity.HiFi4, fp32_acc=False, approx=False)


@operation("ttnn.experimental.deepseek.moe.generalized_moe_gate")
def generalized_moe_gate(
    input_tensor: Spec,
    *,
    bias_tensor: Spec,
    input_indices_tensor: Spec,
    output_tensor: Spec,
    output_indices_tensor: Spec,
    eps: float = 1e-20,
    scaling_factor: float = 2.5,
    enable_sigmoid: bool = False,
    topk: int = 8,
    output_softmax: bool = False,
    grouped: bool = False,
) -> Plan:
    """The best experts by score + bias and their normalised scores; a token's 256 or 512 logits are on one core.

    Blocks of 256 are [16, 16], those of bias and indices transposed. The first `topk` values of a row are the result;
    those up to 8 are 0. On the chip the rest of the tile is leftover register contents; here it is 0.
    """
    given = (input_tensor, bias_tensor, input_indices_tensor)
    made = (output_tensor, output_indices_tensor)
    require(topk in COUNTS, f"topk must be one of {COUNTS}, not {topk}")
    if grouped:
        require(topk == numeric.KEPT, f"groups give {numeric.KEPT} experts, not {topk}")
        require(not output_softmax, "groups give shares of scores, not of exponentials")
    _require_tensors(given, made)
    shards, taken = _require_shards(given, made)
    blocks = (shards.shape[0] // TILE_SIZE) * (shards.shape[1] // TILE_SIZE)
    require(1 <= blocks <= MOST_BLOCKS, f"a core takes 1 to {MOST_BLOCKS} blocks of 256 experts, not {blocks}")
    require(not grouped or blocks == 1, f"grouped mode takes one block of 256 experts, not {blocks}")
    for spec in (*given, *made):
        if spec.memory_config.memory_layout is not TensorMemoryLayout.HEIGHT_SHARDED:
            raise NotEmulated(f"the gate of tensors that are {spec.memory_config.memory_layout} is not emulated")
    cores = _cores(shards)
    sources = [[_cores(_shards(spec)).index(core) for core in cores] for spec in given]
    targets = [_cores(taken).index(core) for core in cores]

    def compute(logits: torch.Tensor, bias: torch.Tensor, indices: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x, b, ids = (_blocks(v, blocks, places) for v, places in zip((logits, bias, indices), sources))
        b, ids = b.transpose(-1, -2).flatten(1), ids.transpose(-1, -2).flatten(1)
        core = Core.of(MATH, x.numel())
        scores = core.apply("sigmoid", x.flatten(1)) if enable_sigmoid else x.flatten(1)
        keys = core.add(scores, b).numpy()
        best = numeric.best_eight_of_groups(keys) if grouped else numeric.best_eight(keys)
        chosen = np.take_along_axis(scores.numpy(), best, -1)
        shares = numeric.weights(chosen, eps, scaling_factor, kept=topk, softmax=output_softmax)
        found = np.where(np.arange(numeric.KEPT) < topk, np.take_along_axis(ids.numpy(), best, -1), 0)
        return tuple(_rows(row, spec, targets) for row, spec in zip((shares, found), made))

    reads = ("input_tensor", "bias_tensor", "input_indices_tensor")
    into = ("output_tensor", "output_indices_tensor")
    return Plan(made, compute, reads=reads, into=into, l1_bytes=BUFFERS * blocks * TILE_BYTES)


def _require_tensors(given: tuple[Spec, Spec, Spec], made: tuple[Spec, Spec]) -> None:
    dtypes = (BF16, BF16, DataType.UINT16, BF16, DataType.UINT16)
    for spec, dtype in zip((*given, *made), dtypes):
        require_on_device(spec)
        require(spec.dtype is dtype, f"a tensor must be {dtype}, not {spec.dtype}")
        require(spec.is_sharded, "all tensors must be sharded")
        require(spec.memory_config.buffer_type is BufferType.L1, "all tensors must be in L1: the kernel works in them")
        require(tuple(spec.tile.tile_shape) == (TILE_SIZE, TILE_SIZE), f"tiles must be 32×32, not {spec.tile}")
    x, bias, indices = given
    require(bias.shape == x.shape, f"bias {list(bias.shape)} and input {list(x.shape)} must have the same shape")
    require(made[0].shape == made[1].shape, "both outputs must have the same shape")
    require(x.rank >= 2, "the input must have at least two dimensions")
    for spec in (x, indices):
        height, width = spec.shape[-2:]
        require(height * width == numeric.BLOCK, f"{height}×{width} is no block of {numeric.BLOCK} experts")


def _require_shards(given: tuple[Spec, Spec, Spec], made: tuple[Spec, Spec]) -> tuple[ShardSpec, ShardSpec]:
    """The shards of the input and of the output."""
    x, bias, indices, out, out_indices = (_shards(spec) for spec in (*given, *made))
    for other in (bias, indices):
        require(tuple(x.shape) == tuple(other.shape), "bias and indices must have the input's shard shape")
        require(x.orientation == other.orientation, "bias and indices must have the input's orientation")
        require(other.grid.contains(x.grid), "bias and indices must be on the input's cores")
    require(out.grid == out_indices.grid, "both outputs must be on the same cores")
    require(tuple(out.shape) == tuple(out_indices.shape), "both outputs must have one shard shape")
    require(out.orientation == out_indices.orientation, "both outputs must have one orientation")
    require(out.grid.contains(x.grid), "the outputs must be on the input's cores")
    require(not any(size % TILE_SIZE for size in x.shape), f"shards {list(x.shape)} are not whole tiles")
    require(tuple(out.shape) == (TILE_SIZE, TILE_SIZE), f"an output's shard must be one tile, not {list(out.shape)}")
    return x, out


def _shards(spec: Spec) -> ShardSpec:
    shards = spec.memory_config.shard_spec
    require(shards is not None, "all tensors must have a shard spec")
    assert shards is not None
    return shards


def _cores(shards: ShardSpec) -> list[CoreCoord]:
    return shards.grid.cores(row_wise=shards.orientation.name == "ROW_MAJOR")


def _blocks(values: torch.Tensor, blocks: int, places: list[int]) -> torch.Tensor:
    """[tokens, blocks, 16, 16]: the first face of every tile, by core. Cores beyond the tensor read zeros."""
    tiles = values.reshape(-1, *values.shape[-2:])[:, :FACE, :FACE]
    missing = (0, FACE - tiles.shape[-1], 0, FACE - tiles.shape[-2], 0, -tiles.shape[0] % blocks)
    tokens = torch.nn.functional.pad(tiles, missing).reshape(-1, blocks, FACE, FACE)
    made = torch.zeros((len(places), *tokens.shape[1:]), dtype=tokens.dtype)
    for token, source in enumerate(places):
        if source < tokens.shape[0]:
            made[token] = tokens[source]
    return made


def _rows(values: np.ndarray, spec: Spec, places: list[int]) -> torch.Tensor:
    """Eight values per token at the start of the first row of its output tile."""
    made = torch.zeros(spec.shape, dtype=CARRIER[spec.dtype])
    tiles = made.reshape(-1, *made.shape[-2:])
    rows = torch.from_numpy(np.ascontiguousarray(values)).to(made.dtype)
    for token, source in enumerate(places):
        if source < tiles.shape[0]:
            width = min(numeric.KEPT, tiles.shape[-1])
            tiles[source, 0, :width] = rows[token, :width]
    return made
