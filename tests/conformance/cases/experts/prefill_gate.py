"""Gates of experts in prefill, and the feed-forward network of one expert."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ttnn_emulator.conformance.case import STORABLE, C, Case, E, M, T, call, height_sharded, product

PREFILL = "ttnn.experimental.deepseek_prefill"


def cases() -> Iterator[Case]:
    yield from grouped()
    yield from hashed()
    yield from network()


def configs() -> list[Case]:
    """The number of tokens without padding, in supported and unsupported forms."""
    return [
        T((1, 2), "uint32", "ROW_MAJOR"),
        T((2, 2), "uint32", "ROW_MAJOR"),
        T((2,), "uint32", "ROW_MAJOR", "L1"),
        T((1, 1), "uint32", "ROW_MAJOR"),
        T((1, 2), "int32", "ROW_MAJOR"),
        T((1, 2), "uint32"),
        T((1, 2), "uint32", "ROW_MAJOR", host=True),
    ]


def grouped() -> Iterator[Case]:
    op, scores = f"{PREFILL}.moe_grouped_topk", T((128, 256), "float32")
    for given in (
        {},
        {"stable_sort": True},
        {"score_func": "sqrtsoftplus"},
        {"score_func": "softmax"},
        {"n_groups": 4},
        {"n_groups": 1},
        {"n_groups": 1, "summed_experts_per_group": 3, "topk_groups": 9},
        {"topk_groups": 2},
        {"summed_experts_per_group": 1},
        {"n_activated_experts": 6},
        {"n_activated_experts": -1},
        {"route_scale": 2.5, "epsilon": 1e-10},
        {"memory_config": M("L1")},
        {"memory_config": M(height_sharded([32, 32], 4))},
        {"weights_layout": E("ROW_MAJOR_LAYOUT")},
        {"weights_layout": E("ROW_MAJOR_LAYOUT"), "memory_config": M(height_sharded([32, 32], 4))},
    ):
        settings: dict[str, Any] = dict(given)
        yield call(op, scores, scores, **settings)
    for dtype, layout in STORABLE:
        yield call(op, T((128, 256), dtype, layout), scores)
        yield call(op, scores, T((128, 256), dtype, layout))
        yield call(op, scores, scores, biased_scores=T((128, 256), dtype, layout))
    for shape in ((128, 128), (100, 256), (1, 1, 128, 256), (2, 3, 40, 256), (256,), (1, 256)):
        yield call(op, T(shape, "float32"), T(shape, "float32"))
        yield call(op, scores, T(shape, "float32"))
    for experts, kept in product((32, 64, 100, 384), (0, 8, 32, 33, 40, 64, 65)):
        of = T((128, experts), "float32")
        yield call(op, of, of, n_groups=1, n_activated_experts=kept)
        if experts == 384:
            yield call(op, of, of, n_groups=1, n_activated_experts=kept, weights_layout=E("ROW_MAJOR_LAYOUT"))
    for each in configs():
        yield call(op, scores, scores, padding_config=each)
    for mem in ("L1", height_sharded([32, 256], 4)):
        yield call(op, T((128, 256), "float32", mem=mem), scores)
        yield call(op, T((128, 256), "float32", mem=mem), scores, memory_config=M("DRAM"))
        yield call(op, scores, scores, biased_scores=T((128, 256), "float32", mem=mem))
    yield call(op, scores, scores, biased_scores=T((64, 256), "float32"))
    yield call(op, T((128, 256), "float32", host=True), scores)


def hashed() -> Iterator[Case]:
    op, scores, ids = f"{PREFILL}.moe_hash_gate", T((128, 256), "float32"), T((4, 32), "uint32", "ROW_MAJOR")
    table = T((1000, 8), "uint16", "ROW_MAJOR")
    for shape in ((4, 32), (1, 128), (128,), (128, 1), (2, 32)):
        yield call(op, scores, T(shape, "uint32", "ROW_MAJOR"), table, n_activated_experts=8)
    for dtype, layout in STORABLE:
        yield call(op, T((128, 256), dtype, layout), ids, table, n_activated_experts=8)
        yield call(op, scores, T((4, 32), dtype, layout), table, n_activated_experts=8)
        yield call(op, scores, ids, T((1000, 8), dtype, layout), n_activated_experts=8)
    for kept, width in product((0, 6, 8, 9, 32, 33), (8, 32, 40)):
        yield call(op, scores, ids, T((1000, width), "uint16", "ROW_MAJOR"), n_activated_experts=kept)
    for shape in ((128, 250), (128, 64), (1, 1, 128, 256), (100, 256), (128, 32)):
        yield call(op, T(shape, "float32"), ids, table, n_activated_experts=8)
    for function in ("sigmoid", "sqrtsoftplus", "softmax"):
        yield call(op, scores, ids, table, n_activated_experts=8, score_func=function)
    for each in configs():
        yield call(op, scores, ids, table, n_activated_experts=8, padding_config=each)
    for mem in ("L1", height_sharded([32, 256], 4)):
        yield call(op, T((128, 256), "float32", mem=mem), ids, table, n_activated_experts=8)
    yield call(op, scores, ids, table, n_activated_experts=8, memory_config=M("L1"))
    yield call(op, scores, ids, table, n_activated_experts=8, route_scale=2.5, epsilon=1e-10)
    yield call(op, T((128, 256), "float32", host=True), ids, table, n_activated_experts=8)


def network() -> Iterator[Case]:
    op, wide, back = f"{PREFILL}.routed_expert_ffn", T((256, 512), "bfloat8_b"), T((512, 256), "bfloat8_b")
    x = T((128, 256))
    for dtype, layout in STORABLE:
        yield call(op, T((128, 256), dtype, layout), wide, wide, back)
    for shape in ((32, 256), (100, 256), (2048, 256), (2080, 256), (1, 1, 128, 256), (2, 1, 128, 256), (128, 128)):
        for dtype in ("bfloat16", "bfloat8_b", "float32"):
            yield call(op, T(shape, dtype), wide, wide, back)
    for dtype, hidden in product(("bfloat16", "bfloat4_b"), (512, 320, 96, 2048)):
        up, down = T((256, hidden), dtype), T((hidden, 256), dtype)
        yield call(op, x, up, up, down)
    for rows, dtype in product((128, 1024, 2048), ("bfloat16", "bfloat8_b", "bfloat4_b")):
        up, down = T((7168, 2048), dtype), T((2048, 7168), dtype)
        yield call(op, T((rows, 7168)), up, up, down)
    yield call(op, x, wide, T((256, 256), "bfloat8_b"), back)
    yield call(op, x, wide, wide, T((256, 256), "bfloat8_b"))
    for output in (
        T((128, 256)),
        T((128, 256), mem="L1"),
        T((128, 256), "bfloat8_b"),
    ):
        yield call(op, x, wide, wide, back, output=output)
    for mem in ("L1", height_sharded([32, 256], 4)):
        yield call(op, T((128, 256), mem=mem), wide, wide, back)
    for fidelity, full in product(("LoFi", "HiFi4"), (False, True)):
        config = C("WormholeComputeKernelConfig", math_fidelity=E(f"MathFidelity.{fidelity}"), fp32_dest_acc_en=full)
        yield call(op, x, wide, wide, back, compute_kernel_config=config)
    yield call(op, T((128, 256), host=True), wide, wide, back)
