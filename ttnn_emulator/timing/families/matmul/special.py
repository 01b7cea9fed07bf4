"""Matrix products with kernels of their own: one matrix per user, sparse batches, shards of weights on every core."""

from __future__ import annotations

from collections.abc import Sequence

from ttnn_emulator.enums import MathFidelity
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.timing.calls import Call, prices
from ttnn_emulator.timing.chips import FIDELITY_CYCLES
from ttnn_emulator.timing.families.matmul.matmul import KERNEL
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.movement import (
    NO_TRAFFIC,
    USERS_PER_TILE,
    Stages,
    Traffic,
    kernels_of,
    moved,
    planned_run,
    read_traffic,
    reads,
    shard_cores,
    tile_size,
    tiles_of,
    write_traffic,
    writes,
)
from ttnn_emulator.timing.programs import ProgramRun
from ttnn_emulator.timing.recorded_arguments import field_of, grid_of, precision_of_call
from ttnn_emulator.timing.shards import is_local

FAMILY = "matmul of its own kernel"


def _product_ns(run: ProgramRun, fidelity: MathFidelity, inner: int, unpacked: int, subblock: int = 1) -> float:
    """A tile of the output, from `inner` pairs of tiles."""
    chip, kernel = run.chip, KERNEL[run.board.arch]
    cycles = max(FIDELITY_CYCLES[fidelity], unpacked / chip.unpack_bytes_per_cycle)
    return chip.ns(inner * (cycles + kernel.call / subblock) + kernel.subblock + kernel.block / 8)


def _tiles(size: int) -> int:
    return div_up(size, TILE_SIZE)


# -- one matrix per user ----------------------------------------------------------------------------------------------


@prices("ttnn.experimental.attn_matmul", "ttnn.experimental.attn_matmul_from_cache")
def of_users(call: Call) -> Sequence[Launch]:
    """A tile of the output takes 32 users: their products are untilized, joined row by row, and tilized again.

    tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/matmul/attn_matmul/device/kernels/compute/
    transformer_attn_matmul.cpp
    """
    a, b = call.tensors[:2]
    out = call.outputs[0]
    run = planned_run(call, "AttnMatmulDeviceOperation", call.tensors)
    kernels = kernels_of(run)
    inner = _tiles(a.padded_shape[-1])
    cores = grid_of(call.arguments.get("compute_with_storage_grid_size")) or call.board.cores
    outputs = tiles_of(out)
    cores = min(outputs, cores)
    fidelity = precision_of_call(call, MathFidelity.HiFi2).fidelity
    size = tile_size(b)
    read = 0.0 if is_local(b) else reads(kernels, b).ns(size, inner)
    compute = _product_ns(run, fidelity, inner, size) + kernels.local.ns(2.0 * TILE_SIZE)
    items = div_up(outputs, cores) * USERS_PER_TILE
    first = 0.0 if is_local(a) else reads(kernels, a).ns(tile_size(a), inner)
    last = 0.0 if is_local(out) else writes(kernels, out).ns(tile_size(out))
    traffic = NO_TRAFFIC if is_local(b) else read_traffic(b, outputs * USERS_PER_TILE * inner, size)
    return [moved(run, FAMILY, cores, Stages(items, read, compute), traffic, first + last)]


@prices("ttnn.experimental.group_attn_matmul")
def of_groups(call: Call) -> Sequence[Launch]:
    """Heads are divided among cores; the matrix of every user is multicast to all of them."""
    a, b = call.tensors[:2]
    run = planned_run(call, "GroupAttnMatmulDeviceOperation", call.tensors)
    kernels = kernels_of(run)
    inner, columns = _tiles(a.padded_shape[-1]), _tiles(b.padded_shape[-1])
    heads = a.padded_shape[1]
    cores = min(heads, grid_of(call.arguments.get("compute_with_storage_grid_size")) or call.board.cores)
    fidelity = precision_of_call(call, MathFidelity.HiFi2).fidelity
    size, tiles = tile_size(b), inner * columns * b.padded_shape[1]
    read = 0.0 if is_local(b) else reads(kernels, b).ns(size, tiles)
    read += tiles * size / run.chip.multicast_bytes_per_ns + run.chip.semaphore_ns
    compute = div_up(heads, cores) * columns * _product_ns(run, fidelity, inner, size, subblock=min(columns, 8))
    traffic = NO_TRAFFIC if is_local(b) else read_traffic(b, USERS_PER_TILE * tiles, size)
    return [moved(run, FAMILY, cores, Stages(USERS_PER_TILE, read, compute), traffic)]


