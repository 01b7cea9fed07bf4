"""Reading and writing by index: gather, scatter, fills, embeddings, nonzero, isin."""

from __future__ import annotations

from collections.abc import Iterator

from ttnn_emulator.conformance.case import (
    DTYPES,
    LAYOUTS,
    STORABLE,
    Case,
    E,
    G,
    M,
    T,
    block_sharded,
    call,
    height_sharded,
    product,
    sharded_inputs,
    width_sharded,
)

# Block floats exist in TILE layout only.
WITHOUT_SHARDS = {"layout": "HEIGHT_SHARDED", "buffer": "L1"}


def cases() -> Iterator[Case]:
    for family in (gather, scatter, scatter_add, index_fill, indexed_fill, tosa, nonzero, moreh_getitem):
        yield from family()
    for family in (embedding, embedding_bw, isin, plus_one):
        yield from family()


def gather() -> Iterator[Case]:
    op = "ttnn.gather"
    shapes = ((64,), (5, 33), (3, 45, 70), (1, 1, 64, 96), (2, 3, 17, 40), (1, 2, 3, 5, 33), (2, 2, 2, 2, 4, 6))
    for shape, layout in product(shapes, LAYOUTS):
        for dim in (-1, 0, len(shape) - 1):
            yield call(op, T(shape, layout=layout), dim, T(shape, "uint32", layout))
        smaller = [max(size - 1, 1) for size in shape]
        yield call(op, T(shape, layout=layout), -1, T(smaller, "uint32", layout))
        yield call(op, T(smaller, layout=layout), -1, T(shape, "uint32", layout))
    for dtype, layout in STORABLE:
        yield call(op, T((4, 32, 64), dtype, layout), 2, T((4, 32, 64), "uint32", layout))
        yield call(op, T((4, 32, 64), layout=layout), 1, T((4, 32, 64), dtype, layout))
    for dim in (3, -4, 5):
        yield call(op, T((4, 5, 6)), dim, T((4, 5, 6), "uint16"))
    yield call(op, T((4, 5)), 0, T((4, 5), "uint16", "ROW_MAJOR"))
    yield call(op, T((4, 5)), 0, T((1, 4, 5), "uint16"))
    yield call(op, T((4, 5)), 0, T((4, 5), "uint16", host=True))
    yield call(op, T((4, 5), host=True), 0, T((4, 5), "uint16"))
    yield call(op, T((4, 5)), 0, T((4, 5), "uint16"), sparse_grad=True)
    yield call(op, T(()), 0, T((), "uint16"))
    for memory in ("DRAM", "L1", height_sharded([32, 64], 4), WITHOUT_SHARDS):
        yield call(op, T((128, 64)), 1, T((128, 64), "uint16"), memory_config=M(memory))
    for out in (T((128, 64)), T((128, 64), mem="L1"), T((64, 64)), T((128, 64), "float32")):
        yield call(op, T((128, 64)), 1, T((128, 64), "uint16"), out=out)
    for source in sharded_inputs():
        yield call(op, source, 3, T((1, 1, 128, 128), "uint16"))
        yield call(op, source, 2, T((1, 1, 128, 128), "uint16"))
    for source in sharded_inputs("uint16"):
        yield call(op, T((1, 1, 128, 128)), 3, source)
    yield call(op, T((2, 4096)), 1, T((2, 64), "uint32"))
    yield call(op, T((2, 64)), 1, T((2, 4096), "uint32"))
    yield call(op, T((32, 64)), 1, T((32, 64), "uint16"), sub_core_grids=G([0, 0, 1, 1]))


