"""The table of operations is consistent with the library."""

from __future__ import annotations

import pytest

from ttnn_emulator.api.recorded import operation_names, recorded_api
from ttnn_emulator.enums import WRITTEN_HERE
from ttnn_emulator.execution.operation_table import OPERATIONS


def test_every_operation_is_one_of_the_library() -> None:
    assert not set(OPERATIONS) - operation_names()


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_no_parameter_is_overlooked(name: str) -> None:
    """Each recorded parameter is taken by the function, or listed in `ignores`."""
    assert not OPERATIONS[name].unread_parameters()


@pytest.mark.parametrize("name", sorted(WRITTEN_HERE))
def test_enums_are_those_of_the_library(name: str) -> None:
    recorded = recorded_api()["enums"][f"ttnn.{name}"]
    ours = {member.name: member.value for member in WRITTEN_HERE[name]}
    extra = {"GRAYSKULL": 1} if name == "Arch" else {}  # the chip of e150, which the library no longer has
    assert ours == recorded | extra
