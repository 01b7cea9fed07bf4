"""Attention of whole sequences: every core takes chunks of queries and goes through the keys that they see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ttnn_emulator.enums import MathFidelity
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.calls import Call, prices
from ttnn_emulator.timing.families.attention.chunks import (
    FAMILY,
    Chunk,
    chunk_cycles,
    chunks_in,
    ending_cycles,
)
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.movement import (
    Kernels,
    Stages,
    Traffic,
    kernels_of,
    moved,
    planned_run,
    read_traffic,
    tile_size,
    write_traffic,
    writes,
)
from ttnn_emulator.timing.movement import reads as reads_of
from ttnn_emulator.timing.recorded_arguments import Precision, field_of, grid_of, precision_of, precision_of_call

PROGRAM, JOINT = "SDPAOperation", "JointSDPADeviceOperation"
# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/transformer/sdpa/device/sdpa_program_factory.cpp, q_chunk_size
DEFAULT_CHUNK = 32


@dataclass(frozen=True, slots=True)
class Attention:
    """Queries [batch, heads, queries, depth] against keys and values.

    keys    keys that a query may see, beyond those that causality hides
    causal  a query sees the keys up to its own position; the last query sees all
    window  keys that a query sees; 0 for all
    """

    q: Spec
    k: Spec
    v: Spec
    out: Spec
    mask: Spec | None
    keys: int
    queries: int
    width: int
    causal: bool
    window: int
    rows: int
    columns: int
    cores: int
    precision: Precision
    streams: bool
    shares_keys: bool

    @property
    def heads(self) -> int:
        return self.q.shape[0] * self.q.shape[1]


def visible_chunks(attention: Attention) -> float:
    """Chunks of keys that a chunk of queries goes through, on average over all of them."""
    total = chunks_in(attention.keys, attention.columns)
    count = chunks_in(attention.queries, attention.rows)
    step, high = attention.columns * TILE_SIZE, attention.rows * TILE_SIZE
    if attention.window:
        reach = attention.window + high if attention.causal else 2 * attention.window + high
        return min(total, div_up(reach, step) + (1 if attention.window % step else 0))
    if not attention.causal:
        return total
    first = attention.keys - attention.queries
    return sum([min(div_up(first + (number + 1) * high, step), total) for number in range(count)]) / count


def busiest_core(attention: Attention) -> tuple[int, int, float]:
    """Cores that work, and the chunks of queries and of scores of the busiest one.

    Causal chunks are assigned in pairs of an early and a late one, if their number is even.
    """
    count = chunks_in(attention.queries, attention.rows)
    visible = visible_chunks(attention)
    pairs = attention.causal and count % 2 == 0
    units = attention.heads * count // 2 if pairs else attention.heads * count
    cores = max(min(units, attention.cores), 1)
    mine = div_up(units, cores) * (2 if pairs else 1)
    if attention.causal and not pairs and not attention.window:
        # One core has the latest chunks, which see the most keys.
        latest = chunks_in(attention.keys, attention.columns)
        return cores, mine, mine * max(visible, latest - (mine - 1) / 2 if mine <= count else visible)
    return cores, mine, mine * visible


def attention_launch(attention: Attention, call: Call, program: str = PROGRAM) -> Launch:
    """The predicted time of a program."""
    run = planned_run(call, program, (attention.q, attention.k, attention.v), (attention.out,))
    kernels, chip = kernels_of(run), run.chip
    depth = div_up(attention.q.shape[-1], TILE_SIZE)
    chunk = Chunk(
        attention.rows,
        attention.columns,
        depth,
        attention.width,
        tile_size(attention.k),
        attention.precision,
        attention.streams,
        attention.mask is not None,
    )
    cores, mine, scores = busiest_core(attention)
    read = _keys_ns(attention, chunk, kernels, shared=attention.shares_keys and cores > attention.heads)
    queries = reads_of(kernels, attention.q).ns(tile_size(attention.q), chunk.rows * depth)
    write = writes(kernels, attention.out).ns(tile_size(attention.out), chunk.rows * chunk.width)
    stages = Stages(scores, read, chip.ns(chunk_cycles(chunk, run.board)))
    ending = mine * chip.ns(ending_cycles(chunk, run.board.arch)) + write
    traffic = _traffic(attention, chunk, cores, scores, mine)
    launch = moved(run, FAMILY, cores, stages, traffic, extra_ns=queries + ending)
    pairs = attention.heads * attention.queries * min(attention.keys, _seen(attention))
    return replace(launch, flops=2.0 * pairs * TILE_SIZE * (chunk.depth + chunk.width))


def _seen(attention: Attention) -> float:
    """Keys that a query sees on average."""
    if attention.window:
        return attention.window
    return attention.keys - attention.queries / 2 if attention.causal else attention.keys


def _keys_ns(attention: Attention, chunk: Chunk, kernels: Kernels, *, shared: bool) -> float:
    """A chunk of keys and one of values; one core of those that share a head reads them and passes them on."""
    total = 0.0
    for spec, tiles in ((attention.k, chunk.depth), (attention.v, chunk.width)):
        size = tile_size(spec)
        total += reads_of(kernels, spec).ns(size, tiles * chunk.columns)
        if shared:
            total += tiles * chunk.columns * size / kernels.local.bytes_per_ns
    if attention.mask is not None:
        total += reads_of(kernels, attention.mask).ns(tile_size(attention.mask), chunk.scores)
    return total


def _traffic(attention: Attention, chunk: Chunk, cores: int, scores: float, mine: int) -> Traffic:
    """What all cores read and write: keys once per head and pass if cores share them, else once per core."""
    readers = min(attention.heads, cores) if attention.shares_keys else cores
    tiles = readers * scores * chunk.columns
    traffic = read_traffic(attention.k, tiles * chunk.depth, tile_size(attention.k))
    traffic += read_traffic(attention.v, tiles * chunk.width, tile_size(attention.v))
    if attention.mask is not None:
        traffic += read_traffic(attention.mask, cores * scores * chunk.scores, tile_size(attention.mask))
    queries = cores * mine * chunk.rows
    traffic += read_traffic(attention.q, queries * chunk.depth, tile_size(attention.q))
    return traffic + write_traffic(attention.out, queries * chunk.width, tile_size(attention.out))


@prices("ttnn.prim.sdpa")
def whole_sequences(call: Call) -> Sequence[Launch]:
    """Plain, chunked, windowed and latent attention."""
    q, k = call.tensors[:2]
    settings = call.arguments.get("settings")
    v = call.tensor("v") or k
    table = call.tensor("page_table")
    start = field_of(settings, "chunk_start")
    latent = field_of(settings, "mla_width")
    keys = k.shape[2]
    if table is not None:
        block = field_of(field_of(settings, "geometry"), "block_size", k.shape[2])
        keys = table.shape[1] * block if start is None else start + q.shape[2]
    causal = bool(field_of(settings, "is_causal", True))
    window = int(field_of(settings, "window", 0))
    width = div_up(latent or v.shape[-1], TILE_SIZE)
    return [_launch(call, q, k, v, keys=keys, width=width, causal=causal, window=window, settings=settings)]


def _launch(
    call: Call, q: Spec, k: Spec, v: Spec, *, keys: int, width: int, causal: bool, window: int, settings: object
) -> Launch:
    program = field_of(settings, "program_config")
    rows = int(field_of(program, "q_chunk_size", DEFAULT_CHUNK)) // TILE_SIZE or 1
    columns = int(field_of(program, "k_chunk_size", DEFAULT_CHUNK)) // TILE_SIZE or 1
    precision = precision_of(field_of(settings, "compute_kernel_config"), MathFidelity.HiFi2)
    attention = Attention(
        q,
        k,
        v,
        call.outputs[0],
        call.tensor("mask"),
        keys,
        q.shape[2],
        width,
        causal,
        window,
        rows,
        columns,
        grid_of(field_of(program, "compute_with_storage_grid_size")) or call.board.cores,
        precision,
        streams=not precision.fp32_acc,
        shares_keys=not causal and call.tensor("page_table") is None,
    )
    return attention_launch(attention, call)


@prices("ttnn.transformer.joint_scaled_dot_product_attention")
def joint(call: Call) -> Sequence[Launch]:
    """Two sequences that attend to each other: every query sees the keys of both."""
    first, second = call.tensors[:3], call.tensors[3:6]
    program = call.arguments.get("program_config")
    rows = int(field_of(program, "q_chunk_size", DEFAULT_CHUNK)) // TILE_SIZE or 1
    columns = int(field_of(program, "k_chunk_size", DEFAULT_CHUNK)) // TILE_SIZE or 1
    q, k, v = first
    attention = Attention(
        q,
        k,
        v,
        call.outputs[0],
        None,
        keys=sum([chunks_in(each.shape[2], columns) for each in (k, second[1])]) * columns * TILE_SIZE,
        queries=sum([chunks_in(each.shape[2], rows) for each in (q, second[0])]) * rows * TILE_SIZE,
        width=div_up(v.shape[-1], TILE_SIZE),
        causal=False,
        window=0,
        rows=rows,
        columns=columns,
        cores=grid_of(field_of(program, "compute_with_storage_grid_size")) or call.board.cores,
        precision=precision_of_call(call, MathFidelity.HiFi2),
        streams=False,
        shares_keys=False,
    )
    return [attention_launch(attention, call, JOINT)]
