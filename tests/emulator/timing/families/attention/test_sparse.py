"""Attention to chosen keys."""

from __future__ import annotations

from tests.emulator.timing.families.specs import tensor
from ttnn_emulator.enums import DataType, Layout
from ttnn_emulator.hardware.boards import find_board
from ttnn_emulator.timing.calls import Call
from ttnn_emulator.timing.pricing import launches_of


def sparse_ns(choices: int, keys: int) -> float:
    rows = Layout.ROW_MAJOR
    q, kv = tensor(1, 128, 64, 576, layout=rows), tensor(1, 1, keys, 576, layout=rows)
    indices = tensor(1, 1, 64, choices, layout=rows, dtype=DataType.UINT32)
    out = tensor(1, 128, 64, 512, layout=rows)
    named = (("q", q), ("kv", kv), ("indices", indices))
    call = Call("ttnn.transformer.sparse_sdpa", named, (out,), {"k_chunk_size": 128}, find_board("p150"))
    (launch,) = launches_of(call)
    return launch.kernel_ns


def test_time_depends_on_the_chosen_keys_only() -> None:
    assert sparse_ns(512, 8192) == sparse_ns(512, 65536)
    assert sparse_ns(2048, 8192) > 3 * sparse_ns(512, 8192)
