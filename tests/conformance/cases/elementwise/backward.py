"""Gradients of unary operations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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
)

from .binary import SQUARE, UNSPECIFIED, USUAL_PLACES, turn

PLAIN = (
    "abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp2 expm1 fill_zero floor "
    "frac hardsigmoid hardswish i0 lgamma log log10 log1p log2 log_sigmoid logit multigammaln rad2deg reciprocal relu "
    "relu6 round selu sigmoid sign sin sinh softsign square tan tanhshrink trunc"
).split(" ")
INTO_A_TENSOR = "exp fill gelu neg rsqrt silu sqrt tanh".split(" ")

# Name → argument lists after the two tensors.
WITH_ARGUMENTS: dict[str, tuple[tuple[tuple, dict[str, Any]], ...]] = {
    "celu": (((), {"alpha": 0.5}), ((), {"alpha": -2.0}), ((), {"alpha": 0.0})),
    "elu": (((), {"alpha": 0.5}), ((), {"alpha": 3}), ((0.5,), {})),
    "clamp": (((-1.0, 1.0), {}), ((0.5,), {}), ((), {"max": 2.0}), ((), {}), ((None, None), {}), ((2, 1), {})),
    "clip": (((-1.0, 1.0), {}), ((0.5,), {}), ((), {"max": 2.0}), ((), {}), (("x", 1.0), {})),
    "div_no_nan": (((2.0,), {}), ((0.0,), {}), ((-3,), {}), ((), {})),
    "hardshrink": (((), {"lambd": 0.25}), ((), {"lambd": -1.0}), ((0.5,), {})),
    "hardtanh": (((), {"min": -2.0, "max": 0.5}), ((), {"min": 1.0, "max": -1.0}), ((-1.0, 1.0), {})),
    "leaky_relu": (((), {"negative_slope": 0.2}), ((), {"negative_slope": -1}), ((0.2,), {})),
    "logiteps": (((), {"eps": 0.1}), ((), {"eps": -0.1}), ((), {"eps": 0.7}), ((0.1,), {})),
    "polygamma": (((1,), {}), ((2,), {}), ((10,), {}), ((0,), {}), ((11,), {}), ((-1,), {}), ((1.5,), {}), ((), {})),
    "pow": (((2.0,), {}), ((0.5,), {}), ((1.0,), {}), ((0.0,), {}), ((-1.0,), {}), ((3,), {}), ((), {})),
    "rdiv": (
        ((2.0,), {}),
        ((-2.0,), {}),
        ((0.0,), {}),
        ((2.0,), {"rounding_mode": "floor"}),
        ((2.0,), {"rounding_mode": "trunc"}),
        ((2.0,), {"rounding_mode": "up"}),
        ((), {}),
    ),
    "rpow": (((2.0,), {}), ((-1.5,), {}), ((0.0,), {}), ((), {})),
    "softplus": (((), {"beta": 2.0, "threshold": 5.0}), ((), {"beta": -1}), ((2.0, 5.0), {})),
    "softshrink": (((), {"lambd": 0.25}), ((), {"lambd": 0}), ((0.5,), {})),
    "threshold": (((0.5, 2.0), {}), ((-1, 3), {}), ((0.5,), {}), ((), {})),
}
TENSOR_SHAPES = (((1, 33), (5, 33)), ((5, 33), (1, 33)), ((5, 1), (5, 33)), ((5, 33), (5, 1)), ((1, 1), (5, 33)))
OTHER_SHAPES = (((5, 32), (5, 33)), ((5, 33), (4, 33)), ((5, 33), (1, 5, 33)), ((2, 5, 33), (5, 33)), ((3,), (7,)))
PLACES: tuple[tuple[Any, Any, Any], ...] = (
    *USUAL_PLACES,
    ("DRAM", BLOCK, None),
    (TALL, BLOCK, None),
    (TALL, TALL, "DRAM"),
    ("DRAM", "DRAM", WIDE),
    ("DRAM", "DRAM", UNSPECIFIED[0]),
    (BLOCK, BLOCK, UNSPECIFIED[2]),
    ("DRAM", "DRAM", height_sharded([32, 64], 4)),
)
# Tensors passed as gradients of [5, 33]: the same, and others in dtype or shape.
OUTPUTS = (
    T((5, 33)),
    T((5, 33), "float32"),
    T((5, 33), "bfloat8_b"),
    T((5, 33), "int32"),
    T((1, 5, 33)),
    T((5, 34)),
)
ODD_INPUTS = (T((5, 33), host=True), 2.0, "x", None)


def of_tensors(name: str, seed: int, *args: Any, **options: Any) -> Iterator[Case]:
    """Shapes, dtypes, layouts and memory configs of the gradient and the input."""

    def bw(g: Any, x: Any, **more: Any) -> Case:
        return call(f"ttnn.{name}_bw", g, x, *args, **options, **more)

    for shape in SHAPES:
        yield bw(T(shape), T(shape))
    for dtype in DTYPES:
        yield bw(T((5, 33), dtype), T((5, 33), dtype))
        yield bw(T((5, 33)), T((5, 33), dtype))
    for dtype in turn(DTYPES, seed, 4):
        yield bw(T((2, 3, 17, 40), dtype), T((2, 3, 17, 40), "float32"))
        yield bw(T((2, 3, 17, 40), dtype, "ROW_MAJOR"), T((2, 3, 17, 40), dtype, "ROW_MAJOR"))
    for first, second in turn(TENSOR_SHAPES, seed, 2) + turn(OTHER_SHAPES, seed, 3):
        yield bw(T(first), T(second))
    for layouts in (("ROW_MAJOR", "ROW_MAJOR"), ("TILE", "ROW_MAJOR"), ("ROW_MAJOR", "TILE")):
        yield bw(*(T((64, 40), layout=layout) for layout in layouts))
    for first, second, asked in PLACES:
        memory = {"memory_config": M(asked)} if asked is not None else {}
        yield bw(T(SQUARE, mem=first), T(SQUARE, mem=second), **memory)
    yield bw(T(SQUARE, layout="ROW_MAJOR", mem=TALL), T(SQUARE, layout="ROW_MAJOR", mem=TALL))
    for odd in ODD_INPUTS:
        yield bw(odd, T((5, 33)))
        yield bw(T((5, 33)), odd)
    yield call(f"ttnn.{name}_bw", T((5, 33)))
    yield bw(T((5, 33)), T((5, 33)), memory_config="L1")
    yield bw(T((5, 33)), T((5, 33)), output_tensor=T((5, 33)))
    yield bw(T((5, 33)), T((5, 33)), dtype=E("float32"))


def into_a_tensor(name: str, *args: Any) -> Iterator[Case]:
    """Tensors passed as output gradients."""
    a = T((5, 33))
    for given in (
        *OUTPUTS,
        T((32, 64)),
        T((5, 33), layout="ROW_MAJOR"),
        T((5, 33), mem="L1"),
        T((5, 33), host=True),
        "x",
    ):
        yield call(f"ttnn.{name}_bw", a, a, *args, input_grad=given)
    yield call(f"ttnn.{name}_bw", a, a, *args, input_grad=T((5, 33)), memory_config=M("L1"))
    yield call(f"ttnn.{name}_bw", T((5, 33), "float32"), T((5, 33), "float32"), *args, input_grad=T((5, 33), "float32"))
    square = T(SQUARE)
    yield call(f"ttnn.{name}_bw", square, square, *args, input_grad=T(SQUARE, mem=TALL))
    yield call(f"ttnn.{name}_bw", T(SQUARE, mem=TALL), T(SQUARE, mem=TALL), *args, input_grad=square)


def variants_of_gelu() -> Iterator[Case]:
    for variant in ("Accurate", "Tanh", "FastLut"):
        chosen = {"variant": E(f"GeluVariant.{variant}")}
        for dtype in DTYPES:
            a = T((5, 33), dtype)
            yield call("ttnn.gelu_bw", a, a, **chosen)
            yield call("ttnn.bias_gelu_bw", a, a, a, **chosen)
            yield call("ttnn.bias_gelu_bw", a, a, 0.5, **chosen)
        yield call("ttnn.gelu_bw", T(SQUARE, mem=TALL), T(SQUARE), **chosen)
        yield call("ttnn.bias_gelu_bw", T(SQUARE, mem=TALL), T(SQUARE, mem=TALL), T((1, 128)), **chosen)
    for approximate in ("none", "tanh", "fast", "", None, True):
        a = T((5, 33))
        yield call("ttnn.bias_gelu_bw", a, a, a, approximate=approximate)
        yield call("ttnn.bias_gelu_bw", a, a, 2, approximate=approximate)
        yield call("ttnn.gelu_bw", a, a, approximate=approximate)
    yield from of_tensors("bias_gelu", 3, 0.5)
    yield from of_tensors("bias_gelu", 5, 0.5, approximate="tanh")


def products() -> Iterator[Case]:
    shapes = (
        (2, 3, 17, 40),
        (1, 1, 64, 96),
        (2, 32, 32, 32),
        (32, 3, 32, 64),
        (3, 45, 70),
        (5, 33),
        (64,),
        (1, 2, 3, 5, 33),
    )
    for shape in shapes:
        whole, x = T((1,) * len(shape)), T(shape)
        yield call("ttnn.prod_bw", whole, x)
        yield call("ttnn.prod_bw", x, x)
        for dim in range(-len(shape) - 1, len(shape) + 1):
            at = dim % len(shape)
            yield call("ttnn.prod_bw", T([1 if n == at else size for n, size in enumerate(shape)]), x, dim=dim)
        for dim in (0, -1):
            yield call("ttnn.prod_bw", x, x, dim=dim)
    for dtype in DTYPES:
        x = T((2, 3, 32, 64), dtype)
        yield call("ttnn.prod_bw", x, x)
        for dim, grad in enumerate(((1, 3, 32, 64), (2, 1, 32, 64), (2, 3, 1, 64), (2, 3, 32, 1))):
            yield call("ttnn.prod_bw", T(grad, dtype), x, dim=dim)
    x = T((1, 1, 128, 128))
    for memory in ("L1", TALL, BLOCK):
        yield call("ttnn.prod_bw", x, x, memory_config=M(memory))
        yield call("ttnn.prod_bw", x, x, dim=1, memory_config=M(memory))
        yield call("ttnn.prod_bw", T((1, 1, 1, 128)), x, dim=2, memory_config=M(memory))
        yield call("ttnn.prod_bw", x, T((1, 1, 128, 128), mem=memory))
    rows = T((2, 3, 32, 64), layout="ROW_MAJOR")
    for along in (None, 0, 1, 2, 3):
        yield call("ttnn.prod_bw", rows, rows, dim=along)
    yield call("ttnn.prod_bw", x, x, 1)
    yield call("ttnn.prod_bw", T((5, 33), host=True), T((5, 33)))
    yield call("ttnn.prod_bw", x, x, dim="x")


def repetitions() -> Iterator[Case]:
    inputs = ((1, 1, 32, 64), (1, 3, 32, 64), (1, 1, 5, 33), (2, 1, 32, 64), (1, 32, 64), (1, 2, 3, 32, 32))
    counts = (
        [1, 1, 1, 1],
        [3, 1, 1, 1],
        [1, 4, 1, 1],
        [0, 1, 1, 1],
        [1, 1, 2, 1],
        [2, 2, 1, 1],
        [1, 2, 0, 1],
        [2, 1, 1],
    )
    for shape in inputs:
        for count in counts:
            pairs = zip(count, shape) if len(count) == len(shape) else ()
            grad = [max(1, repeats) * size for repeats, size in pairs] or shape
            yield call("ttnn.repeat_bw", T(grad), T(shape), count)
    for dtype in DTYPES:
        yield call("ttnn.repeat_bw", T((3, 1, 32, 64), dtype), T((1, 1, 32, 64), dtype), [3, 1, 1, 1])
        yield call("ttnn.repeat_bw", T((3, 1, 32, 64)), T((1, 1, 32, 64), dtype), [3, 1, 1, 1])
    for memory in ("L1", TALL):
        yield call("ttnn.repeat_bw", T((3, 1, 128, 128)), T((1, 1, 128, 128), mem=memory), [3, 1, 1, 1])
        yield call("ttnn.repeat_bw", T((3, 1, 128, 128)), T((1, 1, 128, 128)), [3, 1, 1, 1], memory_config=M(memory))
        yield call("ttnn.repeat_bw", T((1, 1, 128, 128)), T((1, 1, 128, 128)), [0, 1, 1, 1], memory_config=M(memory))
    rows = T((1, 1, 32, 64), layout="ROW_MAJOR")
    yield call("ttnn.repeat_bw", rows, rows, [2, 1, 1, 1])
    yield call("ttnn.repeat_bw", rows, rows, [0, 1, 1, 1])
    yield call("ttnn.repeat_bw", rows, rows)
    yield call("ttnn.repeat_bw", rows, rows, 2)


def clamps_by_tensors() -> Iterator[Case]:
    for name in ("clamp", "clip"):
        for dtype in DTYPES:
            a = T((5, 33), dtype)
            yield call(f"ttnn.{name}_bw", T((5, 33)), T((5, 33)), a, a)
            yield call(f"ttnn.{name}_bw", a, a, a)
            yield call(f"ttnn.{name}_bw", a, a, None, a)
        for low, high in (((1, 33), (5, 33)), ((5, 1), (1, 1)), ((4, 33), (5, 33)), ((5, 33), (5, 32))):
            yield call(f"ttnn.{name}_bw", T((5, 33)), T((5, 33)), T(low), T(high))
        yield call(f"ttnn.{name}_bw", T((5, 33)), T((5, 33)), T((5, 33)), 1.0)


def cases() -> Iterator[Case]:
    for seed, name in enumerate((*PLAIN, *INTO_A_TENSOR)):
        yield from of_tensors(name, seed)
    for seed, (name, ways) in enumerate(WITH_ARGUMENTS.items()):
        args, options = ways[0]
        yield from of_tensors(name, seed, *args, **options)
        for args, options in ways:
            for dtype in ("bfloat16", "float32", "bfloat8_b", "int32"):
                a = T((3, 45, 70), dtype)
                yield call(f"ttnn.{name}_bw", a, a, *args, **options)
    for name in INTO_A_TENSOR:
        yield from into_a_tensor(name)
    yield from into_a_tensor("pow", 2.0)
    yield from into_a_tensor("pow", 0.0)
    yield from variants_of_gelu()
    yield from products()
    yield from repetitions()
    yield from clamps_by_tensors()