def scatter() -> Iterator[Case]:
    op = "ttnn.scatter"
    shapes = ((64,), (5, 33), (3, 45, 70), (1, 1, 64, 96), (2, 3, 17, 40), (1, 2, 3, 5, 33))
    for shape, layout in product(shapes, LAYOUTS):
        for dim in (-1, 0):
            yield call(op, T(shape, layout=layout), dim, T(shape, "int32", layout), T(shape, layout=layout))
        smaller = [max(size - 1, 1) for size in shape]
        yield call(op, T(shape, layout=layout), -1, T(smaller, "int32", layout), T(shape, layout=layout))
        yield call(op, T(shape, layout=layout), -1, T(shape, "int32", layout), T(smaller, layout=layout))
        yield call(op, T(smaller, layout=layout), -1, T(shape, "int32", layout), T(shape, layout=layout))
    for dtype, layout in STORABLE:
        source = T((4, 32, 64), dtype, layout)
        yield call(op, source, 2, T((4, 32, 64), "int32", layout), source)
        yield call(op, T((4, 32, 64), layout=layout), 1, T((4, 32, 64), dtype, layout), T((4, 32, 64), layout=layout))
        yield call(op, T((4, 32, 64), layout=layout), 2, T((4, 32, 64), "int32", layout), source)
    for reduce in ("add", "multiply", "amax", "amin", "mean", "ADD", ""):
        for dtype in ("bfloat16", "int32", "float32"):
            source = T((4, 32, 64), dtype, "ROW_MAJOR")
            yield call(op, source, 2, T((4, 32, 64), "int32", "ROW_MAJOR"), source, reduce=reduce)
    long = T((2, 300), "int32")
    yield call(op, long, 1, T((2, 300), "int32", "ROW_MAJOR"), long)
    yield call(op, long, 0, T((2, 300), "int32", "ROW_MAJOR"), long)
    yield call(op, T((2, 300)), 1, long, T((2, 300)))
    small = T((4, 5))
    for dim in (2, -3):
        yield call(op, small, dim, T((4, 5), "int32"), small)
    yield call(op, small, 0, T((1, 4, 5), "int32"), small)
    yield call(op, small, 0, T((4, 5), "int32"), T((1, 4, 5)))
    yield call(op, T((4, 5), host=True), 0, T((4, 5), "int32"), small)
    yield call(op, small, 0, T((4, 5), "int32", host=True), small)
    yield call(op, T(()), 0, T((), "int32"), T(()))
    for memory in ("DRAM", "L1", height_sharded([32, 64], 4), WITHOUT_SHARDS):
        source = T((128, 64), layout="ROW_MAJOR")
        yield call(op, source, 1, T((128, 64), "int32", "ROW_MAJOR"), source, memory_config=M(memory))
    for source in sharded_inputs():
        yield call(op, source, 3, T((1, 1, 128, 128), "int32"), T((1, 1, 128, 128)))
    yield call(op, small, 0, T((4, 5), "int32"), small, sub_core_grids=G([0, 0, 1, 1]))


def scatter_add() -> Iterator[Case]:
    op = "ttnn.scatter_add"
    for shape, layout in product(((64,), (5, 33), (3, 45, 70), (2, 3, 17, 40), (1, 2, 3, 5, 33)), LAYOUTS):
        yield call(op, T(shape, layout=layout), -1, T(shape, "int32", layout), T(shape, layout=layout))
        yield call(op, T(shape, layout=layout), 0, T(shape, "int32", layout), T(shape, layout=layout))
    for dtype, layout in STORABLE:
        source = T((4, 32, 64), dtype, layout)
        yield call(op, source, 2, T((4, 32, 64), "int32", layout), source)
    yield call(op, T((4, 5)), 2, T((4, 5), "int32"), T((4, 5)))
    yield call(op, T((4, 5)), 1, T((4, 6), "int32"), T((4, 5)))
    yield call(op, T((4, 5)), 1, T((5, 5), "int32"), T((5, 5)))
    yield call(op, T((4, 5)), 1, T((4, 5), "bfloat16"), T((4, 5)))
    yield call(op, T((4, 5)), 1, T((4, 5), "int32"), T((4, 5)), memory_config=M("L1"))


