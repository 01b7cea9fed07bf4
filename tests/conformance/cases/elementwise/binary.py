"""Binary elementwise operations.

All operations share tables of shapes, dtypes, layouts and memory configs. Each takes the entries that follow from its
position in the list, so that together they cover the tables several times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ttnn_emulator.conformance.case import (
    BLOCK,
    DTYPES,
    FLOATS,
    INTEGERS,
    SHAPES,
    TALL,
    WIDE,
    C,
    Case,
    E,
    M,
    T,
    block_sharded,
    call,
    height_sharded,
)

ARITHMETIC = ("add", "subtract", "sub", "multiply", "mul", "rsub", "squared_difference")
DIVISIONS = ("divide", "div")
LOGARITHMIC = ("logaddexp", "logaddexp2", "ldexp", "xlogy")
RELATIONAL = ("eq", "ne", "lt", "le", "gt", "ge")
LOGICAL = ("logical_and", "logical_or", "logical_xor")
REMAINDERS = ("remainder",)
EXTREMES = ("maximum", "minimum")
BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor")
SHIFTS = ("bitwise_left_shift", "bitwise_right_shift", "logical_left_shift")
IN_PLACE = (
    "add_ subtract_ sub_ multiply_ mul_ divide_ div_ rsub_ logaddexp_ logaddexp2_ ldexp_ squared_difference_ "
    "bias_gelu_ eq_ ne_ lt_ le_ gt_ ge_ logical_and_ logical_or_ logical_xor_"
).split(" ")
TENSORS_ONLY = ("atan2", "hypot", "nextafter", "isclose")
INTEGERS_ONLY = ("gcd", "lcm")

# Pairs of shapes that broadcast, and some that do not.
PAIRS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((64, 64), (1, 64)),
    ((64, 64), (64, 1)),
    ((1, 64), (64, 1)),
    ((1, 1), (5, 33)),
    ((2, 3, 17, 40), (3, 1, 40)),
    ((64,), (3, 45, 64)),
    ((3, 45, 70), (45, 70)),
    ((1, 2, 3, 5, 33), (4, 1, 1, 5, 1)),
    ((2, 1, 1, 2, 5, 33), (2, 3, 1, 2, 5, 33)),
    ((7,), (7,)),
    ((1,), (5, 33)),
    ((5, 0), (5, 1)),
)
WRONG_PAIRS = (
    ((5, 33), (5, 32)),
    ((2, 3, 4), (3, 4, 3)),
    ((2, 1, 1, 1, 1, 5, 33), (1, 1, 1, 1, 1, 5, 33)),
    ((3, 64), (2, 64)),
)
SCALARS = (2, 2.5, -3, 0, 1e10, -0.125, 70000, 2**31, 2**32)

SQUARE = (128, 128)
UNSPECIFIED = tuple(
    {"layout": layout, "buffer": "L1"} for layout in ("HEIGHT_SHARDED", "WIDTH_SHARDED", "BLOCK_SHARDED")
)
# Memory configs of two operands, and the requested one of the result.
USUAL_PLACES: tuple[tuple[Any, Any, Any], ...] = (
    ("L1", "DRAM", None),
    ("DRAM", "L1", None),
    ("DRAM", "DRAM", "L1"),
    (TALL, TALL, None),
    (WIDE, WIDE, None),
    (BLOCK, BLOCK, None),
    (TALL, "DRAM", None),
)
PLACES: tuple[tuple[Any, Any, Any], ...] = (
    *USUAL_PLACES,
    ("DRAM", TALL, None),
    ("L1", BLOCK, None),
    (TALL, height_sharded([64, 128], 2), None),
    (height_sharded([64, 128], 2), TALL, None),
    (TALL, WIDE, None),
    (TALL, TALL, "DRAM"),
    ("DRAM", "DRAM", TALL),
    (TALL, TALL, BLOCK),
    (BLOCK, "DRAM", UNSPECIFIED[2]),
    ("DRAM", "DRAM", UNSPECIFIED[0]),
    ("L1", "DRAM", UNSPECIFIED[1]),
    ("DRAM", "DRAM", UNSPECIFIED[2]),
    ("DRAM", WIDE, UNSPECIFIED[1]),
    (TALL, "DRAM", UNSPECIFIED[2]),
    (block_sharded([64, 64], (2, 2), orient="COL_MAJOR"), "DRAM", None),
    (height_sharded([32, 128], 4, buffer="DRAM"), "DRAM", None),
    ("DRAM", "DRAM", height_sharded([32, 64], 4)),
    ("DRAM", "DRAM", height_sharded([32, 128], 2)),
)
# Sharded operands with broadcast.
SHARDED_PAIRS = (
    (T((4, 1, 32, 64), mem=height_sharded([32, 64], 4)), T((1, 1, 1, 64))),
    (T((1, 1, 32, 64), mem=height_sharded([32, 64], 1)), T((4, 1, 32, 64))),
    (T((2, 64, 64), mem=block_sharded([64, 32], (2, 2))), T((1, 64, 1))),
    (T((1, 64)), T((64, 64), mem=height_sharded([32, 64], 2))),
    (T((64, 64), layout="ROW_MAJOR", mem=height_sharded([32, 64], 2)), T((64, 64))),
    (T((60, 64), layout="ROW_MAJOR", mem=height_sharded([20, 64], 3)), T((60, 64), layout="ROW_MAJOR")),
)
LAYOUT_PAIRS = (("ROW_MAJOR", "ROW_MAJOR"), ("ROW_MAJOR", "TILE"), ("TILE", "ROW_MAJOR"))
RELU = C("UnaryWithParam", E("UnaryOpType.RELU"))
ACTIVATIONS = (
    {"activations": [RELU]},
    {"activations": [E("UnaryOpType.SILU"), RELU]},
    {"input_tensor_a_activations": [E("UnaryOpType.SILU")]},
    {"input_tensor_b_activations": [C("UnaryWithParam", E("UnaryOpType.EXP"))]},
    {"activations": [RELU], "input_tensor_a_activations": [E("UnaryOpType.NEG")]},
)


def turn(table: Sequence[Any], start: int, count: int) -> list[Any]:
    """`count` entries of a table from any start, cyclic."""
    return [table[(start + step) % len(table)] for step in range(min(count, len(table)))]


def op(name: str) -> str:
    return f"ttnn.{name}"


def rows_of(dtype: str) -> str:
    """A dtype that exists in ROW_MAJOR layout."""
    return "bfloat16" if dtype in ("bfloat8_b", "bfloat4_b") else dtype


def two_tensors(name: str, seed: int, dtype: str, *, memory: bool = True) -> Iterator[Case]:
    """Shapes, broadcasts, dtypes, layouts and memory configs of two tensors."""
    for shape in turn(SHAPES, seed, 3):
        yield call(op(name), T(shape, dtype), T(shape, dtype))
    for a, b in turn(PAIRS, seed * 3, 4):
        yield call(op(name), T(a, dtype), T(b, dtype))
    for a, b in turn(WRONG_PAIRS, seed, 2):
        yield call(op(name), T(a, dtype), T(b, dtype))
    for held in turn(DTYPES, seed, 4):
        yield call(op(name), T((5, 33), held), T((5, 33), held))
    for step in range(4):
        first, second = DTYPES[(seed + step) % 8], DTYPES[(seed * 3 + 5 * step + 1) % 8]
        yield call(op(name), T((2, 40, 50), first), T((2, 40, 50), second))
    for first, second in turn(LAYOUT_PAIRS, seed, 2):
        shape, other = turn(PAIRS[:8], seed * 5, 1)[0]
        yield call(op(name), T(shape, rows_of(dtype), first), T(other, rows_of(dtype), second))
    for first, second, asked in turn(PLACES, seed * 4, 4 if memory else 2):
        options = {"memory_config": M(asked)} if asked is not None and memory else {}
        yield call(op(name), T(SQUARE, dtype, mem=first), T(SQUARE, dtype, mem=second), **options)
    yield call(op(name), T((5, 33), dtype, host=True), T((5, 33), dtype))
    yield call(op(name), T((5, 33), dtype), T((5, 33), dtype, host=True))


def sharded_broadcasts(name: str, seed: int) -> Iterator[Case]:
    for a, b in turn(SHARDED_PAIRS, seed, 2):
        yield call(op(name), a, b)


def tensor_and_number(name: str, seed: int, dtype: str) -> Iterator[Case]:
    for scalar in turn(SCALARS, seed, 2):
        yield call(op(name), T((3, 45, 70), dtype), scalar)
    for step, held in enumerate(turn(DTYPES, seed + 3, 4)):
        yield call(op(name), T((5, 33), held), SCALARS[(seed + step) % len(SCALARS)])
    yield call(op(name), T((2, 3, 17, 40), rows_of(dtype), "ROW_MAJOR"), 2)
    yield call(op(name), T(SQUARE, dtype, mem=turn((TALL, WIDE, BLOCK), seed, 1)[0]), 2)


def options(name: str, seed: int, dtype: str) -> Iterator[Case]:
    """Output dtype, output tensor, memory config, activations."""
    a = T((2, 40, 50), dtype)
    for target in turn(DTYPES, seed, 2):
        yield call(op(name), a, a, dtype=E(target))
    yield call(op(name), a, a, output_tensor=a)
    yield call(op(name), a, a, output_tensor=T((1, 2, 40, 50), dtype), dtype=E(dtype))
    yield call(op(name), a, a, output_tensor=T((2, 40, 51), dtype))
    yield call(op(name), a, a, output_tensor=a, dtype=E("float32" if dtype != "float32" else "bfloat16"))
    yield call(op(name), a, 2, memory_config=M("L1"), output_tensor=T((2, 40, 50), dtype, mem="L1"))
    rows = T((40, 50), rows_of(dtype), "ROW_MAJOR")
    yield call(op(name), rows, 2, output_tensor=rows)
    yield call(op(name), a, a, **turn(ACTIVATIONS, seed, 1)[0])


def wrong_arguments(name: str, seed: int, dtype: str) -> Iterator[Case]:
    a = T((5, 33), dtype)
    wrong = (
        call(op(name), a),
        call(op(name), a, "2"),
        call(op(name), a, None),
        call(op(name), a, a, 3),
        call(op(name), a, a, nonsense=True),
        call(op(name), a, [1, 2]),
        call(op(name), 2, 3),
        call(op(name), a, a, memory_config="L1"),
        call(op(name), a, a, dtype="bfloat16"),
    )
    yield from turn(wrong, seed, 4)


def general() -> Iterator[Case]:
    """Operations that take two tensors or a tensor and a number, and all options."""
    names = (
        ARITHMETIC + DIVISIONS + LOGARITHMIC + RELATIONAL + LOGICAL + REMAINDERS + ("logical_right_shift", "bias_gelu")
    )
    for seed, name in enumerate((*names, "logical_right_shift", "bias_gelu")):
        dtype = "int32" if name == "logical_right_shift" else FLOATS[seed % 3]
        yield from two_tensors(name, seed, dtype)
        yield from tensor_and_number(name, seed, dtype)
        yield from options(name, seed, dtype)
        yield from wrong_arguments(name, seed, dtype)
        if dtype == "bfloat16":
            yield from sharded_broadcasts(name, seed)


def numbers_first() -> Iterator[Case]:
    for seed, name in enumerate(ARITHMETIC + DIVISIONS + ("eq", "maximum")):
        for step, dtype in enumerate(turn(DTYPES, seed, 3)):
            yield call(op(name), SCALARS[(seed + step) % len(SCALARS)], T((5, 33), dtype))
    for name in ("add", "multiply", "divide"):
        yield call(op(name), 2.5, T(SQUARE, mem=TALL), memory_config=M("DRAM"))
        yield call(op(name), 2.5, T((5, 33), layout="ROW_MAJOR"))


def accuracy() -> Iterator[Case]:
    """fast_and_approximate_mode and rounding_mode."""
    for name in ("add", "subtract", "multiply", "divide", "rsub"):
        for step, dtype in enumerate(("bfloat16", "float32", "bfloat8_b", "int32")):
            fast = {"fast_and_approximate_mode": step % 2 == 0}
            yield call(op(name), T((5, 33), dtype), T((5, 33), dtype), **fast)
            yield call(op(name), T((5, 33), dtype), T((5, 33), dtype), fast_and_approximate_mode=False)
            yield call(op(name), T((5, 33), dtype), 2, **fast)
        yield call(op(name), T((5, 33)), T((5, 33)), fast_and_approximate_mode=False, dtype=E("float32"))
        yield call(op(name), T((5, 33)), T((5, 33)), fast_and_approximate_mode=1)
    for name in DIVISIONS:
        for mode in ("floor", "trunc", "round", None):
            for dtype in ("bfloat16", "float32", "int32", "bfloat8_b"):
                yield call(op(name), T((5, 33), dtype), T((5, 33), dtype), rounding_mode=mode)
        for dtype in ("bfloat16", "int32", "uint32"):
            yield call(op(name), T((5, 33), dtype), 3, rounding_mode="floor")
            yield call(op(name), T((5, 33), dtype), 2.5, rounding_mode="trunc")
        yield call(op(name), T((5, 33), "int32"), T((5, 33), "int32"), dtype=E("bfloat16"))
        yield call(op(name), T((5, 33), "int32"), T((5, 33), "int32"), dtype=E("float32"))
        yield call(op(name), T((5, 33)), T((5, 33)), rounding_mode="floor", dtype=E("float32"))


def in_place() -> Iterator[Case]:
    for seed, name in enumerate(IN_PLACE):
        dtype = FLOATS[seed % 3]
        for shape in turn(SHAPES, seed, 3):
            yield call(op(name), T(shape, dtype), T(shape, dtype))
        for a, b in turn(PAIRS, seed * 5, 4):
            yield call(op(name), T(a, dtype), T(b, dtype))
        for held in turn(DTYPES, seed, 4):
            yield call(op(name), T((5, 33), held), T((5, 33), held))
            yield call(op(name), T((5, 33), held), SCALARS[seed % len(SCALARS)])
        yield call(op(name), T((5, 33)), T((5, 33), "float32"))
        yield call(op(name), T((5, 33), "int32"), T((5, 33)))
        for first, second in LAYOUT_PAIRS:
            yield call(op(name), T((64, 40), layout=first), T((64, 40), layout=second))
        yield call(op(name), T((64, 40), layout="ROW_MAJOR"), 2)
        for first, second, _ in turn(PLACES, seed * 3, 3):
            yield call(op(name), T(SQUARE, mem=first), T(SQUARE, mem=second))
        yield call(op(name), T(SQUARE, mem=TALL), -0.125)
        yield call(op(name), T((5, 33)), T((5, 33)), **turn(ACTIVATIONS, seed, 1)[0])
        yield call(op(name), T((5, 33)), T((5, 33)), memory_config=M("L1"))
        yield call(op(name), 2, T((5, 33)))
        yield call(op(name), T((5, 33), host=True), 2)


def extremes() -> Iterator[Case]:
    for seed, name in enumerate(EXTREMES):
        yield from two_tensors(name, seed, "bfloat16")
        yield from two_tensors(name, seed + 5, "int32")
        for dtype in DTYPES:
            yield call(op(name), T((5, 33), dtype), 2)
            yield call(op(name), T((5, 33), dtype), -0.125)
        yield from options(name, seed, "float32")
        yield from wrong_arguments(name, seed, "bfloat16")
        yield call(op(name), T(SQUARE, mem=BLOCK), 2)
        yield call(op(name), T((60, 64), layout="ROW_MAJOR", mem=height_sharded([20, 64], 3)), 2)
        yield call(op(name), T(SQUARE), 2, memory_config=M(UNSPECIFIED[seed]))


def integers() -> Iterator[Case]:
    for seed, name in enumerate(BITWISE + SHIFTS):
        dtype = INTEGERS[seed % 3]
        yield from two_tensors(name, seed, dtype)
        for held in DTYPES:
            yield call(op(name), T((5, 33), held), 3)
        for amount in (0, 31, 32, -1, 2**31, 2**33, 2.0):
            yield call(op(name), T((3, 45, 70), "int32"), amount)
        yield call(op(name), T(SQUARE, dtype, mem=TALL), 3)
        yield call(op(name), T((40, 50), dtype, "ROW_MAJOR"), 3, memory_config=M("L1"))
        yield call(op(name), T((40, 50), dtype), 3, output_tensor=T((40, 50), dtype))
        yield call(op(name), T((40, 50), dtype), 3, output_tensor=T((40, 51), dtype))
        yield call(op(name), T((40, 50), dtype), T((40, 50), dtype), output_tensor=T((40, 50), "int32"))
        yield from wrong_arguments(name, seed, dtype)
    for seed, name in enumerate(INTEGERS_ONLY):
        yield from two_tensors(name, seed, "int32")
        yield from options(name, seed, "int32")
        yield call(op(name), T((5, 33), "int32"), 2)


def tensors_only() -> Iterator[Case]:
    for seed, name in enumerate(TENSORS_ONLY):
        yield from two_tensors(name, seed, "bfloat16")
        yield from two_tensors(name, seed + 7, "float32")
        yield from sharded_broadcasts(name, seed)
        yield call(op(name), T((5, 33)), 2)
        yield call(op(name), T((5, 33)), T((5, 33)), dtype=E("float32"))
    a = T((5, 33))
    for rtol, atol in ((0.1, 0.2), (-1.0, 0.0), (0.0, -1.0), ({"F": "inf"}, 0.0), (0.0, {"F": "nan"})):
        yield call("ttnn.isclose", a, a, rtol=rtol, atol=atol)
    for dtype in DTYPES:
        yield call("ttnn.isclose", T((5, 33), dtype), T((5, 33), "bfloat16"), equal_nan=True)
        yield call("ttnn.isclose", T((5, 33), "int32"), T((5, 33), dtype))


def powers() -> Iterator[Case]:
    for seed, dtype in enumerate(DTYPES):
        a = T(SHAPES[seed % len(SHAPES)], dtype)
        for exponent in (0, 1, 2, 3, 5, -1, 2.0, 0.5, -2.5, 2.5e9):
            yield call("ttnn.pow", a, exponent)
        yield call("ttnn.pow", 2.5, a)
        yield call("ttnn.pow", -3, a)
        yield call("ttnn.pow", a, a)
    yield from two_tensors("pow", 2, "bfloat16")
    yield from two_tensors("pow", 5, "float32")
    a = T(SQUARE, mem=TALL)
    for to in (2, 2.5, T(SQUARE)):
        yield call("ttnn.pow", a, to)
        yield call("ttnn.pow", a, to, memory_config=M("L1"))
        yield call("ttnn.pow", T(SQUARE), to, output_tensor=T(SQUARE))
        yield call("ttnn.pow", T(SQUARE), to, output_tensor=T((5, 33)))
        yield call("ttnn.pow", T(SQUARE), to, dtype=E("float32"))
    yield call("ttnn.pow", T((5, 33), layout="ROW_MAJOR"), 2.5)
    yield call("ttnn.pow", T((5, 33), host=True), 2)
    yield call("ttnn.pow", T((5, 33)), "2")
    yield call("ttnn.pow", 2.0, 3.0)


def composites() -> Iterator[Case]:
    for seed, name in enumerate(("addalpha", "subalpha")):
        for dtype in DTYPES:
            yield call(op(name), T((5, 33), dtype), T((5, 33), dtype), 2.5)
        for a, b in turn(PAIRS, seed * 4, 5) + list(WRONG_PAIRS):
            yield call(op(name), T(a), T(b), 2)
        for first, second, asked in turn(PLACES, seed * 7, 5):
            memory = {"memory_config": M(asked)} if asked is not None else {}
            yield call(op(name), T(SQUARE, mem=first), T(SQUARE, mem=second), 0.5, **memory)
        a = T((5, 33))
        yield call(op(name), a, a)
        yield call(op(name), a, a, "2")
        yield call(op(name), a, 2.0, 3.0)
        yield call(op(name), a, a, 2.0, output_tensor=T((5, 33)))
        yield call(op(name), a, a, 2.0, output_tensor=T((5, 34)))
        yield call(op(name), T((5, 33), layout="ROW_MAJOR"), T((5, 33)), 2.0)
        yield call(op(name), T((5, 33), host=True), a, 2.0)
        yield call(op(name), a, T((5, 33), "float32"), 2.0)
        yield call(op(name), a, T((5, 33), "int32"), 2.0)
    for name in ("fmod",):
        yield from two_tensors(name, 3, "bfloat16")
        yield from two_tensors(name, 6, "int32")
        yield from tensor_and_number(name, 4, "float32")
        yield from tensor_and_number(name, 1, "int32")
        yield call(op(name), T((5, 33)), 2, dtype=E("float32"))
        yield call(op(name), T((5, 33)), T((5, 33)), output_tensor=T((5, 33)))
    for seed, name in enumerate(("div_no_nan", "floor_div")):
        for dtype in DTYPES:
            if name == "div_no_nan" or dtype != "int32":  # floor_div of int32 is a ChipFault
                yield call(op(name), T((5, 33), dtype), T((5, 33), dtype))
            yield call(op(name), T((5, 33), dtype), 2.5)
            yield call(op(name), T((5, 33), dtype), 0)
        for a, b in turn(PAIRS, seed * 5, 5) + list(WRONG_PAIRS):
            yield call(op(name), T(a), T(b))
        for step in range(6):
            yield call(op(name), T((5, 33), DTYPES[step]), T((5, 33), DTYPES[(step * 3 + 1) % 8]))
        for first, second, _ in turn(PLACES, seed * 3, 4):
            yield call(op(name), T(SQUARE, mem=first), T(SQUARE, mem=second), memory_config=M("L1"))
        yield call(op(name), T((5, 33), layout="ROW_MAJOR"), T((5, 33), layout="ROW_MAJOR"))
        yield call(op(name), T((5, 33)))
        yield call(op(name), 2, T((5, 33)))
    yield from _polynomials()
    yield from _slopes()
    yield from _outer_products()


def _polynomials() -> Iterator[Case]:
    for step, dtype in enumerate(DTYPES):
        yield call("ttnn.polyval", T(SHAPES[step], dtype), [1.0, -2.0, 0.5])
        yield call("ttnn.polyval", T(SHAPES[step], dtype), [2.0])
        yield call("ttnn.polyval", T(SHAPES[step], dtype), [1, 2])
    yield call("ttnn.polyval", T((5, 33)), [])
    yield call("ttnn.polyval", T((5, 33)), 2.0)
    yield call("ttnn.polyval", T((5, 33)), ["1"])
    yield call("ttnn.polyval", T((5, 33), host=True), [1.0, 2.0])
    for memory in ("L1", TALL, BLOCK):
        yield call("ttnn.polyval", T(SQUARE), [1.0, 2.0, 3.0], memory_config=M(memory))
        yield call("ttnn.polyval", T(SQUARE, mem=memory), [1.0, 2.0, 3.0])
    yield call("ttnn.polyval", T((5, 33), layout="ROW_MAJOR"), [1.0, 2.0])


def _slopes() -> Iterator[Case]:
    for step, dtype in enumerate(DTYPES):
        yield call("ttnn.prelu", T((2, 3, 17, 40), dtype), 0.25)
        yield call("ttnn.prelu", T((2, 3, 17, 40), dtype), T((3,), dtype))
        yield call("ttnn.prelu", T((2, 3, 17, 40)), T((3,), dtype))
        yield call("ttnn.prelu", T((5, 33), DTYPES[step]), [0.25])
    yield call("ttnn.prelu", T((2, 3, 17, 40)), T((4,)))
    yield call("ttnn.prelu", T((2, 3, 17, 40)), T((1, 3)))
    yield call("ttnn.prelu", T((64, 3)), T((3,)))
    yield call("ttnn.prelu", T((3,)), T((3,)))
    yield call("ttnn.prelu", T((2, 3, 5, 17, 40)), T((3,)), memory_config=M("L1"))
    yield call("ttnn.prelu", T((2, 3, 17, 40)), [0.25, 0.5])
    yield call("ttnn.prelu", T((2, 3, 17, 40)), "0.25")
    yield call("ttnn.prelu", T((2, 3, 17, 40)), 1, memory_config=M("L1"))
    yield call("ttnn.prelu", T((2, 3, 32, 32), mem=height_sharded([32, 32], 6)), T((3,)))


def _outer_products() -> Iterator[Case]:
    for dtype in DTYPES:
        yield call("ttnn.outer", T((5,), dtype), T((7,), dtype))
        yield call("ttnn.outer", T((3, 5), dtype), T((3, 7), dtype))
        yield call("ttnn.outer", T((32,), dtype), T((64,)))
    for a, b in (((1, 32), (1, 64)), ((2, 5), (7,)), ((2, 1, 5), (3, 7)), ((2, 5), (3, 7)), ((1, 1, 1, 5), (7,))):
        yield call("ttnn.outer", T(a), T(b))
        yield call("ttnn.outer", T(a, "float32"), T(b, "float32"), memory_config=M("L1"))
    yield call("ttnn.outer", T((5,), layout="ROW_MAJOR"), T((7,), layout="ROW_MAJOR"))
    yield call("ttnn.outer", T((5,)), 2)
    yield call("ttnn.outer", T((5,)), T((7,)), dtype=E("float32"))
    yield call("ttnn.outer", T((5,), host=True), T((7,)))


def glu() -> Iterator[Case]:
    for dtype in DTYPES:
        yield call("ttnn.clamped_silu_glu", T((2, 40, 50), dtype), T((2, 40, 50), dtype), 7.0)
        yield call("ttnn.situ_glu", T((2, 40, 50), dtype), T((2, 40, 50), dtype), 1.0, 2.0)
    a = T((2, 40, 50))
    for limit in (0.0, -1.0, 1, {"F": "inf"}, "7"):
        yield call("ttnn.clamped_silu_glu", a, a, limit)
    for x, y in turn(PAIRS, 0, 6) + list(WRONG_PAIRS):
        yield call("ttnn.clamped_silu_glu", T(x), T(y), 7.0)
        yield call("ttnn.situ_glu", T(x), T(y), 1.0, 0.0)
    for first, second, asked in turn(PLACES, 2, 6):
        memory = {"memory_config": M(asked)} if asked is not None else {}
        yield call("ttnn.clamped_silu_glu", T(SQUARE, mem=first), T(SQUARE, mem=second), 7.0, **memory)
    for held in ("float32", "int32", "bfloat8_b"):
        yield call("ttnn.clamped_silu_glu", a, T((2, 40, 50), held), 7.0)
    yield call("ttnn.clamped_silu_glu", a, 2.0, 7.0)
    yield call("ttnn.situ_glu", a, a, 1.0)


def older_broadcasts() -> Iterator[Case]:
    def bcast(a: Any, b: Any, math: str, dim: str, **more: Any) -> Case:
        return call("ttnn.bcast", a, b, E(f"BcastOpMath.{math}"), E(f"BcastOpDim.{dim}"), **more)

    fitting = {"H": (1, 1, 32, 96), "W": (1, 1, 64, 32), "HW": (1, 1, 32, 32)}
    for math in ("ADD", "SUB", "MUL"):
        for dim, shape in fitting.items():
            a = T((2, 3, 64, 96))
            yield bcast(a, T(shape), math, dim)
            yield bcast(a, T((2, 3, *shape[2:])), math, dim)
            yield bcast(a, T((1, 1, *(1 if size == 32 else size for size in shape[2:]))), math, dim)
            yield bcast(a, T((1, 3, *shape[2:])), math, dim)
            yield bcast(a, T((1, 1, 64, 96)), math, dim)
    for dtype in DTYPES:
        yield bcast(T((1, 1, 64, 96), dtype), T((1, 1, 32, 96), dtype), "ADD", "H")
        yield bcast(T((1, 1, 64, 96)), T((1, 1, 32, 32), dtype), "MUL", "HW")
    for dim, shape in fitting.items():
        yield bcast(T((1, 1, 64, 96), layout="ROW_MAJOR"), T(shape, layout="ROW_MAJOR"), "ADD", dim)
        yield bcast(T((1, 1, 64, 96), mem=height_sharded([32, 96], 2)), T(shape), "ADD", dim)
        yield bcast(T((1, 1, 64, 96)), T(shape), "ADD", dim, memory_config=M("L1"))
        yield bcast(T((1, 1, 64, 96)), T(shape), "ADD", dim, memory_config=M(height_sharded([32, 96], 2)))
        yield bcast(T((1, 1, 64, 96)), T(shape), "ADD", dim, output_tensor=T((1, 1, 64, 96)))
        yield bcast(T((1, 1, 64, 96)), T(shape), "ADD", dim, output_tensor=T((1, 1, 64, 64)))
        yield bcast(T((1, 1, 64, 96), host=True), T(shape), "ADD", dim)
        yield bcast(T((5, 33)), T((1, 33)), "ADD", dim)
    yield call("ttnn.bcast", T((1, 1, 64, 96)), T((1, 1, 32, 96)), "ADD", "H")
    yield call("ttnn.bcast", T((1, 1, 64, 96)), T((1, 1, 32, 96)))


def cases() -> Iterator[Case]:
    yield from general()
    yield from numbers_first()
    yield from accuracy()
    yield from in_place()
    yield from extremes()
    yield from integers()
    yield from tensors_only()
    yield from powers()
    yield from composites()
    yield from glu()
    yield from older_broadcasts()
