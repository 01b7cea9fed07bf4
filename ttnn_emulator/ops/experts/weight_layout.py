"""The DRAM layout of expert weights for `ttnn.experimental.moe_compute`, in tiles, blocks and banks.

A ring of cores, one per DRAM bank, multiplies. Every core has some columns of the gate and up projections (W0 and
W1, of `hidden` x `intermediate`) and some columns of the down projection (W2, of `intermediate` x `hidden`). It reads
blocks of two transactions. A block is 4 tiles wide, or 2 tiles wide and twice as high for what is left over.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up

# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/experimental/ccl/moe_compute/device/kernels/moe_ring_common.h, constants of
# the same names
# ttnn/_experimental/moe_compute_utils.py of the wheel has the same names.
W0_W1_BLOCK_TILES_W = 4
W2_TILES_PER_A2A_ITER_W = 4
BLOCK_TILES_H = 7
W0_W1_HALF_BLOCK_TILES_W = 2
W0_W1_TXNS_PER_BLOCK = 2
DEFAULT_TILES_PER_TXN = 14
ALT_TILES_PER_TXN = 20
W2_HALF_A2A_ITER_TILES_W = 2
# tiles_per_txn_for_shape: the one expert (hidden and intermediate tiles, bias, cores) with larger transactions
LARGE_TRANSACTIONS = (80, 20, False, 8)


def share(tiles: int, core: int, cores: int) -> int:
    """How many of the tiles a core has; cores with one more are spread evenly (shard_tiles)."""
    left = tiles % cores
    return tiles // cores + int(left > 0 and core * left % cores < left)


def shares(tiles: int, cores: int) -> list[int]:
    """The tiles of all cores."""
    return [share(tiles, core, cores) for core in range(cores)]


def down_shares(hidden: int, intermediate: int, cores: int) -> list[int]:
    """Columns of W2 per core (w2_shard_tiles): cores with more of W0 have less of W2 where that balances."""
    if intermediate % cores + hidden % cores != cores:
        return shares(hidden, cores)
    larger = intermediate // cores + 1
    return [hidden // cores + int(own < larger) for own in shares(intermediate, cores)]


def down_groups(hidden: int, intermediate: int, cores: int) -> list[tuple[int, int]]:
    """For every core the tiles of W2 in its last group of four, and those lacking there."""
    groups = rounds(hidden, cores)
    width = W2_TILES_PER_A2A_ITER_W
    return [(own - (groups - 1) * width, groups * width - own) for own in down_shares(hidden, intermediate, cores)]


def rounds(hidden: int, cores: int) -> int:
    """Groups of four columns of W2 that every core processes."""
    return div_up(div_up(hidden, cores), W2_TILES_PER_A2A_ITER_W)


def tiles_per_transaction(hidden: int, intermediate: int, has_bias: bool, cores: int) -> int:
    """Tiles per read."""
    shape = (hidden, intermediate, has_bias, cores)
    return ALT_TILES_PER_TXN if shape == LARGE_TRANSACTIONS else DEFAULT_TILES_PER_TXN


def even_stride(tiles: int) -> int:
    """Columns rounded up to an even count, four at least (even_stride_at_least_a2a_width)."""
    return max(tiles + tiles % 2, W2_TILES_PER_A2A_ITER_W)


@dataclass(frozen=True)
class Blocks:
    """The blocks of reads of this many tiles."""

    transaction: int

    @property
    def height(self) -> int:
        """Tiles of a block 4 wide."""
        return W0_W1_TXNS_PER_BLOCK * self.transaction // W0_W1_BLOCK_TILES_W

    @property
    def half_height(self) -> int:
        """Tiles of a block 2 wide."""
        return W0_W1_TXNS_PER_BLOCK * self.transaction // W0_W1_HALF_BLOCK_TILES_W

    @property
    def rows(self) -> int:
        """Elements from top to bottom of a block as it is stored."""
        return self.height * TILE_SIZE

    def padded(self, tiles: int) -> int:
        """Rows of tiles, padded to whole blocks."""
        return div_up(tiles, self.height) * self.height

    def half_padded(self, tiles: int) -> int:
        """Rows of tiles, padded to whole blocks 2 wide."""
        return div_up(tiles, self.half_height) * self.half_height

    def half_last(self, hidden: int, cores: int) -> bool:
        """Whether the last group of W2 is 2 wide (w2_last_a2a_iter_half)."""
        last = div_up(hidden, cores) % W2_TILES_PER_A2A_ITER_W
        return self.transaction != DEFAULT_TILES_PER_TXN and 0 < last <= W2_HALF_A2A_ITER_TILES_W

    def down_rows(self, hidden: int, stored: int, cores: int) -> int:
        """Rows of elements of an expert's W2 on a core, where W2 is stored `stored` tiles high."""
        half = int(self.half_last(hidden, cores))
        whole = rounds(hidden, cores) - half
        return (whole * div_up(stored, self.height) + half * div_up(stored, self.half_height)) * self.rows


@dataclass(frozen=True)
class GateLayout:
    """The layout of W0 and W1 in the banks: `stored` tiles high, with a row for the bias if there is one."""

    stored: int
    intermediate: int
    cores: int
    banks: int
    blocks: Blocks

    @cached_property
    def own_columns(self) -> list[int]:
        return shares(self.intermediate, self.cores)

    @cached_property
    def stored_columns(self) -> list[int]:
        """A core's own columns, padded with zeros to an even number of at least four where that adds none."""
        most = div_up(self.intermediate, self.cores)
        wide = even_stride(most)
        return self.own_columns if most < wide else [wide] * self.cores

    @cached_property
    def core_blocks(self) -> list[int]:
        column, half = div_up(self.stored, self.blocks.height), div_up(self.stored, self.blocks.half_height)
        return [count // 2 * column + count % 2 * half for count in self.stored_columns]

    @property
    def bank_blocks(self) -> int:
        """Blocks of an expert in every bank."""
        return div_up(sum(self.core_blocks), self.banks)

    @property
    def bank_rows(self) -> int:
        """Rows of elements of an expert in every bank."""
        return self.bank_blocks * self.blocks.rows

    @property
    def uniform(self) -> bool:
        """Whether every core has as many whole columns in a bank of its own."""
        columns = self.stored_columns
        return (
            self.blocks.transaction == DEFAULT_TILES_PER_TXN
            and len(set(columns)) == 1
            and columns[0] % 2 == 0
            and self.banks == self.cores
        )