def index_fill() -> Iterator[Case]:
    index = T((3,), "uint32", "ROW_MAJOR")
    for op in ("ttnn.index_fill", "ttnn.index_fill_new"):
        for shape in ((7,), (64,), (5, 33), (3, 45, 70), (2, 3, 17, 40), (1, 2, 3, 5, 33)):
            for dim in range(len(shape)):
                yield call(op, T(shape, layout="ROW_MAJOR"), dim, index, 1.5)
        for dtype, layout in STORABLE:
            yield call(op, T((4, 32, 64), dtype, layout), 1, index, 2.0)
            yield call(op, T((4, 32, 64), dtype, layout), 1, index, 2)
        rows = T((4, 32, 64), layout="ROW_MAJOR")
        for dim in (-1, 3, 7):
            yield call(op, rows, dim, index, 1.0)
        for dtype in DTYPES[4:]:
            yield call(op, rows, 0, T((3,), dtype, "ROW_MAJOR"), 1.0)
        yield call(op, rows, 0, T((3,), "uint32"), 1.0)
        yield call(op, rows, 0, T((1, 3), "uint32", "ROW_MAJOR"), 1.0)
        yield call(op, rows, 0, T((3,), "uint32", "ROW_MAJOR", host=True), 1.0)
        yield call(op, T((4, 4), layout="ROW_MAJOR", host=True), 0, index, 1.0)
        yield call(op, rows, 0, index)
        yield call(op, rows, 0, index, 1.0, memory_config=M("L1"))
        flat = T((128, 64), layout="ROW_MAJOR")
        sharded = (height_sharded([32, 64], 4), width_sharded([128, 32], 2), block_sharded([64, 32], (2, 2)))
        for memory in sharded:
            yield call(op, flat, 0, index, 1.0, memory_config=M(memory))
            source = T((128, 64), layout="ROW_MAJOR", mem=memory)
            yield call(op, source, 0, index, 1.0)
            for other in (*sharded, "DRAM", width_sharded([128, 16], 4)):
                yield call(op, source, 1, index, 1.0, memory_config=M(other))


def indexed_fill() -> Iterator[Case]:
    op = "ttnn.indexed_fill"
    for layout in LAYOUTS:
        for shape, dim, count in (
            ((4, 1, 32, 64), 0, 2),
            ((4, 3, 17, 40), 0, 3),
            ((4, 3, 32, 64), 1, 2),
            ((4, 3, 32, 64), 2, 5),
            ((4, 3, 32, 64), 3, 5),
            ((4, 3, 32, 64), -4, 1),
            ((4, 3, 32, 64), 4, 1),
            ((3, 32, 64), 0, 2),
            ((32, 64), 0, 2),
            ((2, 4, 3, 32, 64), 0, 2),
        ):
            part = list(shape)
            part[dim if -len(shape) <= dim < len(shape) else 0] = count
            ids = T((1, 1, 1, count), "uint32", "ROW_MAJOR")
            yield call(op, ids, T(shape, layout=layout), T(part, layout=layout), dim=dim)
    ids = T((2,), "uint32", "ROW_MAJOR")
    whole, part = T((4, 1, 32, 64)), T((2, 1, 32, 64))
    yield call(op, ids, whole, part)
    yield call(op, T((3,), "uint32", "ROW_MAJOR"), whole, part)
    for dtype in DTYPES[4:]:
        yield call(op, T((2,), dtype, "ROW_MAJOR"), whole, part)
    yield call(op, T((1, 1, 1, 2), "uint32"), whole, part)
    for dtype, layout in STORABLE:
        yield call(op, ids, T((4, 1, 32, 64), dtype, layout), T((2, 1, 32, 64), dtype, layout))
    yield call(op, ids, whole, T((2, 1, 32, 64), layout="ROW_MAJOR"))
    yield call(op, ids, whole, T((2, 1, 32, 64), "float32"))
    yield call(op, ids, whole, T((2, 1, 32, 32)))
    yield call(op, ids, whole, T((2, 32, 64)))
    yield call(op, ids, T((4, 1, 32, 64), host=True), part)
    yield call(op, T((2,), "uint32", "ROW_MAJOR", host=True), whole, part)
    yield call(op, ids, whole, part, memory_config=M("L1"))
    yield call(op, ids, whole, part, memory_config=M(height_sharded([32, 64], 4)))
    yield call(op, ids, whole, part, memory_config=M(WITHOUT_SHARDS))
    for memory in (height_sharded([32, 64], 4), width_sharded([128, 32], 2), block_sharded([64, 32], (2, 2))):
        yield call(op, ids, T((4, 1, 32, 64), mem=memory), part)
        yield call(op, ids, T((4, 1, 32, 64), layout="ROW_MAJOR", mem=memory), T((2, 1, 32, 64), layout="ROW_MAJOR"))


