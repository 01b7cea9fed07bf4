"""L1 use of the attention programs' circular buffers, per core."""

from __future__ import annotations

from dataclasses import dataclass

from ttnn_emulator.enums import DataType
from ttnn_emulator.numerics.programs.attention.decode import Decode
from ttnn_emulator.numerics.programs.attention.whole_sequences import DEST_TILES, Prefill, block_of
from ttnn_emulator.tensors.shapes import DEFAULT_TILE, Tile, div_up, round_up
from ttnn_emulator.tensors.spec import Spec, tile_bytes

NARROW, WIDE = DataType.BFLOAT16, DataType.FLOAT32
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/transformer/sdpa_decode/device/sdpa_decode_program_factory.cpp, half_tile
HALF_TILE = Tile((16, 32))
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/transformer/sdpa/device/sdpa_program_factory.cpp, chunk_start_idx_page_size
INDEX_PAGE = 32  # alignment of a row of indices in bytes
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/transformer/sdpa/device/sdpa_program_factory.cpp, kSlidingWindowEdgeTiles
WINDOW_EDGES = 4  # mask tiles for the edges of a sliding window


@dataclass(frozen=True)
class Work:
    """The amount of work: query chunks over all heads, and the cores that process them."""

    chunks: int  # of one head
    heads: int  # of all batches
    cores: int

    def is_double(self, causal: bool) -> bool:
        """Whether a core processes more than one query chunk, so that queries are double-buffered."""
        total = self.chunks * self.heads
        if causal and self.chunks % 2 == 0:
            return bool(total)  # chunks are assigned to cores in pairs
        return total > self.cores


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/transformer/sdpa/device/sdpa_program_factory.cpp, circular buffers
def prefill_buffers(
    kernel: Prefill, q: Spec, k: Spec, v: Spec, work: Work, *, mask: DataType | None, partial: bool, padded: bool
) -> int:
    """Buffers of the prefill kernels. `mask` is the dtype of a provided or generated mask."""
    rows, columns, width = kernel.q_chunk, kernel.k_chunk, kernel.width
    depth = q.shape[-1] // DEFAULT_TILE.tile_shape[1]
    narrow, wide = tile_bytes(DEFAULT_TILE, NARROW), tile_bytes(DEFAULT_TILE, WIDE)
    bulk = wide if kernel.bulk is WIDE else narrow
    total = rows * depth * (2 if work.is_double(kernel.causal) else 1) * tile_bytes(DEFAULT_TILE, q.dtype)
    total += columns * depth * 2 * tile_bytes(DEFAULT_TILE, k.dtype)
    total += columns * width * 2 * tile_bytes(DEFAULT_TILE, v.dtype)
    if mask is not None:
        total += rows * columns * 2 * tile_bytes(DEFAULT_TILE, mask)
    elif kernel.causal or kernel.window or padded:
        light = kernel.streams or (kernel.causal and not kernel.window)
        if light:
            tiles = 1 + (WINDOW_EDGES if kernel.window else int(kernel.causal)) + partial
            total += tiles * narrow
        else:
            total += rows * columns * 2 * tile_bytes(DEFAULT_TILE, DataType.BFLOAT4_B)
    total += 2 * narrow  # scaler and column of ones
    out_tiles = rows * width
    if kernel.streams:
        height, across = block_of(rows, width, DEST_TILES, 2)
        if height == 1 and 2 * across <= DEST_TILES and rows >= 2:
            height = 2
        out_tiles = 2 * height * width
        total += narrow  # reciprocals
    total += rows * columns * bulk + 2 * rows * width * narrow
    total += 3 * rows * narrow + 2 * rows * bulk
    return total + out_tiles * tile_bytes(DEFAULT_TILE, kernel.out)


