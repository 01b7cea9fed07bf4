"""Inputs of the matmul program selection, and the blocks and subblocks that fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from ttnn_emulator.api.config_types import UnaryWithParam
from ttnn_emulator.enums import DataType, TensorMemoryLayout
from ttnn_emulator.errors import require
from ttnn_emulator.ops.matmul.operands import Operands, default_tile_bytes
from ttnn_emulator.tensors.memory_config import MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import TILE_SIZE

INTERLEAVED = TensorMemoryLayout.INTERLEAVED
HEIGHT, WIDTH, BLOCK = (
    TensorMemoryLayout.HEIGHT_SHARDED,
    TensorMemoryLayout.WIDTH_SHARDED,
    TensorMemoryLayout.BLOCK_SHARDED,
)

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/matmul/device/config/matmul_program_config.cpp, SUBBLOCK_HW_CHOICES
# In order of decreasing size, as (height, width), or as (width, height) for callers that prefer wide subblocks.
SUBBLOCKS = (
    *((4, 2), (2, 4), (8, 1), (1, 8), (7, 1), (1, 7), (3, 2), (2, 3), (6, 1), (1, 6)),
    *((5, 1), (1, 5), (2, 2), (4, 1), (1, 4), (3, 1), (1, 3), (2, 1), (1, 2), (1, 1)),
)
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/matmul/device/config/matmul_program_config.cpp,
# NARROW_SHAPE_RATIO_THRESHOLD in is_narrow_shape
NARROW_RATIO = 8
UINT32 = 0xFFFFFFFF


@dataclass
class Choice:
    """Inputs of the program selection.

    space  bytes of L1 per core below its lowest tensor
    needs  the largest estimate that fits; the selection is the same for any larger space
    """

    operands: Operands
    memory_config: MemoryConfig
    dtype: DataType
    fp32_acc: bool
    bias_tile_bytes: int
    core_grid: tuple[int, int] | None
    activation: UnaryWithParam | None
    batched: bool
    device_grid: tuple[int, int]
    space: int
    needs: int = field(default=0, init=False)

    @cached_property
    def _interm_tile_bytes(self) -> int:
        if self.fp32_acc:
            return default_tile_bytes(DataType.FLOAT32)
        return max(default_tile_bytes(DataType.BFLOAT16), default_tile_bytes(self.dtype))

    # tt-metal v0.77.0: ttnn/cpp/ttnn/operations/matmul/device/config/matmul_program_config.cpp, can_cbs_fit_in_l1
    def fits(self, rows: int, columns: int, inner: int) -> bool:
        """Whether an output block of rows × columns tiles, with inner blocks of `inner` tiles, is estimated to fit."""
        of = self.operands
        in0_tile, in1_tile = default_tile_bytes(of.a.dtype), default_tile_bytes(of.b.dtype)
        in0 = rows * inner * 2 * in0_tile
        in2 = 0
        if of.a.is_sharded:
            in2 = rows * (shard_of(of.a.memory_config).shape[1] // of.in0_tile.width) * in0_tile
        size = in0 + columns * inner * 2 * in1_tile
        size += rows * columns * (in0_tile + self._interm_tile_bytes)
        size += columns * self.bias_tile_bytes + in2
        if of.transpose_a:
            size += in2 if of.a.is_sharded else in0
        size &= UINT32
        if size < self.space:
            self.needs = max(self.needs, size)
            return True
        return False

    # tt-metal v0.77.0: ttnn/cpp/ttnn/operations/matmul/device/config/matmul_program_config.cpp,
    # get_multi_dim_per_core_factor
    def out_block(self, rows: int, columns: int, inner: int, *, shrink_inner: bool = False) -> tuple[int, int, int]:
        """The largest output block (rows, columns) that fits, and its inner block.

        With `shrink_inner`, a smaller inner block is preferred over a smaller output block.
        """
        if self.fits(rows, columns, inner):
            return rows, columns, inner
        # Per size, the block nearest to a square; ties go to the last one.
        by_size: dict[int, tuple[int, int]] = {}
        for m in halves(rows):
            for n in halves(columns):
                met = by_size.get(m * n)
                if met is None or ratio(*met) >= ratio(m, n):
                    by_size[m * n] = (m, n)
        blocks = [by_size[size] for size in sorted(by_size, reverse=True)]
        if not shrink_inner:
            return next(((m, n, inner) for m, n in blocks if self.fits(m, n, inner)), (1, 1, 1))
        steps = [k for k in range(inner, 0, -1) if inner % k == 0]
        return next(((m, n, k) for m, n in blocks for k in steps if self.fits(m, n, k)), (1, 1, 1))


def halves(size: int) -> Iterator[int]:
    yield size
    yield 1
    yield from (factor for factor in range(size // 2, 1, -1) if size % factor == 0)


def ratio(m: int, n: int) -> float:
    return max(m, n) / min(m, n)


def shard_of(config: MemoryConfig) -> ShardSpec:
    require(config.shard_spec is not None, f"a tensor in {config.brief()} has no shard spec")
    assert config.shard_spec is not None
    return config.shard_spec


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/matmul/device/config/matmul_program_config.cpp, get_subblock_sizes
def wide_subblock(rows: int, columns: int, fp32_acc: bool) -> tuple[int, int]:
    """The largest subblock (height, width) that divides the block, preferring width."""
    for width, height in SUBBLOCKS:
        if (height * width <= 4 or not fp32_acc) and rows % height == 0 and columns % width == 0:
            return height, width
    return 1, 1


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/matmul/device/config/matmul_program_config.cpp, get_matmul_subblock_params
def tall_subblock(rows: int, columns: int, fp32_acc: bool, *, one_row: bool = False) -> tuple[int, int]:
    """The same, preferring height; `one_row` requires a full row of the block, or else a single tile."""
    for height, width in SUBBLOCKS:
        if fp32_acc and height * width > 4:
            continue
        if one_row and (width != columns or height != 1):
            continue
        if rows % height == 0 and columns % width == 0:
            return height, width
    return 1, 1


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/matmul/device/config/matmul_program_config.cpp, is_narrow_shape
def is_narrow(height: int, width: int, all_dram: bool) -> bool:
    if (height // width if height > width else width // height) > NARROW_RATIO:
        return True
    return all_dram and (height <= TILE_SIZE or width <= TILE_SIZE)