def tosa() -> Iterator[Case]:
    op = "ttnn.tosa_gather"
    for layout in LAYOUTS:
        for shape, index in (
            ((2, 32, 64), (2, 32)),
            ((2, 5, 33), (2, 4)),
            ((2, 5, 33), (2, 9)),
            ((2, 5, 33), (3, 4)),
            ((5, 33), (2, 4)),
            ((1, 2, 5, 33), (1, 4)),
            ((2, 5, 33), (2, 4, 1)),
            ((2, 5, 33), (4,)),
        ):
            yield call(op, T(shape, layout=layout), T(index, "uint32", layout))
            yield call(op, T(shape, "float32", layout), T(index, "uint16", layout))
        for dtype in ("int32", "bfloat16", "uint8"):
            yield call(op, T((2, 32, 64), layout=layout), T((2, 32), dtype, layout))
    yield call(op, T((2, 32, 64)), T((2, 32), "uint16"), memory_config=M("L1"))
    op = "ttnn.tosa_scatter"
    for layout in LAYOUTS:
        for shape, index, source in (
            ((2, 32, 64), (2, 32), (2, 32, 64)),
            ((2, 9, 33), (2, 4), (2, 4, 33)),
            ((2, 9, 33), (2, 4), (2, 5, 33)),
            ((2, 9, 33), (2, 4), (2, 4, 32)),
            ((2, 9, 33), (3, 4), (3, 4, 33)),
            ((9, 33), (2, 4), (2, 4, 33)),
            ((2, 9, 33), (2, 4, 1), (2, 4, 33)),
            ((2, 9, 33), (2, 4), (8, 33)),
        ):
            yield call(op, T(shape, layout=layout), T(index, "uint32", layout), T(source, layout=layout))
        for dtype in ("float32", "int32", "uint16", "uint8"):
            source = T((2, 32, 64), dtype, layout)
            yield call(op, source, T((2, 32), "uint32", layout), source)
        yield call(op, T((2, 32, 64), layout=layout), T((2, 32), "bfloat16", layout), T((2, 32, 64), layout=layout))
    yield call(op, T((2, 32, 64)), T((2, 32), "uint32"), T((2, 32, 64)), memory_config=M("L1"))


def nonzero() -> Iterator[Case]:
    op = "ttnn.nonzero"
    for shape, layout in product(((1, 1, 1, 64), (1, 1, 32, 64), (2, 3, 5, 33), (1, 1, 1, 7)), LAYOUTS):
        yield call(op, T(shape, layout=layout))
    for shape in ((64,), (5, 33), (3, 5, 33), (1, 1, 2, 5, 33), ()):
        yield call(op, T(shape, layout="ROW_MAJOR"))
    for dtype, layout in STORABLE:
        yield call(op, T((1, 1, 1, 64), dtype, layout))
    for memory in ("DRAM", "L1", height_sharded([32, 64], 1), WITHOUT_SHARDS):
        yield call(op, T((1, 1, 1, 64), layout="ROW_MAJOR"), memory_config=M(memory))
    yield call(op, T((1, 1, 1, 64), layout="ROW_MAJOR", host=True))
    yield call(op, T((1, 1, 256, 256), layout="ROW_MAJOR"))
    for source in sharded_inputs():
        yield call(op, source)


