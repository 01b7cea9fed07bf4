"""Times of heads: split and joined, interleaved and in shards, for prefill and for decoding."""

from __future__ import annotations

import pytest

from tests.emulator.timing.families.specs import BFP8, height_sharded, nanoseconds, priced, row, row_error, tensor
from ttnn_emulator.enums import BufferType, TensorMemoryLayout
from ttnn_emulator.hardware.core_grid import CoreCoord, CoreRange, CoreRangeSet
from ttnn_emulator.tensors.memory_config import MemoryConfig, ShardSpec
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.launches import Bound

CREATE, CONCAT = "ttnn.experimental.nlp_create_qkv_heads", "ttnn.experimental.nlp_concat_heads"


def test_measured_rows() -> None:
    joined = "1[1]x1[1]x3200[3200]x{width}[{width}]:TILE:BFLOAT16:{memory}_INTERLEAVED"
    heads = "1[1]x32[32]x3200[3200]x{size}[{size}]:TILE:BFLOAT16:DRAM_INTERLEAVED"
    created = row(
        "NlpCreateHeadsDeviceOperation", 100, joined.format(width=6144, memory="L1"), heads.format(size=192), grid=110
    )
    assert abs(row_error(created, 147216.5)) < 0.15
    concatenated = row(
        "NLPConcatHeadsDeviceOperation", 100, heads.format(size=128), joined.format(width=4096, memory="DRAM"), grid=110
    )
    assert abs(row_error(concatenated, 154422.0)) < 0.15


def split(rows: int, heads: int, *, transposed: bool = False) -> tuple[Spec, tuple[Spec, ...]]:
    source = tensor(1, 1, rows, 3 * heads * 64)
    key = tensor(1, heads, 64, rows) if transposed else tensor(1, heads, rows, 64)
    return source, (tensor(1, heads, rows, 64), key, tensor(1, heads, rows, 64))


# tt-metal v0.81.1: models/demos/llama3_70b_galaxy/tests/perf_targets/prefill_128.json, CreateQKVHeads
def test_a_published_time_of_four_rows_of_tiles() -> None:
    source = tensor(1, 1, 128, 1280)
    outputs = (tensor(1, 8, 128, 128), tensor(1, 1, 128, 128), tensor(1, 1, 128, 128))
    (launch,) = priced(CREATE, source, outputs=outputs, transpose_k_heads=False)
    assert launch.cores == 4
    assert abs(launch.kernel_ns / 21994 - 1) < 0.15


def test_a_core_has_whole_rows_of_tiles() -> None:
    """128 rows are four cores' work, whatever the number of heads."""
    source, outputs = split(128, 16)
    (launch,) = priced(CREATE, source, outputs=outputs, transpose_k_heads=False)
    assert launch.cores == 4
    wider, more = split(128, 32)
    assert nanoseconds(CREATE, wider, outputs=more, transpose_k_heads=False) > 1.8 * launch.kernel_ns


def test_transposed_keys_pass_the_compute_kernel() -> None:
    (launch,) = priced(CREATE, split(2048, 8)[0], outputs=split(2048, 8, transposed=True)[1], transpose_k_heads=True)
    assert launch.compute_ns > 0
    (plain,) = priced(CREATE, split(2048, 8)[0], outputs=split(2048, 8)[1], transpose_k_heads=False)
    assert plain.compute_ns == 0


def in_blocks(rows: int, width: int) -> Spec:
    grid = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(5, 7))])
    memory = MemoryConfig(TensorMemoryLayout.BLOCK_SHARDED, BufferType.L1, ShardSpec(grid, (rows // 8, width // 6)))
    return tensor(8, 1, rows // 8, width, dtype=BFP8, memory=memory)


@pytest.mark.parametrize("name", ["create_qkv_heads", "split_query_key_value_and_split_heads"])
def test_heads_of_a_shard_stay_on_its_core(name: str) -> None:
    heads = [height_sharded(8, 12, *sides, cores=48, dtype=BFP8) for sides in ((224, 64), (64, 224), (224, 64))]
    (launch,) = priced(f"ttnn.experimental.{name}", in_blocks(1792, 2304), outputs=tuple(heads), num_heads=12)
    assert launch.cores == 48
    assert not launch.dram_bytes
    assert launch.kernel_ns < 10_000


def test_concatenated_shards() -> None:
    source = height_sharded(8, 12, 224, 64, cores=48, dtype=BFP8)
    (local,) = priced(CONCAT, source, out=in_blocks(1792, 768))
    (interleaved,) = priced(CONCAT, tensor(8, 12, 224, 64, dtype=BFP8), out=tensor(8, 1, 224, 768, dtype=BFP8))
    assert local.kernel_ns < interleaved.kernel_ns / 3
    assert local.bound is not Bound.DRAM


def test_decoding_takes_rows_out_of_tiles() -> None:
    source = tensor(1, 1, 32, 1280)
    query = height_sharded(1, 32, 32, 128, cores=32)
    (launch,) = priced("ttnn.experimental.nlp_create_qkv_heads_decode", source, outputs=(query, query, query))
    assert launch.cores == 32
    assert launch.dram_bytes < 32 * 1280 * 2 * 4
