"""Mixtures of experts: gates that choose experts for tokens, and what puts their results together."""

from __future__ import annotations

from collections.abc import Iterator

from ttnn_emulator.conformance.case import DTYPES, Case, M, T, call, height_sharded, width_sharded


def cases() -> Iterator[Case]:
    yield from grouped_gate()
    yield from router()


def grouped_gate() -> Iterator[Case]:
    op = "ttnn.experimental.deepseek_grouped_gate"
    for shape in ((256,), (5, 256), (2, 5, 256), (1, 1, 32, 256), (2, 3, 33, 256), (1, 2, 3, 4, 256), (0, 256)):
        yield call(op, T(shape), T(shape))
    for shape in ((32, 128), (32, 512), (32, 1), ()):
        yield call(op, T(shape), T(shape))
    scores = T((1, 1, 32, 256))
    for dtype in DTYPES:
        yield call(op, T((1, 1, 32, 256), dtype), scores)
        yield call(op, scores, T((1, 1, 32, 256), dtype))
    for name, values in (
        ("n_groups", (4, 8, 16)),
        ("summed_experts_per_group", (1, 2, 4)),
        ("topk_groups", (2, 4, 8)),
        ("n_activated_experts", (4, 8, 16)),
        ("route_scale", (0.0, 2.5)),
        ("epsilon", (0.0, 1e-5)),
    ):
        for value in values:
            yield call(op, scores, scores, **{name: value})
    for memory in ("DRAM", "L1", height_sharded([32, 32], 2), width_sharded([64, 32], 1), height_sharded([32, 256], 2)):
        yield call(op, T((1, 1, 64, 256)), T((1, 1, 64, 256)), memory_config=M(memory))
        yield call(
            op, T((1, 1, 64, 256), mem=height_sharded([32, 256], 2)), T((1, 1, 64, 256)), memory_config=M(memory)
        )
    yield call(op, T((1, 1, 64, 256), mem=height_sharded([32, 256], 2)), T((1, 1, 64, 256)))
    yield call(op, T((1, 1, 32, 256), mem="L1"), scores)
    yield call(op, scores, T((1, 1, 1, 256)))
    yield call(op, scores, T((1, 32, 256)))
    yield call(op, T((1, 1, 32, 256), host=True), scores)
    yield call(op, scores, T((1, 1, 32, 256), host=True))
    yield call(op, T((1, 1, 32, 256), layout="ROW_MAJOR"), scores)
    yield call(op, scores, T((1, 1, 32, 256), layout="ROW_MAJOR"))


def router() -> Iterator[Case]:
    op = "ttnn.experimental.topk_router_gpt"
    for rows, inner in (
        (32, 32),
        (32, 64),
        (32, 96),
        (32, 2880),
        (1, 64),
        (31, 64),
        (33, 64),
        (0, 64),
        (32, 60),
        (32, 0),
    ):
        yield call(op, T((rows, inner)), weight_tensor=T((inner, 128)), bias_tensor=T((rows, 128)))
    x, weight, bias = T((32, 64)), T((64, 128)), T((32, 128))
    for k in (0, 1, 4, 7, 8, 9, 16, 32, 33):
        yield call(op, x, weight_tensor=weight, bias_tensor=bias, k=k)
    for experts in (32, 64, 128, 256):
        yield call(op, x, weight_tensor=T((64, experts)), bias_tensor=T((32, experts)), num_experts=experts)
    for dtype in DTYPES:
        yield call(op, T((32, 64), dtype), weight_tensor=weight, bias_tensor=bias)
        yield call(op, x, weight_tensor=T((64, 128), dtype), bias_tensor=bias)
        yield call(op, x, weight_tensor=weight, bias_tensor=T((32, 128), dtype))
    for other in ({"host": True}, {"layout": "ROW_MAJOR"}, {"mem": "L1"}):
        yield call(op, T((32, 64), **other), weight_tensor=weight, bias_tensor=bias)
        yield call(op, x, weight_tensor=T((64, 128), **other), bias_tensor=bias)
        yield call(op, x, weight_tensor=weight, bias_tensor=T((32, 128), **other))
    yield call(op, T((1, 32, 64)), weight_tensor=weight, bias_tensor=bias)
    yield call(op, x, weight_tensor=T((1, 64, 128)), bias_tensor=bias)
    yield call(op, x, weight_tensor=weight, bias_tensor=T((1, 128)))
    yield call(op, x, weight_tensor=weight, bias_tensor=T((128,)))
    yield call(op, T((32, 96)), weight_tensor=weight, bias_tensor=bias)
    yield call(op, T((32, 128), mem=width_sharded([32, 32], 4)), weight_tensor=T((128, 128)), bias_tensor=bias)
