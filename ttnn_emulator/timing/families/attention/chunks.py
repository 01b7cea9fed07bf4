"""The compute kernel of attention: a chunk of queries against a chunk of keys."""

from __future__ import annotations

from dataclasses import dataclass

from ttnn_emulator.enums import Arch, DataType
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.tensors.shapes import DEFAULT_TILE, div_up
from ttnn_emulator.tensors.spec import tile_bytes
from ttnn_emulator.timing.chips import CHIPS, FIDELITY_CYCLES
from ttnn_emulator.timing.families.matmul.matmul import KERNEL
from ttnn_emulator.timing.recorded_arguments import Precision
from ttnn_emulator.timing.tile_kernels import PACK_CYCLES, STEP_CYCLES, combine_cycles
from ttnn_emulator.timing.vector_unit import unary_cycles

FAMILY = "attention"
NARROW = tile_bytes(DEFAULT_TILE, DataType.BFLOAT16)
# Maxima of rows and the subtraction of them, per tile of scores. Fit to a utilisation of 70 % on Blackhole:
# tt-metal v0.77.0: tests/nightly/blackhole/sdpa/test_scaled_dot_product_attention_sprint.py, SDPA_PERF_CHECK_CONFIGS
SCORE_CYCLES = 60.0  # fit
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/transformer/sdpa/device/kernels/compute/compute_common.hpp, sdpa_inner_loop
# A chunk of keys takes two products, the maximum, exponentials, and five operations on sums and maxima of rows.
STEPS = 8
ROW_CYCLES = 250.0  # fit: the running maximum and sum of one row of tiles
MASK_CYCLES = 40.0  # fit: adding a tile of the mask


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk of scores. Sizes are in tiles.

    rows, columns  of queries and of keys
    depth, width   of a key and of a value
    tile_bytes     of keys and values
    streams        whether the packer's thread computes exponentials while the math thread multiplies
    masked         whether a mask is added to all scores
    """

    rows: int
    columns: int
    depth: int
    width: int
    tile_bytes: int
    precision: Precision
    streams: bool = False
    masked: bool = False

    @property
    def scores(self) -> int:
        return self.rows * self.columns


def chunk_cycles(chunk: Chunk, board: Board) -> float:
    """The compute kernel's cycles for a chunk of scores."""
    chip = CHIPS[board.arch]
    products = products_cycles(chunk.rows, chunk.columns, chunk.depth, chunk, board)
    products += products_cycles(chunk.rows, chunk.width, chunk.columns, chunk, board)
    exponential = unary_cycles("exp", board.arch, approximate=True)
    pack = NARROW / chip.pack_bytes_per_cycle + PACK_CYCLES
    # Scores, exponentials and their sums are packed.
    packer = chunk.scores * 3 * pack + chunk.rows * chunk.width * 2 * pack
    math = products + chunk.scores * SCORE_CYCLES + STEPS * STEP_CYCLES
    if chunk.masked:
        math += chunk.scores * MASK_CYCLES
    if chunk.streams:
        return max(math, packer + chunk.scores * exponential)
    rescaling = chunk.rows * (ROW_CYCLES + chunk.width * combine_cycles(2 * NARROW))
    return max(math + chunk.scores * exponential + rescaling, packer)


def products_cycles(rows: int, columns: int, inner: int, chunk: Chunk, board: Board) -> float:
    """A product of two blocks, in subblocks of the destination register."""
    chip, kernel = CHIPS[board.arch], KERNEL[board.arch]
    most = 4 if chunk.precision.fp32_acc else 8
    wide = next(size for size in range(min(columns, most), 0, -1) if columns % size == 0)
    high = next(size for size in range(min(rows, most // wide), 0, -1) if rows % size == 0)
    tile = max(FIDELITY_CYCLES[chunk.precision.fidelity], chunk.tile_bytes / chip.unpack_bytes_per_cycle)
    return rows // high * (columns // wide) * (inner * (high * wide * tile + kernel.call) + kernel.subblock)


def ending_cycles(chunk: Chunk, arch: Arch) -> float:
    """Dividing the sums of a chunk of queries by the sums of their exponentials."""
    per_row = unary_cycles("recip", arch) + ROW_CYCLES
    return STEP_CYCLES * 2 + chunk.rows * (per_row + chunk.width * combine_cycles(2 * NARROW))


def chunks_in(length: int, tiles: int) -> int:
    """Chunks of so many tiles in a sequence."""
    return max(div_up(length, tiles * DEFAULT_TILE.height), 1)
