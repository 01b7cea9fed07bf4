"""Mixtures of experts: gates that select experts for tokens, and the combination of their results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ttnn_emulator.conformance.case import DTYPES, C, Case, E, G, M, T, call, height_sharded, product, width_sharded


def cases() -> Iterator[Case]:
    yield from grouped_gate()
    yield from router()
    yield from gate_on_a_core()
    yield from sums_over_experts()
    yield from weighted_sums_over_experts()
    yield from tiles_of_tokens()


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


def gate_on_a_core() -> Iterator[Case]:
    op = "ttnn.experimental.deepseek.moe.deepseek_moe_gate"
    names = ("input_tensor", "bias_tensor", "input_indices_tensor", "output_tensor", "output_indices_tensor")
    dtypes = ("bfloat16", "bfloat16", "uint16", "bfloat16", "uint16")
    on_two = height_sharded([32, 32], 2)

    def gate(changes: dict[int, dict[str, Any]] | None = None, **options: Any) -> Case:
        """Five tensors, some replaced."""
        given = []
        for place, dtype in enumerate(dtypes):
            how = {"shape": (2, 16, 16), "dtype": dtype, "mem": on_two, **(changes or {}).get(place, {})}
            given.append(T(how.pop("shape"), **how))
        return call(op, given[0], **dict(zip(names[1:], given[1:])), **options)

    yield gate()
    for options in ({"enable_sigmoid": True}, {"eps": 1e-5, "scaling_factor": 1.0}):
        yield gate(**options)
    for shape in ((2, 8, 32), (2, 16, 8), (1, 2, 16, 16), (2, 32, 32)):
        yield gate({place: {"shape": shape} for place in (0, 1, 2)})
        yield gate({place: {"shape": shape} for place in (3, 4)})
    for place in range(5):
        yield gate({place: {"shape": (2, 8, 32)}})
        yield gate({place: {"dtype": "float32"}})
        yield gate({place: {"host": True}})
        for memory in ("L1", height_sharded([32, 32], 4), height_sharded([32, 32], 2, buffer="DRAM")):
            yield gate({place: {"mem": memory}})
        yield gate({place: {"mem": height_sharded([32, 32], 2, orient="COL_MAJOR")}})
    for memory in (
        height_sharded([32, 32], 4),
        height_sharded([64, 32], 1),
        height_sharded([32, 32], 2, orient="COL_MAJOR"),
    ):
        yield gate({place: {"mem": memory} for place in range(5)})
        yield gate({place: {"mem": memory} for place in (1, 2)})
        yield gate({place: {"mem": memory} for place in (3, 4)})


# -- sums -------------------------------------------------------------------------------------------------------------

SUM = "ttnn.experimental.deepseek_moe_fast_reduce_nc"


def config(fidelity: str, **settings: Any) -> Case:
    return C("WormholeComputeKernelConfig", math_fidelity=E(f"MathFidelity.{fidelity}"), **settings)


def sums_over_experts() -> Iterator[Case]:
    for shape, dim in (
        ((8, 1, 32, 256), 0),
        ((7, 2, 30, 256), 0),
        ((2, 9, 32, 256), 1),
        ((2, 16, 64, 256), -3),
        ((8, 32, 256), 0),
        ((2, 3, 8, 32, 256), 2),
        ((2, 3, 8, 32, 256), 0),
        ((2, 8, 32, 256), 2),
        ((2, 8, 32, 256), -2),
        ((2, 8, 32, 256), 4),
        ((2, 8, 32, 256), -5),
        ((32, 256), 0),
        ((256,), 0),
    ):
        for size in (64, 256):
            yield call(SUM, T(shape), dim, split_size=size)
    for width, size in (
        (250, 125),
        (250, 250),
        (250, 50),
        (250, 64),
        (256, 100),
        (256, 512),
        (256, 0),
        (96, 32),
        (96, 48),
    ):
        yield call(SUM, T((8, 1, 32, width)), 0, split_size=size)
    for dtype in DTYPES:
        yield call(SUM, T((8, 1, 32, 256), dtype), 0, split_size=128)
    for memory in ("DRAM", "L1", width_sharded([32, 32], 2), height_sharded([32, 64], 1), width_sharded([32, 16], 4)):
        yield call(SUM, T((8, 1, 32, 256)), 0, split_size=64, output_memory_config=M(memory))
    yield call(SUM, T((8, 1, 32, 256), mem=height_sharded([32, 256], 8)), 0, split_size=64)
    yield call(SUM, T((8, 1, 32, 256), layout="ROW_MAJOR"), 0, split_size=64)
    for wide in (False, True):
        given = config("LoFi", fp32_dest_acc_en=wide)
        yield call(SUM, T((8, 1, 32, 256)), 0, split_size=64, compute_kernel_config=given)


def weighted_sums_over_experts() -> Iterator[Case]:
    op = SUM + "_fused"

    def rows(*shape: int, dtype: str = "uint16") -> Case:
        return T(shape, dtype, "ROW_MAJOR")

    def scores(tokens: int = 32, experts: int = 8, **more: Any) -> Case:
        return T((tokens, 1, 1, experts), layout="ROW_MAJOR", **more)

    indices, mapping = rows(32, 1, 1, 8), rows(1, 64)
    x = T((8, 1, 32, 256))
    common = {"split_size": 64, "cluster_axis": 0}
    yield call(op, x, indices, mapping, 0, **common)
    yield call(op, x, T((3, 3), host=True), mapping, 0, split_size=64, cluster_axis=7)
    for axis in (0, 1, 2, -1):
        yield call(op, x, indices, mapping, 0, split_size=64, cluster_axis=axis)
        yield call(op, x, indices, mapping, 0, split_size=64, cluster_axis=axis, scores_tensor=scores())
    for experts, shared in ((8, 0), (9, 1), (9, 0), (9, 10), (8, 8)):
        given = T((experts, 1, 32, 256))
        yield call(op, given, indices, mapping, 0, **common, scores_tensor=scores(), num_shared_experts=shared)
    for tokens in (1, 30, 32, 33, 64):
        yield call(op, x, indices, mapping, 0, **common, scores_tensor=scores(tokens))
        yield call(op, T((8, 1, 64, 256)), indices, mapping, 0, **common, scores_tensor=scores(tokens))
    for shape, dim in (
        ((1, 8, 32, 256), 1),
        ((8, 2, 32, 256), 0),
        ((8, 32, 256), 0),
        ((1, 8, 32, 256), 2),
        ((2, 1, 8, 32, 256), 2),
    ):
        yield call(op, T(shape), indices, mapping, dim, **common, scores_tensor=scores())
    for dtype in DTYPES:
        yield call(op, T((8, 1, 32, 256), dtype), indices, mapping, 0, **common, scores_tensor=scores())
        if not dtype.endswith("_b"):
            yield call(op, x, indices, mapping, 0, **common, scores_tensor=scores(dtype=dtype))
            yield call(op, x, rows(32, 1, 1, 8, dtype=dtype), mapping, 0, **common, scores_tensor=scores())
    for places in (rows(64, 1), rows(1, 1, 64, 1), rows(4, 64), T((1, 64), "uint16"), T((1, 64), "uint16", mem="L1")):
        yield call(op, x, indices, places, 0, **common, scores_tensor=scores())
    yield call(op, x, indices, mapping, 0, **common, scores_tensor=T((32, 1, 1, 8)))
    yield call(op, x, indices, mapping, 0, **common, scores_tensor=T((32, 1, 8), layout="ROW_MAJOR"))
    yield call(op, x, indices, mapping, 0, split_size=100, cluster_axis=0, scores_tensor=scores())
    yield call(op, x, indices, mapping, 0, **common, scores_tensor=scores(), output_memory_config=M("L1"))
    yield call(op, x, T((32, 1, 1, 8), "uint16", "ROW_MAJOR", host=True), mapping, 0, **common, scores_tensor=scores())


# -- tiles ------------------------------------------------------------------------------------------------------------


def tiles_of_tokens() -> Iterator[Case]:
    op = "ttnn.experimental.deepseek_moe_post_combine_tilize"

    def cut(shard: Sequence[int], cores: Sequence[int], orient: str = "ROW_MAJOR", buffer: str = "L1") -> Case:
        spec = C("NdShardSpec", list(shard), G(list(cores)), E(f"ShardOrientation.{orient}"))
        return C("MemoryConfig", E(f"BufferType.{buffer}"), spec)

    x = T((2, 1, 32, 256), layout="ROW_MAJOR")
    for shard, cores in product(
        ([32, 256], [32, 128], [32, 64], [64, 256], [32, 96], [1, 32, 64], [32, 48], [16, 256]),
        ([0, 0, 1, 0], [0, 0, 3, 0], [0, 0, 3, 1]),
    ):
        yield call(op, x, output_memory_config=cut(shard, cores))
    for orient, buffer in (("COL_MAJOR", "L1"), ("ROW_MAJOR", "DRAM")):
        yield call(op, x, output_memory_config=cut([32, 128], [0, 0, 3, 0], orient, buffer))
        yield call(op, x, output_memory_config=cut([32, 64], [0, 0, 3, 1], orient, buffer))
    good = cut([32, 128], [0, 0, 3, 0])
    for shape in ((64, 256), (4, 16, 256), (60, 256), (1, 2, 1, 32, 256), (16, 1, 4, 256), (256,), (64, 250)):
        yield call(op, T(shape, layout="ROW_MAJOR"), output_memory_config=good)
    for dtype in ("float32", "int32", "uint16"):
        yield call(op, T((2, 1, 32, 256), dtype, "ROW_MAJOR"), output_memory_config=good)
    for memory in ("L1", "DRAM", width_sharded([64, 128], 2), height_sharded([32, 256], 2)):
        yield call(op, x, output_memory_config=M(memory))
        yield call(op, T((2, 1, 32, 256), layout="ROW_MAJOR", mem=memory), output_memory_config=good)
    yield call(op, T((2, 1, 32, 256)), output_memory_config=good)
    yield call(op, T((2, 1, 32, 256), layout="ROW_MAJOR", host=True), output_memory_config=good)
