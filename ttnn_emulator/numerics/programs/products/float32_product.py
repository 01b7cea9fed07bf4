"""Large matrix products in float32, on wide or narrow carriers; see `kernels.products`.

Without the vector instructions that the compiled loops need, torch computes the product.
"""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ttnn_emulator.numerics.broadcasting import joined
from ttnn_emulator.numerics.formats.carriers import masked
from ttnn_emulator.numerics.kernels import few_row_products
from ttnn_emulator.numerics.kernels import products as kernels
from ttnn_emulator.numerics.kernels.packed_panels import NARROW, WIDE, length_of
from ttnn_emulator.numerics.kernels.product_endings import AS_IT_IS, end_rows
from ttnn_emulator.numerics.kernels.register_tiles.products import COLUMNS, ROWS
from ttnn_emulator.numerics.native import torch_threads
from ttnn_emulator.numerics.native.instruction_set import MULTIPLIES_FAST, MULTIPLIES_PAIRS
from ttnn_emulator.numerics.native.large_pages import in_large_pages
from ttnn_emulator.numerics.native.worker_threads import cut, share

BLOCK = 512  # columns of the right operand packed at a time
ALONE = 1 << 17  # values per thread when packing or rounding; with fewer, threads do not pay off
SMALL = 1 << 18  # multiplications below which one thread runs alone
READ = 1 << 21  # matrix values below which one thread runs alone, if each is used once or twice
TOGETHER = 1 << 18  # such values from which on torch's threads share the work, if they are awake
NARROW_RESULT, MANY_ROWS = 128, 256  # most columns and fewest rows for which work is split by rows …
NARROW_WORK = 1 << 24  # … with at least so many multiplications per piece
PAGE = 1024  # values; minimum distance between the buffers of two threads
SCRATCH = 1 << 20  # minimum values, so that an aligned huge page fits
LOWER_HALF = 0xFFFF  # bits of a float32 that a bfloat16 lacks
EMPTY = np.empty(0, np.float32)