# -- other forms ------------------------------------------------------------------------------------------------------


@prices("ttnn.sparse_matmul")
def sparse(call: Call) -> Sequence[Launch]:
    """One batch after the other, divided by columns. If it is not known how many are skipped, none are."""
    a, b = call.tensors[:2]
    out = call.outputs[0]
    arguments = call.arguments
    run = planned_run(call, "SparseMatmulDeviceOperation", call.tensors)
    kernels = kernels_of(run)
    inner, columns, rows = (_tiles(size) for size in (a.padded_shape[-1], b.padded_shape[-1], a.padded_shape[-2]))
    flags = call.tensor("sparsity")
    batches = int(arguments.get("nnz") or (flags.volume if flags is not None else 1))
    program = arguments.get("program_config")
    wide = int(field_of(program, "per_core_N", 1))
    step = max(int(field_of(program, "in0_block_w", 1)), 1)
    cores = min(div_up(columns, wide), call.board.cores)
    fidelity = precision_of_call(call, MathFidelity.HiFi2).fidelity
    size = tile_size(b)
    blocks = div_up(inner, step)
    read = max(reads(kernels, b).ns(size, step * wide), step * rows * tile_size(a) / run.chip.multicast_bytes_per_ns)
    compute = rows * wide * _product_ns(run, fidelity, step, size, subblock=min(wide, 8))
    traffic = read_traffic(b, batches * inner * columns, size)
    traffic += write_traffic(out, batches * rows * columns, tile_size(out))
    last = writes(kernels, out).ns(tile_size(out), rows * wide)
    return [moved(run, FAMILY, cores, Stages(batches * blocks, read, compute), traffic, last)]


@prices("ttnn.experimental.matmul_decode")
def of_shards(call: Call) -> Sequence[Launch]:
    """Weights stay in the L1 of the cores; the rows are multicast to all of them, shard by shard."""
    a, b = call.tensors[:2]
    run = planned_run(call, "MatmulDecodeDeviceOperation", call.tensors)
    cores = shard_cores(b) or 1
    mine = div_up(tiles_of(b), cores)
    rows = _tiles(a.physical_shape[0])
    shards = shard_cores(a) or 1
    sent = tiles_of(a) * tile_size(a) / run.chip.multicast_bytes_per_ns + shards * run.chip.semaphore_ns
    compute = rows * _product_ns(run, MathFidelity.HiFi2, mine, tile_size(b), subblock=8)
    return [moved(run, FAMILY, cores, Stages(1, sent, compute), NO_TRAFFIC)]


@prices("ttnn.experimental.deepseek.mla.matmul_wo", "ttnn.experimental.deepseek.moe.moe_gate_mm")
def beside_banks(call: Call) -> Sequence[Launch]:
    """The cores next to the banks of DRAM stream the weights of one layer."""
    b = call.tensors[1]
    run = planned_run(call, call.name.rpartition(".")[2], call.tensors)
    kernels = kernels_of(run)
    banks = call.board.dram_banks
    layers = b.padded_shape[0] if len(b.padded_shape) > 3 else 1
    tiles = div_up(tiles_of(b), max(layers, 1))
    size = tile_size(b)
    read = size * banks / kernels.read_bytes_per_ns
    compute = _product_ns(run, MathFidelity.HiFi2, 1, size, subblock=8)
    traffic: Traffic = read_traffic(b, tiles, size)
    return [moved(run, FAMILY, banks, Stages(div_up(tiles, banks), read, compute), traffic)]
