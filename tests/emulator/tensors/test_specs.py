"""Tensors with a spec but no values: operations check and infer, without memory or computation."""

from __future__ import annotations

import itertools

import pytest

import ttnn_emulator as ttnn
from ttnn_emulator.conformance import recorded
from ttnn_emulator.conformance.case import case_id
from ttnn_emulator.conformance.compare import EmulatedTtnn

EVERY = 12  # of the recorded cases


def in_use(device: ttnn.MeshDevice) -> int:
    kinds = (ttnn.BufferType.DRAM, ttnn.BufferType.L1)
    return sum(ttnn.get_memory_view(device, kind).total_bytes_allocated_per_bank for kind in kinds)


@pytest.mark.parametrize("family", recorded.recorded_families())
def test_specs_without_values_give_the_same_answers(family: str) -> None:
    with EmulatedTtnn(recorded.header(family)["board"]) as emulated:
        for case, _ in itertools.islice(recorded.read(family), 0, None, EVERY):
            placed = emulated.ask(case)
            if placed.get("type") == "OutOfMemory":
                continue  # specs occupy no memory
            with ttnn.specs_only():
                typed = emulated.ask(case)
            assert typed.get("out") == placed.get("out"), case_id(case)
            assert typed["ok"] == placed["ok"], case_id(case)


def test_spec_tensors_and_their_results_occupy_no_memory(device) -> None:
    x = ttnn.spec_tensor((1, 4, 4096, 4096), ttnn.bfloat16, device=device)
    before = in_use(device)
    y = ttnn.softmax(ttnn.reshape(ttnn.add(x, x), (4, 4096, 4096)), dim=-1)
    joined = ttnn.concat([y, y], dim=0)
    assert list(joined.shape) == [8, 4096, 4096]
    assert joined.dtype is ttnn.bfloat16
    assert in_use(device) == before


def test_a_spec_tensor_is_refused_like_any_other(device) -> None:
    x = ttnn.spec_tensor((32, 64), ttnn.bfloat16, device=device)
    other = ttnn.spec_tensor((32, 65), ttnn.bfloat16, device=device)
    with pytest.raises(ttnn.InvalidArgument, match=r"add"):
        ttnn.add(x, other)


def test_a_spec_tensor_has_no_values_to_read(device) -> None:
    x = ttnn.spec_tensor((32, 64), ttnn.bfloat16, device=device)
    with pytest.raises(ttnn.InvalidArgument, match="has a spec but no values"):
        ttnn.to_torch(ttnn.relu(x))
