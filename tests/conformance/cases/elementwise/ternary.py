"""Ternary elementwise operations and quantisation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

import ttnn_emulator as ttnn
from ttnn_emulator.conformance.case import (
    BLOCK,
    DTYPES,
    SHAPES,
    TALL,
    WIDE,
    Case,
    E,
    M,
    T,
    call,
    height_sharded,
    product,
)
from ttnn_emulator.conformance.numeric_row import Row

from .binary import SQUARE, UNSPECIFIED, turn

# Three shapes that broadcast together.
TRIPLES: tuple[tuple[tuple[int, ...], ...], ...] = (
    ((64, 64), (1, 64), (64, 64)),
    ((64, 64), (64, 1), (64, 1)),
    ((1, 64), (64, 1), (64, 64)),
    ((1, 1), (5, 33), (5, 33)),
    ((5, 33), (1, 1), (1, 1)),
    ((5, 33), (1, 33), (5, 1)),
    ((2, 3, 17, 40), (3, 17, 40), (1, 17, 40)),
    ((3, 45, 70), (70,), (45, 1)),
    ((64,), (64,), (64,)),
    ((7,), (1,), (7,)),
    ((2, 1, 3, 5, 33), (4, 1, 5, 33), (2, 4, 3, 5, 33)),
)
WRONG_TRIPLES: tuple[tuple[tuple[int, ...], ...], ...] = (
    ((5, 33), (5, 32), (5, 33)),
    ((5, 33), (5, 33), (4, 33)),
    ((2, 3, 5, 33), (3, 3, 5, 33), (5, 33)),
    ((5, 33), (2, 33), (1, 1)),
)
# Memory configs of three operands, and the requested one of the result.
USUAL_PLACES: tuple[tuple[Any, Any, Any, Any], ...] = (
    ("DRAM", "DRAM", "DRAM", "L1"),
    (TALL, TALL, TALL, None),
    (BLOCK, BLOCK, BLOCK, None),
    (WIDE, WIDE, WIDE, "DRAM"),
    (TALL, "DRAM", "DRAM", None),
    ("DRAM", TALL, "DRAM", None),
    ("DRAM", "DRAM", BLOCK, None),
)
PLACES: tuple[tuple[Any, Any, Any, Any], ...] = (
    ("L1", "DRAM", "DRAM", None),
    ("DRAM", "L1", "L1", None),
    *USUAL_PLACES,
    (height_sharded([64, 128], 2), TALL, "DRAM", None),
    (TALL, BLOCK, WIDE, None),
    ("DRAM", "DRAM", "DRAM", TALL),
    ("DRAM", "DRAM", "DRAM", UNSPECIFIED[0]),
    ("DRAM", "DRAM", "DRAM", UNSPECIFIED[2]),
    (TALL, "DRAM", "DRAM", UNSPECIFIED[1]),
    ("DRAM", BLOCK, "DRAM", UNSPECIFIED[2]),
    ("DRAM", "DRAM", "DRAM", height_sharded([32, 64], 4)),
)
JOINING = ("addcmul", "addcdiv", "lerp", "mac")


def three(name: str, a: Any, b: Any, c: Any, **options: Any) -> Case:
    return call(f"ttnn.{name}", a, b, c, **options)


def of_tensors(name: str, seed: int) -> Iterator[Case]:
    for shape in SHAPES:
        yield three(name, T(shape), T(shape), T(shape))
    for shapes in TRIPLES:
        yield three(name, *(T(shape) for shape in shapes))
        yield three(name, *(T(shape, "float32") for shape in shapes))
    for shapes in WRONG_TRIPLES:
        yield three(name, *(T(shape) for shape in shapes))
    for dtype in DTYPES:
        yield three(name, *[T((5, 33), dtype)] * 3)
        yield three(name, T((40, 50)), T((1, 50), dtype), T((40, 50), dtype))
        yield three(name, T((5, 33), dtype), T((5, 33)), T((5, 33)))
        yield three(name, T((5, 33)), T((5, 33), "float32"), T((5, 33), dtype))
    for dtype in ("bfloat8_b", "int32", "uint32"):
        for shapes in turn(TRIPLES, seed * 3, 4):
            yield three(name, *(T(shape, dtype) for shape in shapes))
    for first, second, third, asked in PLACES:
        memory = {"memory_config": M(asked)} if asked is not None else {}
        yield three(name, T(SQUARE, mem=first), T(SQUARE, mem=second), T(SQUARE, mem=third), **memory)
    for layouts in (("ROW_MAJOR",) * 3, ("TILE", "ROW_MAJOR", "TILE"), ("ROW_MAJOR", "TILE", "TILE")):
        yield three(name, *(T((64, 40), layout=layout) for layout in layouts))
    a = T((5, 33))
    for output in (T((5, 33)), T((5, 33), "float32"), T((1, 5, 33)), T((5, 34)), T((5, 33), layout="ROW_MAJOR")):
        yield three(name, a, a, a, output_tensor=output)
    yield three(name, T((5, 33), host=True), a, a)
    yield three(name, a, T((5, 33), host=True), a)
    yield three(name, a, a, T((5, 33), host=True))
    yield call(f"ttnn.{name}", a, a)
    yield three(name, a, a, a, dtype=E("float32"))
    yield three(name, a, a, "x")
    yield three(name, 1.0, a, a)


def with_numbers() -> Iterator[Case]:
    numbers = (2, 0.5, -1, 2**31, {"F": "nan"})
    for seed, dtype in enumerate(DTYPES):
        a = T((3, 45, 70), dtype)
        for step, number in enumerate(turn(numbers, seed, 3)):
            other = numbers[(seed + 2 * step + 1) % len(numbers)]
            yield three("where", a, a, number)
            yield three("where", a, number, a)
            yield three("where", a, number, other)
            yield three("where", T((3, 45, 70), DTYPES[(seed + step + 1) % 8]), number, a)
            yield three("mac", a, a, number)
            yield three("mac", a, number, a)
            yield three("mac", a, number, other)
            yield three("lerp", a, a, number)
        yield three("lerp", a, 0.5, a)
        yield three("addcmul", a, a, 0.5)
        for value in (2, 0.5, -1):
            yield three("addcmul", a, a, a, value=value)
            yield three("addcdiv", a, a, a, value=value)
    for shapes in TRIPLES:
        x, y = T(shapes[0]), T(shapes[1])
        yield three("where", x, y, 2.5)
        yield three("where", x, 2.5, y)
        yield three("mac", x, y, 2.5)
        yield three("mac", x, 2.5, y)
        yield three("lerp", x, y, 2.5)
    for first, second, _, asked in PLACES:
        memory = {"memory_config": M(asked)} if asked is not None else {}
        x, y = T(SQUARE, mem=first), T(SQUARE, mem=second)
        yield three("where", x, y, 2.5, **memory)
        yield three("where", x, 2.5, y, **memory)
        yield three("where", x, 2.5, 1.5, **memory)
        yield three("mac", x, 2.5, y, **memory)
        yield three("mac", x, 2.5, 1.5, **memory)
        yield three("lerp", x, y, 0.5, **memory)
    for layouts in product(("TILE", "ROW_MAJOR"), ("TILE", "ROW_MAJOR")):
        x, y = (T((64, 40), layout=layout) for layout in layouts)
        yield three("where", x, y, 2.5)
        yield three("where", x, 1, 2)
        yield three("mac", x, y, 2.5)
        yield three("mac", x, 1.0, 2.0)
        yield three("lerp", x, y, 0.5)
    for output in (T((5, 33)), T((5, 33), "float32"), T((5, 34))):
        yield three("where", T((5, 33)), T((5, 33)), 2.5, output_tensor=output)
        yield three("where", T((5, 33)), 1.5, 2.5, output_tensor=output)
        yield three("mac", T((5, 33)), T((5, 33)), 2.5, output_tensor=output)
        yield three("lerp", T((5, 33)), T((5, 33)), 2.5, output_tensor=output)


def quantisation() -> Iterator[Case]:
    for dtype in DTYPES:
        a = T((3, 45, 70), dtype)
        for target in (None, "int32", "uint8", "bfloat16", "float32", "uint16"):
            options = {"dtype": E(target)} if target is not None else {}
            yield call("ttnn.quantize", a, 0.1, 5, **options)
            yield call("ttnn.dequantize", a, 0.1, 5, **options)
            yield call("ttnn.requantize", a, 0.1, 5, 0.2, -3, **options)
        for scale in (T((1,), dtype), T((3,), dtype)):
            yield call("ttnn.quantize", T((3, 45, 70)), scale, 5)
            yield call("ttnn.dequantize", T((3, 45, 70), "int32"), scale, 5)
            yield call("ttnn.quantize", T((3, 45, 70)), 0.1, scale)
            yield call("ttnn.dequantize", T((3, 45, 70), "int32"), 0.1, scale)
    floats, whole = T((3, 45, 70)), T((3, 45, 70), "int32")
    scales, zeros = T((45,), "float32"), T((45,), "int32")
    one, zero = T((1,), "float32"), T((1,), "int32")
    for axis in (0, 1, -2, 2, 3, -4, None):
        yield call("ttnn.quantize", floats, scales, zeros, axis=axis)
        yield call("ttnn.quantize", floats, scales, 5, axis=axis)
        yield call("ttnn.dequantize", whole, scales, zeros, axis=axis)
        yield call("ttnn.dequantize", whole, scales, 5, axis=axis, dtype=E("float32"))
        yield call("ttnn.requantize", whole, scales, zeros, scales, zeros, axis=axis)
        yield call("ttnn.requantize", whole, scales, zeros, one, zero, axis=axis)
        yield call("ttnn.requantize", whole, scales, zeros, one, zeros, axis=axis)
        yield call("ttnn.requantize", whole, scales, zeros, 0.1, 3, axis=axis)
    for scale, point in product((0.1, one), (5, zero)):
        yield call("ttnn.quantize", floats, scale, point)
        yield call("ttnn.quantize", floats, scale, point, memory_config=M("L1"))
        yield call("ttnn.quantize", T((3, 45, 70), "float32"), scale, point, dtype=E("uint8"))
        yield call("ttnn.dequantize", whole, scale, point)
        yield call("ttnn.dequantize", whole, scale, point, memory_config=M("L1"))
        yield call("ttnn.dequantize", T((3, 45, 70), "uint8"), scale, point)
        yield call("ttnn.requantize", whole, scale, point, scale, point)
        yield call("ttnn.requantize", whole, scale, point, 0.1, 5, dtype=E("uint8"))
    for memory in ("L1", TALL, BLOCK):
        yield call("ttnn.quantize", T(SQUARE, mem=memory), 0.1, 5)
        yield call("ttnn.dequantize", T(SQUARE, "int32", mem=memory), 0.1, 5)
        yield call("ttnn.requantize", T(SQUARE, "int32", mem=memory), 0.1, 5, 0.2, 6)
        yield call("ttnn.quantize", T(SQUARE), 0.1, 5, memory_config=M(memory))
    for shape in SHAPES:
        yield call("ttnn.quantize", T(shape), 0.1, 5)
        yield call("ttnn.dequantize", T(shape, "int32"), 0.1, 5)
    rows = T((40, 50), layout="ROW_MAJOR")
    yield call("ttnn.quantize", rows, 0.1, 5)
    yield call("ttnn.dequantize", T((40, 50), "int32", "ROW_MAJOR"), 0.1, 5)
    for output in (T((3, 45, 70), "int32"), T((3, 45, 70), "uint8"), T((3, 45, 70)), T((3, 45, 71), "int32")):
        yield call("ttnn.quantize", floats, 0.1, 5, output_tensor=output)
        yield call("ttnn.dequantize", whole, 0.1, 5, output_tensor=output)
        yield call("ttnn.requantize", whole, 0.1, 5, 0.2, 6, output_tensor=output, dtype=E("int32"))
    yield call("ttnn.quantize", floats, "0.1", 5)
    yield call("ttnn.quantize", floats, 0.1)
    yield call("ttnn.dequantize", whole, 0.1, 5.5)
    yield call("ttnn.requantize", whole, 0.1, 5)
    yield call("ttnn.quantize", T((5, 33), host=True), 0.1, 5)


def cases() -> Iterator[Case]:
    for seed, name in enumerate(("where", *JOINING)):
        yield from of_tensors(name, seed)
    yield from with_numbers()
    yield from quantisation()


# -- compared with torch -----------------------------------------------------------------------------------------------

EXACT = {"bfloat16": 0.0, "float32": 0.0}
CLOSE = {"bfloat16": 1.0, "float32": 2.0}

NUMERIC_ROWS = (
    Row(
        "addcmul",
        lambda a, b, c: ttnn.addcmul(a, b, c, value=0.5),
        lambda a, b, c: a + 0.5 * b * c,
        inputs=3,
        ulps=CLOSE,
        floor=1.0,
    ),
    Row(
        "addcdiv",
        lambda a, b, c: ttnn.addcdiv(a, b, c, value=0.5),
        lambda a, b, c: a + 0.5 * b / c,
        inputs=3,
        ulps=CLOSE,
        low=0.5,
    ),
    Row("lerp", ttnn.lerp, torch.lerp, inputs=3, ulps=CLOSE, low=0.0, high=1.0, floor=1.0),
    Row(
        "lerp by number",
        lambda a, b: ttnn.lerp(a, b, 0.5),
        lambda a, b: torch.lerp(a, b, 0.5),
        inputs=2,
        ulps=CLOSE,
        floor=1.0,
    ),
    Row("mac", ttnn.mac, lambda a, b, c: a * b + c, inputs=3, ulps=CLOSE, floor=1.0),
    Row("mac with numbers", lambda a: ttnn.mac(a, 0.5, 1.5), lambda a: a * 0.5 + 1.5, ulps=CLOSE, floor=1.0),
    Row(
        "mac with one number",
        lambda a, b: ttnn.mac(a, 0.5, b),
        lambda a, b: a * 0.5 + b,
        inputs=2,
        ulps=CLOSE,
        floor=1.0,
    ),
    Row(
        "where",
        lambda a, b, c: ttnn.where(ttnn.gt(a, b), b, c),
        lambda a, b, c: torch.where(a > b, b, c),
        inputs=3,
        ulps=EXACT,
    ),
    Row(
        "where true number",
        lambda a, b: ttnn.where(ttnn.gt(a, b), 1.5, b),
        lambda a, b: torch.where(a > b, 1.5, b),
        inputs=2,
        ulps=EXACT,
    ),
    Row(
        "where false number",
        lambda a, b: ttnn.where(ttnn.gt(a, b), a, -1.5),
        lambda a, b: torch.where(a > b, a, -1.5),
        inputs=2,
        ulps=EXACT,
    ),
    Row(
        "where of numbers",
        lambda a: ttnn.where(ttnn.gt(a, 0.0), 1.5, -2.5),
        lambda a: torch.where(a > 0, 1.5, -2.5),
        ulps=EXACT,
    ),
)
