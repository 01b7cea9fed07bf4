"""Rotary embeddings."""

from __future__ import annotations

import pytest

from tests.emulator.timing.families.specs import height_sharded, nanoseconds, priced, tensor

LLAMA, FUSED = "ttnn.experimental.rotary_embedding_llama", "ttnn.experimental.rotary_embedding_llama_fused_qk"
MATRIX = tensor(1, 1, 32, 32)


# tt-metal v0.77.0: models/demos/llama3_70b_galaxy/tests/perf_targets/prefill_128.json, RotaryEmbeddingLlama
def test_queries_of_128_tokens() -> None:
    table = tensor(1, 1, 128, 128)
    assert nanoseconds(LLAMA, tensor(1, 8, 128, 128), table, table, MATRIX, board="galaxy") == pytest.approx(
        30_278, rel=0.3
    )


# tt-metal v0.77.0: models/demos/llama3_70b_galaxy/tests/tg_perf_unit_tests/test_llama_ops_perf_TG_llama.py
def test_queries_and_keys_of_eight_users() -> None:
    heads = height_sharded(1, 8, 32, 128, cores=8)
    assert 2_200 < nanoseconds(FUSED, heads, heads, heads, heads, MATRIX) < 3_950


def test_a_core_takes_all_heads_of_its_positions() -> None:
    table = tensor(1, 1, 2048, 64)
    few, many = (nanoseconds(LLAMA, tensor(1, heads, 2048, 64), table, table, MATRIX) for heads in (8, 32))
    assert many > 3 * few


def test_one_position_reads_its_row_once() -> None:
    source, table = tensor(1, 71, 32, 64), tensor(1, 1, 2048, 64)
    name = "ttnn::rotary_embedding"
    one, every = nanoseconds(name, source, table, table, token_index=5), nanoseconds(name, source, table, table)
    assert one < every


def test_rows_of_tiles_are_divided_among_cores() -> None:
    table = tensor(1, 1, 2048, 64)
    (launch,) = priced("ttnn::rotary_embedding", tensor(1, 1, 128, 64), table, table)
    assert launch.cores == 4
