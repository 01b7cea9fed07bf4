"""Products with a row-major bias, as some models pass it."""

from __future__ import annotations

from collections.abc import Iterator

from ttnn_emulator.conformance.case import Case, M, T, call, product

OP = "ttnn.linear"


def cases() -> Iterator[Case]:
    plain = T((2, 64, 32)), T((32, 48))
    for shape, activation, memory in product(((48,), (1, 48)), (None, "relu", "sigmoid"), ("DRAM", "L1")):
        bias = T(shape, "bfloat16", "ROW_MAJOR")
        yield call(OP, *plain, bias=bias, activation=activation, memory_config=M(memory))
    for shape in ((32,), (1,), (64,), (2, 48), (1, 1, 48), (64, 48), (2, 64, 48), (2, 1, 48)):
        yield call(OP, *plain, bias=T(shape, "bfloat16", "ROW_MAJOR"))
    for shape, b in product(((48,), (1, 48)), ((48, 32), (2, 48, 32))):
        yield call(OP, T((2, 64, 32)), T(b), bias=T(shape, "bfloat16", "ROW_MAJOR"), transpose_b=True)
    for dtype in ("float32", "int32", "uint32"):
        yield call(OP, *plain, bias=T((48,), dtype, "ROW_MAJOR"))
    for a, b in (((1024, 64), (64, 33)), ((1, 1, 7, 40), (40, 33)), ((7, 40), (40, 33))):
        yield call(OP, T(a), T(b), bias=T((33,), "bfloat16", "ROW_MAJOR"))
