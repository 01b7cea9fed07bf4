"""Sorting and cumulative operations: sort, topk, argmax, sampling, cumulative sums and products, scans."""

from __future__ import annotations

from collections.abc import Iterator

from ttnn_emulator.conformance.case import (
    DTYPES,
    LAYOUTS,
    SHAPES,
    STORABLE,
    C,
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


def cases() -> Iterator[Case]:
    for family in (sort, topk, argmax, sampling, cumulative, moreh_cumsum, ema, prefix_scan, topk_large_indices):
        yield from family()


def sort() -> Iterator[Case]:
    op = "ttnn.sort"
    for shape, layout in product((*SHAPES, (1,), (32, 1), (2, 2, 2, 2, 4, 6)), LAYOUTS):
        for dim in (-1, 0):
            yield call(op, T(shape, layout=layout), dim)
    for dtype, layout in STORABLE:
        yield call(op, T((4, 64), dtype, layout))
        yield call(op, T((4, 33), dtype, layout), 1, True)
        yield call(op, T((4, 1), dtype, layout))
    for dim in (2, -3, 1, -2):
        yield call(op, T((4, 5)), dim)
    for stable, descending in product((True, False), (True, False)):
        yield call(op, T((4, 64)), stable=stable, descending=descending)
        yield call(op, T((4, 64), "float32"), stable=stable, descending=descending)
    yield call(op, T(()))
    yield call(op, T(()), 0)
    yield call(op, T(()), 1)
    yield call(op, T((4, 0, 5)))
    yield call(op, T((4, 5), host=True))
    yield call(op, T((4, 1), host=True))
    yield call(op, T((4, 5)), 0.5)
    for memory in ("L1", height_sharded([32, 64], 4), width_sharded([128, 32], 2), block_sharded([64, 32], (2, 2))):
        yield call(op, T((128, 64)), memory_config=M(memory))
        yield call(op, T((128, 60)), memory_config=M(memory))
        yield call(op, T((128, 64), mem=memory))
    for source in sharded_inputs():
        yield call(op, source)
        yield call(op, source, 2)
        yield call(op, source, memory_config=M("DRAM"))
    for values, indices in (
        (T((4, 64)), T((4, 64), "uint16")),
        (T((4, 64)), T((4, 64), "uint32")),
        (T((4, 64)), T((4, 64), "int32")),
        (T((4, 64), "float32"), T((4, 64), "uint16")),
        (T((4, 63)), T((4, 64), "uint16")),
        (T((4, 64)), T((4, 63), "uint16")),
        (T((4, 64), mem="L1"), T((4, 64), "uint16")),
        (T((4, 64), layout="ROW_MAJOR"), T((4, 64), "uint16", "ROW_MAJOR")),
        (T((4, 64), host=True), T((4, 64), "uint16")),
    ):
        yield call(op, T((4, 64)), out={"tuple": [values, indices]})
    yield call(op, T((2, 4096)))
    yield call(op, T((2, 4096), "uint16"))
    yield call(op, T((1, 70000)))


def topk() -> Iterator[Case]:
    op = "ttnn.topk"
    for shape in SHAPES:
        for dim in (-1, 0):
            yield call(op, T(shape), 1, dim)
            yield call(op, T(shape), 3, dim)
    for dtype, layout in STORABLE:
        yield call(op, T((32, 128), dtype, layout), 32)
        yield call(op, T((4, 100), dtype, layout), 5, largest=False)
    for k in (0, 1, 31, 32, 33, 64, 65, 100, 101, -1):
        yield call(op, T((32, 100)), k)
    for dim in (2, -3, 1, 0):
        yield call(op, T((64, 64)), 8, dim)
    yield call(op, T((32, 128)))
    yield call(op, T((32, 16)))
    for largest, ordered, stable in product((True, False), (True, False), (True, False)):
        yield call(op, T((32, 128)), 16, largest=largest, sorted=ordered, stable=stable)
    yield call(op, T(()), 1)
    yield call(op, T(()), 0)
    yield call(op, T(()), 2)
    yield call(op, T((4, 0)), 0)
    yield call(op, T((4, 64), host=True), 4)
    yield call(op, T((4, 64)), 4.0)
    for memory in ("L1", "DRAM", height_sharded([32, 32], 4), {"layout": "HEIGHT_SHARDED", "buffer": "L1"}):
        yield call(op, T((128, 64)), 32, memory_config=M(memory))
    for source in sharded_inputs():
        yield call(op, source, 8)
    for values, indices in (
        (T((4, 8)), T((4, 8), "uint16")),
        (T((4, 8)), T((4, 8), "uint32")),
        (T((4, 8)), T((4, 8), "bfloat16")),
        (T((4, 8), "float32"), T((4, 8), "uint16")),
        (T((4, 9)), T((4, 8), "uint16")),
        (T((4, 8)), T((4, 9), "uint16")),
    ):
        yield call(op, T((4, 64)), 8, output_tensor={"tuple": [values, indices]})
    for values in (T((32, 64)), T((32, 128))):
        pair = {"tuple": [T((32, 32)), T((32, 32), "uint16")]}
        yield call(op, values, 32, output_tensor=pair)
    for dtype in ("uint16", "uint32", "int32", "bfloat16"):
        yield call(op, T((32, 128)), 8, indices_tensor=T((32, 128), dtype))
    yield call(op, T((32, 128), "float32"), 8, indices_tensor=T((32, 128), "uint16"))
    yield call(op, T((32, 128)), 8, indices_tensor=T((32, 64), "uint16"))
    yield call(op, T((32, 128)), 8, 0, indices_tensor=T((32, 128), "uint16"))
    yield call(op, T((32, 8192)), 32)
    yield call(op, T((32, 8192)), 32, sub_core_grids=G([0, 0, 3, 3]))
    yield call(op, T((32, 128)), 32, sub_core_grids=G([0, 0, 3, 3]))
    yield call(op, T((32, 128)), 32, sub_core_grids=G([0, 0, 20, 3]))
    yield call(op, T((32, 70000)), 32)


def argmax() -> Iterator[Case]:
    op = "ttnn.argmax"
    for shape, layout in product((*SHAPES, (1,), (1, 1, 1, 1), (3, 1, 64)), LAYOUTS):
        yield call(op, T(shape, layout=layout))
        for dim in (-1, 0):
            yield call(op, T(shape, layout=layout), dim)
            yield call(op, T(shape, layout=layout), dim, True)
    for dtype, layout in STORABLE:
        yield call(op, T((4, 64), dtype, layout), -1)
        yield call(op, T((4, 64), dtype, layout))
    for dim in (3, -4, 1, -2):
        yield call(op, T((4, 5, 6), layout="ROW_MAJOR"), dim)
        yield call(op, T((4, 5, 6)), dim)
    yield call(op, T((4, 5, 6), layout="ROW_MAJOR"), keepdim=True)
    yield call(op, T(()))
    yield call(op, T((), layout="ROW_MAJOR"), 0)
    yield call(op, T((4, 0), layout="ROW_MAJOR"), -1)
    yield call(op, T((4, 5), host=True), -1)
    yield call(op, T((4, 5)), [0])
    for memory in ("L1", "DRAM", height_sharded([32, 32], 4)):
        yield call(op, T((128, 64), layout="ROW_MAJOR"), -1, memory_config=M(memory))
    for source in sharded_inputs():
        yield call(op, source, -1)
    yield call(op, T((128, 128), layout="ROW_MAJOR", mem=height_sharded([32, 128], 4)), -1)
    for out in (
        T((4,), "uint32", "ROW_MAJOR"),
        T((4,), "int32", "ROW_MAJOR"),
        T((4, 1), "uint32", "ROW_MAJOR"),
        T((4,), "uint16", "ROW_MAJOR"),
        T((4,), "uint32"),
    ):
        yield call(op, T((4, 64), layout="ROW_MAJOR"), -1, output_tensor=out)
        yield call(op, T((4, 64), layout="ROW_MAJOR"), -1, True, output_tensor=out)
    for flag in (True, False):
        yield call(op, T((4, 64), layout="ROW_MAJOR"), -1, enable_secondary_dm=flag)
    yield call(op, T((4, 64), layout="ROW_MAJOR"), -1, sub_core_grids=G([0, 0, 3, 3]))
    yield call(op, T((4, 64)), -1, sub_core_grids=G([0, 0, 3, 3]))
    yield call(op, T((4, 64), layout="ROW_MAJOR"), -1, sub_core_grids=G([0, 0, 20, 3]))


def sampling() -> Iterator[Case]:
    op = "ttnn.sampling"

    def inputs(users: int = 32, width: int = 64, **changes: Case) -> list[Case]:
        tensors = {
            "values": T((1, 1, users, width)),
            "indices": T((1, 1, users, width), "int32", "ROW_MAJOR"),
            "k": T((users,), "uint32", "ROW_MAJOR"),
            "p": T((users,), "bfloat16", "ROW_MAJOR"),
            "temp": T((users,), "bfloat16", "ROW_MAJOR"),
        }
        return list((tensors | changes).values())

    for width in (32, 64, 128, 100, 1024):
        yield call(op, *inputs(width=width))
    for users in (1, 8, 16, 31, 33, 64):
        yield call(op, *inputs(users=users))
    for seed in (0, 42, -1):
        yield call(op, *inputs(), seed=seed)
    for dtype, layout in STORABLE:
        yield call(op, *inputs(values=T((1, 1, 32, 64), dtype, layout)))
        yield call(op, *inputs(indices=T((1, 1, 32, 64), dtype, layout)))
    for dtype in ("int32", "uint16", "bfloat16"):
        yield call(op, *inputs(k=T((32,), dtype, "ROW_MAJOR")))
    for name in ("p", "temp"):
        yield call(op, *inputs(**{name: T((32,), "float32", "ROW_MAJOR")}))
        yield call(op, *inputs(**{name: T((32,))}))
        yield call(op, *inputs(**{name: T((16,), "bfloat16", "ROW_MAJOR")}))
    yield call(op, *inputs(values=T((32, 64))))
    yield call(op, *inputs(values=T((2, 1, 32, 64)), indices=T((2, 1, 32, 64), "int32", "ROW_MAJOR")))
    yield call(op, *inputs(indices=T((1, 1, 32, 32), "int32", "ROW_MAJOR")))
    yield call(op, *inputs(), output_tensor=T((1, 1, 1, 32), "int32", "ROW_MAJOR"))
    yield call(op, *inputs(), output_tensor=T((1, 1, 1, 32), "uint32", "ROW_MAJOR"))
    yield call(op, *inputs(), output_tensor=T((1, 1, 32, 1), "bfloat16", "ROW_MAJOR"))
    yield call(op, *inputs(), sub_core_grids=G([0, 0, 7, 3]))
    yield call(op, *inputs(), sub_core_grids=G([0, 0, 1, 1]))
    yield call(op, *inputs(values=T((1, 1, 32, 64), host=True)))


def cumulative() -> Iterator[Case]:
    for op in ("ttnn.cumsum", "ttnn.cumprod"):
        for shape, layout in product((*SHAPES, (1,), (2, 2, 2, 2, 4, 6)), LAYOUTS):
            for dim in (-1, 0):
                yield call(op, T(shape, layout=layout), dim)
        for dtype, layout in STORABLE:
            yield call(op, T((4, 33), dtype, layout), 0)
            yield call(op, T((4, 33), dtype, layout), 1)
            yield call(op, T((2, 3, 33), dtype, layout), 0)
        for dtype in DTYPES:
            yield call(op, T((4, 33)), 1, dtype=E(dtype))
            yield call(op, T((4, 33), "int32"), 1, dtype=E(dtype))
        for dim in (2, -3, 1):
            yield call(op, T((4, 5)), dim)
        for flag in (True, False):
            yield call(op, T((4, 5, 6)), 1, reverse_order=flag)
            yield call(op, T((4, 5, 6), "int32"), 2, reverse_order=flag)
        yield call(op, T(()), 0)
        yield call(op, T(()), -1)
        yield call(op, T((4, 0)), 1)
        yield call(op, T((4, 5), host=True), 1)
        yield call(op, T((4, 5)))
        for memory in ("L1", "DRAM", height_sharded([32, 64], 4)):
            yield call(op, T((128, 64)), 1, memory_config=M(memory))
            yield call(op, T((128, 64)), 0, memory_config=M(memory))
        for source in sharded_inputs():
            yield call(op, source, 3)
            yield call(op, source, 0)
        for out in (
            T((4, 33)),
            T((4, 33), "float32"),
            T((4, 32)),
            T((4, 33), mem="L1"),
            T((4, 33), layout="ROW_MAJOR"),
        ):
            yield call(op, T((4, 33)), 1, out=out)
            yield call(op, T((4, 33)), 0, out=out)
        yield call(op, T((4, 33)), 1, out=T((4, 33), "float32"), dtype=E("float32"))
        yield call(op, T((4, 33)), 1, out=T((4, 33), "float32"), dtype=E("bfloat16"))
    for flag in (True, False):
        yield call("ttnn.cumsum", T((4, 33)), 1, disable_compensated_sum=flag)
        yield call("ttnn.cumsum", T((4, 33), "float32"), 1, disable_compensated_sum=flag)


def moreh_cumsum() -> Iterator[Case]:
    for op, given in (("ttnn.moreh_cumsum", "output"), ("ttnn.moreh_cumsum_backward", "input_grad")):
        for shape in (*SHAPES, (2, 3, 32, 64), (2, 2, 2, 2, 4, 6)):
            for dim in (0, 1, 2, -1):
                yield call(op, T(shape), dim)
        for dtype, layout in STORABLE:
            yield call(op, T((2, 3, 32, 64), dtype, layout), 0)
        yield call(op, T((2, 3, 32, 64)), 1, memory_config=M("L1"))
        yield call(op, T((2, 3, 32, 64), mem="L1"), 1)
        yield call(op, T((2, 3, 32, 64), host=True), 1)
        for out in (T((2, 3, 32, 64)), T((2, 3, 32, 32)), T((2, 3, 32, 64), "float32")):
            yield call(op, T((2, 3, 32, 64)), 1, **{given: out})
        for source in sharded_inputs():
            yield call(op, source, 0)
        for dim in (4, 5, -4, -5):
            yield call(op, T((2, 3, 32, 64)), dim)


def ema() -> Iterator[Case]:
    op = "ttnn.ema"
    for shape in (*SHAPES, (1, 2, 64, 96), (1, 1, 32, 32)):
        yield call(op, T(shape), 0.5)
    for dtype, layout in STORABLE:
        yield call(op, T((1, 1, 64, 96), dtype, layout), 0.5)
    source = T((1, 2, 64, 96))
    for alpha in (0.0, 1.0, 1.5, -0.5, 1):
        yield call(op, source, alpha)
    yield call(op, source, 0.5, memory_config=M("L1"))
    yield call(op, source, 0.5, memory_config=M(height_sharded([32, 96], 4)))
    yield call(op, source, 0.5, core_grid=C("CoreGrid", x=4, y=4))
    yield call(op, source, 0.5, core_grid=C("CoreGrid", x=1, y=1))
    yield call(op, source, 0.5, core_grid=C("CoreGrid", x=20, y=20))
    for out in (T((1, 2, 64, 96)), T((1, 2, 64, 64)), T((1, 2, 64, 96), "float32"), T((1, 2, 64, 96), mem="L1")):
        yield call(op, source, 0.5, out=out)
    yield call(op, T((1, 2, 64, 96), host=True), 0.5)
    yield call(op, sharded_inputs()[0], 0.5)
    yield call(op, source)


def prefix_scan() -> Iterator[Case]:
    op = "ttnn.experimental.prefix_scan"

    def operand(rows: int, mem: object, dtype: str = "bfloat16", layout: str = "TILE") -> Case:
        return T((1, 1, rows, 128), dtype, layout, mem)

    wide, state = width_sharded([64, 32], 4), width_sharded([1, 32], 4)
    previous = T((1, 1, 1, 128), layout="ROW_MAJOR", mem=state)
    yield call(op, operand(64, wide), operand(64, wide), previous)
    yield call(op, operand(64, wide), operand(64, wide), previous, memory_config=M(wide))
    yield call(op, operand(64, wide), operand(64, wide), previous, dtype=E("bfloat8_b"), memory_config=M(wide))
    yield call(op, operand(64, wide), operand(64, wide), previous, math_fidelity=E("MathFidelity.HiFi2"))
    for fidelity in ("LoFi", "HiFi4"):
        options = {"memory_config": M(wide), "math_fidelity": E(f"MathFidelity.{fidelity}")}
        yield call(op, operand(64, wide), operand(64, wide), previous, **options)
    for dtype in DTYPES:
        yield call(op, operand(64, wide, dtype), operand(64, wide, dtype), previous, memory_config=M(wide))
        yield call(op, operand(64, wide), operand(64, wide), previous, dtype=E(dtype), memory_config=M(wide))
    yield call(op, operand(64, "DRAM"), operand(64, "DRAM"), T((1, 1, 1, 128), layout="ROW_MAJOR"))
    yield call(op, operand(64, wide), operand(32, width_sharded([32, 32], 4)), previous, memory_config=M(wide))
    yield call(op, operand(64, wide), operand(64, "L1"), previous, memory_config=M(wide))
    yield call(op, operand(64, wide), operand(64, wide), T((1, 1, 32, 128)), memory_config=M(wide))
    yield call(op, operand(64, wide, layout="ROW_MAJOR"), operand(64, wide), previous, memory_config=M(wide))
    yield call(op, T((2, 1, 32, 128), mem=wide), T((2, 1, 32, 128), mem=wide), previous, memory_config=M(wide))


def topk_large_indices() -> Iterator[Case]:
    op = "ttnn.experimental.topk_large_indices"
    rows = T((1, 1, 32, 4096), layout="ROW_MAJOR")
    for k in (16, 32, 512, 2048, 4096, 0, 15):
        yield call(op, rows, k=k)
    for dtype, layout in STORABLE:
        yield call(op, T((1, 1, 32, 4096), dtype, layout), k=64)
    for shape in ((4096,), (32, 4096), (1, 32, 4096), (1, 1, 1, 1, 4096), (1, 1, 32, 100)):
        yield call(op, T(shape, layout="ROW_MAJOR"), k=32)
    for length in (4096, 100, 5000, 16):
        yield call(op, rows, k=32, valid_length=length)
    yield call(op, rows, k=32, valid_length_offset=4)
    yield call(op, rows, k=32, valid_length_tensor=T((1,), "uint32", "ROW_MAJOR"))
    yield call(op, rows, k=32, sub_core_grids=G([0, 0, 3, 3]))
    yield call(op, rows)
    yield call(op, T((1, 1, 32, 4096), layout="ROW_MAJOR", host=True), k=32)