def moreh_getitem() -> Iterator[Case]:
    op = "ttnn.moreh_getitem"

    def index(size: int = 4, layout: str = "ROW_MAJOR", dtype: str = "int32") -> Case:
        return T((size,) if layout == "ROW_MAJOR" else (1, size), dtype, layout)

    for layout in LAYOUTS:
        for shape in ((5, 33), (3, 45, 70), (2, 3, 17, 40), (2, 3, 4, 5, 33), (64,)):
            for dim in range(len(shape)):
                yield call(op, T(shape, layout=layout), [index()], [dim])
        tensor = T((2, 3, 17, 40), layout=layout)
        yield call(op, tensor, [index(), index()], [0, 1])
        yield call(op, tensor, [index(), index()], [1, 2])
        yield call(op, tensor, [index(), index()], [0, 2])
        yield call(op, tensor, [index(), index(5)], [0, 1])
        yield call(op, tensor, [index(), index(), index()], [0, 1, 2])
        yield call(op, tensor, [index(layout="TILE")], [1])
        yield call(op, tensor, [index(dtype="uint32")], [1])
        yield call(op, tensor, [T((1, 4), "int32", "ROW_MAJOR")], [1])
        yield call(op, tensor, [index()], [1], memory_config=M("L1"))
        yield call(op, tensor, [T((4,), "int32", "ROW_MAJOR", host=True)], [1])
        yield call(op, T((2, 3, 17, 40), layout=layout, host=True), [index()], [1])
        yield call(op, T((1, 2, 3, 4, 5, 33), layout=layout), [index()], [1])
    for dtype, layout in STORABLE:
        yield call(op, T((3, 32, 64), dtype, layout), [index()], [0])
    rows = T((3, 32, 64), layout="ROW_MAJOR")
    yield call(op, rows, [index()], [0], output=T((4, 32, 64), layout="ROW_MAJOR"))
    yield call(op, rows, [index()], [0], output=T((4, 32, 64), "int32", "ROW_MAJOR"))
    yield call(op, None, [index()], [0])


def embedding() -> Iterator[Case]:
    op = "ttnn.embedding"
    table = T((100, 96), layout="ROW_MAJOR")
    for shape in ((64,), (33,), (1, 32), (2, 7), (4, 64), (1, 1, 1, 32), (2, 1, 1, 32), (2, 3, 32), (3, 5, 7)):
        for layout in (None, "TILE_LAYOUT", "ROW_MAJOR_LAYOUT"):
            options = {} if layout is None else {"layout": E(layout)}
            yield call(op, T(shape, "uint32", "ROW_MAJOR"), table, **options)
    for width in (32, 33, 96, 100):
        for layout in LAYOUTS:
            yield call(op, T((2, 32), "uint32", "ROW_MAJOR"), T((50, width), layout=layout))
            yield call(op, T((2, 32), "uint32", "ROW_MAJOR"), T((50, width), layout=layout), layout=E("TILE_LAYOUT"))
    for dtype, layout in STORABLE:
        yield call(op, T((2, 32), dtype, layout), table)
        yield call(op, T((2, 32), "uint32", "ROW_MAJOR"), T((50, 64), dtype, layout))
    ids = T((2, 32), "uint32", "ROW_MAJOR")
    yield call(op, ids, T((1, 1, 50, 64), layout="ROW_MAJOR"))
    yield call(op, ids, T((2, 1, 50, 64), layout="ROW_MAJOR"))
    yield call(op, ids, T((64,), layout="ROW_MAJOR"))
    yield call(op, T((2, 32), "uint32", "ROW_MAJOR", host=True), table)
    yield call(op, ids, T((100, 96), layout="ROW_MAJOR", host=True))
    for dtype in ("bfloat16", "float32", "bfloat8_b"):
        for layout in ("TILE_LAYOUT", "ROW_MAJOR_LAYOUT"):
            yield call(op, ids, table, dtype=E(dtype), layout=E(layout))
        yield call(op, ids, table, dtype=E(dtype))
    yield call(op, ids, table, padding_idx=1)
    yield call(op, ids, table, padding_idx=-1)
    for kind in ("GENERIC", "PADDED", "BINARY"):
        yield call(op, ids, table, embeddings_type=E(f"EmbeddingsType.{kind}"))
        yield call(op, ids, T((2, 96), layout="ROW_MAJOR"), embeddings_type=E(f"EmbeddingsType.{kind}"))
    for memory in ("L1", height_sharded([16, 96], 4), width_sharded([64, 32], 3), block_sharded([32, 32], (3, 2))):
        yield call(op, ids, table, memory_config=M(memory))
        yield call(op, ids, table, memory_config=M(memory), layout=E("TILE_LAYOUT"))
    yield call(op, T((2, 32), "uint32", "ROW_MAJOR", height_sharded([1, 32], 2)), table)
    yield call(op, ids, T((96, 96), layout="ROW_MAJOR", mem=height_sharded([24, 96], 4)))
    yield call(op, ids, table, output_tensor=T((2, 32, 96), layout="ROW_MAJOR"))


