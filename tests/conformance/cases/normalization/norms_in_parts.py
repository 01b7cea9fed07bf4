"""Distributed norms of diffusion transformers: statistics per device, and the norm from gathered statistics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ttnn_emulator.conformance.case import DTYPES, C, Case, E, M, T, call, height_sharded, product, width_sharded

SHAPE = (1, 1, 64, 256)


def cases() -> Iterator[Case]:
    yield from layer_before()
    yield from layer_after()
    yield from rms_before()
    yield from rms_after()


def config(wide: bool, **settings: Any) -> Case:
    return C("WormholeComputeKernelConfig", math_fidelity=E("MathFidelity.HiFi4"), fp32_dest_acc_en=wide, **settings)


CONFIGS = tuple(config(wide, dst_full_sync_en=whole) for wide, whole in product((False, True), (False, True)))
OTHERS: tuple[dict[str, Any], ...] = ({"host": True}, {"layout": "ROW_MAJOR"}, {"mem": "L1"})


# -- layer norm -------------------------------------------------------------------------------------------------------


def reciprocals(width: int, cores: int = 64) -> Case:
    return T((cores, width), "float32", "ROW_MAJOR", mem=height_sharded([1, width], cores))


def layer_before() -> Iterator[Case]:
    op = "ttnn.experimental.dit_layernorm_pre_allgather"
    for shape in (
        SHAPE,
        (2, 3, 60, 96),
        (1, 1, 64, 250),
        (64, 256),
        (1, 64, 256),
        (1, 1, 1, 64, 256),
        (256,),
        (1, 1, 1, 32),
    ):
        yield call(op, T(shape), reciprocals(shape[-1]))
    for dtype in DTYPES:
        yield call(op, T(SHAPE, dtype), reciprocals(256))
        yield call(op, T(SHAPE, dtype), reciprocals(256), compute_kernel_config=config(True))
        yield call(op, T(SHAPE), reciprocals(256), dtype=E(dtype))
    for given in CONFIGS:
        yield call(op, T(SHAPE), reciprocals(256), compute_kernel_config=given)
    for other in (
        reciprocals(128),
        reciprocals(256, 2),
        T((64, 256), "float32", "ROW_MAJOR"),
        T((64, 256), "float32", "ROW_MAJOR", mem="L1"),
        T((64, 256), "bfloat16", "ROW_MAJOR", mem=height_sharded([1, 256], 64)),
        T((64, 256), "float32", "ROW_MAJOR", host=True),
    ):
        yield call(op, T(SHAPE), other)
    for memory in ("DRAM", "L1", height_sharded([32, 64], 2), width_sharded([64, 32], 2), height_sharded([32, 256], 2)):
        yield call(op, T(SHAPE), reciprocals(256), memory_config=M(memory))
        yield call(op, T(SHAPE, mem=height_sharded([32, 256], 2)), reciprocals(256), memory_config=M(memory))
    for changed in OTHERS:
        yield call(op, T(SHAPE, **changed), reciprocals(256))


def layer_after() -> Iterator[Case]:
    op = "ttnn.experimental.dit_layernorm_post_allgather"
    for shape, given in (
        (SHAPE, (1, 1, 64, 64)),
        (SHAPE, (1, 1, 64, 128)),
        (SHAPE, (1, 1, 64, 40)),
        (SHAPE, (1, 1, 64, 96)),
        (SHAPE, (1, 1, 32, 64)),
        ((2, 3, 60, 250), (2, 3, 60, 64)),
        ((2, 3, 60, 250), (3, 2, 60, 64)),
        ((64, 256), (64, 64)),
        ((1, 64, 256), (1, 64, 64)),
        ((1, 1, 2, 64, 256), (1, 1, 2, 64, 64)),
        ((1, 1, 2, 64, 256), (1, 1, 2, 32, 64)),
    ):
        yield call(op, T(shape), T(given))
    x, stats = T(SHAPE), T((1, 1, 64, 64))
    for dtype in DTYPES:
        yield call(op, T(SHAPE, dtype), stats)
        yield call(op, T(SHAPE, dtype), stats, compute_kernel_config=config(True))
        yield call(op, x, T((1, 1, 64, 64), dtype))
        yield call(op, x, stats, dtype=E(dtype))
        yield call(op, x, stats, weight=T((1, 256), dtype), bias=T((1, 256)))
    for given in CONFIGS:
        yield call(op, x, stats, compute_kernel_config=given)
        yield call(op, x, stats, weight=T((1, 256)), bias=T((1, 256), "float32"), compute_kernel_config=given)
    yield call(op, x, stats, weight=T((1, 256)))
    yield call(op, x, stats, bias=T((1, 256)))
    for row in ((256,), (1, 1, 256), (1, 1, 1, 256), (64, 256), (1, 128), (2, 1, 256), (1, 1, 1, 1, 256)):
        yield call(op, x, stats, weight=T(row), bias=T(row))
    for shape in ((8, 32), (256,), (1, 8, 32), (2, 4, 32), (4, 64)):
        rows = {"weight": T(shape, layout="ROW_MAJOR"), "bias": T(shape, "float32", "ROW_MAJOR")}
        yield call(op, x, stats, **rows)
    for batches in (1, 2, 3):
        two, of_two = T((1, 2, 64, 256)), T((1, 2, 64, 64))
        yield call(op, two, of_two, weight=T((batches, 1, 256)), bias=T((1, 256)))
        yield call(op, T((2, 2, 64, 256)), T((2, 2, 64, 64)), weight=T((batches, 1, 256)), bias=T((batches, 1, 256)))
    for memory in ("L1", height_sharded([32, 256], 2)):
        yield call(op, x, stats, memory_config=M(memory))
        yield call(op, T(SHAPE, mem=memory), stats, memory_config=M("DRAM"))
    yield call(op, x, T((1, 1, 64, 64), mem=height_sharded([32, 64], 2)))
    for changed in OTHERS:
        yield call(op, T(SHAPE, **changed), stats)
        yield call(op, x, T((1, 1, 64, 64), **changed))
        yield call(op, x, stats, weight=T((1, 256), **changed), bias=T((1, 256)))


# -- RMS norm ---------------------------------------------------------------------------------------------------------


def rms_before() -> Iterator[Case]:
    op = "ttnn.experimental.wan_fused_rmsnorm_pre_allgather"
    for shape in (SHAPE, (2, 3, 60, 250), (64, 256), (256,), (1, 1, 1, 64, 256), (1, 1, 0, 256), (1, 1, 64, 0)):
        yield call(op, T(shape))
    for dtype in DTYPES:
        yield call(op, T(SHAPE, dtype))
        yield call(op, T(SHAPE), dtype=E(dtype))
    for given in CONFIGS:
        yield call(op, T(SHAPE), compute_kernel_config=given)
    for memory in ("DRAM", "L1", height_sharded([32, 32], 2), height_sharded([32, 256], 2)):
        yield call(op, T(SHAPE), memory_config=M(memory))
        yield call(op, T(SHAPE, mem=memory))
    for changed in OTHERS:
        yield call(op, T(SHAPE, **changed))


def rms_after() -> Iterator[Case]:
    op = "ttnn.experimental.wan_fused_rmsnorm_post_allgather"
    x, stats = T(SHAPE), T((1, 1, 64, 32))
    for shape, given in (
        (SHAPE, (1, 1, 64, 32)),
        (SHAPE, (1, 1, 64, 96)),
        (SHAPE, (1, 1, 64, 1)),
        (SHAPE, (1, 1, 32, 32)),
        (SHAPE, (64, 32)),
        ((1, 1, 60, 256), (1, 1, 60, 32)),
        ((1, 1, 64, 250), (1, 1, 64, 32)),
        ((1, 2, 64, 256), (1, 2, 64, 32)),
        ((2, 1, 64, 256), (2, 1, 64, 32)),
        ((1, 64, 256), (1, 64, 32)),
        ((64, 256), (64, 32)),
    ):
        yield call(op, T(shape), T(given))
    for heads in (0, 1, 2, 3, 8, 16):
        yield call(op, x, stats, num_heads_per_device=heads)
    for dtype in DTYPES:
        yield call(op, T(SHAPE, dtype), stats)
        yield call(op, x, T((1, 1, 64, 32), dtype))
        yield call(op, x, stats, weight=T((1, 256), dtype))
        yield call(op, x, stats, dtype=E(dtype))
    for row in ((256,), (1, 1, 256), (2, 256), (1, 128), (1, 250)):
        yield call(op, x, stats, weight=T(row))
    waves = {
        "transformation_mat": T((1, 1, 32, 32)),
        "rope_cos": T((1, 1, 64, 128)),
        "rope_sin": T((1, 1, 64, 128)),
    }
    for given in CONFIGS:
        yield call(op, x, stats, compute_kernel_config=given)
        yield call(op, x, stats, weight=T((1, 256)), compute_kernel_config=given)
        yield call(op, x, stats, weight=T((1, 256)), compute_kernel_config=given, num_heads_per_device=2, **waves)
    for heads in (1, 2, 4):
        yield call(op, x, stats, num_heads_per_device=heads, **waves)
    for name in waves:
        left = {other: wave for other, wave in waves.items() if other != name}
        yield call(op, x, stats, num_heads_per_device=2, **left)
        shape = waves[name]["T"][0]
        for dtype in ("float32", "bfloat8_b"):
            yield call(op, x, stats, num_heads_per_device=2, **{**waves, name: T(shape, dtype)})
        yield call(op, x, stats, num_heads_per_device=2, **{**waves, name: T(shape[2:])})
        yield call(op, x, stats, num_heads_per_device=2, **{**waves, name: T(shape, layout="ROW_MAJOR")})
    for memory in ("L1", height_sharded([32, 256], 2)):
        yield call(op, x, stats, memory_config=M(memory))
        yield call(op, T(SHAPE, mem=memory), stats)
        yield call(op, T(SHAPE, mem=memory), stats, memory_config=M("DRAM"))
    for changed in OTHERS:
        yield call(op, T(SHAPE, **changed), stats)
        yield call(op, x, T((1, 1, 64, 32), **changed))
