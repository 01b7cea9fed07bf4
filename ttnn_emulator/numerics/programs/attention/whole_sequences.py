"""Attention of whole sequences, as its kernels compute it in chunks of queries and keys.

There are two kernels. The streaming kernel, for a 16-bit destination register, stores everything in bfloat16 and adds
masks and corrections with the packer, in L1. The plain kernel adds them with the matrix unit; with a 32-bit destination
register it stores scores and sums of exponentials in float32. Small inputs are bit-exact; large ones run the same steps
on whole rows in float32 (see `mode`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from ttnn_emulator.enums import DataType
from ttnn_emulator.numerics.formats.carriers import truncate_bf16, wide
from ttnn_emulator.numerics.kernels import attention as kernels
from ttnn_emulator.numerics.kernels import attention_rows
from ttnn_emulator.numerics.kernels.attention import ACCURATE, CUT, QUICK, QUICK_NARROW, ROUNDED, UNPACKED
from ttnn_emulator.numerics.kernels.packed_panels import NARROW as NARROW_BITS
from ttnn_emulator.numerics.mode import exactly
from ttnn_emulator.numerics.native.instruction_set import MULTIPLIES_PAIRS
from ttnn_emulator.numerics.native.threaded_copies import contiguous
from ttnn_emulator.numerics.native.worker_threads import WORKERS, cut, share
from ttnn_emulator.numerics.programs.attention import softmax_steps as steps
from ttnn_emulator.numerics.programs.attention.softmax_steps import NEGATIVE_INFINITY, TILE, added_in_l1
from ttnn_emulator.numerics.programs.products.float32_product import SMALL
from ttnn_emulator.numerics.units import reductions as numeric
from ttnn_emulator.numerics.units.compute_core import Core
from ttnn_emulator.numerics.units.matrix_unit import (
    BFLOAT16_BITS,
    PANEL_SPEED,
    PHASES,
    UPPER_HALF,
    MathConfig,
    matmul,
    seen_bits,
)
from ttnn_emulator.numerics.units.packer import pack

NARROW = DataType.BFLOAT16
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/transformer/sdpa/device/sdpa_program_factory.cpp, create_descriptor
DEST_TILES = 8  # tiles in half of a 16-bit destination register
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/transformer/sdpa/device/sdpa_subblock_utils.hpp,
#     determine_largest_subblock_size
BLOCKS = (
    (2, 4), (4, 2), (1, 8), (8, 1), (1, 7), (7, 1), (2, 3), (3, 2), (1, 6), (6, 1),
    (1, 5), (5, 1), (2, 2), (1, 4), (4, 1), (1, 3), (3, 1), (1, 2), (2, 1), (1, 1),
)  # fmt: skip
ROWS_AT_LEAST = 48  # queries of one head from which on packing its keys pays off


def block_of(rows: int, columns: int, limit: int, most_rows: int = 8) -> tuple[int, int]:
    """Size in tiles of the subblocks of a matrix product: the first in BLOCKS that divides evenly."""
    for height, width in BLOCKS:
        fits = height * width <= limit and height <= most_rows
        if fits and rows % height == 0 and columns % width == 0:
            return height, width
    return 1, 1


@dataclass(frozen=True)
class Prefill:
    """A kernel with its settings.

    q_chunk, k_chunk  tiles of queries and of keys per chunk
    offset            position of the first query among the keys
    window            visible keys per query: up to the query if causal, else around it; 0 for all
    exp_approx        the exponential's mode in the program config
    width             tiles of a value
    streams           the streaming kernel, else the plain one
    bulk              dtype of the plain kernel's buffers of scores and of sums of exponentials
    """

    math: MathConfig
    scale: float
    out: DataType
    q_chunk: int
    k_chunk: int
    width: int
    causal: bool = False
    window: int = 0
    offset: int = 0
    exp_approx: bool = True
    streams: bool = True
    bulk: DataType = DataType.BFLOAT16

    # -- visible keys ---------------------------------------------------------------------------------------------

    def hidden(self, rows: torch.Tensor, columns: torch.Tensor, absent: torch.Tensor | None) -> torch.Tensor | None:
        """Which pairs of positions are masked: [rows, columns], or None if none is. `absent`: columns without keys."""
        row, column = rows.unsqueeze(-1), columns
        if self.causal:
            later = column > row
            return later | (column <= row - self.window) if self.window else later
        masked = absent if absent is not None and bool(absent.any()) else None
        if self.window:
            reach = self.window // 2
            outside = (column < row - reach) | (column > row + reach)
            return outside if masked is None else masked | outside
        return masked

    def chunks_of_keys(self, first: int, tiles: int, *, narrowed: bool) -> list[tuple[int, int]]:
        """First tile and number of tiles of the key chunks for the query chunk that starts at tile `first`.

        `narrowed`: without fully masked tiles, as in the streaming kernel.
        """
        step = self.k_chunk
        start, end = 0, -(-tiles // step)
        last = first + self.q_chunk
        if self.causal:
            end = min(end, -(-last // step))
        if self.window and narrowed:
            left = -(-(self.window - 1 if self.causal else self.window // 2) // TILE)
            start = max(first - left, 0) // step
            last += 0 if self.causal else -(-(self.window // 2) // TILE)
            end = min(end, -(-last // step))
        chunks = [(chunk * step, step) for chunk in range(start, end)]
        if narrowed and chunks:
            at = chunks[-1][0]
            count = step if self.causal else min(step, tiles - at)
            if (self.causal or self.window) and last > at:
                count = min(count, last - at)
            chunks[-1] = at, count
        return chunks


# -- entry ------------------------------------------------------------------------------------------------------------


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/transformer/sdpa/device/kernels/compute/compute_streaming.hpp,
#     sdpa_standard_v2
# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/transformer/sdpa/device/kernels/compute/compute_common.hpp, sdpa_standard
def attend(
    kernel: Prefill,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    *,
    mask: torch.Tensor | None = None,
    sink: torch.Tensor | None = None,
    absent: torch.Tensor | None = None,
    spans: Sequence[tuple[int, int]] | None = None,
) -> torch.Tensor:
    """softmax(scale × query keyᵀ + mask) value: [batch, heads, queries, …] each; keys and values may have fewer heads.

    mask    divided by the scale, because the kernels scale it with the scores
    sink    [heads]: the score of a key without a value
    absent  [keys]: which keys are padding
    spans   per query chunk, its range of key chunks
    """
    batch, heads, queries, _ = query.shape
    keys, width = key.shape[-2], value.shape[-1]
    work = batch * heads * queries * keys * (query.shape[-1] + width) * PHASES[kernel.math.fidelity] // PANEL_SPEED
    if not exactly(work + batch * heads * queries * keys * numeric.PASS):
        return whole_rows(kernel, query, key, value, mask, sink, absent)
    query, key, value = wide(query), wide(key), wide(value)
    mask, sink = (None if each is None else wide(each) for each in (mask, sink))
    key, value = (_per_query_head(each, batch, heads) for each in (key, value))
    tiles = -(-keys // TILE)
    padding = (-(-tiles // kernel.k_chunk) * kernel.k_chunk) * TILE - keys
    key, value = (torch.nn.functional.pad(each, (0, 0, 0, padding)) for each in (key, value))
    absent = torch.zeros(keys, dtype=torch.bool) if absent is None else absent
    absent = torch.nn.functional.pad(absent, (0, padding), value=True)
    if mask is not None:
        mask = torch.nn.functional.pad(mask, (0, padding), value=NEGATIVE_INFINITY)
    pieces = []
    for number, at in enumerate(range(0, queries, kernel.q_chunk * TILE)):
        rows = slice(at, min(at + kernel.q_chunk * TILE, queries))
        chunks = kernel.chunks_of_keys((kernel.offset + at) // TILE, tiles, narrowed=kernel.streams and mask is None)
        if spans is not None:
            chunks = [(each * kernel.k_chunk, kernel.k_chunk) for each in range(*spans[number])]
        part = None if mask is None else mask[..., rows, :]
        pieces.append(_rows(kernel, query[..., rows, :], key, value, part, sink, absent, chunks, at))
    return torch.cat(pieces, -2)


def _per_query_head(values: torch.Tensor, batch: int, heads: int) -> torch.Tensor:
    groups = heads // values.shape[1]
    values = values.expand(batch, *values.shape[1:])
    return values if groups == 1 else values.repeat_interleave(groups, 1)


def pack_out(kernel: Prefill, dest: torch.Tensor) -> torch.Tensor:
    return pack(dest, kernel.out, from_fp32=kernel.math.fp32_acc)


# -- large inputs -----------------------------------------------------------------------------------------------------


def whole_rows(
    kernel: Prefill,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    sink: torch.Tensor | None,
    absent: torch.Tensor | None = None,
) -> torch.Tensor:
    """Attention over all keys at once, in float32 wherever a sum needs no rounding; packed.

    Keys and values may have fewer heads than the queries.
    """
    batch, heads, queries, depth = query.shape
    keys, width = key.shape[-2], value.shape[-1]
    key, value = (_in_rows(each.expand(batch, *each.shape[1:])) for each in (key, value))
    query = _in_rows(query)
    simple = kernel.causal and not kernel.window
    if mask is None and not simple:
        hidden = kernel.hidden(torch.arange(queries) + kernel.offset, torch.arange(keys), absent)
        if hidden is not None:
            mask = torch.zeros(hidden.shape).masked_fill_(hidden, NEGATIVE_INFINITY).expand(1, 1, queries, keys)
    if mask is not None:
        mask = mask.float().expand(*mask.shape[:2], queries, keys)
        mask = mask if mask.stride(-1) == 1 else mask.contiguous()
    in_32_bits = kernel.math.fp32_acc
    fast = QUICK if in_32_bits else QUICK_NARROW
    function = ACCURATE if not kernel.streams and not kernel.exp_approx else fast
    slope = np.float32(float(steps.STEEPNESS) * kernel.scale)
    seen = seen_bits(kernel.math, (BFLOAT16_BITS, BFLOAT16_BITS))
    end = (
        (keys, depth, width),
        (*(each.stride(-2) for each in (query, key, value)), 0 if mask is None else mask.stride(-2) * 4),
        tuple(np.int32(NARROW_BITS if each.dtype is torch.bfloat16 else 0) for each in (query, key, value)),
        tuple(np.int32(each) for each in (seen[0], _seen_of_powers(seen[0]), seen[1])), MULTIPLIES_PAIRS,
        simple and mask is None, kernel.offset, (np.float32(kernel.scale), slope, np.float32(steps.OFFSET), function),
        (UNPACKED if kernel.out is not DataType.BFLOAT16 else ROUNDED if in_32_bits else CUT),
    )  # fmt: skip
    out = torch.empty(batch, heads, queries, width)
    scores = np.empty((0, 0), np.float32) if sink is None else _sinks(sink, batch, heads, queries)
    if queries <= attention_rows.MOST:
        _few(query, key, value, mask, scores, out, end)
        return pack_out(kernel, out) if kernel.out is not DataType.BFLOAT16 else out
    groups = [heads // each.shape[1] for each in (query, key, value)]  # latent keys have one head, values many
    work = queries * keys * (depth + width)
    least = max(queries * SMALL // max(work, 1), ROWS_AT_LEAST)
    pieces = []
    for item in range(batch):
        for head in range(heads):
            places = [
                *(_place(each, item, head // group) for each, group in zip((query, key, value), groups)),
                0 if mask is None else _place(mask, item, head),
            ]
            target = out.data_ptr() + out.element_size() * (item * out.stride(0) + head * out.stride(1))
            rows = cut(queries, least) if batch * heads < 2 * WORKERS else [(0, queries)]
            pieces += [(item * heads + head, *part, *places, scores, target, *end) for part in rows]
    share(kernels.attend, pieces)
    return pack_out(kernel, out) if kernel.out is not DataType.BFLOAT16 else out


def _few(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    scores: np.ndarray,
    out: torch.Tensor,
    end: tuple,
) -> None:
    """The same for a few queries of each head."""
    batch, heads, queries, _ = query.shape
    sizes, steps, shifts, masks, _, causal, offset, exp, packing = end
    places = [_steps(each, heads) for each in (query, key, value)]
    places.append((0, 0, (0, 1)) if mask is None else _steps(mask, heads))
    common = (
        *(tuple(np.int64(place[0]) for place in places), tuple(np.int64(place[1]) for place in places)),
        *(tuple((np.int64(place[2][0]), np.int64(place[2][1])) for place in places), heads, queries, scores),
        *(out.data_ptr(), sizes, steps, shifts, masks, causal, offset, exp, packing),
    )
    least = max(SMALL // (queries * sizes[0] * (sizes[1] + sizes[2])), 1)
    share(attention_rows.attend_few, [(*part, *common) for part in cut(batch * heads, least)])


def _steps(values: torch.Tensor, heads: int) -> tuple[int, int, tuple[int, int]]:
    """The address, the bytes from one item to the next, those from one head to the next, and how many share a head."""
    size = values.element_size()
    by_item, by_head = (size * step if count > 1 else 0 for count, step in zip(values.shape[:2], values.stride()[:2]))
    return values.data_ptr(), by_item, (by_head, heads // values.shape[1])


def _seen_of_powers(mask: int) -> int:
    """The bits of exponentials that the fidelity keeps: all if it keeps all of a bfloat16, since they stay float32."""
    return -1 if mask == int(UPPER_HALF) else mask


def _in_rows(values: torch.Tensor) -> torch.Tensor:
    """Matrices with contiguous rows; the stride between rows is arbitrary."""
    return values if values.stride(-1) == 1 else contiguous(values)


def _place(values: torch.Tensor, item: int, head: int) -> int:
    """The address of a head's matrix; dimensions of size 1 are broadcast."""
    by_batch, by_head = (step if size > 1 else 0 for size, step in zip(values.shape[:2], values.stride()[:2]))
    return values.data_ptr() + values.element_size() * (item * by_batch + head * by_head)


