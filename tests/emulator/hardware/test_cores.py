"""Cores as coordinates, tuples or lists; other arguments are refused as in the library."""

from __future__ import annotations

import pytest

import ttnn_emulator as ttnn
from ttnn_emulator import CoreCoord, CoreRange, CoreRangeSet

BLOCK = CoreRange((0, 0), (1, 1))


@pytest.mark.parametrize(
    "made",
    [
        CoreRange((1, 0), (1, 6)),
        CoreRange([1, 0], [1, 6]),
        CoreRange((1, 0), CoreCoord(1, 6)),
        CoreRange(start=CoreCoord([1, 0]), end=(1, 6)),
    ],
)
def test_pairs_are_accepted_as_cores(made: CoreRange) -> None:
    assert (made, repr(made)) == (CoreRange(CoreCoord(1, 0), CoreCoord(1, 6)), "[1-0 - 1-6]")
    assert made.contains((1, 3)) and CoreRangeSet([made]).contains([1, 3])
    assert made.start == (1, 0) and hash(made.start) == hash((1, 0))


@pytest.mark.parametrize(
    "ranges",
    [[BLOCK], (BLOCK,), {BLOCK}, frozenset({BLOCK}), (each for each in [BLOCK])],
    ids=lambda r: type(r).__name__,
)
def test_a_core_range_set_takes_any_collection(ranges: object) -> None:
    assert CoreRangeSet(ranges).ranges() == [BLOCK]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "call",
    [
        lambda: CoreCoord(1),  # type: ignore[arg-type]
        lambda: CoreCoord((1, 0, 1)),
        lambda: CoreCoord(1.0, 0),  # type: ignore[arg-type]
        lambda: CoreCoord(-1, 0),
        lambda: CoreCoord(x=1, y=2),  # type: ignore[call-arg]
        lambda: CoreCoord(CoreCoord(1, 2)),  # type: ignore[arg-type]
        lambda: CoreRange((1, 0)),  # type: ignore[call-arg]
        lambda: CoreRange("ab", "cd"),  # type: ignore[arg-type]
        lambda: CoreRange((1, 0, 2), (1, 6, 2)),
        lambda: CoreRangeSet(BLOCK),  # type: ignore[arg-type]
        lambda: CoreRangeSet([CoreCoord(1, 0)]),  # type: ignore[list-item]
        lambda: CoreRangeSet([((0, 0), (1, 1))]),  # type: ignore[list-item]
        lambda: CoreRangeSet(CoreRangeSet([BLOCK])),  # type: ignore[arg-type]
        lambda: ttnn.ShardSpec([BLOCK], (32, 32), ttnn.ShardOrientation.ROW_MAJOR),  # type: ignore[arg-type]
    ],
)
def test_other_arguments_have_no_overload(call) -> None:
    with pytest.raises(TypeError):
        call()


def test_functions_of_grids_take_pairs() -> None:
    expected = CoreRangeSet([CoreRange((0, 0), (3, 0))])
    for grid in ((8, 8), [8, 8], CoreCoord(8, 8)):
        assert ttnn.num_cores_to_corerangeset(4, grid, True) == expected
    within = CoreRangeSet([CoreRange((0, 0), (3, 3))])
    chosen = ttnn.num_cores_to_corerangeset_in_subcoregrids((1, 0), 3, within, True)
    assert chosen == CoreRangeSet([CoreRange((1, 0), (3, 0))])


def test_ethernet_cores_do_not_dispatch_by_columns() -> None:
    eth, rows, columns = ttnn.DispatchCoreType.ETH, ttnn.DispatchCoreAxis.ROW, ttnn.DispatchCoreAxis.COL
    assert ttnn.DispatchCoreConfig(eth, rows).axis is rows
    assert ttnn.DispatchCoreConfig(ttnn.DispatchCoreType.WORKER, columns).axis is columns
    for call in (
        lambda: ttnn.DispatchCoreConfig(eth, columns),
        lambda: ttnn.DispatchCoreConfig(type=eth, axis=columns),
    ):
        with pytest.raises(RuntimeError, match="COL axis is not supported for ETH"):
            call()