def multiply(
    a: torch.Tensor,
    b: torch.Tensor,
    *,
    masks: tuple[int, int] = (-1, -1),
    bias: torch.Tensor | None = None,
    ending: int = AS_IT_IS,
    table: np.ndarray | None = None,
) -> torch.Tensor:
    """a [..., M, K] @ b [..., K, N], with any strides. `masks` are applied to the bits of each operand's values.

    bias    [N], added to every row
    ending  how sums are rounded; see `kernels.product_endings`
    table   lookup table of a function of the rounded sums
    """
    rows, inner = a.shape[-2:]
    columns = b.shape[-1]
    one = b.dim() == 2 or math.prod(b.shape[:-2]) == 1
    batch = a.shape[:-2] if one and a.dim() >= b.dim() else joined(a.shape[:-2], b.shape[:-2])
    out = torch.empty(*batch, rows, columns)
    if not out.numel():
        return out
    row = EMPTY if bias is None else _row(bias)
    function = EMPTY if table is None else table
    if not MULTIPLIES_FAST:
        torch.matmul(_seen(a, masks[0]), _seen(b, masks[1]), out=out)
        if ending != AS_IT_IS or bias is not None:
            end = (out.data_ptr(), columns, 0, columns, row, ending, function)
            share(end_rows, [(*part, *end) for part in cut(out.numel() // columns, ALONE // columns + 1)])
    elif one and a.shape[:-2] == batch:
        left = a if a.dim() == 2 else a.reshape(-1, inner)
        right = b if b.dim() == 2 else b.reshape(inner, columns)
        _matrices(left, right, out, masks, row, ending, function)
    elif bias is None and table is None:
        _batch(a.expand(*batch, rows, inner), b.expand(*batch, inner, columns), out, masks, ending)
    else:
        pairs = zip(_each(a.expand(*batch, rows, inner)), _each(b.expand(*batch, inner, columns)), _each(out))
        for left, right, target in pairs:
            _matrices(left, right, target, masks, row, ending, function)
    return out


def _row(bias: torch.Tensor) -> np.ndarray:
    values = bias if bias.dtype is torch.float32 else bias.float()
    return np.ascontiguousarray(values.numpy().reshape(-1))


def _each(values: torch.Tensor) -> torch.Tensor:
    return values.reshape(-1, *values.shape[-2:])


def _walkable(values: torch.Tensor) -> torch.Tensor:
    """The matrices with a stride of 1 in one dimension, in a dtype that the loops read."""
    if values.dtype is not torch.bfloat16:
        values = values.float()
    return values if values.is_contiguous() or 1 in values.stride()[-2:] else values.contiguous()


_SHIFTS = {torch.bfloat16: np.int32(NARROW), torch.float32: np.int32(WIDE)}


def _shift(values: torch.Tensor) -> np.int32:
    return _SHIFTS[values.dtype]


@functools.cache
def _mask(bits: int) -> np.int32:
    return np.int32(bits)


def multiplying(
    a: torch.Tensor,
    b: torch.Tensor,
    *,
    masks: tuple[int, int] = (-1, -1),
    bias: torch.Tensor | None = None,
    ending: int = AS_IT_IS,
    table: np.ndarray | None = None,
) -> tuple[Callable[[], Any], torch.Tensor] | None:
    """`multiply` of two matrices in fixed buffers: a function, and the buffer that it fills.

    None if they need to be copied first. `bias` is float32 and contiguous.
    """
    if (
        not MULTIPLIES_FAST
        or _walkable(a) is not a
        or _walkable(b) is not b
        or not a.shape[0] * a.shape[1] * b.shape[1]
    ):
        return None
    out = torch.empty(a.shape[0], b.shape[1])
    row = EMPTY if bias is None else _row(bias)
    if a.shape[0] <= few_row_products.MOST and b.numel() >= TOGETHER:
        return _rows_in_team(a, b, out, masks, row, ending, EMPTY if table is None else table), out
    arguments = (a, b, out, masks, row, ending, EMPTY if table is None else table)
    buffers: list[torch.Tensor] = []

    def allocate(count: int) -> int:
        buffers.append(torch.empty(count))
        return buffers[-1].data_ptr()

    return functools.partial(_run, _steps(*arguments, allocate, allocate), (buffers, arguments)), out


def _rows_in_team(
    a: torch.Tensor,
    b: torch.Tensor,
    out: torch.Tensor,
    masks: tuple[int, int],
    bias: np.ndarray,
    ending: int,
    table: np.ndarray,
) -> Callable[[], Any]:
    columns = b.shape[1]
    pieces = min(torch_threads.size(), -(-columns // few_row_products.TILE))
    step = -(-columns // (pieces * few_row_products.TILE)) * few_row_products.TILE
    shifts = int(_shift(a)) | int(_shift(b)) << 8
    seen = (masks[0] & 0xFFFFFFFF) | masks[1] << 32
    ends = (bias.ctypes.data, bias.size, table.ctypes.data, table.size)
    sizes, strides = (*a.shape, columns), (*a.stride(), *b.stride())
    task = (step, a.data_ptr(), b.data_ptr(), out.data_ptr(), ending, *ends, *sizes, *strides, shifts, seen)
    run = torch_threads.calling(few_row_products.multiply_pieces, pieces, task)
    return functools.partial(_call, run, (bias, table))


def _call(run: Callable[[], Any], alive: Any) -> None:
    run()


def _run(steps: list[Callable[[], Any]], alive: Any = None) -> None:
    for step in steps:
        step()


def _matrices(
    a: torch.Tensor,
    b: torch.Tensor,
    out: torch.Tensor,  # [..., columns], contiguous
    masks: tuple[int, int],
    bias: np.ndarray,
    ending: int,
    table: np.ndarray,
) -> None:
    a, b = _walkable(a), _walkable(b)
    _run(_steps(a, b, out, masks, bias, ending, table, _scratch.left, _scratch.right))


def _in_pairs(a: torch.Tensor, b: torch.Tensor, masks: tuple[int, int]) -> bool:
    """Whether both operands are multiplied as bfloat16, and the processor multiplies pairs of bfloat16."""
    return MULTIPLIES_PAIRS and all(
        each.dtype is torch.bfloat16 or not mask & LOWER_HALF for each, mask in zip((a, b), masks)
    )


def _steps(
    a: torch.Tensor,
    b: torch.Tensor,
    out: torch.Tensor,
    masks: tuple[int, int],
    bias: np.ndarray,
    ending: int,
    table: np.ndarray,
    room_for_left: Callable[[int], int],
    room_for_right: Callable[[int], int],
) -> list[Callable[[], Any]]:
    """The loops of a product, in order; `room_for_*` allocate the buffers for packed operands."""
    rows, inner = a.shape
    columns = b.shape[1]
    pairs = _in_pairs(a, b, masks)
    how = ((*a.stride(), *b.stride()), (_shift(a), _shift(b)), (_mask(masks[0]), _mask(masks[1])))
    if rows <= few_row_products.MOST:
        arguments = (a.data_ptr(), b.data_ptr(), (rows, inner, columns), *how, out.data_ptr(), bias, ending, table)
        parts = [(*part, *arguments) for part in cut(columns, max(READ // inner, 64))]
        return [functools.partial(share, few_row_products.multiply_rows, parts)]
    if columns <= NARROW_RESULT and rows >= MANY_ROWS and not bias.size and not table.size:
        step = a.element_size() * a.stride(0)
        pieces = [
            (0, 1, a.data_ptr() + first * step, b.data_ptr(), out.data_ptr() + 4 * first * columns, pairs,
             (last - first, inner, columns), (0, 0, 0), *how, ending)
            for first, last in cut(rows, max(NARROW_WORK // (inner * columns), ROWS))
        ]  # fmt: skip
        return [functools.partial(share, kernels.multiply_batches, pieces)]
    panels = -(-rows // ROWS)
    left = room_for_left(panels * ROWS * length_of(inner, pairs))
    count = min(torch_threads.size(), -(-panels * ROWS * inner // ALONE))
    operand = (a.data_ptr(), int(_shift(a)), masks[0], pairs, rows, inner, *a.stride())
    pack = torch_threads.calling(kernels.pack_left_pieces, count, (-(-panels // count), panels, *operand, left))
    step = _block(columns, rows * inner * columns)
    blocks = -(-columns // step)
    right = (b.data_ptr(), int(_shift(b)), masks[1], columns, *b.stride())
    end = (out.data_ptr(), ending, bias.ctypes.data, bias.size, table.ctypes.data, table.size)
    each = -(-kernels.room_for_right(min(columns, step), inner, pairs) // PAGE) * PAGE
    scratch = room_for_right(each * min(torch_threads.size(), blocks))
    task = (step, left, pairs, rows, inner, *right, *end, scratch, 4 * each)
    return [pack, torch_threads.calling(kernels.multiply_pieces, blocks, task)]


class _Scratch(threading.local):
    """Per-thread buffers for packed operands; reused memory is allocated and in the caches."""

    def __init__(self) -> None:
        self._buffers = [torch.empty(0), torch.empty(0)]

    def left(self, count: int) -> int:
        return self._of(0, count)

    def right(self, count: int) -> int:
        return self._of(1, count)

    def _of(self, which: int, count: int) -> int:
        if self._buffers[which].numel() < count:
            self._buffers[which] = in_large_pages(torch.empty(max(count, SCRATCH)))
        return self._buffers[which].data_ptr()


_scratch = _Scratch()


def _block(columns: int, work: int) -> int:
    """Columns per piece."""
    if work <= SMALL:
        return columns
    parts = max(-(-columns // BLOCK), min(2 * torch_threads.size(), columns // COLUMNS), 1)
    if parts > torch_threads.size():
        parts = -(-parts // torch_threads.size()) * torch_threads.size()  # else some threads idle at the end
    return -(-columns // (parts * COLUMNS)) * COLUMNS


def _batch(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, masks: tuple[int, int], ending: int) -> None:
    a, b = (_walkable(_each(values)) for values in (a, b))
    count, rows, inner = a.shape
    columns = b.shape[-1]
    steps = tuple(values.stride(0) * values.element_size() for values in (a, b, out.view(-1, rows, columns)))
    arguments = (
        a.data_ptr(), b.data_ptr(), out.data_ptr(), _in_pairs(a, b, masks), (rows, inner, columns), steps,
        (*a.stride()[1:], *b.stride()[1:]), (_shift(a), _shift(b)), (_mask(masks[0]), _mask(masks[1])), ending,
    )  # fmt: skip
    least = max(SMALL // (rows * inner * columns), 1)
    share(kernels.multiply_batches, [(*part, *arguments) for part in cut(count, least)])


def _seen(values: torch.Tensor, mask: int) -> torch.Tensor:
    """An operand for torch's product, masked."""
    return values.float() if mask == -1 else masked(values, mask)
