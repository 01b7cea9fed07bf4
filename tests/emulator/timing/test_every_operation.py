"""Every operation of the emulator has a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from ttnn_emulator.conformance import recorded
from ttnn_emulator.conformance.case import Case
from ttnn_emulator.conformance.case_tables import families
from ttnn_emulator.conformance.compare import EmulatedTtnn
from ttnn_emulator.execution import listeners
from ttnn_emulator.hardware.boards import find_board
from ttnn_emulator.timing.calibration import GENERIC_FAMILY
from ttnn_emulator.timing.calls import Call
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.pricing import launches_of

EACH = 3  # recorded calls of an operation


def accepted(family: str) -> Iterator[Case]:
    """A few calls of every operation that the library accepts."""
    taken: Counter[str] = Counter()
    for case, answer in recorded.read(family):
        if answer["ok"] and taken[case["op"]] < EACH:
            taken[case["op"]] += 1
            yield case


class Launches(listeners.Listener):
    def __init__(self) -> None:
        self.found: list[tuple[str, Launch]] = []

    def ended(self, event: listeners.OperationEvent) -> None:
        if event.error is None:
            self.found += [(event.name, launch) for launch in event.launches]


@pytest.mark.parametrize("family", families())
def test_recorded_calls_are_timed(family: str) -> None:
    heard = Launches()
    with EmulatedTtnn(recorded.header(family)["board"]) as emulated, listeners.listening(heard):
        for case in accepted(family):
            emulated.ask(case)
    cores = emulated.device.board.cores
    for name, launch in heard.found:
        assert 100.0 < launch.kernel_ns < 10e9, (name, launch)
        assert 0 < launch.cores <= cores + 64, (name, launch)
        assert launch.compute_ns >= 0 and launch.data_ns >= 0 and launch.dram_bytes >= 0, (name, launch)


def test_an_operation_without_a_family_is_priced_by_its_bytes() -> None:
    from tests.emulator.timing.families.specs import tensor

    small, large = tensor(1, 1, 32, 64), tensor(1, 1, 4096, 4096)
    board = find_board("n150")
    (first,), (second,) = (
        launches_of(Call("ttnn.something_new", (("x", spec),), (spec,), {}, board)) for spec in (small, large)
    )
    assert first.family == GENERIC_FAMILY and not first.calibrated
    assert first.error > 1.0
    assert second.kernel_ns > 20 * first.kernel_ns
    assert second.cores == board.cores and first.cores == 2


def test_an_operation_without_tensors_is_a_launch() -> None:
    (launch,) = launches_of(Call("ttnn.something_new", (), (), {}, find_board("n150")))
    assert 0 < launch.kernel_ns < 2000
