"""Direct replays from torch's memory: the same bits as indirect ones, which run where direct ones cannot."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import ttnn_emulator as ttnn
from tests.emulator.execution.test_bound_replays import ROWS, captured, on_host, values
from ttnn_emulator.execution import bound_replay
from ttnn_emulator.execution.direct_replay import DirectReplay, direct_replay
from ttnn_emulator.execution.listeners import Listener, listening
from ttnn_emulator.numerics.mode import numerics

Made = tuple[Any, Any, Any, DirectReplay | None]
DTYPES = {ttnn.bfloat16: (torch.float32, torch.bfloat16), ttnn.float32: (torch.float32,)}


def known(device: Any, name: str, dtype: Any, inputs: Sequence[torch.Tensor], result: torch.dtype) -> Made:
    """Buffer, trace and result of a row, and its direct replay, after two indirect replays."""
    _, layout, made = ROWS[name]
    source = ttnn.from_torch(inputs[0], dtype=dtype, layout=layout, device=device)
    run = made(device, dtype)
    trace, found = captured(device, lambda: run(source))
    for each in inputs[:2]:
        replay_indirectly(source, trace, found, each)
    return source, trace, found, direct_replay(device, trace, [source], [(found, result)])


def replay_indirectly(source: Any, trace: Any, result: Any, given: torch.Tensor, dtype: Any = None) -> torch.Tensor:
    ttnn.copy_host_to_device_tensor(on_host(given, source.dtype, source.layout), source)
    ttnn.execute_trace(source.device(), trace, cq_id=0, blocking=True)
    return ttnn.to_torch(result, dtype=dtype)


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    kind = torch.int16 if one.dtype is torch.bfloat16 else torch.int32
    return one.dtype is other.dtype and one.is_contiguous() and torch.equal(one.view(kind), other.view(kind))


@pytest.mark.parametrize("name", ROWS)
@given(
    dtype=st.sampled_from(list(DTYPES)),
    seed=st.integers(0, 1 << 30),
    hostile=st.sampled_from([0.0, 0.5]),
    result=st.sampled_from([torch.float32, torch.bfloat16, None]),
    mode=st.sampled_from(["fast", "exact"]),
    choose=st.data(),
)
def test_a_direct_replay_has_the_bits_of_an_indirect_one(
    device, name, dtype, seed, hostile, result, mode, choose
) -> None:
    if dtype is ttnn.float32 and ROWS[name][1] is ttnn.ROW_MAJOR_LAYOUT:
        dtype = ttnn.bfloat16
    given_as = choose.draw(st.sampled_from(DTYPES[dtype]))
    inputs = [values(ROWS[name][0], seed + number, hostile).to(given_as) for number in range(4)]
    with numerics(mode):
        source, trace, found, replay = known(device, name, dtype, inputs, result)
        assert replay is not None
        for each in inputs[2:]:
            ours = replay([each])
            assert ours is not None and same(ours[0], replay_indirectly(source, trace, found, each, result))
    ttnn.release_trace(device, trace)


def test_large_inputs_are_stored_in_16_bits(device) -> None:
    inputs = [values((256, 256), seed, 0.1) for seed in range(3)]
    source = ttnn.from_torch(inputs[0], dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    trace, found = captured(device, lambda: ttnn.add(source, 1.0))
    for each in inputs[:2]:
        replay_indirectly(source, trace, found, each)
    replay = direct_replay(device, trace, [source], [(found, torch.float32)])
    assert source._storage.values[0].dtype is torch.bfloat16
    ours = replay([inputs[2].T])
    assert same(ours[0], replay_indirectly(source, trace, found, inputs[2].T, torch.float32))


@pytest.mark.parametrize("result", [torch.int64, None])
@pytest.mark.parametrize("dtype", [ttnn.uint32, ttnn.int32])
def test_integers(device, dtype, result) -> None:
    source = ttnn.from_torch(torch.arange(8).view(1, 8), dtype=dtype, layout=ttnn.ROW_MAJOR_LAYOUT, device=device)
    trace, found = captured(device, lambda: ttnn.reshape(ttnn.concat([source, source], dim=0), (1, 16)))
    for number in range(2):
        replay_indirectly(source, trace, found, torch.arange(8).view(1, 8) + number)
    replay = direct_replay(device, trace, [source], [(found, result)])
    given = torch.randint(0, 1000, (1, 8))
    ours = replay([given])[0]
    assert ours.tolist() == [given[0].tolist() * 2]
    assert ours.dtype is replay_indirectly(source, trace, found, given, result).dtype


@pytest.fixture
def prepared(device) -> Made:
    with numerics("auto"):
        yield known(device, "add", ttnn.bfloat16, [values((3, 40), seed) for seed in range(2)], torch.float32)


def test_results_are_not_overwritten(prepared) -> None:
    *_, replay = prepared
    first = replay([torch.ones(3, 40)])[0]
    kept = first.clone()
    assert not torch.equal(replay([torch.zeros(3, 40)])[0], kept)
    assert torch.equal(first, kept)


def test_tensors_of_the_trace_keep_their_values(prepared) -> None:
    source, _, found, replay = prepared
    before = [ttnn.to_torch(each) for each in (source, found)]
    assert replay([torch.full((3, 40), 5.0)]) is not None
    assert all(torch.equal(ttnn.to_torch(each), old) for each, old in zip((source, found), before))


def test_an_indirect_replay_after_a_direct_one(prepared) -> None:
    source, trace, found, replay = prepared
    given = values((3, 40), 7)
    ours = replay([given])[0]
    replay([torch.zeros(3, 40)])
    assert same(replay_indirectly(source, trace, found, given, torch.float32), ours)


class Names(Listener):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def started(self, event: Any) -> None:
        self.heard.append(event.name)


def test_listeners_disable_direct_replay(prepared) -> None:
    *_, replay = prepared
    with listening(Names()):
        assert replay([torch.ones(3, 40)]) is None
    assert replay([torch.ones(3, 40)]) is not None


def test_another_mode_or_shape_or_a_capture_disables_direct_replay(device, prepared) -> None:
    *_, replay = prepared
    with numerics("exact"):
        assert replay([torch.ones(3, 40)]) is None
    assert replay([torch.ones(40, 3)]) is None
    other = ttnn.begin_trace_capture(device, cq_id=0)
    assert replay([torch.ones(3, 40)]) is None
    ttnn.end_trace_capture(device, other, cq_id=0)
    assert replay([torch.ones(3, 40)]) is not None


def test_another_thread_replays_indirectly(prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    *_, replay = prepared
    with replay.replays.lock:
        assert replay([torch.ones(3, 40)]) is None


def test_a_changed_weight_is_detected(device) -> None:
    one, other = (ttnn.from_torch(torch.ones(4, 4), layout=ttnn.TILE_LAYOUT, device=device) for _ in range(2))
    trace, found = captured(device, lambda: ttnn.add(one, other))
    for number in range(2):
        replay_indirectly(one, trace, found, torch.full((4, 4), float(number)))
    replay = direct_replay(device, trace, [one], [(found, torch.float32)])
    assert replay([torch.ones(4, 4)])[0][0, 0] == 2
    ttnn.copy_host_to_device_tensor(on_host(torch.full((4, 4), 8.0), ttnn.float32), other)
    assert replay([torch.ones(4, 4)]) is None
    assert replay_indirectly(one, trace, found, torch.ones(4, 4))[0, 0] == 9
    assert replay([torch.ones(4, 4)]) is None, "it refers to the memory of another binding"
    assert direct_replay(device, trace, [one], [(found, torch.float32)]) is None, "two buffers have changed"
    both = direct_replay(device, trace, [one, other], [(found, torch.float32)])
    assert both([torch.ones(4, 4), torch.full((4, 4), 3.0)])[0][0, 0] == 4


def test_a_closed_device_replays_indirectly_and_raises() -> None:
    device = ttnn.open_device(device_id=0)
    source = ttnn.from_torch(torch.ones(4, 4), layout=ttnn.TILE_LAYOUT, device=device)
    trace, found = captured(device, lambda: ttnn.add(source, 1.0))
    for number in range(2):
        replay_indirectly(source, trace, found, torch.full((4, 4), float(number)))
    replay = direct_replay(device, trace, [source], [(found, torch.float32)])
    assert replay([torch.ones(4, 4)]) is not None
    ttnn.close_device(device)
    assert replay([torch.ones(4, 4)]) is None


def test_large_traces_have_no_direct_replay(device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bound_replay, "MOST_VALUES", -1)
    *_, replay = known(device, "relu", ttnn.bfloat16, [torch.ones(3, 40), torch.zeros(3, 40)], torch.float32)
    assert replay is None


def test_threads_share_one_trace(prepared) -> None:
    """Each gets its own result or replays indirectly, and never gets the result of another."""
    *_, replay = prepared
    wrong: list[float] = []
    wanted = {value: replay([torch.full((3, 40), value)])[0] for value in (1.0, 2.0)}

    def work(value: float) -> None:
        for _ in range(200):
            with numerics("auto"):
                found = replay([torch.full((3, 40), value)])
            if found is not None and not torch.equal(found[0], wanted[value]):
                wrong.append(value)

    threads = [threading.Thread(target=work, args=(value,)) for value in wanted]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong
