"""How pools distribute their work over cores, and their L1 use."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, BufferType, DataType, Layout, TensorMemoryLayout
from ttnn_emulator.errors import require
from ttnn_emulator.ops.conv import sharding
from ttnn_emulator.ops.conv.sharding import BLOCK, HEIGHT, NARROWEST_CHANNELS, WIDTH, Cores
from ttnn_emulator.ops.conv.sliding_window import TILE, Pair, Window
from ttnn_emulator.tensors.memory_config import MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import DEFAULT_TILE, div_up, round_up
from ttnn_emulator.tensors.spec import tile_bytes

FACE = 16
BUFFERS = 2  # pages per circular buffer: double buffering
DRAM_STEP = 32
L1_STEP = 16
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/pool/pool_utils.cpp, get_index_data_type
MOST_UINT16 = 0xFFFF
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/pool/pool_utils.cpp, mpwi_total_size
INDEX_TILES, MORE_INDEX_TILES = 6, 2  # index tiles of a max pool with indices; additional ones for large kernels


@dataclass(frozen=True)
class Pool:
    """One pool: its window and its output.

    average       mean of the window, else its largest value
    with_padding  padding counts in the mean
    divisor       divides sums instead of the window's size
    """

    window: Window
    channels: int
    average: bool
    dtype: DataType
    layout: Layout
    ceil_mode: bool = False
    with_padding: bool = True
    divisor: int | None = None
    indices: bool = False
    tables_in_dram: bool = False

    # tt-metal v0.77.0: ttnn/cpp/ttnn/operations/pool/pool_utils.cpp, get_index_data_type
    @property
    def index_dtype(self) -> DataType:
        height, width = self.window.size
        return DataType.UINT16 if height * width <= MOST_UINT16 else DataType.UINT32

    # tt-metal v0.77.0: ttnn/cpp/ttnn/operations/pool/pool_utils.cpp, is_pool_op_one_scalar_per_core
    @property
    def one_scaler(self) -> bool:
        """Whether all windows are divided by the same number."""
        if not self.average or self.divisor is not None:
            return True
        same_end = not self.ceil_mode or self.window.ceil_pad == (0, 0)
        return same_end and (self.with_padding or self.window.total_padding == (0, 0))

    @property
    def is_tile(self) -> bool:
        return self.layout is Layout.TILE


@dataclass(frozen=True)
class Buffers:
    """Bytes of L1 per core: the program's own circular buffers, and those that alias its outputs."""

    own: int
    outputs: int

    @property
    def total(self) -> int:
        return self.own + self.outputs


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/pool/pool_utils.cpp, calculate_pool_cb_sizes
def buffers(pool: Pool, in_dtype: DataType, parts: int, shard: Pair, index_bytes: int | None = None) -> Buffers:
    """Circular buffers of a pool with `parts` channel parts; `shard` is the output's shard shape."""
    dtype = DataType.BFLOAT16 if in_dtype in BLOCK_FLOAT_DTYPES else in_dtype
    tile = tile_bytes(DEFAULT_TILE, dtype)
    value = tile // (TILE * TILE)
    taps = pool.window.kernel[0] * pool.window.kernel[1]
    rows = taps if taps <= FACE else TILE
    tiles = div_up(pool.channels, parts * TILE)
    large = is_large(pool, parts)
    at_once = 1 if pool.indices else 4 if pool.average and large else 8

    own = BUFFERS * tile  # scalers
    if pool.average and not pool.one_scaler:
        own += BUFFERS * tile
    own += tile  # the initial value
    if pool.indices or tiles > at_once:
        gathered = at_once * TILE * (TILE if pool.indices else rows)
    else:
        gathered = tiles * TILE * rows
    own += 2 * BUFFERS * round_up(gathered, TILE * TILE) * value  # one for each reader
    if pool.indices:
        index_tile = TILE * TILE * (2 if pool.index_dtype is DataType.UINT16 else 4)
        own += (INDEX_TILES + (MORE_INDEX_TILES if large else 0)) * index_tile + tile
    if pool.is_tile:
        own += TILE * value * TILE * tiles
    if pool.tables_in_dram:
        own += index_bytes if index_bytes is not None else shard[0] * 3 * 2 + 2
        if not pool.one_scaler:
            own += shard[0] * 3 * 2

    if pool.is_tile:
        outputs = round_up(tile_bytes(DEFAULT_TILE, pool.dtype) * (shard[0] * shard[1] // (TILE * TILE)), DRAM_STEP)
    else:
        pages = shard[0] * (shard[1] // FACE)
        outputs = round_up(min(FACE, shard[1]) * value * pages, DRAM_STEP)
        if pool.indices:
            each = 2 if pool.index_dtype is DataType.UINT16 else 4
            outputs += round_up(min(FACE, shard[1]) * each * pages, DRAM_STEP)
    return Buffers(own, outputs)


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/pool/pool_utils.cpp, get_factory_parameters
def is_large(pool: Pool, parts: int) -> bool:
    """Whether a window is reduced in several steps: by tiles of pixels, or half tiles with few channels."""
    rest = pool.channels // parts % TILE
    return pool.window.kernel[0] * pool.window.kernel[1] > (FACE if 0 < rest <= FACE else TILE)


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/pool/pool_utils.cpp, determine_valid_parallel_config
def choose_cores(
    pool: Pool, scheme: TensorMemoryLayout, board: tuple[int, int], in_layout: Layout, alignment: int
) -> Cores:
    """The cores for a pool that is sharded in a given way: no channels are padded to fill more of them."""
    return sharding.choose_cores(
        scheme,
        board,
        rows=pool.window.rows,
        in_channels=pool.channels,
        out_channels=pool.channels,
        alignment=alignment,
        pad_channels=False,
        whole_tile_rows=pool.is_tile,
        whole_tile_channels=pool.is_tile or in_layout is Layout.TILE,
    )


def best_cores(pool: Pool, board: tuple[int, int], in_dtype: DataType, in_layout: Layout) -> Cores:
    """The sharding scheme with the least L1 by the library's estimate."""

    def estimate(scheme: TensorMemoryLayout) -> tuple[int, Cores]:
        cores = choose_cores(pool, scheme, board, in_layout, TILE)
        channels = round_up(pool.channels, cores.channels * TILE // 2)
        config = cores.memory_config(pool.window.rows, channels, TILE)
        assert config.shard_spec is not None
        return buffers(pool, in_dtype, cores.channels, config.shard_spec.extent).total, cores

    height, width, block = (estimate(scheme) for scheme in (HEIGHT, WIDTH, BLOCK))
    if height[0] > width[0]:
        return (block if width[0] > block[0] else width)[1]
    return (block if height[0] > block[0] else height)[1]


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/pool/generic/generic_pools.cpp, get_pool_input_memory_config
def input_placement(
    pool: Pool,
    scheme: TensorMemoryLayout | None,
    rows: int,
    board: tuple[int, int],
    in_dtype: DataType,
    in_layout: Layout,
) -> tuple[MemoryConfig, Cores]:
    """The sharded memory config of an input, by the given scheme or the best one."""
    alignment = TILE if in_layout is Layout.TILE else NARROWEST_CHANNELS
    if scheme is None:
        cores = best_cores(pool, board, in_dtype, in_layout)
    else:
        require(scheme in (HEIGHT, WIDTH, BLOCK), f"a pool is sharded by height, width or block, not {scheme}")
        cores = choose_cores(pool, scheme, board, in_layout, alignment)
    channels = round_up(pool.channels, cores.channels * alignment)
    return cores.memory_config(rows, channels, TILE if in_layout is Layout.TILE else 1), cores


def output_shard(pool: Pool, cores: Cores) -> Pair:
    """Rows and channels of one core's output."""
    rows = round_up(pool.window.rows, cores.rows * (TILE if pool.is_tile else 1)) // cores.rows
    return rows, output_channels(pool, cores) // cores.channels


def output_channels(pool: Pool, cores: Cores) -> int:
    """Channels of the output with their padding: whole faces, or whole tiles where a last tile is less than a face."""
    each = div_up(pool.channels, cores.channels)
    rest = each % TILE
    whole_tiles = pool.is_tile or (0 < rest < FACE and each > FACE)
    return round_up(pool.channels, cores.channels * (TILE if whole_tiles else FACE))


def output_memory_config(pool: Pool, cores: Cores) -> MemoryConfig:
    return MemoryConfig(cores.scheme, BufferType.L1, ShardSpec(cores.grid, output_shard(pool, cores)))


def slice_bytes(pool: Pool, part: Pool, config: MemoryConfig, in_dtype: DataType, in_layout: Layout, size: Pair) -> int:
    """L1 of one slice by the library's estimate; `part` is the pool of the slice, `size` its output."""
    assert config.shard_spec is not None
    cores = Cores.of(config)
    height, width = config.shard_spec.shape
    value = 4 if in_dtype is DataType.FLOAT32 else 2
    halo_window = replace(part.window, ceil_pad=_ceil_pad(part))
    halo = halo_window.halo_rows(cores.rows, whole_tiles=pool.is_tile) * width * value
    overhead = 2 * round_up(width * value, L1_STEP)
    if in_layout is Layout.TILE:
        overhead += 4 * div_up(width, TILE) * TILE * TILE * value
    rows = size[0] * size[1] // cores.rows
    if pool.is_tile:
        rows = round_up(rows, TILE)
    whole = replace(part, window=replace(pool.window, padding=part.window.padding, ceil_pad=part.window.ceil_pad))
    needed = buffers(whole, pool.dtype, cores.channels, (rows, width)).total
    return max(height * width * value + halo + overhead, halo + needed + rows * width * value)


def _ceil_pad(part: Pool) -> Pair:
    """The estimate recomputes the ceil padding for the slice."""
    return part.window.with_ceil_pad().ceil_pad if part.ceil_mode else (0, 0)
