"""Key-value caches updated in place: whole, by rows, by pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ttnn_emulator.conformance.case import (
    DTYPES,
    FULL_PRECISION,
    STORABLE,
    Case,
    T,
    block_sharded,
    call,
    height_sharded,
    product,
    width_sharded,
)

CACHE = (4, 2, 128, 64)
UPDATE = "ttnn.experimental.paged_update_cache"
FUSED = "ttnn.experimental.paged_fused_update_cache"
FILL = "ttnn.experimental.paged_fill_cache"
INDEXED = "ttnn.experimental.indexed_fused_update_cache"


def cases() -> Iterator[Case]:
    for op in ("ttnn.fill_cache", "ttnn.kv_cache.fill_cache_for_user_"):
        yield from fill(op)
    for op in ("ttnn.update_cache", "ttnn.kv_cache.update_cache_for_token_"):
        yield from update(op)
    yield from paged_update()
    yield from paged_update_pages()
    yield from paged_fused()
    yield from paged_fill()
    yield from indexed()


def fill(op: str) -> Iterator[Case]:
    cache = T(CACHE)
    for dtype, layout in STORABLE:
        yield call(op, T(CACHE, dtype, layout), T((1, 2, 64, 64), dtype, layout), 1)
        yield call(op, cache, T((1, 2, 64, 64), dtype, layout), 1)
    for user in (0, 3, 4, -1):
        yield call(op, cache, T((1, 2, 50, 64)), user)
    for position, length in product((0, 10, 32, 96, 128, 160), (32, 64, 128)):
        yield call(op, cache, T((1, 2, length, 64)), 1, update_idx=position)
    for shape in ((1, 2, 160, 64), (2, 2, 64, 64), (1, 1, 64, 64), (1, 2, 64, 32), (2, 64, 64), (64, 64)):
        yield call(op, cache, T(shape), 0)
    for mem in (
        "L1",
        height_sharded([64, 64], 2),
        height_sharded([32, 64], 4),
        height_sharded([128, 64], 1),
        width_sharded([128, 32], 2),
        block_sharded([64, 32], (2, 2)),
        block_sharded([64, 64], (1, 2)),
    ):
        yield call(op, cache, T((1, 2, 64, 64), mem=mem), 2)
    for mem in ("L1", height_sharded([128, 64], 8), width_sharded([1024, 32], 2)):
        yield call(op, T(CACHE, mem=mem), T((1, 2, 64, 64)), 2)
    yield call(op, T((4, 2, 100, 50)), T((1, 2, 40, 50)), 2)
    yield call(op, T((2, 128, 64)), T((1, 64, 64)), 0)
    yield call(op, T(CACHE, host=True), T((1, 2, 64, 64)), 0)
    yield call(op, cache, T((1, 2, 64, 64), host=True), 0)
    yield call(op, cache, T((1, 2, 64, 64)))
    yield call(op, cache, T((1, 2, 64, 64)), 0.5)


def update(op: str) -> Iterator[Case]:
    cache = T(CACHE)
    for (dtype, layout), other in product(STORABLE, ("bfloat16", "bfloat8_b")):
        yield call(op, T(CACHE, dtype, layout), T((1, 2, 32, 64), other), 5)
        yield call(op, T(CACHE, other), T((1, 2, 32, 64), dtype, layout), 5)
    for position in (0, 31, 100, 127, 128, 1000, -1):
        yield call(op, cache, T((1, 2, 32, 64)), position)
    for users, offset in product((1, 4, 16, 31, 32, 64), (0, 1, 16, 30)):
        yield call(op, T((users, 2, 64, 64)), T((1, 2, 64 if users > 32 else 32, 64)), 7, batch_offset=offset)
    for shape in ((1, 2, 4, 64), (1, 2, 3, 64), (2, 2, 32, 64), (1, 1, 32, 64), (1, 2, 32, 96), (32, 64), (2, 32, 64)):
        yield call(op, cache, T(shape), 0)
    yield call(op, T((40, 2, 64, 64)), T((1, 2, 32, 64)), 0)
    for mem in (
        "L1",
        height_sharded([32, 64], 2),
        height_sharded([64, 64], 1),
        width_sharded([64, 32], 2),
        block_sharded([32, 32], (2, 2)),
        block_sharded([32, 64], (1, 2)),
    ):
        yield call(op, cache, T((1, 2, 32, 64), mem=mem), 2)
    for mem in ("L1", height_sharded([128, 64], 8)):
        yield call(op, T(CACHE, mem=mem), T((1, 2, 32, 64)), 2)
    yield call(op, cache, T((1, 2, 32, 64)), 2, compute_kernel_config=FULL_PRECISION)
    yield call(op, T(CACHE, host=True), T((1, 2, 32, 64)), 0)
    yield call(op, cache, T((1, 2, 32, 64)))


def users(count: int, heads: int, width: int, dtype: str = "bfloat16", **placed: Any) -> Case:
    """One token per user, each on its own core."""
    rows = -(-heads // 32) * 32
    mem = {**height_sharded([rows, width], placed.get("cores", count)), **placed.get("at", {})}
    return T((1, count, heads, width), dtype, mem=mem)


def index(count: int, dtype: str = "int32", layout: str = "ROW_MAJOR", mem: Any = "DRAM") -> Case:
    return T((count,), dtype, layout, mem)


def table(rows: int, columns: int, dtype: str = "int32", layout: str = "ROW_MAJOR", mem: Any = "DRAM") -> Case:
    return T((rows, columns), dtype, layout, mem)


def paged_update() -> Iterator[Case]:
    cache = T(CACHE)
    for dtype, layout in STORABLE:
        yield call(UPDATE, T(CACHE, dtype, layout), users(4, 2, 64), update_idxs=[0, 5, 64, 127])
        if layout == "TILE":
            yield call(UPDATE, cache, users(4, 2, 64, dtype), update_idxs=[0, 5, 64, 127])
    for count, heads in product((1, 4, 8), (1, 2, 8, 40)):
        tensor = T((count, heads, 64, 64))
        yield call(UPDATE, tensor, users(count, heads, 64), update_idxs=[3] * count)
        yield call(UPDATE, tensor, users(count, heads, 64), update_idxs_tensor=index(count))
        yield call(UPDATE, T((1, heads, 64, 64)), users(count, heads, 64), update_idxs=[3] * count, share_cache=True)
    good = {"update_idxs": [0, 1, 2, 3]}
    for tensor in (
        users(4, 2, 32),
        users(3, 2, 64),
        users(4, 2, 64, cores=5),
        users(4, 2, 64, at={"orient": "COL_MAJOR"}),
        T((1, 4, 2, 64)),
        T((1, 4, 2, 64), host=True),
        T((1, 4, 2, 64), layout="ROW_MAJOR", mem=height_sharded([2, 64], 4)),
        T((1, 4, 2, 64), mem=width_sharded([128, 32], 2)),
        T((1, 4, 2, 64), mem=block_sharded([64, 32], (2, 2))),
        T((1, 4, 2, 64), mem=height_sharded([64, 64], 2)),
        T((2, 2, 2, 64), mem=height_sharded([32, 64], 4)),
        T((4, 2, 64), mem=height_sharded([32, 64], 4)),
    ):
        yield call(UPDATE, cache, tensor, **good)
    for indices in ([], [0], [0, 1, 2, 3, 4], [0, 1, 2, -1], [5000] * 4):
        yield call(UPDATE, cache, users(4, 2, 64), update_idxs=indices)
    for tensor in (
        index(3),
        index(4, "uint32"),
        index(4, mem="L1"),
        T((1, 4), "int32", "ROW_MAJOR"),
        T((4, 4), "int32", "ROW_MAJOR", height_sharded([1, 4], 4)),
        T((3, 4), "int32", "ROW_MAJOR", height_sharded([1, 4], 4)),
        T((4, 3), "int32", "ROW_MAJOR", height_sharded([1, 3], 4)),
        T((32, 32), "int32"),
    ):
        yield call(UPDATE, cache, users(4, 2, 64), update_idxs_tensor=tensor)
    yield call(UPDATE, cache, users(4, 2, 64), update_idxs_tensor=index(4), **good)
    yield call(UPDATE, cache, users(4, 2, 64))
    for extra in (
        {"share_cache": True},
        {"share_cache": False},
        {"batch_offset": 1},
        {"block_size": 64},
        {"num_kv_heads": 2},
        {"cache_position_modulo": 64},
        {"compute_kernel_config": FULL_PRECISION},
    ):
        yield call(UPDATE, cache, users(4, 2, 64), **good, **extra)
    for mem in ("L1", height_sharded([128, 64], 8)):
        yield call(UPDATE, T(CACHE, mem=mem), users(4, 2, 64), **good)
    yield call(UPDATE, T(CACHE, host=True), users(4, 2, 64), **good)
    yield call(UPDATE, T((4, 2, 100, 50)), users(4, 2, 64), **good)


def paged_update_pages() -> Iterator[Case]:
    pages = T((16, 2, 64, 64))
    good = {"update_idxs_tensor": index(4), "page_table": table(4, 8)}
    for dtype in DTYPES:
        yield call(UPDATE, T((16, 2, 64, 64), dtype), users(4, 2, 64), **good)
    for tensor in (
        table(4, 16),
        table(4, 17),
        table(3, 8),
        table(4, 8, "uint32"),
        table(4, 8, "uint16"),
        table(32, 32, layout="TILE"),
        table(4, 8, mem="L1"),
        table(16, 8, "uint16", mem=height_sharded([4, 8], 4)),
        table(16, 8, "int32", mem=height_sharded([4, 8], 4)),
        table(4, 8, "uint16", mem=height_sharded([1, 8], 4)),
    ):
        yield call(UPDATE, pages, users(4, 2, 64), update_idxs_tensor=index(4), page_table=tensor)
    for extra in (
        {"share_cache": True},
        {"block_size": 128},
        {"block_size": 32},
        {"block_size": 128, "num_kv_heads": 1},
        {"block_size": 32, "num_kv_heads": 4},
        {"num_kv_heads": 4},
        {"block_size": 16, "num_kv_heads": 8},
        {"cache_position_modulo": 64},
        {"cache_position_modulo": 512},
        {"cache_position_modulo": 2048},
        {"cache_position_modulo": 100},
        {"cache_position_modulo": 0},
        {"batch_offset": 2},
    ):
        yield call(UPDATE, pages, users(4, 2, 64), **good, **extra)
    yield call(UPDATE, pages, users(4, 2, 32), **good)
    yield call(UPDATE, pages, users(4, 2, 128), num_kv_heads=1, **good)
    yield call(UPDATE, pages, users(4, 2, 128), block_size=32, **good)
    yield call(UPDATE, pages, users(4, 2, 64), update_idxs=[0, 1, 2, 3], page_table=table(4, 8))
    yield call(UPDATE, T((16, 2, 50, 64)), users(4, 2, 64), **good)


def second(count: int, heads: int, width: int, dtype: str = "bfloat16", row: int = 1) -> Case:
    return users(count, heads, width, dtype, at={"grid": [[0, row, count - 1, row]]})


def paged_fused() -> Iterator[Case]:
    cache, good = T(CACHE), {"update_idxs": [0, 5, 64, 127]}
    for dtype, layout in STORABLE:
        changed = T(CACHE, dtype, layout)
        yield call(FUSED, changed, users(4, 2, 64), changed, second(4, 2, 64), **good)
        yield call(FUSED, cache, users(4, 2, 64), changed, second(4, 2, 64), **good)
        if layout == "TILE":
            yield call(FUSED, cache, users(4, 2, 64, dtype), cache, second(4, 2, 64, dtype), **good)
    for count, heads in product((1, 4, 8), (1, 8, 40)):
        tensor = T((count, heads, 64, 64))
        pair = (users(count, heads, 64), second(count, heads, 64))
        yield call(FUSED, tensor, pair[0], tensor, pair[1], update_idxs=[3] * count)
        yield call(FUSED, tensor, pair[0], tensor, pair[1], update_idxs_tensor=index(count))
        shared = T((1, heads, 64, 64))
        yield call(FUSED, shared, pair[0], shared, pair[1], update_idxs=[3] * count, share_cache=True)
    for first, other in (
        (users(4, 2, 64), users(4, 2, 64)),
        (users(4, 2, 64), second(4, 2, 32)),
        (users(4, 2, 64), T((1, 4, 2, 64))),
        (
            users(4, 2, 64),
            T((1, 4, 2, 64), layout="ROW_MAJOR", mem={**height_sharded([2, 64], 4), "grid": [[0, 1, 3, 1]]}),
        ),
        (T((1, 4, 2, 64), mem=width_sharded([128, 32], 2)), second(4, 2, 64)),
        (users(4, 2, 64, at={"orient": "COL_MAJOR"}), second(4, 2, 64)),
        (users(4, 2, 64, cores=5), second(4, 2, 64)),
        (users(3, 2, 64), second(3, 2, 64)),
    ):
        yield call(FUSED, cache, first, cache, other, **good)
    rows = [
        T((1, 4, 8, 128), layout="ROW_MAJOR", mem={**height_sharded([8, 128], 4), "grid": [[0, y, 3, y]]})
        for y in (0, 1)
    ]
    wide = T((4, 8, 64, 128))
    yield call(FUSED, wide, rows[0], wide, rows[1], **good)
    yield call(FUSED, wide, rows[0], wide, second(4, 8, 128), **good)
    for extra in ({"share_cache": True}, {"batch_offset": 1}, {"compute_kernel_config": FULL_PRECISION}):
        yield call(FUSED, cache, users(4, 2, 64), cache, second(4, 2, 64), **good, **extra)
    yield call(FUSED, cache, users(4, 2, 64), cache, second(4, 2, 64))
    yield call(FUSED, cache, users(4, 2, 64), T((3, 2, 128, 64)), second(4, 2, 64), **good)
    pages = T((16, 2, 64, 64))
    for tensor in (table(4, 8), table(4, 17), table(3, 8), table(4, 8, "uint32"), table(4, 8, mem="L1")):
        pair = (users(4, 2, 64), second(4, 2, 64))
        yield call(FUSED, pages, pair[0], pages, pair[1], update_idxs_tensor=index(4), page_table=tensor)
        yield call(FUSED, pages, pair[0], pages, pair[1], update_idxs=[0, 1, 2, 3], page_table=tensor)


def paged_fill() -> Iterator[Case]:
    pages, numbers = T((16, 2, 64, 64)), table(4, 8)
    for dtype, layout in STORABLE:
        yield call(FILL, T((16, 2, 64, 64), dtype, layout), T((1, 2, 128, 64), dtype, layout), numbers)
        yield call(FILL, pages, T((1, 2, 128, 64), dtype, layout), numbers)
        yield call(FILL, T((16, 2, 64, 64), "bfloat8_b"), T((1, 2, 128, 64), dtype, layout), numbers)
    for user in (0, 3, 4, -1):
        yield call(FILL, pages, T((1, 2, 50, 64)), numbers, batch_idx=user)
    for length in (1, 512, 513, 600):
        yield call(FILL, pages, T((1, 2, length, 64)), numbers)
    for shape in ((2, 2, 128, 64), (1, 1, 128, 64), (1, 2, 128, 32), (1, 4, 128, 32), (1, 1, 128, 128), (2, 128, 64)):
        yield call(FILL, pages, T(shape), numbers)
    for size, shape in product((32, 64, 128, 16), ((1, 4, 128, 64), (1, 1, 128, 64), (1, 2, 128, 64))):
        yield call(FILL, pages, T(shape), numbers, block_size=size)
    for modulo, length in product((0, 32, 64, 100, 128, 512, 1024), (128, 640)):
        yield call(FILL, pages, T((1, 2, length, 64)), numbers, cache_position_modulo=modulo)
    for tensor in (
        table(4, 8, "uint32"),
        table(4, 8, "uint16"),
        table(4, 7),
        table(4, 3),
        table(4, 8, mem="L1"),
        table(4, 8, mem=height_sharded([1, 8], 4)),
        table(4, 8, layout="TILE"),
        T((4, 8), "int32", "ROW_MAJOR", host=True),
    ):
        yield call(FILL, pages, T((1, 2, 128, 64)), tensor)
    for count, tensor in product(
        (1, 2),
        (index(1), index(2), index(2, "uint32"), index(2, "uint16"), index(2, mem="L1"), T((2,), "int32"), index(3)),
    ):
        yield call(FILL, pages, T((count, 2, 128, 64)), numbers, batch_idx_tensor=tensor)
    for tensor, modulo in product(
        (index(1), index(2), index(1, "uint32"), index(1, "uint16"), index(1, mem="L1")), (None, 128)
    ):
        kwargs = {"valid_seq_len_tensor": tensor, "cache_position_modulo": modulo}
        yield call(FILL, pages, T((1, 2, 256, 64)), numbers, **kwargs)
    for mem in ("L1", height_sharded([64, 64], 4)):
        yield call(FILL, pages, T((1, 2, 128, 64), mem=mem), numbers)
    for mem in ("L1", height_sharded([64, 64], 32)):
        yield call(FILL, T((16, 2, 64, 64), mem=mem), T((1, 2, 128, 64)), numbers)
    yield call(FILL, T((16, 2, 50, 64)), T((1, 2, 128, 64)), numbers)
    yield call(FILL, T((16, 2, 64, 64), host=True), T((1, 2, 128, 64)), numbers)
    yield call(FILL, pages, T((1, 2, 128, 64), host=True), numbers)
    yield call(FILL, pages, T((1, 2, 128, 64)), numbers, compute_kernel_config=FULL_PRECISION)
    yield call(FILL, pages, T((1, 2, 128, 64)))


def indexed() -> Iterator[Case]:
    shapes = ((4, 2, 64, 64), (1, 2, 8, 64))
    numbers = T((1, 8), "int32", "ROW_MAJOR")

    def pair(cache: Any, given: Any, positions: Any = numbers) -> Case:
        return call(INDEXED, cache, given, cache, given, positions)

    for dtype, layout in STORABLE:
        yield pair(T(shapes[0], dtype, layout), T(shapes[1], dtype, layout))
        yield pair(T(shapes[0]), T(shapes[1], dtype, layout))
        yield pair(T(shapes[0]), T(shapes[1]), T((1, 8), dtype, layout))
    for count in (1, 7, 8, 9, 256, 257, 300):
        yield pair(T(shapes[0]), T(shapes[1]), T((1, count), "int32", "ROW_MAJOR"))
        yield pair(T(shapes[0]), T((1, 2, count, 64)), T((1, count), "int32", "ROW_MAJOR"))
    for cache, given in product(
        ((4, 2, 64, 64), (4, 2, 32, 96), (4, 2, 50, 64), (1, 1, 64, 50), (8, 64, 64)), ((1, 2, 8, 64), (1, 2, 8, 96))
    ):
        yield pair(T(cache), T(given))
    for given in ((2, 2, 8, 64), (1, 1, 8, 64), (1, 2, 0, 64), (2, 8, 64), (8, 64), (1, 2, 1, 64)):
        yield pair(T(shapes[0]), T(given))
    for positions in (
        T((8,), "int32", "ROW_MAJOR"),
        T((2, 8), "int32", "ROW_MAJOR"),
        T((1, 1, 8), "int32", "ROW_MAJOR"),
    ):
        yield pair(T(shapes[0]), T(shapes[1]), positions)
    for mem in ("L1", height_sharded([64, 64], 8)):
        yield pair(T(shapes[0], mem=mem), T(shapes[1]))
    for mem in ("L1", height_sharded([32, 64], 2)):
        yield pair(T(shapes[0]), T(shapes[1], mem=mem))
    yield pair(T(shapes[0]), T(shapes[1]), T((1, 8), "int32", "ROW_MAJOR", "L1"))
    for other in (T(shapes[0], mem="L1"), T((4, 2, 32, 64)), T(shapes[0], "float32"), T(shapes[0], host=True)):
        yield call(INDEXED, T(shapes[0]), T(shapes[1]), other, T(shapes[1]), numbers)
    for other in (T(shapes[1], mem="L1"), T((1, 2, 4, 64)), T(shapes[1], "float32"), T(shapes[1], host=True)):
        yield call(INDEXED, T(shapes[0]), T(shapes[1]), T(shapes[0]), other, numbers)
    yield call(INDEXED, T(shapes[0]), T(shapes[1]), T(shapes[0]), T(shapes[1]))
