"""Recurrences."""

from __future__ import annotations

from tests.emulator.timing.families.specs import nanoseconds, tensor


def test_a_running_average_goes_along_the_sequence() -> None:
    short, long, tall = (
        nanoseconds("ttnn.ema", tensor(1, 1, channels, length))
        for channels, length in ((32, 1024), (32, 4096), (2048, 1024))
    )
    assert long > 3 * short
    assert tall < 3 * short
