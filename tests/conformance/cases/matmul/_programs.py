"""Matmul and linear with a program config, and random cases."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from ttnn_emulator.conformance.case import (
    FLOATS,
    C,
    Case,
    E,
    G,
    M,
    T,
    block_sharded,
    call,
    height_sharded,
    width_sharded,
)

MATMUL, LINEAR = "ttnn.matmul", "ttnn.linear"
FIDELITIES = ("LoFi", "HiFi2", "HiFi3", "HiFi4")
KINDS = ("HEIGHT_SHARDED", "WIDTH_SHARDED", "BLOCK_SHARDED")


def grid(x: int, y: int) -> Case:
    return C("CoreGrid", x=x, y=y)


def config(fidelity: str = "HiFi2", **fields: Any) -> Case:
    return C("WormholeComputeKernelConfig", math_fidelity=E(f"MathFidelity.{fidelity}"), **fields)


def unary(name: str, *params: float) -> Case:
    return C("UnaryWithParam", E(f"UnaryOpType.{name}"), *params)


def on_grid(
    name: str, x: int, y: int, inner: int, sub_h: int, sub_w: int, rows: int, columns: int, **more: Any
) -> Case:
    """A config of a program with blocks on a grid of cores; sizes are in tiles."""
    return C(
        name,
        compute_with_storage_grid_size={"tuple": [x, y]},
        in0_block_w=inner,
        out_subblock_h=sub_h,
        out_subblock_w=sub_w,
        per_core_M=rows,
        per_core_N=columns,
        **more,
    )


def reuse(*sizes: int, **more: Any) -> Case:
    return on_grid("MatmulMultiCoreReuseProgramConfig", *sizes, **more)


def mcast_2d(*sizes: int, **more: Any) -> Case:
    return on_grid("MatmulMultiCoreReuseMultiCastProgramConfig", *sizes, **({"transpose_mcast": False} | more))


def mcast_1d(*sizes: int, **more: Any) -> Case:
    defaults = {"fuse_batch": True, "mcast_in0": True}
    return on_grid("MatmulMultiCoreReuseMultiCast1DProgramConfig", *sizes, **(defaults | more))


def dram_sharded(inner: int, rows: int, columns: int, **more: Any) -> Case:
    return C(
        "MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig",
        in0_block_w=inner,
        per_core_M=rows,
        per_core_N=columns,
        fused_activation=None,
        **more,
    )


def cases() -> Iterator[Case]:
    yield from _two_dimensional()
    yield from _one_dimensional()
    yield from _reusing()
    yield from _from_dram()
    yield from _random()


def _two_dimensional() -> Iterator[Case]:
    left, right = T((256, 128)), T((128, 256))
    good = (4, 4, 2, 1, 2, 2, 2)
    yield call(MATMUL, left, right, program_config=mcast_2d(*good))
    for change in range(7):
        for value in (0, 1, 3, 8, 16):
            changed = list(good)
            changed[change] = value
            yield call(MATMUL, left, right, program_config=mcast_2d(*changed))
    for more in (
        {"transpose_mcast": True},
        {"fuse_batch": False},
        {"out_block_h": 1},
        {"out_block_h": 3},
        {"out_block_w": 1},
        {"fused_activation": unary("RELU")},
        {"fused_activation": unary("GELU", 1.0)},
        {"fused_activation": unary("EXP")},
        {"allowed_worker_cores": G([0, 0, 3, 3])},
        {"allowed_worker_cores": G([2, 1, 5, 4])},
    ):
        program = mcast_2d(*good, **more)
        yield call(MATMUL, left, right, program_config=program)
        yield call(LINEAR, left, right, bias=T((256,)), program_config=program)
        yield call(MATMUL, T((2, 128, 128)), right, program_config=program)
        yield call(MATMUL, T((2, 128, 128)), T((2, 128, 256)), program_config=program)
        for kind in KINDS:
            out = M({"layout": kind, "buffer": "L1"})
            yield call(MATMUL, left, right, program_config=program, memory_config=out)
        blocks = block_sharded([64, 32], (4, 4), orient="COL_MAJOR" if "transpose_mcast" in more else "ROW_MAJOR")
        yield call(MATMUL, T((256, 128), mem=blocks), right, program_config=mcast_2d(4, 4, 1, 1, 2, 2, 2, **more))
    program = mcast_2d(*good)
    yield call(MATMUL, left, right, program_config=program, core_grid=grid(4, 4))
    yield call(MATMUL, left, right, program_config=program, activation="silu")
    yield call(MATMUL, left, T((256, 128)), program_config=program, transpose_b=True)
    yield call(MATMUL, T((128, 256)), right, program_config=program, transpose_a=True)
    yield call(MATMUL, T((2, 128, 128)), right, program_config=program, transpose_a=True)
    for wide in (False, True):
        for sub_h, sub_w in ((2, 2), (4, 2), (8, 1)):
            big = mcast_2d(2, 2, 2, sub_h, sub_w, 8, 8)
            given = config("HiFi4", fp32_dest_acc_en=wide)
            yield call(MATMUL, T((512, 128)), T((128, 512)), program_config=big, compute_kernel_config=given)
    yield call(MATMUL, left, T((128, 256), mem=width_sharded([128, 64], 4)), program_config=program)
    yield call(MATMUL, left, T((128, 256), mem=width_sharded([128, 64], 4, buffer="DRAM")), program_config=program)
    yield call(MATMUL, left, T((128, 256), mem=height_sharded([32, 256], 4)), program_config=program)


def _one_dimensional() -> Iterator[Case]:
    flat, tall = T((32, 256)), T((512, 128))
    wide_weights, small_weights = T((256, 512)), T((128, 64))
    good_in0, good_in1 = (8, 1, 2, 1, 2, 1, 2), (8, 2, 2, 1, 2, 1, 2)
    for change in range(7):
        for value in (0, 1, 3, 8, 16):
            changed = list(good_in0)
            changed[change] = value
            yield call(MATMUL, flat, wide_weights, program_config=mcast_1d(*changed))
            changed = list(good_in1)
            changed[change] = value
            yield call(MATMUL, tall, small_weights, program_config=mcast_1d(*changed, mcast_in0=False))
    for more in (
        {},
        {"fuse_batch": False},
        {"out_block_w": 1},
        {"fused_activation": unary("SILU")},
        {"fused_activation": unary("LEAKY_RELU", 0.1)},
        {"gather_in0": True},
        {"gather_in0": True, "mcast_in0": False},
        {"untilize_out": True},
        {"stream_in1": True},
        {"hop_cores": G([7, 7, 7, 7])},
        {"allowed_worker_cores": G([0, 1, 7, 1])},
        {"num_global_cb_receivers": 2},
    ):
        program = mcast_1d(*good_in0, **more)
        yield call(MATMUL, flat, wide_weights, program_config=program)
        yield call(LINEAR, flat, wide_weights, bias=T((512,)), program_config=program)
        yield call(MATMUL, T((2, 32, 256)), wide_weights, program_config=program)
        for kind in KINDS:
            out = M({"layout": kind, "buffer": "L1"})
            yield call(MATMUL, flat, wide_weights, program_config=program, memory_config=out)
        shards = T((32, 256), mem=width_sharded([32, 32], 8))
        one = mcast_1d(8, 1, 1, 1, 2, 1, 2, **more)
        out = M({"layout": "WIDTH_SHARDED", "buffer": "L1"})
        yield call(MATMUL, shards, wide_weights, program_config=one)
        yield call(MATMUL, shards, wide_weights, program_config=one, memory_config=out)
        yield call(MATMUL, shards, T((256, 512), mem=width_sharded([256, 64], 8)), program_config=one)
        other = mcast_1d(*good_in1, **({"mcast_in0": False} | more))
        yield call(MATMUL, tall, small_weights, program_config=other)
        heights = T((512, 128), mem=height_sharded([32, 128], 16))
        out = M({"layout": "HEIGHT_SHARDED", "buffer": "L1"})
        yield call(MATMUL, heights, small_weights, program_config=other)
        yield call(LINEAR, heights, small_weights, bias=T((64,)), program_config=other, memory_config=out)
    yield call(MATMUL, T((1, 64, 128)), T((3, 128, 64)), program_config=mcast_1d(2, 1, 2, 1, 2, 1, 2, mcast_in0=False))
    yield call(
        MATMUL,
        T((1, 64, 128)),
        T((3, 128, 64)),
        program_config=mcast_1d(2, 1, 2, 1, 2, 1, 2, mcast_in0=False, fuse_batch=False),
    )
    yield call(MATMUL, flat, T((512, 256)), program_config=mcast_1d(*good_in0), transpose_b=True)
    yield call(MATMUL, T((256, 32)), wide_weights, program_config=mcast_1d(*good_in0), transpose_a=True)


def _reusing() -> Iterator[Case]:
    left, right = T((2, 3, 64, 96)), T((2, 3, 96, 64))
    good = (3, 2, 3, 2, 2, 2, 2)
    for change in range(7):
        for value in (0, 1, 3, 4, 16):
            changed = list(good)
            changed[change] = value
            yield call(MATMUL, left, right, program_config=reuse(*changed))
    everywhere: tuple[dict[str, Any], ...] = (
        {},
        {"allowed_worker_cores": G([0, 0, 1, 1])},
        {"allowed_worker_cores": G([3, 3, 5, 4])},
    )
    for more in everywhere:
        program = reuse(*good, **more)
        yield call(MATMUL, left, right, program_config=program)
        yield call(MATMUL, left, T((96, 64)), program_config=program)
        yield call(MATMUL, T((64, 96)), T((96, 64)), program_config=program)
        yield call(MATMUL, left, T((2, 3, 64, 96)), program_config=program, transpose_b=True)
        yield call(MATMUL, T((2, 3, 96, 64)), right, program_config=program, transpose_a=True)
        for bias in ((64,), (1, 64), (64, 64), (1, 1, 64, 64), (2, 3, 64, 64)):
            yield call(LINEAR, left, right, bias=T(bias), program_config=program)
        for kind in KINDS:
            out = M({"layout": kind, "buffer": "L1"})
            yield call(MATMUL, left, right, program_config=program, memory_config=out)
        yield call(MATMUL, left, right, program_config=program, memory_config=M(height_sharded([64, 64], 6)))
        shards = T((2, 3, 64, 96), mem=height_sharded([64, 96], 6))
        weights = T((2, 3, 96, 64), mem=height_sharded([96, 64], 6))
        out = M({"layout": "HEIGHT_SHARDED", "buffer": "L1"})
        yield call(MATMUL, shards, right, program_config=program)
        yield call(MATMUL, shards, weights, program_config=program)
        yield call(MATMUL, left, weights, program_config=program)
        yield call(MATMUL, shards, weights, program_config=program, memory_config=out)
        yield call(MATMUL, T((2, 3, 64, 96), mem=height_sharded([128, 96], 3)), right, program_config=program)
    yield call(MATMUL, left, right, program_config=reuse(3, 1, 3, 2, 2, 4, 2))
    yield call(MATMUL, left, right, program_config=reuse(3, 1, 3, 2, 2, 3, 2))


def in_banks(layout: str, shard: list[int], banks: int) -> dict[str, Any]:
    """Shards in the first DRAM banks."""
    grid_ = [[0, 0, banks - 1, 0]]
    return {"layout": layout, "buffer": "DRAM", "shard": shard, "grid": grid_, "orient": "ROW_MAJOR"}


def _from_dram() -> Iterator[Case]:
    weights = T((256, 1536), mem=in_banks("WIDTH_SHARDED", [256, 128], 12))
    out = M({"layout": "WIDTH_SHARDED", "buffer": "L1"})
    shards = T((32, 256), mem=width_sharded([32, 32], 8))
    for inner, rows, columns in ((1, 1, 6), (1, 1, 4), (2, 1, 6), (1, 2, 6), (0, 1, 6), (1, 1, 0)):
        for more in ({}, {"num_workers_per_dram_bank": 2}):
            program = dram_sharded(inner, rows, columns, **more)
            yield call(MATMUL, shards, weights, program_config=program, memory_config=out)
    program = dram_sharded(1, 1, 6)
    yield call(LINEAR, shards, weights, bias=T((1536,)), program_config=program, memory_config=out)
    yield call(MATMUL, shards, weights, program_config=program)
    yield call(MATMUL, T((32, 256)), weights, program_config=program, memory_config=out)
    yield call(MATMUL, shards, T((256, 1536)), program_config=program, memory_config=out)
    yield call(MATMUL, T((64, 256), mem=width_sharded([64, 32], 8)), weights, program_config=program, memory_config=out)
    yield call(MATMUL, shards, weights, program_config=program, memory_config=M({"layout": "HEIGHT_SHARDED"}))
    for inner, rows, columns in ((1, 1, 2), (2, 1, 2), (3, 1, 2)):
        program = C(
            "MatmulMultiCoreReuseMultiCastBatchedDRAMShardedProgramConfig",
            in0_block_w=inner,
            per_core_M=rows,
            per_core_N=columns,
        )
        yield call(
            MATMUL,
            T((1, 12, 32, 128), mem=height_sharded([32, 128], 12)),
            T((1, 12, 128, 64), mem=in_banks("HEIGHT_SHARDED", [128, 64], 12)),
            program_config=program,
            memory_config=M(height_sharded([32, 64], 12)),
        )
        yield call(MATMUL, T((1, 12, 32, 128)), T((1, 12, 128, 64)), program_config=program)


def _random() -> Iterator[Case]:
    """Random sizes and settings, with a fixed seed."""
    draw = random.Random(81)
    sizes = (1, 7, 32, 33, 64, 96, 100, 128, 256, 320, 512, 768, 1024)
    for _ in range(160):
        rows, inner, columns = (draw.choice(sizes) for _ in range(3))
        batch = draw.choice(((), (), (2,), (1, 3), (2, 1, 2)))
        weight_batch = draw.choice(((), (), batch, (1,) * len(batch)))
        flags = {name: True for name in ("transpose_a", "transpose_b") if draw.random() < 0.2}
        left = (*batch, inner, rows) if "transpose_a" in flags else (*batch, rows, inner)
        right = (*weight_batch, columns, inner) if "transpose_b" in flags else (*weight_batch, inner, columns)
        more: dict[str, Any] = dict(flags)
        if draw.random() < 0.25:
            more["core_grid"] = grid(draw.choice((1, 4, 8)), draw.choice((2, 6, 8)))
        if draw.random() < 0.25:
            more["dtype"] = E(draw.choice(FLOATS))
        if draw.random() < 0.3:
            more["memory_config"] = M("L1")
        if draw.random() < 0.2:
            more["compute_kernel_config"] = config(draw.choice(FIDELITIES), fp32_dest_acc_en=draw.random() < 0.5)
        tensors = [T(shape, draw.choice(FLOATS), mem=draw.choice(("DRAM", "DRAM", "L1"))) for shape in (left, right)]
        if draw.random() < 0.5:
            yield call(MATMUL, *tensors, **more)
            continue
        if draw.random() < 0.4:
            more["activation"] = draw.choice(("relu", "gelu", "silu", "tanh"))
        bias = draw.choice(((columns,), (1, columns), (rows, columns), (columns + 3,), (1, 1, 1, columns)))
        yield call(LINEAR, *tensors, bias=T(bias, draw.choice(FLOATS)), **more)
