"""Bound replays of traces that write buffers from outside: whole, or a row of a cache in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import ttnn_emulator as ttnn
from tests.emulator.execution.test_bound_replays import bits, bound_of, captured, on_host, upload, values
from ttnn_emulator.execution import bound_replay
from ttnn_emulator.numerics.mode import numerics

USERS, HEADS, LENGTH, WIDTH = 2, 3, 64, 32
REPLAYS = 5


def cache_of(device: Any, dtype: Any, hostile: float = 0.0) -> Any:
    made = values((USERS, HEADS, LENGTH, WIDTH), 3, hostile)
    return ttnn.from_torch(made, dtype=dtype, layout=ttnn.TILE_LAYOUT, device=device)


def position_of(device: Any, position: int) -> Any:
    return ttnn.from_torch(torch.full((USERS,), position, dtype=torch.int32), dtype=ttnn.int32, device=device)


def updated(cache: Any, rows: Any, position: Any) -> Any:
    cores = ttnn.num_cores_to_corerangeset(USERS, ttnn.CoreCoord(8, 8), True)
    shards = ttnn.ShardSpec(cores, [32, WIDTH], ttnn.ShardOrientation.ROW_MAJOR)
    config = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.BufferType.L1, shards)
    given = ttnn.to_memory_config(rows, config)
    return ttnn.experimental.paged_update_cache(cache, given, update_idxs_tensor=position)


def rows_of(seed: int) -> torch.Tensor:
    return values((1, USERS, HEADS, WIDTH), 10 + seed)


class Decoding:
    """A trace that writes a row of a cache, and what surrounds it."""

    def __init__(self, device: Any, dtype: Any, program: Callable[..., Any], hostile: float = 0.0) -> None:
        self.device = device
        self.cache = cache_of(device, dtype, hostile)
        self.rows, self.position = upload(device, rows_of(0)), position_of(device, 0)
        self.trace, self.results = captured(device, lambda: program(self.cache, self.rows, self.position))

    def step(self, number: int, position: int) -> None:
        ttnn.copy_host_to_device_tensor(on_host(rows_of(number)), self.rows)
        place = ttnn.from_torch(torch.full((USERS,), position, dtype=torch.int32), dtype=ttnn.int32)
        ttnn.copy_host_to_device_tensor(place, self.position)
        ttnn.execute_trace(self.device, self.trace, cq_id=0)

    @property
    def held(self) -> torch.Tensor:
        return self.cache._storage.values[0]


def read_after(cache: Any, rows: Any, position: Any) -> Any:
    return ttnn.add(updated(cache, rows, position), 1.0)


def read_before(cache: Any, rows: Any, position: Any) -> Any:
    before = ttnn.reshape(ttnn.add(cache, 0.0), (USERS * HEADS, LENGTH, WIDTH))
    updated(cache, rows, position)
    return before


def steps(device: Any, dtype: Any, program: Callable[..., Any], hostile: float) -> tuple[list[torch.Tensor], Any]:
    decoding = Decoding(device, dtype, program, hostile)
    found = []
    for number, position in enumerate((0, 1, 33, 1, 63)):
        decoding.step(number, position)
        found += [bits(ttnn.to_torch(decoding.results)), bits(ttnn.to_torch(decoding.cache))]
    return found, bound_of(device, decoding.trace)


@pytest.mark.parametrize("hostile", [0.0, 0.3])
@pytest.mark.parametrize("dtype", [ttnn.bfloat16, ttnn.float32])
@pytest.mark.parametrize("program", [read_after, read_before])
def test_updates_have_the_bits_of_unbound_ones(device, program, dtype, hostile, monkeypatch) -> None:
    with numerics("fast"):
        ours, how = steps(device, dtype, program, hostile)
        monkeypatch.setattr(bound_replay, "MOST_VALUES", -1)
        others, nothing = steps(device, dtype, program, hostile)
    assert how is not None and nothing is None
    assert len(how.updated) == (program is read_after)
    for one, other in zip(ours, others, strict=True):
        assert torch.equal(one, other)


def test_only_the_row_is_written(device) -> None:
    with numerics("fast"):
        decoding = Decoding(device, ttnn.bfloat16, read_after)
        for number in range(REPLAYS):  # after the first few, it is known which inputs the host changes
            decoding.step(number, number)
        held, before = decoding.held, decoding.held.clone()
        decoding.step(1, 40)
    assert decoding.held is held
    changed = (held != before).flatten(0, 1).any(0).any(-1)
    assert changed.nonzero().flatten().tolist() == [40]
    assert torch.equal(held[:, :, 40].float(), rows_of(1)[0].bfloat16().float())


def test_tensors_computed_from_the_cache_stay(device) -> None:
    """Also of operations that pass carriers on: the next replay writes into memory of its own."""
    with numerics("fast"):
        decoding = Decoding(device, ttnn.bfloat16, read_after)
        decoding.step(0, 0)
        made = [
            ttnn.typecast(decoding.cache, ttnn.bfloat16),
            ttnn.to_memory_config(decoding.cache, ttnn.L1_MEMORY_CONFIG),
        ]
        before = ttnn.to_torch(decoding.cache).clone()
        for number in range(1, REPLAYS):
            decoding.step(number, number)
    for each in made:
        assert torch.equal(ttnn.to_torch(each), before)
    assert not torch.equal(ttnn.to_torch(decoding.cache), before)


def test_a_cache_that_the_host_replaces_is_read(device) -> None:
    with numerics("fast"):
        decoding = Decoding(device, ttnn.bfloat16, read_after)
        decoding.step(0, 0)
        ttnn.copy_host_to_device_tensor(on_host(torch.zeros(USERS, HEADS, LENGTH, WIDTH)), decoding.cache)
        decoding.step(1, 5)
        assert bound_of(device, decoding.trace) is not None
    result = ttnn.to_torch(decoding.results).float()
    wanted = torch.ones(USERS, HEADS, LENGTH, WIDTH)
    wanted[:, :, 5] += rows_of(1)[0].bfloat16().float()
    assert torch.allclose(result, wanted, atol=2e-2)


def test_a_position_beyond_the_cache_is_a_fault(device) -> None:
    with numerics("fast"):
        decoding = Decoding(device, ttnn.bfloat16, read_after)
        decoding.step(0, 0)
        with pytest.raises(ttnn.EmulatorError, match="is outside a cache"):
            decoding.step(1, LENGTH)


def test_a_running_sum_is_bound(device) -> None:
    """Every replay adds to the previous result."""
    source, total = upload(device, torch.ones(4, 4)), upload(device, torch.zeros(4, 4))
    ttnn.add(total, source, output_tensor=total)
    trace, _ = captured(device, lambda: ttnn.add(total, source, output_tensor=total))
    before = ttnn.to_torch(total).float()
    for count in range(1, REPLAYS):
        ttnn.execute_trace(device, trace, cq_id=0)
        assert torch.equal(ttnn.to_torch(total).float(), before + count)
    assert bound_of(device, trace) is not None


def test_a_buffer_is_read_before_and_after_it_is_written(device) -> None:
    source, counter = upload(device, torch.ones(4, 4)), upload(device, torch.zeros(4, 4))

    def program() -> tuple[Any, Any]:
        old = ttnn.multiply(counter, 2.0)
        ttnn.copy(ttnn.add(counter, source), counter)
        return old, ttnn.multiply(counter, 3.0)

    trace, (old, new) = captured(device, program)
    count = float(ttnn.to_torch(counter).float()[0, 0])
    for _ in range(REPLAYS):
        ttnn.execute_trace(device, trace, cq_id=0)
        assert torch.equal(ttnn.to_torch(old).float(), torch.full((4, 4), 2 * count))
        count += 1
        assert torch.equal(ttnn.to_torch(new).float(), torch.full((4, 4), 3 * count))
        assert torch.equal(ttnn.to_torch(counter).float(), torch.full((4, 4), count))
    assert bound_of(device, trace) is not None
