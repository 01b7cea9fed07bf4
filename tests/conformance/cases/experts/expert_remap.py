"""Experts on a mesh of two chips: the routing weights and tokens of each chip."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ttnn_emulator.conformance.case import DTYPES, Case, M, T, call, height_sharded, width_sharded

BOARD = "n300"
CHIPS = 2
PLAIN = tuple(dtype for dtype in DTYPES if not dtype.endswith("_b"))


def cases() -> Iterator[Case]:
    yield from routes()
    yield from tokens()


def rows(*shape: int, dtype: str = "bfloat16", **more: Any) -> Case:
    return T(shape, dtype, "ROW_MAJOR", **more)


def routes() -> Iterator[Case]:
    op = "ttnn.moe_routing_remap"
    weights = rows(1, 32)
    for axis in (0, 1, 2):
        for parts in (0, 1, CHIPS, 4):
            yield call(op, weights, 8, parts, axis)
    for parts, axis in ((1, 0), (CHIPS, 1)):
        for count in (0, 1, 2, 7, 8, 32, 33, 34, -1):
            yield call(op, weights, count, parts, axis)
        for dtype in PLAIN:
            yield call(op, rows(1, 32, dtype=dtype), 8, parts, axis)
        for shape in ((1, 33), (1, 2), (2, 32), (32,), (1, 1, 32), (1, 0)):
            yield call(op, rows(*shape), 2, parts, axis)
        for memory in ("DRAM", "L1", width_sharded([1, 16], 2), height_sharded([1, 32], 1)):
            yield call(op, weights, 8, parts, axis, memory_config=M(memory))
            yield call(op, rows(1, 32, mem=memory), 8, parts, axis)
            yield call(op, weights, 8, parts, axis, optional_output_tensor=rows(1, 32, mem=memory))
            wanted = {"optional_output_tensor": rows(1, 32, mem=memory), "memory_config": M(memory)}
            yield call(op, weights, 8, parts, axis, **wanted)
        for other in (rows(1, 32), rows(1, 32, dtype="float32"), rows(1, 16), T((1, 32)), rows(1, 32, host=True)):
            yield call(op, weights, 8, parts, axis, optional_output_tensor=other)
        yield call(op, T((1, 32)), 8, parts, axis)
        yield call(op, rows(1, 32, host=True), 8, parts, axis)


def tokens() -> Iterator[Case]:
    op = "ttnn.moe_expert_token_remap"

    def integers(*shape: int, **more: Any) -> Case:
        return rows(*shape, dtype="uint16", **more)

    weights, mapping, chosen = rows(1, 4, 8, 16), integers(1, 1, 16, CHIPS), integers(1, 4, 8, 2)
    for size in (0, 1, 5, 8, 16, 32, 64):
        yield call(op, weights, mapping, chosen, reduction_size=size)
    yield call(op, weights, mapping, chosen)
    for shape in ((1, 4, 7, 2), (1, 5, 8, 2), (2, 4, 8, 2), (1, 4, 16), (1, 4, 16, 4), (4, 8, 2), (1, 4, 8, 2, 1)):
        yield call(op, weights, mapping, integers(*shape))
    for shape in ((1, 1, 16, 1), (1, 1, 16, 4), (1, 1, 8, CHIPS), (16, CHIPS), (1, 16, CHIPS), (2, 1, 16, CHIPS)):
        yield call(op, weights, integers(*shape), chosen)
    for shape in ((4, 8, 16), (2, 4, 8, 16), (1, 4, 4, 16), (1, 4, 8, 15), (16,)):
        yield call(op, rows(*shape), mapping, chosen)
    yield call(op, rows(1, 4, 8, 15), integers(1, 1, 15, CHIPS), chosen)
    yield call(op, rows(1, 0, 8, 16), mapping, integers(1, 0, 8, 2))
    for dtype in PLAIN:
        yield call(op, rows(1, 4, 8, 16, dtype=dtype), mapping, chosen)
        yield call(op, weights, rows(1, 1, 16, CHIPS, dtype=dtype), chosen)
        yield call(op, weights, mapping, rows(1, 4, 8, 2, dtype=dtype))
    for memory in ("DRAM", "L1", height_sharded([16, 8], 2), width_sharded([32, 4], 2)):
        yield call(op, weights, mapping, chosen, memory_config=M(memory))
    for first, second in (
        (rows(1, 4, 8, 8), integers(1, 1, 2, 8)),
        (rows(1, 4, 8, 8, mem="L1"), None),
        (None, integers(1, 1, 2, 8, mem="L1")),
        (rows(1, 4, 8, 4), None),
        (rows(1, 4, 8, 8, dtype="float32"), integers(1, 1, 1, 8)),
    ):
        given = {"optional_output_mapping_tensor": first, "optional_output_reduced_tensor": second}
        yield call(op, weights, mapping, chosen, **{name: tensor for name, tensor in given.items() if tensor})
    yield call(op, T((1, 4, 8, 16)), mapping, chosen)
    yield call(op, weights, T((1, 1, 16, CHIPS), "uint16"), chosen)
    yield call(op, weights, mapping, T((1, 4, 8, 2), "uint16"))
    yield call(op, rows(1, 4, 8, 16, host=True), mapping, chosen)
    yield call(op, weights, integers(1, 1, 16, CHIPS, host=True), chosen)
    yield call(op, weights, mapping, integers(1, 4, 8, 2, host=True))
