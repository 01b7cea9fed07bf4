"""Huge pages are advised for large new tensors and do not change values."""

from __future__ import annotations

import torch

from ttnn_emulator.numerics.formats.carriers import upper_halves
from ttnn_emulator.numerics.native import large_pages


def test_huge_pages_are_advised_for_a_large_tensor(monkeypatch) -> None:
    asked = []
    monkeypatch.setattr(large_pages, "_advise", lambda: lambda start, size, advice: asked.append((start, size)))
    values = torch.randn(2048, 2048).bfloat16().float()
    narrow = upper_halves(values)
    assert torch.equal(narrow.float(), values)
    ((start, size),) = asked
    assert 0 <= start - narrow.data_ptr() < 1 << 16  # from its first whole page on
    assert start + size == narrow.data_ptr() + 2 * narrow.numel()


def test_no_advice_for_small_tensors_and_on_other_systems(monkeypatch) -> None:
    values = torch.empty(64, 64)
    assert large_pages.in_large_pages(values) is values
    monkeypatch.setattr(large_pages, "_advise", lambda: None)
    large = torch.empty(2048, 2048)
    assert large_pages.in_large_pages(large) is large