def _sinks(sink: torch.Tensor, batch: int, heads: int, queries: int) -> np.ndarray:
    """[heads], or [heads, queries], as [batch × heads, queries]."""
    each = sink.reshape(*sink.shape, *[1] * (2 - sink.dim())).float().expand(heads, queries)
    return np.ascontiguousarray(each.expand(batch, heads, queries).reshape(-1, queries).numpy())


# -- bit-exact --------------------------------------------------------------------------------------------------------


@dataclass
class _State:
    """What a kernel carries from one chunk of keys to the next."""

    largest: torch.Tensor
    total: torch.Tensor
    weighted: torch.Tensor


def _rows(
    kernel: Prefill,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    sink: torch.Tensor | None,
    absent: torch.Tensor,
    chunks: list[tuple[int, int]],
    at: int,
) -> torch.Tensor:
    """One chunk of queries, starting at query `at`, with its chunks of keys."""
    core = Core(kernel.math, True)
    one_chunk = _streamed_chunk if kernel.streams else _plain_chunk
    positions = torch.arange(at, at + query.shape[-2]) + kernel.offset
    state: _State | None = None
    for first, count in chunks:
        columns = slice(first * TILE, (first + count) * TILE)
        scores = _product(core, query, key[..., columns, :], transposed=True)
        mask_chunk = hidden = None
        if mask is not None:
            mask_chunk = mask[..., columns]
        else:
            hidden = kernel.hidden(positions, torch.arange(columns.start, columns.stop), absent[columns])
        state = one_chunk(kernel, core, state, scores, value[..., columns, :], mask_chunk, hidden)
    assert state is not None
    return _normalized(kernel, core, state, sink)


