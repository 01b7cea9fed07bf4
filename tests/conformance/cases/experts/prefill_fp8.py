"""fp8_e4m3 on Blackhole: casts, and operations of chunked prefill."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ttnn_emulator.conformance.case import (
    DEVICE,
    LAYOUTS,
    STORABLE,
    Case,
    E,
    M,
    T,
    call,
    height_sharded,
    product,
)

BOARD = "p150"
PREFILL = "ttnn.experimental.deepseek_prefill"


def cases() -> Iterator[Case]:
    yield from tensors()
    yield from to_fp8()
    yield from back()
    yield from back_of_experts()
    yield from packing()
    yield from caches()


def rows(shape: tuple[int, ...], dtype: str = "fp8_e4m3", mem: Any = "DRAM") -> Case:
    return T(shape, dtype, "ROW_MAJOR", mem)


def tensors() -> Iterator[Case]:
    for layout in LAYOUTS:
        yield call("ttnn.empty", [32, 64], dtype=E("fp8_e4m3"), layout=E(f"{layout}_LAYOUT"), device=DEVICE)
        yield call("ttnn.zeros", [32, 64], dtype=E("fp8_e4m3"), layout=E(f"{layout}_LAYOUT"), device=DEVICE)
        for dtype in ("bfloat16", "float32"):
            yield call("ttnn.typecast", T((32, 128), dtype, layout), E("fp8_e4m3"))
    for dtype in ("bfloat16", "float32", "bfloat8_b", "fp8_e4m3"):
        yield call("ttnn.typecast", rows((30, 100)), E(dtype))
    yield call("ttnn.add", rows((32, 64)), rows((32, 64)))
    yield call("ttnn.relu", rows((32, 64)))


def to_fp8() -> Iterator[Case]:
    op = f"{PREFILL}.per_token_cast_to_fp8"
    for dtype, layout in STORABLE:
        yield call(op, T((32, 256), dtype, layout))
        yield call(op, T((2, 3, 5, 384), dtype, layout), round_scale_to_power_of_two=True)
    for shape in ((5, 384), (32, 200), (32, 64), (256,), (1, 1, 32, 128)):
        yield call(op, T(shape))
    for mem in ("L1", height_sharded([32, 256], 1)):
        yield call(op, T((32, 256), mem=mem))
        yield call(op, T((32, 256)), M(mem))
    yield call(op, T((32, 256)), M("DRAM"))
    yield call(op, T((32, 256), host=True))


def back() -> Iterator[Case]:
    op, values, scales = f"{PREFILL}.per_token_cast_back", rows((32, 256)), rows((32, 2), "float32")
    for dtype, narrow in product(("bfloat16", "float32", "bfloat8_b", "uint32", "fp8_e4m3"), (False, True)):
        yield call(op, values, scales, E(dtype), None, narrow)
    for mem in ("DRAM", "L1"):
        yield call(op, values, scales, None, M(mem))
        yield call(op, rows((32, 256), mem=mem), scales)
        yield call(op, values, rows((32, 2), "float32", mem))
    for dtype, layout in STORABLE:
        yield call(op, T((32, 256), dtype, layout), scales)
        yield call(op, values, T((32, 2), dtype, layout))
    for shape in ((32, 3), (31, 2), (1, 32, 2)):
        yield call(op, values, rows(shape, "float32"))
    yield call(op, values)
    yield call(op, rows((256,)), rows((2,), "float32"))
    yield call(op, rows((2, 3, 256)), rows((2, 3, 2), "float32"))
    yield call(op, rows((32, 200)), scales)


def back_of_experts() -> Iterator[Case]:
    op, values, scales = f"{PREFILL}.per_token_cast_back", rows((32, 256)), rows((32, 2), "float32")
    of, table = rows((8,), "uint32"), rows((4,), "uint32")

    def counted(offsets: Case = of, counts: Case = of, numbers: Case = table, local: int = 4) -> dict[str, Any]:
        return {
            "token_count_aware": True,
            "expert_region_offsets": offsets,
            "expert_token_counts": counts,
            "global_expert_idx_table": numbers,
            "experts_per_chip": local,
        }

    for local in (-1, 0, 1, 4, 5):
        yield call(op, values, scales, **counted(local=local))
    for each in (
        rows((7,), "uint32"),
        rows((1, 8), "uint32"),
        rows((2, 8), "uint32"),
        rows((8,), "int32"),
        T((8,), "uint32"),
        rows((8,), "uint32", "L1"),
    ):
        yield call(op, values, scales, **counted(each))
        yield call(op, values, scales, **counted(of, each))
        yield call(op, values, scales, **counted(of, of, each))
    for dtype, width in product(("float32", "int32", "uint32", "bfloat16"), (1, 2, 7)):
        yield call(op, values, None, metadata=rows((32, width), dtype), **counted())
    yield call(op, values, scales, metadata=rows((32, 7), "int32"), **counted())
    yield call(op, values, scales, metadata=rows((32, 7), "int32"))
    yield call(op, values, scales, expert_region_offsets=of)
    yield call(op, values, scales, token_count_aware=True)
    yield call(op, values, **counted())


def packing() -> Iterator[Case]:
    op = f"{PREFILL}.pack_scaled_fp8_kv_cache"
    for lead in ((1, 1, 64), (64,), (), (2, 3, 5)):
        parts = rows((*lead, 512)), rows((*lead, 4), "float32"), rows((*lead, 64), "bfloat16")
        yield call(op, *parts)
        yield call(op, *parts, memory_config=M("L1"))
    latent, scales, rope = rows((64, 512)), rows((64, 4), "float32"), rows((64, 64), "bfloat16")
    for dtype, layout in STORABLE:
        yield call(op, T((64, 512), dtype, layout), scales, rope)
        yield call(op, latent, T((64, 4), dtype, layout), rope)
        yield call(op, latent, scales, T((64, 64), dtype, layout))
    yield call(op, rows((64, 256)), scales, rope)
    yield call(op, rows((63, 512)), scales, rope)
    yield call(op, latent, rows((64, 5), "float32"), rope)
    yield call(op, latent, scales, rows((64, 32), "bfloat16"))
    yield call(op, rows((64, 512), mem="L1"), scales, rope)


def caches() -> Iterator[Case]:
    op, cache, latent = f"{PREFILL}.update_padded_kv_cache", rows((4, 1, 256, 656)), rows((1, 1, 128, 512))
    scales = rows((1, 1, 128, 4), "float32")
    for layout in LAYOUTS:
        rope = T((1, 1, 128, 64), layout=layout)
        yield call(op, cache, latent, 0, 1, 2, 0, 0, rope=rope, scales=scales)
        yield call(op, cache, latent, 0, 1, 2, 32, 0, 60, rope=rope, scales=scales)
        number = rows((1, 1, 1, 1), "uint32")
        yield call(op, cache, latent, number, number, 1, 2, 0, rope=rope, scales=scales)
        yield call(op, cache, latent, 0, 1, 2, 0, 0, rope=rope)
        yield call(op, rows((4, 1, 256, 640)), latent, 0, 1, 2, 0, 0, rope=rope, scales=scales)
        yield call(op, rows((4, 1, 256, 656), mem="L1"), latent, 0, 1, 2, 0, 0, rope=rope, scales=scales)
        yield call(op, cache, rows((1, 1, 128, 256)), 0, 1, 2, 0, 0, rope=rope, scales=scales)
    for given in (
        T((1, 1, 128, 64), "float32"),
        T((1, 1, 128, 32)),
        T((1, 1, 96, 64)),
        T((1, 1, 128, 64), mem="L1"),
        T((1, 1, 128, 64), mem=height_sharded([64, 64], 2)),
    ):
        yield call(op, cache, latent, 0, 1, 2, 0, 0, rope=given, scales=scales)
    for given in (rows((1, 1, 128, 4), "bfloat16"), T((1, 1, 128, 4), "float32"), rows((1, 1, 128, 2), "float32")):
        yield call(op, cache, latent, 0, 1, 2, 0, 0, rope=T((1, 1, 128, 64)), scales=given)
    for start in (0, 16, 32, 160):
        yield call(op, cache, rows((1, 1, 128, 656)), 0, 1, 2, start, 0)
    yield call(op, cache, rows((1, 1, 100, 656)), 0, 1, 2, 0, 0)
    for valid in (100, 256, 257):
        yield call(f"{PREFILL}.zero_padded_kv_cache", cache, 0, 0, 2, valid, 256, 0)
