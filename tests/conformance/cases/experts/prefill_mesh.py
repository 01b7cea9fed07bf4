"""Operations of chunked prefill on a mesh of two chips, over which a sequence is distributed cyclically."""

from __future__ import annotations

from collections.abc import Iterator

from ttnn_emulator.conformance.case import DTYPES, LAYOUTS, Case, M, T, call, product

BOARD = "n300"
PREFILL = "ttnn.experimental.deepseek_prefill"


def cases() -> Iterator[Case]:
    yield from caches()
    yield from rotary()
    yield from offsets()


def caches() -> Iterator[Case]:
    op, cache, chunk = f"{PREFILL}.update_padded_kv_cache", T((4, 1, 256, 64)), T((1, 1, 128, 64))
    for axis, start in product((0, 1, None), (0, 128, 256, 288, 384)):
        yield call(op, cache, chunk, 0, 0, 2, start, axis)
    for start, (axis, other) in product((0, 128, 384, 416), ((0, 1), (1, 0), (1, 1))):
        yield call(op, cache, chunk, 0, 0, 2, start, axis, tp_axis=other)
    for start, valid in ((384, 500), (384, 512), (384, 513), (0, 257), (128, 100)):
        yield call(op, cache, chunk, 0, 0, 2, start, 1, valid)
    yield call(op, T((4, 2, 256, 64)), T((1, 2, 128, 64)), 0, 0, 2, 0, 0, tp_axis=1)
    for rows in (64, 96, 32):
        yield call(op, T((4, 1, 96, 64)), T((1, 1, rows, 64)), 0, 0, 2, 0, 0, tp_axis=1)
    op = f"{PREFILL}.zero_padded_kv_cache"
    for axis, chunk_rows, valid in product((0, 1), (128, 256, 192), (0, 100, 300, 512, 513)):
        yield call(op, cache, 0, 0, 2, valid, chunk_rows, axis, 64)


def rotary() -> Iterator[Case]:
    op, x, turn = f"{PREFILL}.rotary_embedding_indexed", T((1, 2, 128, 64)), T((1, 1, 32, 32))
    for rows, axis, position in product((128, 256, 512), (0, 1), (0, 32, 128, 256, 288)):
        cos = T((1, 1, rows, 64))
        yield call(op, x, cos, cos, turn, position, axis)
        yield call(op, x, cos, cos, turn, position, axis, seq_subshard_axis=1 - axis)


def offsets() -> Iterator[Case]:
    op, counts = f"{PREFILL}.offset_cumsum", T((1, 64), "uint32", "ROW_MAJOR")
    for axis, group in product((0, 1, 2), (0, 1, 7, 8, 64)):
        yield call(op, counts, axis, 1, group, M("DRAM"))
    for dtype, layout in product(DTYPES, LAYOUTS):
        if layout == "TILE" or not dtype.endswith("_b"):
            yield call(op, T((1, 64), dtype, layout), 1, 1, 8, M("DRAM"))
    for shape in ((64,), (1, 1, 64), (1, 6), (1, 256)):
        yield call(op, T(shape, "uint32", "ROW_MAJOR"), 1, 1, 2, M("DRAM"))
    yield call(op, counts, 1, 1, 8, M("L1"))
    yield call(op, counts, 1, 1, 8, M("DRAM"), True)
    yield call(op, T((1, 64), "uint32", "ROW_MAJOR", "L1"), 1, 1, 8, M("DRAM"))
    yield call(op, T((1, 64), "uint32", "ROW_MAJOR", host=True), 1, 1, 8, M("DRAM"))
    yield call(op, counts, 1, 1, -8, M("DRAM"))
