"""Choosing experts."""

from __future__ import annotations

from tests.emulator.timing.families.specs import nanoseconds, tensor

GATE = "ttnn.experimental.deepseek_grouped_gate"


def test_tokens_are_divided_among_cores() -> None:
    few, many, more = (nanoseconds(GATE, tensor(1, 1, tokens, 256)) for tokens in (32, 2048, 4096))
    assert few <= many < 1.5 * few
    assert more > 1.6 * many


def test_sums_over_experts() -> None:
    name = "ttnn.experimental.deepseek_prefill.post_combine_reduce"
    out = tensor(1, 1, 1024, 7168)
    few, many = (nanoseconds(name, tensor(1, experts, 1024, 7168), out=out) for experts in (2, 8))
    assert 2 * few < many < 5 * few
