"""Unary elementwise operations and composites of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ttnn_emulator.conformance.case import (
    DTYPES,
    SHAPES,
    C,
    Case,
    E,
    G,
    M,
    T,
    block_sharded,
    call,
    height_sharded,
    sharded_inputs,
    width_sharded,
)

SQUARE = (1, 1, 128, 128)
BY_HEIGHT, BY_WIDTH = height_sharded([32, 128], 4), width_sharded([128, 32], 4)
BY_BLOCK = block_sharded([64, 64], (2, 2))
UNPLACED = [{"layout": f"{how}_SHARDED", "buffer": "L1"} for how in ("HEIGHT", "WIDTH", "BLOCK")]

# Operations and their required arguments after the tensor.
PLAIN = (
    "abs acos acosh alt_complex_rotate90 asin asinh atan atanh bitwise_not cbrt ceil cos cosh deg2rad digamma eqz erf "
    "erfc erfinv exp exp2 expm1 floor frac gelu gez gtz hardmish hardsigmoid hardswish i0 i1 identity isfinite isinf "
    "isnan isneginf isposinf lez lgamma log log10 log1p log2 log_sigmoid logical_not ltz mish neg nez rad2deg "
    "reciprocal relu relu6 rsqrt sigmoid sigmoid_accurate sign signbit silu sin sinh softsign sqrt square swish tan "
    "tanh tanhshrink trunc celu elu hardshrink hardtanh logit round selu softplus softshrink xielu"
).split(" ")
WITH_ARGUMENTS: dict[str, list[Any]] = {
    "fill": [3.0],
    "heaviside": [0.5],
    "leaky_relu": [0.1],
    "rdiv": [2.0],
    "relu_max": [6.0],
    "relu_min": [1.0],
    "rpow": [2.0],
    "softcap": [30.0],
    "threshold": [0.5, 1.0],
}
OPERATIONS: dict[str, list[Any]] = {**{name: [] for name in PLAIN}, **WITH_ARGUMENTS}

HAS_FAST_MODE = ("erf", "exp", "log", "log10", "log1p", "log2", "mish", "rsqrt", "sqrt", "tanh", "gelu")

# Specific keyword arguments: valid ones, and ones of wrong types.
KEYWORDS: dict[str, list[dict[str, Any]]] = {
    "celu": [{"alpha": 0.5}, {"alpha": 2}, {"alpha": "x"}, {"alpha": None}, {"beta": 1.0}],
    "elu": [{"alpha": 0.5}, {"alpha": 3}, {"alpha": "x"}, {"alpha": None}],
    "gelu": [
        {"variant": E("GeluVariant.Tanh")},
        {"variant": E("GeluVariant.FastLut")},
        {"variant": "tanh"},
        {"approximate": "tanh"},
        {"variant": E("GeluVariant.Tanh"), "fast_and_approximate_mode": True},
    ],
    "hardshrink": [{"lambd": 0.3}, {"lambd": 1}, {"lambd": "0.5"}, {"lambda": 0.5}],
    "hardtanh": [{"min_val": -2.0}, {"min_val": 0, "max_val": 6}, {"max_val": None}, {"low": 1.0}],
    "logit": [{"eps": 0.1}, {"eps": 0.7}, {"eps": None}, {"eps": -1.0}, {"eps": "x"}],
    "rdiv": [{"rounding_mode": "floor"}, {"rounding_mode": "trunc"}, {"rounding_mode": "ceil"}, {"rounding_mode": 1}],
    "round": [{"decimals": 2}, {"decimals": -1}, {"decimals": None}, {"decimals": 1.5}, {"decimals": "2"}],
    "selu": [{"scale": 1.0}, {"scale": 2, "alpha": 1.5}, {"alpha": None}, {"lambd": 1.0}],
    "sigmoid": [
        {"mode": E("SigmoidMode.FastApproximate")},
        {"mode": E("SigmoidMode.AccurateWithFastExp")},
        {"vector_mode": 4},
        {"vector_mode": 2},
        {"vector_mode": 1},
        {"vector_mode": 3},
        {"mode": "fast"},
        {"vector_mode": 4.0},
    ],
    "softplus": [{"beta": 0.5}, {"beta": 2, "threshold": 10}, {"beta": None}, {"alpha": 1.0}],
    "softshrink": [{"lambd": 0.3}, {"lambd": 2}, {"lambd": None}],
    "xielu": [{"alpha_p": 0.5, "alpha_n": 0.5}, {"alpha_p": "a"}, {"alpha": 0.5}],
}
POSITIONAL: dict[str, list[list[Any]]] = {
    "fill": [[3], [-4], [2.7], [], ["x"], [1.0, 2.0]],
    "heaviside": [[1], [], ["x"], [None]],
    "leaky_relu": [[1], [-0.5], [], ["x"]],
    "polygamma": [[1], [11], [0], [12], [-1], [2.0], []],
    "rdiv": [[1], [], ["x"]],
    "relu_max": [[3], [-4], [70000], [], ["x"]],
    "relu_min": [[3], [-4], [70000], [], [None]],
    "rpow": [[3], [-2.0], [], ["x"]],
    "softcap": [[0.0], [], [50]],
    "threshold": [[1, 2], [0.5], [], ["a", "b"]],
    "sigmoid_accurate": [[True], [False], [1], ["x"]],
}


def cases() -> Iterator[Case]:
    for index, (name, arguments) in enumerate(OPERATIONS.items()):
        yield from _common(f"ttnn.{name}", arguments, index)
        for keywords in KEYWORDS.get(name, []):
            yield call(f"ttnn.{name}", T((5, 33)), *arguments, **keywords)
            yield call(f"ttnn.{name}", T((2, 40, 50), "float32"), *arguments, **keywords)
        for values in POSITIONAL.get(name, []):
            for dtype in ("bfloat16", "float32", "int32", "uint16"):
                yield call(f"ttnn.{name}", T((5, 33), dtype), *values)
    for name in HAS_FAST_MODE:
        for mode in (True, False, 1, None):
            yield call(f"ttnn.{name}", T((3, 45, 70)), fast_and_approximate_mode=mode)
    yield from _memory("ttnn.relu")
    yield from _memory("ttnn.exp")
    yield from _outputs("ttnn.neg")
    yield from _outputs("ttnn.sqrt")
    yield from _chains()
    yield from _polygamma()
    yield from _clamps()
    yield from _gated_units()
    yield from _triangles()
    yield from _statistics()
    yield from _others()


def _common(op: str, arguments: list[Any], index: int) -> Iterator[Case]:
    """The same variety for every operation; repetitive entries alternate between operations."""
    for shape in SHAPES[index % 2 :: 2]:
        yield call(op, T(shape), *arguments)
    for dtype in DTYPES:
        yield call(op, T((2, 3, 17, 40), dtype), *arguments)
    yield call(op, T(SHAPES[index % 8], "float32", "ROW_MAJOR"), *arguments)
    yield call(op, T((64, 64), DTYPES[4 + index % 4], "ROW_MAJOR"), *arguments)
    yield call(op, T((0, 32)) if index % 3 else T(()), *arguments)
    yield call(op, sharded_inputs()[index % 4], *arguments)
    yield call(
        op, sharded_inputs("float32")[(index + 1) % 4], *arguments, memory_config=M("L1" if index % 2 else "DRAM")
    )
    yield call(op, T(SQUARE), *arguments, memory_config=M((BY_HEIGHT, BY_WIDTH, BY_BLOCK, *UNPLACED)[index % 6]))
    yield call(op, T((3, 45, 70)), *arguments, output_tensor=T((3, 45, 70), mem="L1"))
    # Refused calls.
    yield call(op, T((5, 33), host=True), *arguments)
    yield call(op, T((64, 64)), *arguments, output_tensor=T(((64, 32), (1, 64, 64))[index % 2]))
    yield call(op, T((64, 64)), *arguments, output_tensor=T((64, 64), layout="ROW_MAJOR"))
    yield call(op, T((64, 64)), *arguments, output_tensor=T((64, 64), ("int32", "bfloat4_b", "uint16")[index % 3]))
    yield call(op, T(SQUARE), *arguments, memory_config=M(height_sharded([32, 96], 4)))
    yield call(op, T((64, 64)), *arguments, sub_core_grids=G([0, 0, 9, 9]))
    yield call(op, T((64, 64)), *arguments, **{("dim", "dtype", "approximate")[index % 3]: 1})
    yield (call(op, *arguments), call(op, 1.0, *arguments), call(op, None, *arguments))[index % 3]


def _memory(op: str) -> Iterator[Case]:
    """From every kind of memory config to every other."""
    sources = (
        *("DRAM", "L1", BY_HEIGHT, BY_WIDTH, BY_BLOCK, height_sharded([64, 128], 2), height_sharded([96, 128], 2)),
        *(block_sharded([64, 64], (2, 2), orient="COL_MAJOR"), height_sharded([32, 128], 4, buffer="DRAM")),
    )
    targets = ("DRAM", "L1", BY_HEIGHT, BY_WIDTH, BY_BLOCK, *UNPLACED, {"layout": "HEIGHT_SHARDED", "buffer": "DRAM"})
    for source in sources:
        yield call(op, T(SQUARE, mem=source))
        for target in targets:
            yield call(op, T(SQUARE, mem=source), memory_config=M(target))
        for cores in (G([0, 0, 0, 0]), G([0, 0, 7, 7]), G([1, 1, 3, 3]), G([0, 0, 3, 0], [4, 1, 6, 1])):
            yield call(op, T(SQUARE, mem=source), sub_core_grids=cores)
    rows = (
        *(T((40, 40), layout="ROW_MAJOR", mem=height_sharded([5, 40], 8)), T((128,), mem=width_sharded([32, 32], 4))),
        T((128,), layout="ROW_MAJOR", mem=width_sharded([1, 32], 4)),
        T((128,), layout="ROW_MAJOR", mem=height_sharded([1, 128], 1)),
        T((1, 1, 128, 128), layout="ROW_MAJOR", mem=height_sharded([16, 128], 8)),
        *(
            T((2, 70, 100), layout="ROW_MAJOR"),
            T((2, 70, 100)),
            T((7,)),
            T((7,), layout="ROW_MAJOR"),
            T((3, 2, 5, 40, 64)),
        ),
        *(T((0, 5)), T((5, 0), "float32", "ROW_MAJOR"), T(()), T((1,) * 6)),
        T((2, 70, 100), mem=height_sharded([64, 128], 3)),
    )
    for tensor in rows:
        yield call(op, tensor)
        for target in ("L1", *UNPLACED):
            yield call(op, tensor, memory_config=M(target))


def _outputs(op: str) -> Iterator[Case]:
    """Output tensors of every dtype and memory config."""
    for dtype in DTYPES:
        for other in DTYPES:
            yield call(op, T((5, 33), dtype), output_tensor=T((5, 33), other))
    for place in ("L1", BY_HEIGHT, BY_BLOCK):
        yield call(op, T(SQUARE), output_tensor=T(SQUARE, mem=place))
        yield call(op, T(SQUARE, mem=BY_HEIGHT), output_tensor=T(SQUARE, "float32", mem=place), memory_config=M("L1"))
    yield call(op, T((5, 33)), output_tensor=T((5, 33), host=True))
    yield call(op, T((5, 33)), output_tensor=T((33, 5)))
    yield call(op, T((5, 33), layout="ROW_MAJOR"), output_tensor=T((5, 33), "float32", "ROW_MAJOR"))
    yield call(op, T((5, 33)), output_tensor=None)
    yield call(op, T((5, 33)), output_tensor=[1])


def _chains() -> Iterator[Case]:
    op = "ttnn.unary_chain"
    chains: tuple[list[Any], ...] = (
        [],
        [_unary("RELU")],
        [E("UnaryOpType.RELU")],
        [_unary("RELU"), _unary("EXP", 1.0)],
        [_unary("NEG"), _unary("EXP", 0.0), _unary("ADD_UNARY_SFPU", 1.0), _unary("RECIP")],
        [_unary("ABS"), _unary("SQRT", 0.0), _unary("LEAKY_RELU", 0.1)],
        [_unary("SIGMOID", 4.0, 1.0)],
        [_unary("SIGMOID", 3.0, 1.0)],
        [_unary("SIGMOID")],
        [_unary("HARDTANH", -1.0, 1.0), _unary("ROUND", 1.0)],
        [_unary("CLAMP_TSS", 0.0, 1.0)],
        [_unary("HARDTANH")],
        [_unary("RELU", 1.0)],
        [_unary("SELU", 1.0)],
        [_unary("RDIV", 1.0)],
        [_unary("LGAMMA")],
        [_unary("RELU"), _unary("LGAMMA")],
        [_unary("IDENTITY"), _unary("RELU")],
        [_unary("RELU"), _unary("HARDSWISH")],
        [_unary("LOGIT", 0.1), _unary("RELU")],
        [_unary("LOGSIGMOID")],
        [_unary("LOGSIGMOID"), _unary("RELU")],
        [_unary("SOFTCAP", 30.0)],
        [_unary("BITWISE_NOT")],
        [_unary("FILL", 7.0)],
        [_unary("RELU_MAX", 70000.0)],
        ["relu"],
        [1],
    )
    for chain in chains:
        for dtype in ("bfloat16", "float32", "int32", "uint16"):
            yield call(op, T((3, 45, 70), dtype), chain)
    yield call(op, T((64, 64)), [_unary("RELU")], memory_config=M("L1"))
    yield call(op, T((64, 64)), [_unary("RELU")], output_tensor=T((64, 64), "float32"))
    yield call(op, T((64, 64)))
    yield call(op, T((64, 64)), _unary("RELU"))


def _unary(kind: str, *params: float) -> Case:
    return C("UnaryWithParam", E(f"UnaryOpType.{kind}"), *params)


def _polygamma() -> Iterator[Case]:
    op = "ttnn.polygamma"
    for order in (1, 2, 5, 11, 0, 12, -3):
        yield call(op, T((5, 33)), order)
        yield call(op, T((2, 3, 17, 40), "float32"), order)
    for dtype in DTYPES:
        yield call(op, T((64,), dtype), 2)
    yield call(op, T((64, 64)), 2, memory_config=M("L1"))
    yield call(op, T((64, 64)), 2.0)
    yield call(op, T((64, 64)))
    yield call(op, T((64, 64)), k=3)
    yield call(op, T((64, 64)), 3, output_tensor=T((64, 64)))
    yield call(op, T((64, 64), layout="ROW_MAJOR"), 3)


def _clamps() -> Iterator[Case]:
    for op in ("ttnn.clamp", "ttnn.clip"):
        for bounds in (
            [0.0, 1.0],
            [0, 1],
            [-1.5],
            [None, 2.0],
            [None, 3],
            [2],
            [],
            [None, None],
            [0, 1.5],
            [0.5, 3],
            ["a"],
        ):
            for dtype in ("bfloat16", "float32", "int32"):
                yield call(op, T((5, 33), dtype), *bounds)
        for dtype in DTYPES:
            yield call(op, T((2, 40, 50), dtype), 0.0, 6.0)
            yield call(op, T((2, 40, 50), dtype), 0, 6)
        for shape in SHAPES:
            yield call(op, T(shape), -1.0, 1.0)
        for tensor in sharded_inputs():
            yield call(op, tensor, -1.0, 1.0)
            yield call(op, tensor, min=0.0, memory_config=M("L1"))
        yield call(op, T((64, 64), layout="ROW_MAJOR"), -1.0, 1.0)
        yield call(op, T((64, 64), host=True), -1.0, 1.0)
        yield call(op, T((64, 64)), T((64, 64)), T((64, 64)))
        yield call(op, T((5, 33)), T((5, 33)))
        yield call(op, T((5, 33)), max=T((5, 33)))
        yield call(op, T((5, 33), "float32"), T((5, 33), "float32"), T((5, 33), "float32"))
        yield call(op, T((5, 33)), T((5, 33)), T((5, 33)), memory_config=M("L1"))
        yield call(op, T((5, 33)), T((5, 32)), T((5, 33)))
        yield call(op, T((5, 33)), T((5, 33)), 1.0)
        yield call(op, T((5, 33)), 0.0, T((5, 33)))
        yield call(op, T((5, 33)), 0.0, 1.0, output_tensor=T((5, 33), "float32"))
        yield call(op, T((5, 33)), 0.0, 1.0, output_tensor=T((5, 32)))
        yield call(op, T((5, 33), "int32"), 0, 6, output_tensor=T((5, 33), "int32"))


def _gated_units() -> Iterator[Case]:
    for name in ("glu", "reglu", "geglu", "swiglu"):
        op = f"ttnn.{name}"
        for shape in (
            (1, 1, 32, 64),
            (2, 3, 17, 128),
            (1, 1, 32, 96),
            (1, 2, 64, 60),
            (32, 64),
            (2, 32, 64),
            (1, 1, 1, 64, 64),
            (64,),
        ):
            yield call(op, T(shape))
        for dtype in DTYPES:
            yield call(op, T((1, 2, 32, 128), dtype))
        for dim in (-1, 3, 2, 1, 0, 4, -2, 1.0):
            yield call(op, T((1, 64, 64, 128)), dim)
        yield call(op, T((1, 1, 32, 128)), memory_config=M("L1"))
        yield call(op, T((1, 1, 32, 128), mem="L1"))
        yield call(op, T((1, 1, 32, 128), layout="ROW_MAJOR"))
        yield call(op, T((1, 1, 32, 128), host=True))
        yield call(op, T((1, 1, 128, 128), mem=BY_HEIGHT))
        yield call(op, T((1, 1, 32, 128)), variant=E("GeluVariant.Tanh"))
        yield call(op, T((1, 1, 32, 128)), output_tensor=T((1, 1, 32, 64)))


def _triangles() -> Iterator[Case]:
    for op in ("ttnn.tril", "ttnn.triu"):
        for shape in SHAPES:
            yield call(op, T(shape))
            yield call(op, T(shape, "float32"), diagonal=2)
        for dtype in DTYPES:
            yield call(op, T((3, 45, 70), dtype), diagonal=-1)
        for tensor in sharded_inputs():
            yield call(op, tensor)
            yield call(op, tensor, memory_config=M("DRAM"))
        yield call(op, T((64, 64)), memory_config=M("L1"))
        yield call(op, T((64, 64), layout="ROW_MAJOR"))
        yield call(op, T((64, 64), host=True))
        yield call(op, T((64, 64)), 1)
        yield call(op, T((64, 64)), diagonal=1.5)
        yield call(op, T((64, 64)), diagonal=None)
        yield call(op, T((64, 64)), output_tensor=T((64, 64)))
        yield call(op, T(()))
        yield call(op, T((0, 32)))


def _statistics() -> Iterator[Case]:
    for name in ("var_hw", "std_hw", "normalize_hw", "normalize_global"):
        op = f"ttnn.{name}"
        for shape in (
            (1, 1, 32, 32),
            (2, 3, 64, 96),
            (1, 1, 17, 40),
            (2, 1, 32, 70),
            (32, 64),
            (2, 32, 64),
            (64,),
            (1, 1, 1, 32, 64),
        ):
            yield call(op, T(shape))
        for dtype in DTYPES:
            yield call(op, T((1, 2, 32, 64), dtype))
        for tensor in sharded_inputs():
            yield call(op, tensor)
        yield call(op, T((1, 1, 32, 64)), memory_config=M("L1"))
        yield call(op, T((1, 1, 32, 64), mem="L1"), memory_config=M("DRAM"))
        yield call(op, T((1, 1, 32, 64), layout="ROW_MAJOR"))
        yield call(op, T((1, 1, 32, 64), host=True))
        yield call(op, T((1, 1, 32, 64)), dim=1)


def _others() -> Iterator[Case]:
    for op in ("ttnn.logical_not_", "ttnn.multigammaln"):
        for shape in SHAPES:
            yield call(op, T(shape))
        for dtype in DTYPES:
            yield call(op, T((3, 45, 70), dtype))
        for tensor in sharded_inputs():
            yield call(op, tensor)
        yield call(op, T((64, 64)), memory_config=M("L1"))
        yield call(op, T((64, 64), "float32"), memory_config=M(BY_HEIGHT))
        yield call(op, T((64, 64), layout="ROW_MAJOR"))
        yield call(op, T((64, 64), host=True))
        yield call(op, T((64, 64)), output_tensor=T((64, 64)))
        yield call(op, 1.0)
        yield call(op)
    op = "ttnn.snake_beta"
    for shape in SHAPES:
        yield call(op, T(shape), T(shape), T(shape))
    for dtype in DTYPES:
        yield call(op, T((2, 40, 50), dtype), T((2, 40, 50), dtype), T((2, 40, 50), dtype))
        yield call(op, T((2, 40, 50)), T((2, 40, 50), dtype), T((2, 40, 50)))
    for other in ((1, 50), (40, 1), (1, 1), (50,), (2, 1, 1), (3, 40, 50), (40, 49)):
        yield call(op, T((2, 40, 50)), T(other), T(other))
        yield call(op, T((2, 40, 50)), T((2, 40, 50)), T(other))
    for tensor in sharded_inputs():
        yield call(op, tensor, tensor, tensor)
        yield call(op, tensor, T(SQUARE), T(SQUARE), memory_config=M("L1"))
    yield call(op, T((5, 33)), 1.0, 1.0)
    yield call(op, T((5, 33)), T((5, 33)))
    yield call(op, T((5, 33)), T((5, 33)), T((5, 33)), output_tensor=T((5, 33)))
    yield call(op, T((5, 33)), T((5, 33)), T((5, 33)), output_tensor=T((5, 32)))
    yield call(op, T((5, 33)), T((5, 33)), T((5, 33)), output_tensor=T((5, 33), "float32"))
    yield call(op, T((5, 33), layout="ROW_MAJOR"), T((5, 33), layout="ROW_MAJOR"), T((5, 33), layout="ROW_MAJOR"))
    yield call(op, T((5, 33)), T((5, 33), layout="ROW_MAJOR"), T((5, 33)))
    yield call(op, T((5, 33), host=True), T((5, 33)), T((5, 33)))
