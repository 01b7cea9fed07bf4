"""Weights that a prefetcher delivers through a global circular buffer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ttnn_emulator.conformance.case import (
    DEVICE,
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

from ._programs import mcast_1d, mcast_2d, reuse

MATMUL, LINEAR, PREFETCH = "ttnn.matmul", "ttnn.linear", "ttnn.dram_prefetcher"
EXPERIMENTAL = "ttnn.experimental."
RING = {"grid": [[0, 1, 3, 1]]}  # two receivers per sender; the senders are at (0, 0) and (1, 0)


def buffer(size: int = 300_000, pairs: Sequence[tuple[Sequence[int], Sequence[int]]] | None = None) -> Case:
    """A global circular buffer: pairs of a sender [x, y] and the receivers [x0, y0, x1, y1]."""
    pairs = pairs if pairs is not None else [((0, 0), (0, 1, 1, 1)), ((1, 0), (2, 1, 3, 1))]
    mapping = [{"tuple": [C("CoreCoord", *sender), G(list(receivers))]} for sender, receivers in pairs]
    return C("create_global_circular_buffer", DEVICE, mapping, size)


def banks(shape: Sequence[int], dtype: str = "bfloat8_b", count: int = 2, **more: Any) -> Case:
    """A weight width-sharded over DRAM banks."""
    shard = [shape[-2], more.pop("width", shape[-1] // count)]
    return T(shape, dtype, mem=width_sharded(shard, count, buffer="DRAM"), **more)


def addresses(columns: int, dtype: str = "uint32", layout: str = "ROW_MAJOR", mem: Any = None) -> Case:
    return T((2, columns), dtype, layout, mem=mem or height_sharded([1, columns], 2))


def ring(inner: int = 2, columns: int = 2, **more: Any) -> Case:
    """A program with a ring of four cores that passes the first operand around."""
    given: dict[str, Any] = {"gather_in0": True, "mcast_in0": False, "num_global_cb_receivers": 2}
    return mcast_1d(4, 1, inner, 1, 2, 1, columns, **(given | more))


def shards(shape: Sequence[int], dtype: str = "bfloat16") -> Case:
    return T(shape, dtype, mem=width_sharded([32, 64], 4) | RING)


OUT = M(width_sharded([32, 64], 4) | RING)


def cases() -> Iterator[Case]:
    yield from _prefetches()
    yield from _products()
    yield from _batched_weights()
    yield from _tensor_prefetcher()
    yield from _block_counts()


def _prefetches() -> Iterator[Case]:
    weights = [banks((256, 256)), banks((256, 512), "bfloat4_b"), addresses(10)]
    for layers in (1, 5, 0):
        yield call(PREFETCH, weights, layers, buffer())
    for fast in (True, False):
        yield call(PREFETCH, weights, 5, global_cb=buffer(), enable_performance_mode=fast)
    for dtype in ("bfloat16", "bfloat8_b", "bfloat4_b", "float32", "uint32"):
        yield call(PREFETCH, [banks((256, 256), dtype), addresses(1)], 1, buffer())
    yield call(PREFETCH, [], 1, buffer())
    yield call(PREFETCH, [addresses(1)], 1, buffer())
    yield call(PREFETCH, weights, 5)
    for size in (3200, 32_000, 64_000, 139_264, 140_000, 208_896, 278_528):
        yield call(PREFETCH, weights, 5, buffer(size))
        yield call(PREFETCH, [banks((512, 512), "bfloat16"), addresses(1)], 1, buffer(size))
    for weight in (
        T((256, 256), "bfloat8_b"),
        T((256, 256), "bfloat8_b", mem=width_sharded([256, 128], 2)),
        T((256, 256), "bfloat8_b", mem=height_sharded([128, 256], 2, buffer="DRAM")),
        T((256, 256), layout="ROW_MAJOR", mem=width_sharded([256, 128], 2, buffer="DRAM")),
        banks((256, 192), count=2),
        banks((256, 96), count=1, width=96),
        banks((96, 128), count=2),
        banks((256, 256), count=4),
    ):
        yield call(PREFETCH, [weight, addresses(1)], 1, buffer())
        yield call(PREFETCH, [banks((256, 256)), weight, addresses(2)], 1, buffer())
    for where in (
        addresses(1, "int32"),
        addresses(1, "bfloat16"),
        addresses(32, layout="TILE", mem=height_sharded([32, 32], 1)),
        addresses(1, mem="DRAM"),
        addresses(1, mem="L1"),
        addresses(8, mem=width_sharded([2, 8], 1)),
        addresses(4),
    ):
        yield call(PREFETCH, [banks((256, 256)), where], 1, buffer())
    yield call(PREFETCH, [banks((256, 256)), addresses(1)], 1, buffer(pairs=[((0, 0), (0, 1, 1, 1))]))
    uneven = buffer(pairs=[((0, 0), (0, 1, 1, 1)), ((1, 0), (2, 1, 2, 1))])
    yield call(PREFETCH, [banks((256, 256)), addresses(1)], 1, uneven)
    swapped = buffer(pairs=[((1, 0), (0, 1, 1, 1)), ((0, 0), (2, 1, 3, 1))])
    yield call(PREFETCH, [banks((256, 256)), addresses(1)], 1, swapped)
    elsewhere = buffer(pairs=[((0, 2), (0, 1, 1, 1)), ((1, 2), (2, 1, 3, 1))])
    yield call(PREFETCH, [banks((256, 256)), addresses(1)], 1, elsewhere)
    third = buffer(pairs=[((0, 0), (0, 1, 1, 1)), ((1, 0), (2, 1, 3, 1)), ((2, 0), (4, 1, 5, 1))])
    yield call(PREFETCH, [banks((256, 256)), addresses(1)], 1, third)
    for columns in (2, 3, 9, 10, 20):  # addresses of two weights in five layers
        yield call(PREFETCH, [*weights[:2], addresses(columns)], 5, buffer())


def _products() -> Iterator[Case]:
    a, b = shards((1, 1, 32, 256)), banks((256, 256))
    for op in (MATMUL, LINEAR):
        yield call(op, a, b, program_config=ring(), memory_config=OUT, global_cb=buffer())
        yield call(op, a, b, program_config=ring(), memory_config=OUT)
        yield call(op, a, b, global_cb=buffer())
        yield call(op, a, b, memory_config=OUT, global_cb=buffer())
        yield call(op, T((32, 256)), T((256, 256)), global_cb=buffer())
        yield call(op, T((32, 256)), T((256, 256)), core_grid=C("CoreGrid", x=4, y=1), global_cb=buffer())
    for dtype in ("bfloat16", "bfloat8_b", "bfloat4_b", "float32"):
        yield call(MATMUL, a, banks((256, 256), dtype), program_config=ring(), memory_config=OUT, global_cb=buffer())
        given = shards((1, 1, 32, 256), dtype)
        yield call(MATMUL, given, b, program_config=ring(), memory_config=OUT, global_cb=buffer())
        yield call(MATMUL, a, b, program_config=ring(), memory_config=OUT, global_cb=buffer(), dtype=E(dtype))
    for more in (
        {"num_global_cb_receivers": 0},
        {"num_global_cb_receivers": 1},
        {"num_global_cb_receivers": 3},
        {"num_global_cb_receivers": 4},
        {"gather_in0": False},
        {"gather_in0": False, "mcast_in0": True},
        {"mcast_in0": True},
        {"fuse_batch": False},
        {"hop_cores": G([5, 1, 5, 1])},
        {"stream_in1": True},
        {"untilize_out": True},
    ):
        yield call(MATMUL, a, b, program_config=ring(**more), memory_config=OUT, global_cb=buffer())
    for inner, columns in ((1, 2), (4, 2), (8, 2), (3, 2), (2, 4), (2, 1)):
        yield call(MATMUL, a, b, program_config=ring(inner, columns), memory_config=OUT, global_cb=buffer())
    for weight in (
        T((256, 256), "bfloat8_b"),
        T((256, 256), "bfloat8_b", mem="L1"),
        T((256, 256), "bfloat8_b", mem=width_sharded([256, 64], 4)),
        T((256, 256), "bfloat8_b", mem=height_sharded([128, 256], 2, buffer="DRAM")),
        T((256, 256), "bfloat8_b", mem=block_sharded([128, 128], (2, 2), buffer="DRAM")),
        banks((256, 256), count=4),
        banks((256, 256), count=1),
    ):
        yield call(MATMUL, a, weight, program_config=ring(), memory_config=OUT, global_cb=buffer())
    for size in (1000, 4352, 8704, 34_816, 100_000):
        yield call(MATMUL, a, b, program_config=ring(), memory_config=OUT, global_cb=buffer(size))
    for out in ("DRAM", "L1", {"layout": "WIDTH_SHARDED", "buffer": "L1"}, height_sharded([32, 256], 1)):
        yield call(MATMUL, a, b, program_config=ring(), memory_config=M(out), global_cb=buffer())
    elsewhere = M({**width_sharded([32, 64], 4), "grid": [[4, 1, 7, 1]]})
    yield call(MATMUL, a, b, program_config=ring(), memory_config=elsewhere, global_cb=buffer())
    yield call(LINEAR, a, b, bias=T((256,)), program_config=ring(), memory_config=OUT, global_cb=buffer())
    for side in ("transpose_a", "transpose_b"):
        yield call(MATMUL, a, b, program_config=ring(), memory_config=OUT, global_cb=buffer(), **{side: True})
    for other in (
        T((32, 256)),
        T((32, 256), mem=height_sharded([32, 256], 1)),
        T((32, 256), mem=width_sharded([32, 32], 8)),
    ):
        yield call(MATMUL, other, b, program_config=ring(), memory_config=OUT, global_cb=buffer())
    # An inner dimension not divisible by the cores: the last shards are partly or completely padding.
    for inner in (160, 192, 224):
        odd, weight = shards((1, 1, 32, inner)), banks((inner, 256))
        yield call(MATMUL, odd, weight, program_config=ring(1), memory_config=OUT, global_cb=buffer())
    two = {"program_config": mcast_2d(4, 1, 2, 1, 2, 1, 2), "global_cb": buffer()}
    yield call(MATMUL, T((32, 256)), T((256, 256)), **two)
    one = {"program_config": reuse(1, 1, 2, 1, 2, 1, 8), "global_cb": buffer()}
    yield call(MATMUL, T((32, 256)), T((256, 256)), **one)
    yield call(MATMUL, T((32, 256)), b, program_config=ring(gather_in0=False, mcast_in0=True), global_cb=buffer())


def _batched_weights() -> Iterator[Case]:
    op, a, b = "ttnn.matmul_batched_weights", shards((1, 1, 32, 256)), banks((256, 256))
    part = C("SubDeviceId", 0)
    given = {"program_config": ring(), "memory_config": OUT, "global_cb": buffer(), "sub_device_id": part}
    for count in (1, 2, 3, 5):
        yield call(op, a, [b] * count, **given)
    for dtype in ("bfloat16", "bfloat8_b", "float32"):
        yield call(op, a, [b, b], dtype=E(dtype), **given)
        yield call(op, a, [b, banks((256, 256), dtype)], **given)
    for weight in (
        T((256, 256), "bfloat8_b"),
        T((256, 256), "bfloat8_b", mem=width_sharded([256, 64], 4) | RING),
        banks((256, 512)),
        banks((128, 256)),
        banks((256, 256), count=4),
        banks((1, 1, 256, 256)),
    ):
        yield call(op, a, [weight, weight], **given)
        yield call(op, a, [b, weight], **given)
    yield call(op, T((32, 256)), [b, b], **given)
    yield call(op, a, [], **given)
    for change in (
        {"program_config": ring(gather_in0=False, mcast_in0=True)},
        {"program_config": mcast_2d(4, 1, 2, 1, 2, 1, 2)},
        {"program_config": ring(num_global_cb_receivers=0)},
        {"memory_config": M("DRAM")},
        {"activation": "relu"},
        {"transpose_a": True},
        {"core_grid": C("CoreGrid", x=4, y=1)},
    ):
        yield call(op, a, [b, b], **(given | change))


def _tensor_prefetcher() -> Iterator[Case]:
    """Only Blackhole has DRAM cores that can run it."""
    weight = banks((256, 256))
    receivers = [{"tuple": [0, G([0, 0, 1, 0])]}, {"tuple": [1, G([2, 0, 3, 0])]}]
    yield call(EXPERIMENTAL + "is_tensor_prefetcher_supported", DEVICE)
    for op in ("start_tensor_prefetcher", "stop_tensor_prefetcher", "wait_for_cq_on_tensor_prefetcher"):
        yield call(EXPERIMENTAL + op, DEVICE)
        yield call(EXPERIMENTAL + op)
    yield call(EXPERIMENTAL + "start_tensor_prefetcher", DEVICE, dynamic_mpfe_weighting=True)
    yield call(EXPERIMENTAL + "wait_for_cq_on_tensor_prefetcher", DEVICE, 0)
    for more in ([], [300_000], [300_000, E("BufferType.L1")], [300_000, E("BufferType.L1"), False]):
        yield call(EXPERIMENTAL + "create_global_circular_buffer_for_tensor_prefetcher", DEVICE, receivers, *more)
    yield call(
        EXPERIMENTAL + "create_global_circular_buffer_for_matmul_1d", DEVICE, [ring()], [weight], receivers, 300_000
    )
    yield call(EXPERIMENTAL + "create_global_circular_buffer_for_matmul_1d", DEVICE, [], [], receivers, 300_000)
    request = [{"tuple": [weight, 4]}]
    yield call(EXPERIMENTAL + "queue_tensor_prefetcher_request", DEVICE, request, buffer())
    yield call(EXPERIMENTAL + "queue_tensor_prefetcher_request", DEVICE, [], buffer())
    yield call(EXPERIMENTAL + "queue_tensor_prefetcher_request", DEVICE, request)
    yield call(EXPERIMENTAL + "queue_tensor_prefetcher_request", DEVICE, request, buffer(), capture_into_trace=True)


def _block_counts() -> Iterator[Case]:
    op, weight = EXPERIMENTAL + "tensor_prefetcher_block_count_for_matmul_1d", banks((256, 256))
    multicast = {"gather_in0": False, "mcast_in0": True}
    for program in (
        ring(),
        ring(1),
        ring(3),
        ring(4),
        ring(2, 4),
        ring(num_global_cb_receivers=1),
        ring(num_global_cb_receivers=3),
        ring(stream_in1=True),
        ring(**multicast),
        ring(3, **multicast),
        ring(4, **multicast),
        ring(8, **multicast),
        ring(2, 4, **multicast),
        ring(stream_in1=True, **multicast),
        ring(gather_in0=False),
        ring(mcast_in0=True),
    ):
        yield call(op, program, weight, buffer())
    for other in (
        T((256, 256)),
        T((256, 256), mem=width_sharded([256, 64], 4)),
        T((256, 256), mem=height_sharded([128, 256], 2, buffer="DRAM")),
        T((256, 256), layout="ROW_MAJOR", mem=width_sharded([256, 128], 2, buffer="DRAM")),
        banks((160, 256)),
        banks((256, 512)),
        banks((256, 256), count=4),
        banks((256, 384), count=3),
        banks((256, 256), "float32"),
        banks((2, 128, 256), width=128),
    ):
        yield call(op, ring(1), other, buffer())
        yield call(op, ring(1, **multicast), other, buffer())
    for pairs in ([((0, 0), (0, 1, 1, 1))], [((0, 0), (0, 1, 1, 1)), ((1, 0), (2, 1, 2, 1))]):
        yield call(op, ring(), weight, buffer(pairs=pairs))
    yield call(op, ring(), weight, buffer(1000))
    yield call(op, ring(), weight)
