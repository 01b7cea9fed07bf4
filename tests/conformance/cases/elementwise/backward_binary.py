"""Gradients of binary and ternary operations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ttnn_emulator.conformance.case import BLOCK, DTYPES, SHAPES, TALL, WIDE, Case, E, M, T, call, product

from .backward import OUTPUTS
from .binary import SQUARE, UNSPECIFIED, turn
from .ternary import USUAL_PLACES

PAIRS = "atan2 fmod hypot ldexp logaddexp logaddexp2 max min remainder squared_difference xlogy".split(" ")

# Name → parameter names of its two output gradients.
CHOOSING = {
    "add": ("input_grad", "other_grad"),
    "sub": ("input_grad", "other_grad"),
    "mul": ("input_grad", "other_grad"),
    "div": ("input_grad", "other_grad"),
    "addalpha": ("input_a_grad", "input_b_grad"),
    "subalpha": ("input_grad", "other_grad"),
    "rsub": ("input_grad", "other_grad"),
    "assign": ("input_a_grad", "input_b_grad"),
}
BY_NUMBER = ("add", "sub", "mul", "div", "fmod", "remainder")
THREES = ("addcmul", "addcdiv")

# Shapes of the gradient and of two operands.
BROADCAST: tuple[tuple[tuple[int, ...], ...], ...] = (
    ((5, 33), (5, 33), (1, 33)),
    ((5, 33), (5, 1), (5, 33)),
    ((2, 3, 17, 40), (2, 3, 17, 40), (1, 3, 1, 40)),
    ((2, 3, 17, 40), (40,), (2, 3, 17, 40)),
    ((2, 3, 17, 40), (1, 1, 17, 40), (2, 1, 1, 1)),
    ((1, 33), (5, 33), (5, 33)),
)
MISMATCHED: tuple[tuple[tuple[int, ...], ...], ...] = (
    ((5, 33), (5, 33), (5, 32)),
    ((5, 32), (5, 33), (5, 33)),
    ((5, 33), (4, 33), (5, 33)),
    ((5, 33), (3, 4), (3, 4)),
    ((5, 33), (1, 5, 33), (5, 33)),
)
PLACES: tuple[tuple[Any, ...], ...] = (
    ("L1", "DRAM", "DRAM", None),
    ("DRAM", "L1", "DRAM", None),
    ("DRAM", "DRAM", "L1", None),
    *USUAL_PLACES,
    (TALL, BLOCK, WIDE, None),
    ("DRAM", "DRAM", "DRAM", TALL),
    ("DRAM", "DRAM", "DRAM", UNSPECIFIED[0]),
    (TALL, TALL, TALL, UNSPECIFIED[1]),
)


def of_tensors(name: str, seed: int, operands: int, *args: Any, **options: Any) -> Iterator[Case]:
    """Shapes, dtypes, layouts and memory configs of the gradient and the operands."""

    def bw(*tensors: Any, **more: Any) -> Case:
        filled = tensors + (tensors[-1],) * (operands + 1 - len(tensors))
        return call(f"ttnn.{name}_bw", *filled, *args, **options, **more)

    for shape in SHAPES:
        yield bw(T(shape))
    for dtype in DTYPES:
        a = T((5, 33), dtype)
        yield bw(a)
        yield bw(T((5, 33)), a)
        yield bw(T((5, 33)), T((5, 33)), a)
        yield bw(a, T((5, 33), "float32"))
    for shapes in turn(BROADCAST, seed, 4) + turn(MISMATCHED, seed, 4):
        yield bw(*(T(shape) for shape in shapes))
    for layouts in (("ROW_MAJOR",) * 3, ("TILE", "ROW_MAJOR", "TILE"), ("ROW_MAJOR", "TILE", "TILE")):
        yield bw(*(T((64, 40), layout=layout) for layout in layouts))
    for *places, asked in PLACES:
        memory = {"memory_config": M(asked)} if asked is not None else {}
        yield bw(*(T(SQUARE, mem=place) for place in places), **memory)
    a, host = T((5, 33)), T((5, 33), host=True)
    for odd in (host, "x", None):
        yield bw(odd, a, a)
        yield bw(a, odd, a)
        yield bw(a, a, odd)
    yield call(f"ttnn.{name}_bw", a)
    yield bw(a, memory_config="L1")
    yield bw(a, dtype=E("float32"))


def requested_gradients(name: str, first: str, second: str) -> Iterator[Case]:
    """Requested gradients and their outputs."""
    a = T((5, 33))

    def bw(*tensors: Any, **options: Any) -> Case:
        return call(f"ttnn.{name}_bw", *tensors, **options)

    for required in ([True, True], [True, False], [False, True], [False, False], [True, True, False], [1, 0], "x"):
        yield bw(a, a, a, are_required_outputs=required)
        yield bw(a, a, a, are_required_outputs=required, memory_config=M("L1"))
        yield bw(a, a, a, are_required_outputs=required, **{first: T((5, 33)), second: T((5, 33))})
        yield bw(a, a, T((1, 33)), are_required_outputs=required)
    given = (
        *OUTPUTS,
        T((5, 33), layout="ROW_MAJOR"),
        T((5, 33), mem="L1"),
        T((5, 33), host=True),
        "x",
    )
    for keyword, out in product((first, second), given):
        yield bw(a, a, a, **{keyword: out})
        yield bw(a, a, a, memory_config=M("L1"), **{keyword: out})
    yield bw(T(SQUARE), T(SQUARE), T(SQUARE), **{first: T(SQUARE, mem=TALL)})
    yield bw(T(SQUARE, mem=TALL), T(SQUARE, mem=TALL), T(SQUARE, mem=TALL), **{second: T(SQUARE)})
    yield bw(a, a, a, output_tensor=T((5, 33)))


def by_numbers() -> Iterator[Case]:
    for name, dtype in product(BY_NUMBER, DTYPES):
        a = T((5, 33), dtype)
        for number in (0.5, 2, 0.0):
            yield call(f"ttnn.{name}_bw", a, a, number)
        yield call(f"ttnn.{name}_bw", T((5, 33)), a, -1.5)
    for name in BY_NUMBER:
        a = T((5, 33))
        for shape in SHAPES:
            yield call(f"ttnn.{name}_bw", T(shape), T(shape), 0.5)
        for other in (T((1, 33)), T((3, 4)), T((1, 5, 33)), T((5, 33), host=True), T((5, 33), layout="ROW_MAJOR")):
            if other != T((5, 33), host=True) or name not in ("add", "sub", "mul", "div"):  # the library would crash
                yield call(f"ttnn.{name}_bw", a, other, 0.5)
        for grad, source, asked in (
            (TALL, TALL, None),
            ("DRAM", TALL, None),
            (BLOCK, "DRAM", None),
            ("DRAM", "L1", TALL),
        ):
            memory = {"memory_config": M(asked)} if asked is not None else {}
            yield call(f"ttnn.{name}_bw", T(SQUARE, mem=grad), T(SQUARE, mem=source), 0.5, **memory)
        for out in (T((5, 33)), T((5, 33), "float32"), T((5, 34)), T((5, 33), mem="L1"), T((5, 33), host=True)):
            yield call(f"ttnn.{name}_bw", a, a, 0.5, input_grad=out)
        yield call(f"ttnn.{name}_bw", a, a, 0.5, memory_config=M("L1"))
        yield call(f"ttnn.{name}_bw", a, a, "x")
        yield call(f"ttnn.{name}_bw", a, a, 0.5, are_required_outputs=[True, True])
    a = T((5, 33))
    for mode in (None, "floor", "trunc", "up", "", 1):
        yield call("ttnn.div_bw", a, a, 2.0, mode)
        yield call("ttnn.div_bw", a, a, 2.0, rounding_mode=mode)
        yield call("ttnn.div_bw", a, a, a, rounding_mode=mode)
        yield call("ttnn.div_bw", T((1, 33)), a, a, rounding_mode=mode)
        yield call("ttnn.div_bw", T((5, 33), "float32"), a, a, rounding_mode=mode, are_required_outputs=[False, True])
        yield call("ttnn.div_bw", T(SQUARE, mem=TALL), T(SQUARE), T(SQUARE, mem=BLOCK), rounding_mode=mode)
    for name, alpha in product(("addalpha", "subalpha"), (0.5, 2, -1.0, "x", None)):
        yield call(f"ttnn.{name}_bw", a, a, a, alpha)
        yield call(f"ttnn.{name}_bw", T((5, 33), "float32"), T((5, 33), "float32"), a, alpha=alpha)


def concatenations() -> Iterator[Case]:
    sizes = ((2, 3, 32, 64), (1, 2, 64, 32), (2, 3, 5, 33), (1, 1, 17, 40))
    for shape, dim in product(sizes, range(-5, 5)):
        joined = list(shape)
        joined[dim % 4] *= 2
        yield call("ttnn.concat_bw", T(joined), T(shape), T(shape), dim)
    for dtype in DTYPES:
        yield call("ttnn.concat_bw", T((1, 4, 32, 64), dtype), T((1, 3, 32, 64), dtype), T((1, 1, 32, 64), dtype), 1)
        yield call("ttnn.concat_bw", T((1, 4, 32, 64)), T((1, 3, 32, 64), dtype), T((1, 1, 32, 64)), 1)
    g, a, b = T((1, 4, 32, 64)), T((1, 3, 32, 64)), T((1, 1, 32, 64))
    for required in ([True, False], [False, True], [False, False]):
        yield call("ttnn.concat_bw", g, a, b, 1, are_required_outputs=required)
    for out in (a, T((1, 3, 32, 64), "float32"), T((1, 3, 32, 32)), T((1, 3, 32, 64), mem="L1"), T((3, 32, 64))):
        yield call("ttnn.concat_bw", g, a, b, 1, input_a_grad=out)
    yield call("ttnn.concat_bw", g, a, b, 1, input_b_grad=b)
    yield call("ttnn.concat_bw", g, a, b, 1, memory_config=M("L1"))
    yield call("ttnn.concat_bw", g, a, b, dim=1)
    for shapes in (((5, 66), (5, 33), (5, 33)), ((3, 5, 66), (3, 5, 33), (3, 5, 33)), ((64,), (32,), (32,))):
        yield call("ttnn.concat_bw", *(T(shape) for shape in shapes), 1)
        yield call("ttnn.concat_bw", *(T(shape) for shape in shapes))
    yield call("ttnn.concat_bw", g, a, T((1, 2, 32, 64)), 1)
    yield call("ttnn.concat_bw", T((1, 3, 32, 64)), a, b, 1)
    rows = [T(shape, layout="ROW_MAJOR") for shape in ((1, 4, 32, 64), (1, 3, 32, 64), (1, 1, 32, 64))]
    yield call("ttnn.concat_bw", *rows, 1)
    yield call("ttnn.concat_bw", g, a)
    yield call("ttnn.concat_bw", g, a, b, 1.5)


def conditions() -> Iterator[Case]:
    yield from of_tensors("where", 1, 3)
    a = T((5, 33))
    for required in ([True, False], [False, True], [False, False], [True]):
        yield call("ttnn.where_bw", a, a, a, a, are_required_outputs=required)
        yield call("ttnn.where_bw", a, a, a, a, are_required_outputs=required, memory_config=M("L1"))
    for keyword in ("input_a_grad", "input_b_grad"):
        for out in (a, T((5, 33), "float32"), T((5, 34)), T((1, 5, 33)), T((5, 33), mem="L1"), T((5, 33), host=True)):
            yield call("ttnn.where_bw", a, a, a, a, **{keyword: out})
            yield call("ttnn.where_bw", a, T((5, 33), "float32"), a, a, **{keyword: out})


def cases() -> Iterator[Case]:
    for seed, name in enumerate((*PAIRS, *CHOOSING)):
        yield from of_tensors(name, seed, 2)
    for name, (first, second) in CHOOSING.items():
        yield from requested_gradients(name, first, second)
    yield from by_numbers()
    for dtype in DTYPES:
        for out in (T((5, 33), dtype), T((5, 33)), T((5, 34), dtype), T((5, 33), dtype, mem="L1")):
            yield call("ttnn.assign_bw", T((5, 33), dtype), T((5, 33)), input_a_grad=out)
        yield call("ttnn.assign_bw", T((5, 33), dtype), T((7, 8)))
    yield from concatenations()
    for seed, name in enumerate(THREES):
        yield from of_tensors(name, seed, 3, 0.5)
        a = T((5, 33))
        for alpha in (2, -1.0, 0.0, "x", None):
            yield call(f"ttnn.{name}_bw", a, a, a, a, alpha)
        yield call(f"ttnn.{name}_bw", a, a, a, a)
    yield from conditions()
    yield from of_tensors("lerp", 2, 3)
    yield from of_tensors("lerp", 4, 2, 0.25)
