"""Cores and packed weights of `ttnn.experimental.moe_compute`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ttnn_emulator.conformance.case import DEVICE, Case, E, G, M, T, call, height_sharded

EXPERIMENTAL = "ttnn.experimental."
HIDDEN, INTERMEDIATE = 64, 96
PLAIN: dict[str, int] = {"L": 1, "E": 1, "K": HIDDEN, "N": INTERMEDIATE}
GATE, DOWN = (1, 1, HIDDEN, INTERMEDIATE), (1, 1, INTERMEDIATE, HIDDEN)


def cases() -> Iterator[Case]:
    yield from cores()
    yield from shards()
    yield from gate_and_up()
    yield from down()
    yield from quantized()
    yield from shared()


def rows(*shape: int, dtype: str = "bfloat16", **more: Any) -> Case:
    return T(shape, dtype, "ROW_MAJOR", **more)


def cores() -> Iterator[Case]:
    for name in ("get_moe_combine_cores", "get_moe_tilize_drain_core", "get_moe_worker_mcast_bounding_box"):
        op = EXPERIMENTAL + name
        for tokens, width in ((0, 1), (1, 1), (2, 2), (3, 1), (4, 3), (4, 4), (5, 1), (8, 2), (16, 2), (7, 7)):
            for hidden in (0, 96, 4096, 7168):
                yield call(op, DEVICE, tokens, width, hidden)
        for taken in (
            [[1, 1, 3, 3]],
            [[6, 0, 7, 7]],
            [[0, 0, 0, 0]],
            [[0, 0, 0, 7]],
            [[0, 6, 7, 7]],
            [[7, 7, 7, 7]],
            [[7, 6, 7, 7], [1, 6, 1, 6], [3, 7, 4, 7]],
            [[20, 20, 21, 21]],
        ):
            yield call(op, DEVICE, 4, 2, 4096, G(*taken))
            yield call(op, DEVICE, 2, 1, 96, mux_core_range_set=G(*taken))
        yield call(op, DEVICE, -1, 1, 4096)
        yield call(op, DEVICE, 4, 2)
        yield call(op, 4, 2, 4096)


def shards() -> Iterator[Case]:
    sizes = ((7168, 2048), (512, 384), (2880, 2880), (2560, 640), (0, 0), (32, 32), (128, 2048), (2048, 64), (64, 96))
    op = EXPERIMENTAL + "get_weight_core_shard_maps"
    for hidden, intermediate in (*sizes, (100, 100), (1024, 416), (4096, 768), (6144, 2048), (31, 33), (384, 384)):
        yield call(op, DEVICE, hidden, intermediate)
    for wrong in ((-32, 32), (32, -1), (32,), (32.5, 32), ("32", 32), (32, 32, 32)):
        yield call(op, DEVICE, *wrong)
    op = EXPERIMENTAL + "get_weight_mem_configs"
    for hidden, intermediate in (*sizes, (100, 96), (96, 100)):
        wanted = {"num_layers": 1, "experts_per_device": 2, "hidden_size": hidden, "intermediate_size": intermediate}
        yield call(op, DEVICE, **wanted)
        yield call(op, DEVICE, **wanted, has_bias=True)
        yield call(op, DEVICE, **(wanted | {"num_layers": 3}))
    yield call(op, DEVICE, num_layers=0, experts_per_device=1, hidden_size=64, intermediate_size=96)
    yield call(op, DEVICE, num_layers=1, experts_per_device=-1, hidden_size=64, intermediate_size=96)
    yield call(op, DEVICE, num_layers=1, experts_per_device=1, hidden_size=64)
    yield call(op, DEVICE, 1, 1, 64, 96)
    yield call(op, DEVICE, num_layers=1, experts_per_device=1, hidden_size=48, intermediate_size=96, has_bias=True)


def weights(*shape: int) -> Iterator[Case]:
    """Variants of a weight argument."""
    for dtype in ("bfloat16", "float32", "int32", "uint32", "uint16"):
        yield rows(*shape, dtype=dtype)
        yield T(shape, dtype)
    yield rows(*shape, mem="L1")
    yield T(shape, "bfloat4_b")
    yield rows(*shape, host=True)


def gate_and_up() -> Iterator[Case]:
    op = EXPERIMENTAL + "prepare_w0_w1_tensor_for_moe_compute"
    for weight in weights(*GATE):
        yield call(op, weight, weight, **PLAIN)
    for other in (T(GATE), rows(*GATE, dtype="float32"), rows(*GATE, host=True), rows(1, 1, 32, 96)):
        yield call(op, rows(*GATE), other, **PLAIN)
    for change in ({"K": 33}, {"N": 95}, {"L": 2}, {"E": 2}, {"K": 96}, {"K": 32}, {"N": 64}, {"N": 128}):
        yield call(op, rows(*GATE), rows(*GATE), **(PLAIN | change))
    for size in ((2, 1, 32, 32), (1, 2, 448, 32), (1, 1, 64, 416), (1, 1, 32, 1536)):
        yield call(op, rows(*size), rows(*size), **dict(zip("LEKN", size)))
    yield call(op, rows(HIDDEN, INTERMEDIATE), rows(HIDDEN, INTERMEDIATE), **PLAIN)
    op = EXPERIMENTAL + "prepare_w0_w1_tensor_with_bias"
    weight, bias = rows(*GATE), rows(1, 1, INTERMEDIATE)
    for first in (bias, T((1, 1, 96)), rows(1, 1, 96, dtype="float32"), rows(1, 1, 64), rows(1, 96), rows(1, 2, 96)):
        yield call(op, weight, weight, first, bias, **PLAIN)
        yield call(op, weight, weight, bias, first, **PLAIN)
    for layout_of in (rows, T):
        for dtype in ("float32", "uint16"):
            pair = [layout_of(*GATE, dtype=dtype), layout_of(1, 1, 96, dtype=dtype)] if layout_of is rows else []
            pair = pair or [T(GATE, dtype), T((1, 1, 96), dtype)]
            yield call(op, pair[0], pair[0], pair[1], pair[1], **PLAIN)
    for change in ({"K": 33}, {"N": 95}, {"L": 2}, {"E": 2}, {"K": 96}):
        yield call(op, weight, weight, bias, bias, **(PLAIN | change))
    for size in ((2, 1, 32, 32), (1, 2, 192, 32), (1, 1, 32, 416)):
        tensor, line = rows(*size), rows(*size[:2], size[3])
        yield call(op, tensor, tensor, line, line, **dict(zip("LEKN", size)))


def down() -> Iterator[Case]:
    op = EXPERIMENTAL + "prepare_w2_tensor_for_moe_compute"
    for weight in weights(*DOWN):
        yield call(op, weight, **PLAIN)
    for change in ({"K": 33}, {"N": 95}, {"L": 2}, {"E": 2}, {"K": 96}, {"K": 32}, {"N": 64}, {"N": 128}):
        yield call(op, rows(*DOWN), **(PLAIN | change))
    for size in ((2, 1, 32, 32), (1, 2, 32, 448), (1, 1, 416, 64)):
        yield call(op, rows(*size), **dict(zip("LENK", size)))
    yield call(op, rows(INTERMEDIATE, HIDDEN), **PLAIN)
    op = EXPERIMENTAL + "prepare_w2_tensor_with_bias"
    weight, bias = rows(*DOWN), rows(1, 1, HIDDEN)
    for line in (bias, T((1, 1, 64)), rows(1, 1, 64, dtype="float32"), rows(1, 1, 32), rows(1, 64), rows(1, 2, 64)):
        yield call(op, weight, line, **PLAIN)
        yield call(op, T(DOWN), line, **PLAIN)
    for dtype in ("float32", "int32", "uint16"):
        yield call(op, rows(*DOWN, dtype=dtype), rows(1, 1, 64, dtype=dtype), **PLAIN)
    for change in ({"K": 33}, {"N": 95}, {"L": 2}, {"E": 2}, {"K": 96}):
        yield call(op, weight, bias, **(PLAIN | change))
    for size in ((2, 1, 32, 32), (1, 2, 32, 448)):
        yield call(op, rows(*size), rows(*size[:2], size[3]), **dict(zip("LENK", size)))


def quantized() -> Iterator[Case]:
    op = EXPERIMENTAL + "quantize_weights_via_host"
    shard = height_sharded([32, 96], 2)
    for weight in (T((64, 96)), rows(64, 96), T((64, 96), "float32"), T((64, 96), "bfloat8_b"), T((5, 33))):
        for dtype in ("bfloat4_b", "bfloat8_b", "bfloat16", "float32"):
            yield call(op, weight, dtype=E(dtype), memory_config=None)
            yield call(op, weight, dtype=E(dtype), memory_config=M("L1"))
    for memory in ("DRAM", shard):
        yield call(op, T((64, 96), mem=shard), dtype=E("bfloat4_b"), memory_config=M(memory))
    for memory in (None, M("DRAM")):
        yield call(op, T((64, 96), host=True), dtype=E("bfloat4_b"), memory_config=memory)
        yield call(op, rows(64, 96, host=True), dtype=E("float32"), memory_config=memory)
    yield call(op, T((64, 96)), dtype=E("bfloat4_b"))
    yield call(op, T((64, 96)), memory_config=None)
    yield call(op, T((64, 96)), E("bfloat4_b"), None)


def shared() -> Iterator[Case]:
    op = EXPERIMENTAL + "add_shared_expert_weights"

    def given(routed: int, extra: int, own: int = 96, of_shared: int = 96, **more: Any) -> list[Case]:
        first, second = rows(1, routed, 64, own, **more), rows(1, routed, own, 64, **more)
        third, fourth = rows(1, extra, 64, of_shared, **more), rows(1, extra, of_shared, 64, **more)
        return [first, first, second, third, third, fourth]

    for axis in (0, 1, 2, -1):
        yield call(op, *given(1, 1), axis)
        yield call(op, *given(3, 2), axis)
    for own, of_shared in ((96, 32), (96, 64), (32, 96), (96, 128), (96, 48), (48, 48), (416, 64), (384, 384)):
        yield call(op, *given(1, 1, own, of_shared), 0)
        yield call(op, *given(2, 1, own, of_shared), 1)
    for dtype in ("float32", "uint16", "int32"):
        yield call(op, *given(1, 1, dtype=dtype), 0)
    yield call(op, *given(1, 1, host=True), 0)
    yield call(op, *given(1, 1))