def extra_buffers(
    kernel: Prefill, sink: Spec | None, windows: Spec | None, table: Spec | None, start: Spec | None
) -> int:
    """Buffers of optional tensors: sinks (one tile per head, or a row of tiles), boundaries, pages, positions."""
    total = 0
    if sink is not None:
        total += (1 if kernel.streams else kernel.q_chunk) * tile_bytes(DEFAULT_TILE, sink.dtype)
    if windows is not None:
        total += 2 * tile_bytes(DEFAULT_TILE, windows.dtype) + INDEX_PAGE
    if table is not None:
        total += round_up(table.page_bytes, INDEX_PAGE)
    return total + (2 * INDEX_PAGE if start is not None else 0)


def chunks_of(length: int, tiles: int) -> int:
    return div_up(length, tiles * DEFAULT_TILE.tile_shape[0])


# -- decoding ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cache:
    """The operands of decoding."""

    q: Spec
    k: Spec
    v: Spec
    out: Spec
    table: Spec | None
    positions: Spec | None
    mask: Spec | None
    has_sink: bool


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/transformer/sdpa_decode/device/sdpa_decode_program_factory.cpp, circular
# buffers
def decode_buffers(kernel: Decode, cache: Cache, rows: int, width: int) -> int:
    """Buffers of the decode kernel: `rows` of query tiles per core, values of `width` columns."""
    tile = DEFAULT_TILE if kernel.full_tiles else HALF_TILE
    narrow = tile_bytes(tile, NARROW)
    depth, across = cache.k.padded_shape[3] // 32, width // 32
    columns = kernel.chunk // 32 or (4 if kernel.math.fp32_acc else DEST_TILES)
    queries = rows * depth * tile_bytes(tile, cache.q.dtype)
    total = queries + columns * depth * 2 * tile_bytes(DEFAULT_TILE, cache.k.dtype)
    total += columns * across * 2 * tile_bytes(DEFAULT_TILE, cache.v.dtype)
    mask_tile = tile_bytes(tile, NARROW if cache.mask is None else cache.mask.dtype)
    masks = 1 + bool(kernel.window) + (cache.table is not None and cache.k.shape[2] < 32)
    total += masks * rows * columns * mask_tile
    total += queries + narrow * 2 + tile_bytes(DEFAULT_TILE, NARROW)  # row-major queries, scalers, a column of ones
    for indices, times in ((cache.positions, 2), (cache.table, 1)):
        if indices is not None:
            total += times * round_up(indices.page_bytes, 32)
    statistics = 2 + 5 + 2 + 2 + cache.has_sink
    total += statistics * rows * narrow + rows * columns * narrow
    outputs = 3 + 1 + (kernel.cores - 1)
    total += outputs * rows * across * narrow + 2 * (kernel.cores - 1) * rows * narrow
    if not cache.out.is_sharded:
        total += rows * across * tile_bytes(DEFAULT_TILE, cache.out.dtype)
    return total


# -- two joint sequences ----------------------------------------------------------------------------------------------


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/transformer/sdpa/device/joint_sdpa_program_factory.cpp, circular buffers
def joint_buffers(kernel: Prefill, q: Spec, chunks: int, cores: int, *, padded: bool) -> int:
    """Buffers of the joint attention kernel with `chunks` query chunks."""
    rows, columns, depth = kernel.q_chunk, kernel.k_chunk, kernel.width
    narrow, tile = tile_bytes(DEFAULT_TILE, NARROW), tile_bytes(DEFAULT_TILE, q.dtype)
    batches = max(min(q.shape[0], cores), 1)
    heads = max(min(cores // batches, q.shape[1]), 1)
    spread = max(min(cores // (batches * heads), chunks), 1)
    total = rows * depth * (2 if div_up(chunks, spread) > 1 else 1) * tile + 4 * columns * depth * tile
    if padded:
        total += rows * columns * tile_bytes(DEFAULT_TILE, DataType.BFLOAT4_B)
    total += 2 * narrow + rows * columns * narrow + 2 * rows * depth * narrow + 5 * rows * narrow
    return total + rows * depth * tile
