"""Operations on complex tensors and their gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ttnn_emulator.conformance.case import BLOCK, DTYPES, SHAPES, TALL, WIDE, C, Case, M, T, call, product

from .binary import SQUARE

FUNCTIONS = ("real", "imag", "angle", "is_real", "is_imag", "conj", "polar")
TO_REAL = ("abs", "real", "imag", "angle")
TO_COMPLEX = ("conj", "polar", "reciprocal")
ARITHMETIC = {"add": (0.5,), "sub": (0.5,), "mul": (), "div": ()}
DRAM = {"memory_config": M("DRAM")}


def Z(real: Any, imag: Any = None) -> Case:
    return C("complex_tensor", real, real if imag is None else imag)


def complex_inputs() -> Iterator[Case]:
    """Complex tensors of many shapes, dtypes, layouts and memory configs, some with mismatched parts."""
    for shape in SHAPES:
        yield Z(T(shape))
    for dtype in DTYPES:
        yield Z(T((5, 33), dtype))
        yield Z(T((5, 33)), T((5, 33), dtype))
        yield Z(T((5, 33), dtype), T((5, 33), "float32"))
    for first, second in (((5, 33), (1, 33)), ((5, 33), (5, 32)), ((5, 1), (1, 33)), ((2, 5, 33), (5, 33))):
        yield Z(T(first), T(second))
    for layouts in (("ROW_MAJOR", "ROW_MAJOR"), ("TILE", "ROW_MAJOR"), ("ROW_MAJOR", "TILE")):
        yield Z(*(T((64, 40), layout=layout) for layout in layouts))
    for places in (("L1", "DRAM"), (TALL, TALL), (BLOCK, "DRAM"), ("DRAM", WIDE), (TALL, BLOCK)):
        yield Z(*(T(SQUARE, mem=place) for place in places))
    yield Z(T((5, 33), host=True))
    yield Z(T((5, 33)), T((5, 33), host=True))


def functions() -> Iterator[Case]:
    for name in FUNCTIONS:
        for z in complex_inputs():
            yield call(f"ttnn.{name}", z)
        for memory in ("L1", TALL, BLOCK):
            yield call(f"ttnn.{name}", Z(T(SQUARE)), memory_config=M(memory))
            yield call(f"ttnn.{name}", Z(T(SQUARE, mem=WIDE)), memory_config=M(memory))
        yield call(f"ttnn.{name}", T((5, 33)))
        yield call(f"ttnn.{name}", 2.0)
        yield call(f"ttnn.{name}", Z(T((5, 33))), memory_config="L1")
        yield call(f"ttnn.{name}")
        yield call(f"ttnn.{name}", Z(T((5, 33))), M("L1"))
        yield call(f"ttnn.{name}", Z(T((5, 33))), output_tensor=T((5, 33)))
        yield call(f"ttnn.{name}", [T((5, 33)), T((5, 33))])
        yield call(f"ttnn.{name}", Z(T((5, 33))), Z(T((5, 33))))
    for inner, outer in product(("conj", "polar"), ("real", "imag")):
        for z in (Z(T((5, 33))), Z(T(SQUARE, mem=TALL)), Z(T((5, 33), "float32")), Z(T(SQUARE, mem="L1"), T(SQUARE))):
            yield call(f"ttnn.{outer}", C(inner, z))


def gradients() -> Iterator[Case]:
    for name in (*TO_REAL, *TO_COMPLEX):
        for z in complex_inputs():
            grad = z if name in TO_COMPLEX else z["C"][1][0]
            yield call(f"ttnn.{name}_bw", grad, z, **DRAM)
        for shape in ((5, 33), (1, 33), (5, 32), (1, 5, 33)):
            grad = Z(T(shape)) if name in TO_COMPLEX else T(shape)
            yield call(f"ttnn.{name}_bw", grad, Z(T((5, 33))), **DRAM)
        grad, z = (Z(T(SQUARE)) if name in TO_COMPLEX else T(SQUARE)), Z(T(SQUARE))
        for memory in ("L1", TALL, BLOCK):
            yield call(f"ttnn.{name}_bw", grad, z, memory_config=M(memory))
        yield call(f"ttnn.{name}_bw", grad, z)
        yield call(f"ttnn.{name}_bw", grad, 2.0, **DRAM)
        yield call(f"ttnn.{name}_bw", z)
        yield call(f"ttnn.{name}_bw", grad, z, M("DRAM"))
        yield call(f"ttnn.{name}_bw", grad, z, memory_config="DRAM")
        yield call(f"ttnn.{name}_bw", grad, z, output_tensor=T(SQUARE), **DRAM)
        yield call(f"ttnn.{name}_bw", "x", z, **DRAM)
        yield call(f"ttnn.{name}_bw", Z(T(SQUARE)) if name in TO_REAL else T(SQUARE), z, **DRAM)


def arithmetic() -> Iterator[Case]:
    for name, rest in ARITHMETIC.items():
        for z in complex_inputs():
            yield call(f"ttnn.{name}_bw", z, z, z, *rest, **DRAM)
        a, b, c = Z(T((5, 33))), Z(T((5, 33), "float32")), Z(T((1, 33)))
        yield call(f"ttnn.{name}_bw", a, b, a, *rest, **DRAM)
        yield call(f"ttnn.{name}_bw", a, a, c, *rest, **DRAM)
        yield call(f"ttnn.{name}_bw", a, a, Z(T((5, 32))), *rest, **DRAM)
        yield call(f"ttnn.{name}_bw", a, a, a, *rest)
        yield call(f"ttnn.{name}_bw", a, a, a, *rest, memory_config=M("L1"))
        yield call(f"ttnn.{name}_bw", a, a, T((5, 33)), *rest, **DRAM)
        yield call(f"ttnn.{name}_bw", T((5, 33)), a, a, *rest, **DRAM)
        yield call(f"ttnn.{name}_bw", a, a, **DRAM)
        yield call(f"ttnn.{name}_bw", a, a, a, "x", **DRAM)


def in_one_program() -> Iterator[Case]:
    def mul(*parts: Any) -> Case:
        return call("ttnn.experimental.complex_mul", *(parts * 4 if len(parts) == 1 else parts))

    def rows(shape: tuple[int, ...] = (32, 64), dtype: str = "float32", mem: Any = "DRAM") -> Case:
        return T(shape, dtype, "ROW_MAJOR", mem)

    for dtype in (*DTYPES[:2], *DTYPES[4:]):
        yield mul(rows(dtype=dtype))
        yield mul(rows(), rows(), rows(dtype=dtype), rows())
    for shape in (*SHAPES, (1024,), (3, 1025), (2048,), (0, 32), (5, 0)):
        yield mul(rows(shape))
        yield mul(rows(shape, "bfloat16"))
    for places in (("L1",) * 4, (TALL,) * 4, (TALL, "DRAM", "DRAM", "DRAM"), ("DRAM", TALL, "L1", BLOCK)):
        yield mul(*(rows(SQUARE, mem=place) for place in places))
    yield mul(rows(), rows(), rows((32, 32)), rows())
    yield mul(rows(), rows(), rows((1, 64)), rows((1, 64)))
    yield mul(T((32, 64)))
    yield mul(rows(), rows(), T((32, 64), "float32"), rows())
    yield mul(T((32, 64), "float32", "ROW_MAJOR", host=True))
    yield mul(rows(), rows(), rows())
    yield mul(rows(), rows(), 1.0, 2.0)


def cases() -> Iterator[Case]:
    yield from functions()
    yield from gradients()
    yield from arithmetic()
    yield from in_one_program()
