"""Attention of one token per user: cores divide the keys of a user, and combine their results as a tree."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ttnn_emulator.enums import MathFidelity
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.calls import Call, prices
from ttnn_emulator.timing.families.attention.chunks import (
    NARROW,
    ROW_CYCLES,
    Chunk,
    chunk_cycles,
    ending_cycles,
)
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.movement import (
    KERNELS,
    Stages,
    is_dram,
    moved,
    read_traffic,
    reads,
    tile_size,
    write_traffic,
    writes,
)
from ttnn_emulator.timing.programs import ProgramRun, times
from ttnn_emulator.timing.recorded_arguments import Precision, field_of, grid_of, precision_of
from ttnn_emulator.timing.tile_kernels import STEP_CYCLES

PROGRAM, FAMILY = "SdpaDecodeDeviceOperation", "decode attention"
# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/transformer/sdpa_decode/device/kernels/rt_args_common.hpp,
# nearest_pow_of_2_up_to_8: chunks of a program config without a size
LARGEST_DYNAMIC_CHUNK = 8
# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/transformer/sdpa_decode/device/sdpa_decode_program_factory.cpp,
# max_cores_per_head_batch
DEFAULT_MOST_CORES = 16


@dataclass(frozen=True, slots=True)
class Decoding:
    """One token of each user. Chunks and widths are in tiles.

    keys    keys of a user that are read
    groups  heads of keys
    pages   indices of pages that a core reads first; 0 for contiguous caches
    """

    q: Spec
    k: Spec
    v: Spec
    out: Spec
    users: int
    groups: int
    keys: int
    chunk: int
    width: int
    cores: int
    most_cores: int
    precision: Precision
    pages: int


def decode_launch(decoding: Decoding, run: ProgramRun) -> Launch:
    """The predicted time of a program."""
    board, chip, kernels = run.board, run.chip, KERNELS[run.board.arch]
    per_user = max(min(decoding.cores, decoding.most_cores * decoding.users * decoding.groups) // decoding.users, 1)
    per_head = max(per_user // decoding.groups, 1)
    heads = div_up(decoding.groups, per_user) if per_head == 1 else 1
    chunks = div_up(decoding.keys, decoding.chunk * TILE_SIZE)
    active = min(per_head, chunks)
    mine = div_up(chunks, per_head)
    cores = min(active * decoding.users * div_up(decoding.groups, heads), board.cores)
    depth = div_up(decoding.q.shape[-1], TILE_SIZE)
    rows = div_up(div_up(decoding.q.shape[-2], decoding.groups), TILE_SIZE)
    size = tile_size(decoding.k)
    chunk = Chunk(rows, decoding.chunk, depth, decoding.width, size, decoding.precision)
    read = sum([reads(kernels, decoding.k).ns(size, decoding.chunk * wide) for wide in (depth, decoding.width)])
    compute = chip.ns(chunk_cycles(chunk, board))
    # A child sends its sums, maxima and outputs; the parent rescales both and adds them.
    rounds = (active - 1).bit_length()
    sent = rows * (decoding.width + 2)
    combine = kernels.l1_write.ns(NARROW, sent) + chip.semaphore_ns
    combine += chip.ns(rows * (ROW_CYCLES + decoding.width * 3 * STEP_CYCLES / 4) + 3 * STEP_CYCLES)
    query = kernels.l1_read.ns(NARROW, rows * depth)
    indices = 2 * kernels.dram_read.ns(4.0 * max(decoding.pages, 1)) if decoding.pages else 0.0
    ending = heads * chip.ns(ending_cycles(chunk, board.arch)) + rounds * combine
    ending += writes(kernels, decoding.out).ns(tile_size(decoding.out), rows * decoding.width)
    tiles = decoding.users * decoding.groups * chunks * decoding.chunk
    traffic = read_traffic(decoding.k, tiles * (depth + decoding.width), size)
    if is_dram(decoding.out):
        traffic += write_traffic(decoding.out, decoding.users * rows * decoding.width, tile_size(decoding.out))
    return moved(run, FAMILY, cores, Stages(mine * heads, read, compute), traffic, query + indices + ending)


@prices("ttnn.prim.sdpa_decode")
def decode(call: Call) -> Sequence[Launch]:
    """Positions are known only if they are arguments; if they are in a tensor, the whole cache is read."""
    q, k = call.tensors[:2]
    v, table, settings = call.tensor("v") or k, call.tensor("page_table"), call.arguments.get("settings")
    geometry = field_of(settings, "geometry")
    groups = field_of(geometry, "num_kv_heads", k.padded_shape[1])
    users = call.outputs[0].shape[1]
    positions = field_of(settings, "cur_pos", ())
    block = field_of(geometry, "block_size", k.shape[2])
    keys = table.shape[-1] * block if table is not None else k.shape[2]
    if positions:
        keys = min(max(positions) + 1, keys)
    if window := field_of(settings, "window", 0):
        keys = min(keys, window)
    program = field_of(settings, "program_config")
    latent = field_of(settings, "mla_width")
    cores = grid_of(field_of(program, "compute_with_storage_grid_size")) or call.board.cores
    most = field_of(settings, "most_cores")
    if most is None:
        most = cores if program is None else field_of(program, "max_cores_per_head_batch", DEFAULT_MOST_CORES)
    decoding = Decoding(
        q,
        k,
        v,
        call.outputs[0],
        users,
        groups,
        max(keys, 1),
        chunk_of(int(field_of(settings, "chunk", 0)), keys),
        div_up(latent or v.shape[-1], TILE_SIZE),
        cores,
        int(most),
        precision_of(field_of(settings, "compute_kernel_config"), MathFidelity.HiFi2),
        pages=0 if table is None else table.shape[-1],
    )
    return [decode_launch(decoding, ProgramRun(PROGRAM, call.tensors, call.outputs, 0, call.board))]


def chunk_of(size: int, keys: int) -> int:
    """Tiles of keys at a time."""
    if size:
        return max(size // TILE_SIZE, 1)
    return min(1 << (div_up(keys, TILE_SIZE) - 1).bit_length(), LARGEST_DYNAMIC_CHUNK)


_POSITION = re.compile(r"\b(?:pos|cur_pos)\D{0,4}(\d+)")
_GRID = re.compile(r"grid\D{0,3}(\d+)\s*x\s*(\d+)")


@times(PROGRAM, "ScaledDotProductAttentionDecode", family=FAMILY)
def decode_row(run: ProgramRun) -> Launch:
    """A row of a sheet; without a position in its attributes, the whole cache is assumed to be read."""
    q, k, v = run.inputs[:3]
    users = q.shape[1]
    paged = k.shape[0] != users
    position, grid = _POSITION.search(run.attributes), _GRID.search(run.attributes)
    keys = k.shape[0] * k.shape[2] // users if paged else k.shape[2]
    if position is not None:
        keys = min(int(position[1]) + 1, keys)
    decoding = Decoding(
        q,
        k,
        v,
        run.outputs[0],
        users,
        k.shape[1],
        keys,
        chunk_of(0, keys),
        div_up(v.shape[-1], TILE_SIZE),
        int(grid[1]) * int(grid[2]) if grid is not None else run.cores,
        DEFAULT_MOST_CORES,
        Precision(run.fidelity or MathFidelity.HiFi2),
        pages=div_up(keys, k.shape[2]) if paged else 0,
    )
    return decode_launch(decoding, run)