def _product(core: Core, a: torch.Tensor, b: torch.Tensor, *, transposed: bool = False) -> torch.Tensor:
    return matmul(a, b, core.config, transposed=transposed)


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/transformer/sdpa/device/kernels/compute/compute_streaming.hpp,
#     sdpa_inner_loop_step
def _streamed_chunk(
    kernel: Prefill,
    core: Core,
    before: _State | None,
    scores: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    hidden: torch.Tensor | None,
) -> _State:
    scores = core.packed(scores, NARROW)
    if mask is not None:
        scores = added_in_l1(scores, mask, NARROW)
    elif hidden is not None:
        scores = scores.masked_fill(hidden, NEGATIVE_INFINITY)
    largest = numeric.extreme(scores, -1, largest=True).unsqueeze(-1)
    if before is not None:
        largest = torch.maximum(before.largest, largest)
    powers = steps.score_powers(core.sub(scores, largest), kernel.scale, wide=False)
    powers = core.packed(powers, NARROW)
    total = steps.tile_sums(powers, NARROW)
    weighted = _weighted(kernel, core, powers, value)
    if before is None:
        return _State(largest, total, weighted)
    change = _change(kernel, core, before.largest, largest)
    weighted = added_in_l1(weighted, core.packed(core.mul(before.weighted, change), NARROW), NARROW)
    total = added_in_l1(total, core.packed(core.mul(before.total, change), NARROW), NARROW)
    return _State(largest, total, weighted)


