"""group_norm."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from ttnn_emulator.enums import (
    DataType,
    Layout,
    MathFidelity,
    TensorMemoryLayout,
)
from ttnn_emulator.errors import InvalidArgument, require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.hardware.core_grid import CoreCoord, CoreGrid
from ttnn_emulator.numerics.programs.normalization.group_norm import group_norm as normalized
from ttnn_emulator.numerics.units.compute_core import Operand
from ttnn_emulator.ops.normalization.checks import TILE, require_shards_fill_grid
from ttnn_emulator.ops.normalization.group_norm_setup import dram_grid, fits, span_of, virtual_columns
from ttnn_emulator.ops.support.common_checks import math_config, require_on_device
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from ttnn_emulator.tensors.shapes import div_up, round_up
from ttnn_emulator.tensors.spec import Spec, padded_spec

TAKEN = (DataType.BFLOAT16, DataType.FLOAT32)


def _require_row(spec: Spec, row: Spec, name: str) -> None:
    require_on_device(row, f"the {name}")
    padded = (1,) * (4 - len(row.padded_shape)) + row.padded_shape
    if row.is_tile:
        require(padded[3] == spec.padded_shape[3], f"the {name} is {padded[3]} wide, the input {spec.padded_shape[3]}")
        require(padded[2] == TILE, f"the {name} must be one tile high, it is {padded[2]}")
        return
    require(padded[3] == TILE, f"a ROW_MAJOR {name} has rows of {TILE}, not {padded[3]}")
    require(row.dtype in TAKEN, f"the {name} must be BFLOAT16 or FLOAT32, not {row.dtype}")


def _require_mask(mask: Spec, groups: tuple[int, ...], name: str, width: int | None = None) -> None:
    require_on_device(mask, f"the {name}")
    require(mask.is_tile, f"the {name} must be in TILE layout, it is in {mask.layout}")
    padded = mask.padded_shape
    require(len(padded) == 4 and padded[1] in groups, f"the {name} has shape {list(padded)}, not {groups[0]} groups")
    require(padded[2] == TILE and padded[3] % TILE == 0, f"the {name} {list(padded)} must be one tile high")
    require(width is None or padded[3] == width, f"the {name} is {padded[3]} wide, the groups span {width}")


def _row_reader(channels: int, row: Spec, cores: int) -> Callable[[torch.Tensor], torch.Tensor]:
    if row.is_tile:
        return lambda values: values.reshape(-1, values.shape[-1])[:1, :channels]
    share = channels // cores

    def read(values: torch.Tensor) -> torch.Tensor:
        return values.reshape(-1, round_up(share, TILE))[:cores, :share].reshape(1, -1)

    return read


@operation("ttnn.group_norm")
def group_norm(
    input_tensor,
    *,
    num_groups,
    epsilon=1e-12,
    input_mask=None,
    weight=None,
    bias=None,
    memory_config=None,
    dtype=None,
    core_grid=None,
    inplace=True,
    output_layout=None,
    num_out_blocks=None,
    compute_kernel_config=None,
    negative_mask=None,
    use_welford=False,
):
    """Normalise groups of channels, × weight + bias; the input is [N, 1, H × W, C]."""
    spec = input_tensor
    in_place = bool(inplace)
    require(not (spec.is_tile and in_place), "Tile layout requires non-inplace tensors: give inplace=False")
    if output_layout is not None and output_layout is not spec.layout:
        require(not in_place, f"in place the layout {spec.layout} cannot become {output_layout}")
    require(
        spec.memory_config.memory_layout is not TensorMemoryLayout.WIDTH_SHARDED, "a WIDTH_SHARDED input is not taken"
    )
    require(spec.rank == 4, f"the input must have rank 4, it has {spec.rank}")
    require(
        num_groups > 0 and spec.shape[-1] % num_groups == 0,
        f"{spec.shape[-1]} channels do not divide into {num_groups} groups",
    )
    padded = spec.padded_shape
    height = math.prod(padded[:3])
    require(height % TILE == 0, f"N × H × W, {height}, must be divisible by the tile size {TILE}")
    if spec.volume == 0:
        return Plan(spec.with_(memory_config=memory_config or DRAM_MEMORY_CONFIG), lambda x: x, reads=("input_tensor",))
    require_on_device(spec)
    if input_mask is not None:
        require(input_mask.on_device, "Input mask must be on device")
    require(dtype in (None, spec.dtype), f"the output must be {spec.dtype} as the input, not {dtype}")
    welford = use_welford and spec.shape[2] % TILE == 0
    grid = _grid(spec, num_groups, height, core_grid, num_out_blocks)
    require(spec.dtype in TAKEN, f"the input must be BFLOAT16 or FLOAT32, not {spec.dtype}")
    require(padded[3] % num_groups == 0, f"{padded[3]} channels do not divide into {num_groups} groups")
    require(padded[1] == 1, f"the second dimension must be 1, it is {padded[1]}")
    require(padded[2] % TILE == 0, f"H × W, {padded[2]}, must be a multiple of the tile height {TILE}")
    out_layout = output_layout or spec.layout
    if welford and not spec.is_sharded:
        require(spec.is_tile and out_layout is Layout.TILE, "use_welford takes interleaved tensors in TILE layout only")
    if spec.is_sharded:
        _require_shards(spec, grid)
    for name, row in (("weight", weight), ("bias", bias)):
        if row is not None:
            _require_row(spec, row, name)
    if weight is not None and bias is not None:
        require(
            weight.layout is bias.layout and weight.dtype is bias.dtype,
            "weight and bias must have the same layout and dtype",
        )
    doubled = not welford and spec.shape[2] != padded[2]
    if input_mask is not None:
        groups = (num_groups, 2 * num_groups) if doubled else (num_groups,)
        share = padded[3] // _sharing(spec, num_groups, grid)[1]
        _require_mask(input_mask, groups, "mask", span_of(share, padded[3] // num_groups))
    if negative_mask is not None:
        require(negative_mask.on_device, "Negative mask must be on device")
        _require_mask(negative_mask, (num_groups,), "negative mask")
        require(not welford, "Negative mask is not supported with use_welford=True")
        require(spec.is_sharded, "a negative mask needs a sharded input")
        require(
            spec.layout is Layout.ROW_MAJOR and out_layout is Layout.ROW_MAJOR,
            "a negative mask needs ROW_MAJOR input and output",
        )
    return _plan(
        spec,
        num_groups,
        epsilon,
        weight,
        bias,
        memory_config,
        in_place,
        out_layout,
        compute_kernel_config,
        welford,
        grid,
    )


def _grid(spec: Spec, groups: int, height: int, given: CoreGrid | None, blocks: int | None) -> tuple[int, int]:
    """The program's grid: the requested one, the shards', or the largest that fits."""
    padded, rows = spec.padded_shape, height // TILE
    if given is not None:
        grid = (given.x, given.y)
    elif spec.is_sharded:
        require(spec.shard_spec is not None, "a sharded input needs a two-dimensional shard spec")
        assert spec.shard_spec is not None
        box = spec.shard_spec.grid.bounding_box().grid_size()
        grid = (box.x, box.y)
    else:
        columns, lines = current_board().grid
        found = dram_grid(columns, lines, padded[3], groups, rows, padded[0])
        if found is None:
            raise InvalidArgument(f"no core grid fits {padded[3]} channels in {groups} groups and {rows} rows of tiles")
        grid = (found.x, found.y)
    if not spec.is_sharded:
        require(blocks is None or given is not None, "num_out_blocks needs a core_grid")
        require(blocks is None or blocks >= -1, f"num_out_blocks {blocks} must be -1 or positive")
        require(
            fits(grid, groups, padded[3], rows, padded[0]),
            f"the grid {grid[0]}x{grid[1]} does not fit {rows} rows of tiles, {padded[3]} channels and {groups} groups",
        )
        down = grid[0] // virtual_columns(grid[0], groups, padded[3]) * grid[1]
        most = rows // down // max(padded[0] // down, 1)
        require(blocks in (None, -1) or 1 <= blocks <= most, f"num_out_blocks {blocks} is not between 1 and {most}")
    return grid


def _require_shards(spec: Spec, grid: tuple[int, int]) -> None:
    shards = spec.shard_spec
    assert shards is not None
    require(shards.grid.num_cores() == shards.grid.bounding_box().size(), "the shards must be on a rectangle of cores")
    require_shards_fill_grid(spec, CoreCoord(*grid), width_in_tiles=False)


def _require_room(spec: Spec, out: Spec) -> None:
    """Each core writes its shard in place, so its part of the output must be large enough."""
    require(out.memory_config.is_l1, "the output of a sharded input must be in L1")
    board = current_board()
    shard, room = (each.bytes_per_bank(board.cores, board.l1_alignment) for each in (spec, out))
    require(shard <= room, f"a shard of {shard} B does not fit the output's {room} B per core")


def _plan(
    spec: Spec,
    groups: int,
    epsilon: float,
    weight: Spec | None,
    bias: Spec | None,
    memory: MemoryConfig | None,
    in_place: bool,
    layout: Layout,
    given: Any,
    welford: bool,
    grid: tuple[int, int],
) -> Plan:
    if in_place:
        require(spec.is_sharded, "only a sharded input can be normalised in place")
        out = spec
    else:
        out = padded_spec(spec.shape, spec.padded_shape, spec.dtype, layout, memory or DRAM_MEMORY_CONFIG)
        if spec.is_sharded:
            _require_room(spec, out)
    wide = welford or spec.dtype is DataType.FLOAT32
    config = math_config(given, fidelity=MathFidelity.HiFi4, approx=True, fp32_acc=wide)
    channels = spec.shape[-1]
    rows, across = _sharing(spec, groups, grid)
    names = [(name, row) for name, row in (("weight", weight), ("bias", bias)) if row is not None]
    readers = [_row_reader(channels, row, across) for _, row in names]

    def compute(values: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        operands = {name: Operand(read(other), row.dtype) for (name, row), read, other in zip(names, readers, others)}
        return normalized(Operand(values, spec.dtype), groups, config, epsilon, cores=rows, **operands)

    reads = ("input_tensor", *[name for name, _ in names])
    return Plan(out, compute, reads=reads, into=("input_tensor",) if in_place else ())


def _sharing(spec: Spec, groups: int, grid: tuple[int, int]) -> tuple[int, int]:
    """The number of cores along the rows of a batch, and along the channels."""
    batch = spec.shape[0]
    if not spec.is_sharded:
        columns = virtual_columns(grid[0], groups, spec.padded_shape[3])
        return max(grid[0] // columns * grid[1] // batch, 1), columns
    assert spec.shard_spec is not None
    height, width = spec.shard_spec.shape
    return max(div_up(spec.physical_shape[0], height) // batch, 1), max(div_up(spec.physical_shape[1], width), 1)
