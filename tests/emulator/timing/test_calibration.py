"""The stated errors of predictions."""

from __future__ import annotations

from ttnn_emulator.timing.calibration import ERRORS, GENERIC, GENERIC_FAMILY, SCARCE, UNMEASURED
from ttnn_emulator.timing.launches import Bound, Launch


def launch_of(family: str) -> Launch:
    return Launch("SomeDeviceOperation", family, 1, 1000.0, Bound.LATENCY)


def test_a_launch_states_the_error_of_its_family() -> None:
    assert launch_of("matmul").error == ERRORS["matmul"]
    assert launch_of("matmul").calibrated


def test_families_without_measured_times_have_a_wider_error() -> None:
    for family, error in (("a family nobody measured", UNMEASURED), (GENERIC_FAMILY, GENERIC)):
        assert launch_of(family).error == error
        assert not launch_of(family).calibrated
    assert SCARCE < UNMEASURED < GENERIC