def _weighted(kernel: Prefill, core: Core, powers: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Exponentials times values. The first tile rows are multiplied as soon as their exponentials are computed, a few
    tiles at a time, and accumulated in L1; the others in one product."""
    tiles = powers.shape[-1] // TILE
    _, score_width = block_of(kernel.q_chunk, kernel.k_chunk, DEST_TILES)
    if tiles % score_width:
        score_width = max(each for each in range(1, score_width + 1) if tiles % each == 0)
    height, width = block_of(kernel.q_chunk, kernel.width, DEST_TILES, 2)
    if height == 1 and 2 * width <= DEST_TILES and kernel.q_chunk >= 2:
        height = 2
    early = height * TILE
    pieces = replace(core.config, l1_acc=score_width < tiles, inner_block=score_width)
    first = matmul(powers[..., :early, :], value, pieces, all_in_l1=True)
    if powers.shape[-2] <= early:
        return core.packed(first, NARROW)
    rest = _product(core, powers[..., early:, :], value)
    return core.packed(torch.cat([first, rest], -2), NARROW)


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/transformer/sdpa/device/kernels/compute/compute_common.hpp, sdpa_inner_loop
def _plain_chunk(
    kernel: Prefill,
    core: Core,
    before: _State | None,
    scores: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    hidden: torch.Tensor | None,
) -> _State:
    bulk = kernel.bulk
    scores = core.packed(scores, bulk)
    if mask is not None:
        scores = core.packed(core.add(core.source(scores, bulk), mask), bulk)
    elif hidden is not None:
        # A causal mask is added in L1; for any other, the scores pass through the source registers.
        scores = scores if kernel.causal and not kernel.window else core.source(scores, bulk)
        scores = scores.masked_fill(hidden, NEGATIVE_INFINITY)
    seen = core.source(scores, bulk)
    largest = numeric.extreme(seen, -1, largest=True).unsqueeze(-1)
    if before is not None:
        largest = torch.maximum(before.largest, largest)
    largest = truncate_bf16(largest)
    powers = _score_powers(kernel, core, core.sub(seen, largest))
    total = steps.tile_sums(powers, bulk)
    weighted = core.packed(_product(core, core.source(powers, bulk), value), NARROW)
    if before is None:
        return _State(largest, total, weighted)
    change = _change(kernel, core, before.largest, largest)
    scaled = core.packed(core.mul(core.source(before.total, bulk), change), bulk)
    total = core.packed(core.add(core.source(total, bulk), core.source(scaled, bulk)), bulk)
    weighted = added_in_l1(weighted, core.packed(core.mul(before.weighted, change), NARROW), NARROW)
    return _State(largest, total, weighted)


def _score_powers(kernel: Prefill, core: Core, distance: torch.Tensor) -> torch.Tensor:
    powers = steps.score_powers(distance, kernel.scale, wide=core.wide, accurate=not kernel.exp_approx)
    return core.packed(powers, kernel.bulk)


def _change(kernel: Prefill, core: Core, before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    power = steps.maximum_powers(core.sub(before, after), kernel.scale, wide=core.wide, approx=kernel.exp_approx)
    return core.packed(power, NARROW)


# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/transformer/sdpa/device/kernels/compute/compute_streaming.hpp,
#     normalize_row_streaming
def _normalized(kernel: Prefill, core: Core, state: _State, sink: torch.Tensor | None) -> torch.Tensor:
    bulk = NARROW if kernel.streams else kernel.bulk
    total = _product(core, core.source(state.total, bulk), torch.ones(TILE, 1))
    weighted = state.weighted
    score = None if sink is None else sink.reshape(-1, 1, 1)
    if kernel.streams and score is not None:
        distance = core.sub(state.largest, score.expand_as(state.largest))
        power = steps.maximum_powers(distance, -kernel.scale, wide=False, approx=kernel.exp_approx)
        total = steps.added_in_register(total, power)
    elif not kernel.streams:
        total = core.packed(total, bulk)
        if score is not None:
            total, weighted = _with_sink(kernel, core, state, total, score)
        total = core.source(total, bulk)
    inverse = steps.inverses(total, wide=core.wide, approx=kernel.math.approx, streaming=kernel.streams)
    return pack_out(kernel, core.mul(weighted, core.through(inverse, bulk)))


def _with_sink(
    kernel: Prefill, core: Core, state: _State, total: torch.Tensor, score: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The sink as another chunk of keys, without values."""
    bulk = kernel.bulk
    largest = torch.maximum(state.largest, score)
    change = _change(kernel, core, state.largest, largest)
    scaled = core.packed(core.mul(core.source(total, bulk), change), bulk)
    power = _score_powers(kernel, core, core.sub(score.expand_as(largest), largest))
    total = core.packed(core.add(core.source(power, bulk), core.source(scaled, bulk)), bulk)
    return total, core.packed(core.mul(state.weighted, change), NARROW)


def scale_or_default(scale: float | None, width: int) -> float:
    """The scale as float32, as the kernels receive it; by default 1 ÷ √width."""
    if scale is not None:
        return float(np.float32(scale))
    return float(np.float32(1.0) / np.sqrt(np.float32(width))) if width else math.inf