def embedding_bw() -> Iterator[Case]:
    op = "ttnn.embedding_bw"
    table = T((100, 96))
    for shape, rows in (((2, 32), 64), ((1, 64), 64), ((2, 33), 66), ((2, 32), 96), ((64,), 64), ((1, 2, 32), 64)):
        yield call(op, T(shape, "uint32", "ROW_MAJOR"), table, T((1, 1, rows, 96)))
    ids, gradient = T((2, 32), "uint32", "ROW_MAJOR"), T((1, 1, 64, 96))
    for dtype, layout in STORABLE:
        yield call(op, T((2, 32), dtype, layout), table, gradient)
        yield call(op, ids, table, T((1, 1, 64, 96), dtype, layout))
    for dtype in ("bfloat16", "bfloat8_b", "float32"):
        yield call(op, ids, table, gradient, dtype=E(dtype))
    yield call(op, ids, table, T((1, 1, 64, 33)))
    yield call(op, ids, table, T((1, 2, 32, 96)))
    yield call(op, ids, table, T((64, 96)))
    yield call(op, ids, table, gradient, memory_config=M("L1"))
    yield call(op, ids, table, gradient, output_tensor=T((1, 1, 100, 96)))
    yield call(op, ids, T((100, 96), layout="ROW_MAJOR"), gradient)
    yield call(op, T((2, 32), "uint32", "ROW_MAJOR", host=True), table, gradient)
    yield call(op, ids, table, T((1, 1, 128, 96), mem=height_sharded([32, 96], 4)))


def isin() -> Iterator[Case]:
    op = "ttnn.experimental.isin"
    for shape, layout in product(((64,), (7,), (5, 33), (3, 45, 70), (2, 3, 17, 40)), LAYOUTS):
        yield call(op, T(shape, "uint32", layout), T((10,), "uint32", layout))
        yield call(op, T(shape, "int32", layout), T((4, 5), "int32", layout))
    for dtype, layout in STORABLE:
        yield call(op, T((4, 32), dtype, layout), T((9,), dtype, layout))
    yield call(op, T((4, 32), "int32"), T((9,), "uint32"))
    yield call(op, T((4, 32), "int32"), T((9,), "int32", "ROW_MAJOR"))
    elements, test = T((4, 32), "int32", "ROW_MAJOR"), T((9,), "int32", "ROW_MAJOR")
    for flag in (True, False):
        yield call(op, elements, test, invert=flag)
        yield call(op, elements, test, assume_unique=flag)
    for dtype in ("uint8", "uint32", "int32", "bfloat16"):
        yield call(op, elements, test, out=T((4, 32), dtype, "ROW_MAJOR"))
    yield call(op, elements, test, out=T((4, 31), "uint8", "ROW_MAJOR"))
    yield call(op, T((4, 32), "int32", host=True), test)
    yield call(op, T((), "int32"), test)
    yield call(op, elements, 3)
    yield call(op, T((4, 32), "int32", "ROW_MAJOR", "L1"), test)
    yield call(op, T((128, 128), "int32", "ROW_MAJOR", height_sharded([32, 128], 4)), test)


def plus_one() -> Iterator[Case]:
    op = "ttnn.plus_one"
    for shape in ((64,), (7,), (5, 33), (3, 4, 5), (1, 1, 2, 32), (1, 2, 3, 4, 5), ()):
        for layout in LAYOUTS:
            yield call(op, T(shape, "int32", layout))
    for dtype, layout in STORABLE:
        yield call(op, T((32,), dtype, layout))
    yield call(op, T((32,), "int32", "ROW_MAJOR"), skip_negative_entries=True)
    yield call(op, T((32,), "uint32", "ROW_MAJOR"), skip_negative_entries=True)
    yield call(op, T((32,), "int32", "ROW_MAJOR", "L1"))
    yield call(op, T((32,), "int32", "ROW_MAJOR", host=True))
    yield call(op, T((4, 32), "int32", "ROW_MAJOR", height_sharded([1, 32], 4)))
    yield call(op, T((32,), "int32", "ROW_MAJOR"), G([0, 0, 1, 1]))
    yield call(op, T((32,), "int32", "ROW_MAJOR"), sub_core_grids=G([0, 0, 0, 0]), skip_negative_entries=True)
