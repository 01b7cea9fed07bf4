"""Sparse attention to selected keys and blocks of keys (Blackhole only)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ttnn_emulator.conformance.case import DTYPES, C, Case, E, T, call, height_sharded, width_sharded

BOARD = "p150"
KEYS = "ttnn.transformer.sparse_sdpa"
BLOCKS = "ttnn.transformer.sparse_sdpa_msa"
ROWS_DTYPES = ("bfloat16", "float32", "int32", "uint32", "uint16")


def cases() -> Iterator[Case]:
    yield from keys()
    yield from blocks()


def rows(*shape: int, dtype: str = "bfloat16", **more: Any) -> Case:
    return T(shape, dtype, "ROW_MAJOR", **more)


def chosen(*shape: int, **more: Any) -> Case:
    return rows(*shape, **{"dtype": "uint32"} | more)


def kernel_config(fidelity: str, *, wide: bool, approx: bool = False) -> Case:
    return C(
        "WormholeComputeKernelConfig",
        math_fidelity=E(f"MathFidelity.{fidelity}"),
        math_approx_mode=approx,
        fp32_dest_acc_en=wide,
    )


# -- keys -------------------------------------------------------------------------------------------------------------


def by_key(q: Case, kv: Case, indices: Case, v_dim: int = 64, fmt: str = "BF16", **more: Any) -> Case:
    return call(KEYS, q, kv, indices, v_dim, kv_format=E(f"SparseKVFormat.{fmt}"), **more)


def keys() -> Iterator[Case]:
    q, kv, some = rows(1, 32, 4, 96), rows(1, 1, 64, 96), chosen(1, 1, 4, 128)
    for heads, tokens, depth, width, length, choices, chunk in (
        (32, 4, 96, 64, 64, 128, 128),
        (64, 1, 576, 512, 300, 256, 128),
        (96, 7, 128, 128, 1, 32, 32),
        (32, 130, 64, 32, 77, 64, 32),
        (128, 3, 576, 512, 1000, 2048, 128),
        (16, 4, 96, 64, 64, 128, 128),
        (0, 4, 96, 64, 64, 128, 128),
        (32, 4, 80, 64, 64, 128, 128),
        (32, 4, 96, 48, 64, 128, 128),
        (32, 4, 96, 128, 64, 128, 128),
        (32, 4, 96, 0, 64, 128, 128),
        (32, 4, 96, 64, 64, 128, 96),
        (32, 4, 96, 64, 64, 128, 48),
        (32, 4, 96, 64, 64, 128, 0),
        (32, 4, 96, 64, 0, 128, 128),
        (32, 0, 96, 64, 64, 128, 128),
        (32, 4, 96, 64, 64, 0, 128),
        (512, 4, 576, 512, 64, 128, 128),
        (1024, 2, 64, 64, 64, 512, 512),
    ):
        tensors = rows(1, heads, tokens, depth), rows(1, 1, length, depth), chosen(1, 1, tokens, choices)
        yield by_key(*tensors, width, k_chunk_size=chunk)
    for other in ((32, 4, 96), (2, 32, 4, 96), (32,), (1, 1, 32, 4, 96)):
        yield by_key(rows(*other), kv, some)
    for other in ((1, 64, 96), (1, 2, 64, 96), (2, 1, 64, 96), (1, 1, 64, 64)):
        yield by_key(q, rows(*other), some)
    for other in ((1, 4, 128), (1, 1, 5, 128), (1, 2, 4, 128), (2, 1, 4, 128), (1, 1, 4, 24)):
        yield by_key(q, kv, chosen(*other), k_chunk_size=32)
    for dtype in ROWS_DTYPES:
        yield by_key(rows(1, 32, 4, 96, dtype=dtype), kv, some)
        yield by_key(q, rows(1, 1, 64, 96, dtype=dtype), some)
        yield by_key(q, kv, chosen(1, 1, 4, 128, dtype=dtype))
    yield by_key(T((1, 32, 4, 96)), kv, some)
    yield by_key(q, T((1, 1, 64, 96)), some)
    yield by_key(q, kv, T((1, 1, 4, 128), "uint32"))
    sharded = height_sharded([32, 96], 4)
    for place in ("L1", sharded):
        yield by_key(rows(1, 32, 4, 96, mem=place), kv, some)
        yield by_key(q, rows(1, 1, 128, 96, mem=place), some)
        yield by_key(q, kv, chosen(1, 1, 4, 128, mem=place if place == "L1" else width_sharded([4, 32], 4)))
    for fmt in ("FP8_E4M3", "SCALED_FP8"):
        yield by_key(q, kv, some, fmt=fmt)
    for scale in (1.0, 0.05, 0.0, -1.0):
        yield by_key(q, kv, some, scale=scale)
    for config in (kernel_config("HiFi4", wide=True), kernel_config("LoFi", wide=False, approx=True)):
        yield by_key(q, kv, some, compute_kernel_config=config)
    for slot in (0, 1, 2, 3):
        yield by_key(q, rows(3, 1, 64, 96), some, cache_batch_idx=slot)
    yield by_key(q, kv, some, cache_batch_idx=0)
    for axis, chunk in ((0, 4), (1, 4), (2, 4), (0, 5), (0, 64), (None, 4), (0, None)):
        yield by_key(q, kv, some, block_cyclic_sp_axis=axis, block_cyclic_chunk_local=chunk)
    yield by_key(q, rows(1, 1, 63, 96), some, block_cyclic_sp_axis=0, block_cyclic_chunk_local=4)
    for options in ({}, {"block_cyclic_sp_axis": 0, "block_cyclic_chunk_local": 4}):
        yield by_key(q, kv, some, block_cyclic_cache_tp_sharded=True, **options)
    for sink in (
        rows(1, 1, 1, 32),
        rows(1, 32, 1, 1),
        rows(32),
        rows(1, 1, 1, 64),
        T((1, 1, 1, 32)),
        rows(1, 1, 1, 32, dtype="float32"),
        rows(1, 1, 1, 32, mem="L1"),
        rows(1, 1, 1, 32, mem=width_sharded([1, 8], 4)),
        rows(1, 1, 1, 32, host=True),
    ):
        yield by_key(q, kv, some, attention_sink=sink)


# -- blocks -----------------------------------------------------------------------------------------------------------


def by_block(q: Case, k: Case, v: Case, indices: Case, **more: Any) -> Case:
    return call(BLOCKS, q, k, v, indices, **more)


def of_shape(
    heads: int, groups: int, tokens: int, depth: int, width: int, length: int, choices: int, **more: Any
) -> Case:
    k, v = T((1, groups, length, depth)), T((1, groups, length, width))
    return by_block(rows(1, heads, tokens, depth), k, v, chosen(1, groups, tokens, choices), **more)


def blocks() -> Iterator[Case]:
    q, cache, some = rows(1, 16, 4, 128), T((1, 1, 512, 128)), chosen(1, 1, 4, 16)
    for shape in (
        (16, 1, 4, 128, 128, 512, 16),
        (32, 1, 1, 64, 64, 128, 16),
        (64, 4, 9, 128, 64, 256, 16),
        (64, 2, 3, 96, 160, 1024, 32),
        (32, 4, 4, 128, 128, 512, 16),
        (48, 1, 4, 128, 128, 512, 16),
        (16, 3, 4, 128, 128, 512, 16),
        (0, 1, 4, 128, 128, 512, 16),
        (16, 1, 4, 80, 64, 512, 16),
        (16, 1, 4, 64, 80, 512, 16),
        (16, 1, 4, 128, 128, 500, 16),
        (16, 1, 4, 128, 128, 512, 5),
        (16, 1, 0, 128, 128, 512, 16),
        (1024, 1, 4, 128, 512, 512, 16),
    ):
        yield of_shape(*shape)
    for size in (32, 64, 96, 256, 512, 1024, 16, 0):
        yield of_shape(16, 1, 4, 128, 128, 512, 16, block_size=size)
    for dtype in DTYPES:
        yield by_block(q, T((1, 1, 512, 128), dtype), cache, some)
        yield by_block(q, cache, T((1, 1, 512, 128), dtype), some)
    for dtype in ROWS_DTYPES:
        yield by_block(rows(1, 16, 4, 128, dtype=dtype), cache, cache, some)
        yield by_block(q, cache, cache, chosen(1, 1, 4, 16, dtype=dtype))
    yield by_block(T((1, 16, 32, 128)), cache, cache, chosen(1, 1, 32, 16))
    yield by_block(q, rows(1, 1, 512, 128), cache, some)
    yield by_block(q, cache, rows(1, 1, 512, 128), some)
    yield by_block(q, cache, cache, T((1, 1, 4, 16), "uint32"))
    for other in ((16, 4, 128), (2, 16, 4, 128), (1, 16, 4, 64)):
        yield by_block(rows(*other), cache, cache, some)
    for other in ((1, 1, 256, 128), (2, 1, 512, 128), (1, 2, 512, 128), (512, 128)):
        yield by_block(q, cache, T(other), some)
    for other in ((1, 4, 16), (1, 2, 4, 16), (1, 1, 5, 16), (2, 1, 4, 16)):
        yield by_block(q, cache, cache, chosen(*other))
    for place in ("L1", height_sharded([128, 128], 4)):
        yield by_block(q, T((1, 1, 512, 128), mem=place), cache, some)
        yield by_block(q, cache, T((1, 1, 512, 128), mem=place), some)
    yield by_block(rows(1, 16, 4, 128, mem="L1"), cache, cache, some)
    yield by_block(q, cache, cache, chosen(1, 1, 4, 16, mem="L1"))
    for scale in (1.0, 0.0, -0.5):
        yield by_block(q, cache, cache, some, scale=scale)
    for config in (kernel_config("HiFi4", wide=True), kernel_config("LoFi", wide=False, approx=True)):
        yield by_block(q, cache, cache, some, compute_kernel_config=config)
    for slot in (None, 0, 2, 3):
        yield by_block(q, T((3, 1, 512, 128)), T((3, 1, 512, 128)), some, cache_batch_idx=slot)
    for start in (0, 37, 508, 600):
        yield by_block(q, cache, cache, some, chunk_start_idx=start)
    for axis in (0, 1, 2):
        yield by_block(q, cache, cache, some, cluster_axis=axis)
        yield by_block(q, cache, cache, some, cluster_axis=axis, chunk_start_idx=32)
    for axis, chunk, start, along in (
        (0, 128, None, None),
        (1, 128, 64, None),
        (0, 128, 37, None),
        (0, 128, 128, 0),
        (0, 128, 128, 1),
        (2, 128, None, None),
        (0, 64, None, None),
        (0, None, None, None),
    ):
        options = {"block_cyclic_sp_axis": axis, "block_cyclic_chunk_local": chunk}
        yield of_shape(16, 1, 128, 128, 128, 512, 16, chunk_start_idx=start, cluster_axis=along, **options)
    yield of_shape(16, 1, 4, 128, 128, 512, 16, block_cyclic_sp_axis=0, block_cyclic_chunk_local=4)
    for choices in (16, 32, 64):
        yield of_shape(16, 1, 4, 128, 128, 512, choices, enable_kv_block_cache=True)
    yield of_shape(64, 2, 4, 64, 64, 512, 16, enable_kv_block_cache=True, block_size=32, chunk_start_idx=3)
