"""Scores by which sparse attention selects keys and blocks of keys (Blackhole only)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ttnn_emulator.conformance.case import DTYPES, C, Case, E, T, call, height_sharded

BOARD = "p150"
BY_KEY = "ttnn.experimental.indexer_score_dsa"
BY_GROUP = "ttnn.experimental.indexer_score_msa"
UNITS = (
    (32, 32, 1), (32, 64, 0), (64, 64, 8), (64, 128, 4), (32, 96, 0), (32, 256, 2), (96, 32, 1), (0, 32, 1),
    (32, 0, 1), (16, 32, 1), (32, 40, 1), (32, 512, 1), (32, 32, 3), (32, 32, 16),
)  # fmt: skip


def cases() -> Iterator[Case]:
    yield from by_key()
    yield from by_group()


def units(rows: int, columns: int, heads: int) -> Case:
    return C("IndexerScoreProgramConfig", q_chunk_size=rows, k_chunk_size=columns, head_group_size=heads)


def kernel_config(fidelity: str = "HiFi4", **more: Any) -> Case:
    return C("WormholeComputeKernelConfig", math_fidelity=E(f"MathFidelity.{fidelity}"), **more)


def common(make: Any) -> Iterator[Case]:
    """Cases of both: `make` returns a case of 8 heads, 64 queries and 256 keys of width 64, with changes."""
    for unit in UNITS:
        yield make(program_config=units(*unit))
    for start in (0, 32, 192, 224, 256, 16):
        yield make(chunk_start_idx=start)
    for length in (32, 64, 256, 288, 100, 0):
        yield make(kv_len=length, chunk_start_idx=32)
    yield make(kv_len=128)
    for dtype in DTYPES:
        yield make(q=T((1, 8, 64, 64), dtype))
        yield make(k=T((1, 1, 256, 64), dtype))
    for shape in ((8, 64, 64), (2, 8, 64, 64), (1, 8, 60, 64), (1, 8, 64, 32), (1, 8, 320, 64)):
        yield make(q=T(shape))
    for shape in ((1, 256, 64), (1, 2, 256, 64), (2, 1, 256, 64), (1, 1, 250, 64), (1, 1, 256, 96)):
        yield make(k=T(shape))
    for place in ("L1", height_sharded([64, 64], 8)):
        yield make(q=T((1, 8, 64, 64), mem=place))
    for place in ("L1", height_sharded([64, 64], 4)):
        yield make(k=T((1, 1, 256, 64), mem=place))
    yield make(q=T((1, 8, 64, 64), layout="ROW_MAJOR"))
    yield make(k=T((1, 1, 256, 64), layout="ROW_MAJOR"))
    for slot in (0, 2, 3):
        yield make(k=T((3, 1, 256, 64)), cache_batch_idx=slot)
    for axes in ([], [0], [1], [2], [0, 1], [0, 1, 0]):
        yield make(seq_shard_axes=axes)
    for axis, chunk in ((0, 64), (1, 64), (2, 64), (0, 32), (0, None), (None, 64)):
        yield make(block_cyclic_sp_axis=axis, block_cyclic_chunk_local=chunk)
    yield make(block_cyclic_sp_axis=0, block_cyclic_chunk_local=64, seq_shard_axes=[0, 1])
    for options in ({}, {"block_cyclic_sp_axis": 0, "block_cyclic_chunk_local": 64}):
        yield make(block_cyclic_cache_tp_sharded=True, **options)
    for config in (
        kernel_config(),
        kernel_config("LoFi", math_approx_mode=True),
        kernel_config(fp32_dest_acc_en=True),
        kernel_config(dst_full_sync_en=True),
    ):
        yield make(compute_kernel_config=config)


def key_case(q: Case | None = None, k: Case | None = None, weights: Case | None = None, **more: Any) -> Case:
    return call(BY_KEY, q or T((1, 8, 64, 64)), k or T((1, 1, 256, 64)), weights or T((1, 1, 64, 8)), **more)


def by_key() -> Iterator[Case]:
    yield from common(key_case)
    for shape in ((1, 8, 64, 1), (64, 8), (1, 1, 64, 16), (2, 1, 64, 8), (1, 1, 32, 8)):
        yield key_case(weights=T(shape))
    for dtype in ("float32", "bfloat8_b"):
        yield key_case(weights=T((1, 1, 64, 8), dtype))
    yield key_case(weights=T((1, 1, 64, 8), layout="ROW_MAJOR"))
    yield key_case(weights=T((1, 1, 64, 8), mem="L1"))
    yield key_case(weights=T((1, 1, 64, 8), mem=height_sharded([32, 32], 2)))
    for ratio, start, length in (
        (4, None, None), (4, 64, None), (4, 992, None), (4, 1024, None), (4, 128, 32), (4, 96, 32), (2, None, None),
        (0, None, None), (8, 0, None),
    ):  # fmt: skip
        yield key_case(key_compression_ratio=ratio, chunk_start_idx=start, kv_len=length)
    for heads in (1, 32, 48, 64, 65, 256):
        q, weights = T((1, heads, 64, 64)), T((1, 1, 64, heads))
        for unit in ((32, 64, 0), (64, 64, 0), (64, 32, 1)):
            yield key_case(q, None, weights, program_config=units(*unit))


def group_case(q: Case | None = None, k: Case | None = None, num_groups: int = 1, **more: Any) -> Case:
    return call(BY_GROUP, q or T((1, 8, 64, 64)), k or T((1, 1, 256, 64)), num_groups=num_groups, **more)


def by_group() -> Iterator[Case]:
    yield from common(group_case)
    for groups in (0, 2, 3, 8, 16):
        for unit in ((32, 32, 0), (32, 64, 0), (64, 128, 8), (32, 64, 2)):
            yield group_case(num_groups=groups, program_config=units(*unit))
    for scale in (0.125, 0.0, -1.0):
        yield group_case(scale=scale)
    for block, columns, keys in (
        (32, 256, 1024),
        (64, 512, 1024),
        (32, 1024, 1024),
        (128, 512, 1024),
        (48, 384, 768),
        (32, 256, 640),
        (96, 768, 768),
        (32, 512, 1024),
        (32, 2048, 2048),
        (64, 64, 1024),
    ):
        for heads in (4, 8):
            more = {"block_size": block, "program_config": units(32, columns, 0)}
            yield group_case(T((1, heads, 64, 64)), T((1, 1, keys, 64)), 4, **more)
    for length in (512, 64, 32):
        more = {"kv_len": length, "block_size": 64, "program_config": units(32, 512, 0)}
        yield group_case(T((1, 4, 64, 64)), T((1, 1, 1024, 64)), 4, chunk_start_idx=0, **more)
    for heads, groups in ((96, 2), (128, 2), (1, 1), (64, 1)):
        for rows in (32, 64):
            yield group_case(T((1, heads, 64, 64)), None, groups, program_config=units(rows, 64, 0))
