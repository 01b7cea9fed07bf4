"""Every row of the older compiler's table has a model here, and comparisons have the right direction."""

from __future__ import annotations

import pytest

from torch_ttnn import zoo
from torch_ttnn.results.documents import older_compiler as peer
from torch_ttnn.results.documents.older_compiler import PeerRow, Verdict, compare, link, peer_rows, peers_of
from torch_ttnn.results.record import EVAL, FAILS, ON_DEVICE, TRAIN, WITH_HOST_OPS, Row


def row_of(key: str) -> PeerRow:
    return next(row for row in peer_rows() if row.key == key)


def test_the_table_is_the_published_one() -> None:
    rows = peer_rows()
    assert len(rows) == len({row.key for row in rows}) == 145
    assert [sum(row.mode == mode for row in rows) for mode in (EVAL, TRAIN)] == [117, 28]
    assert {row.status for row in rows} == {peer.E2E, peer.COMPILED, peer.TRACED}
    assert all((row.ops_remaining is None) == (row.status == peer.TRACED) for row in rows)
    assert all(row.ops_remaining == 0 for row in rows if row.status == peer.E2E)
    assert row_of("swin_b") == PeerRow("swin_b", EVAL, peer.COMPILED, 1, 2492, 32, 110, 2, 479)


@pytest.mark.parametrize("row", peer_rows(), ids=lambda row: row.key)
def test_a_row_has_a_model_of_ours_or_a_reason(row: PeerRow) -> None:
    ours = link(row)
    if ours is None:
        assert peer.LEFT_OUT[row.key].endswith(".")
        return
    entry = zoo.find(ours.entry)
    assert entry.train or row.mode == EVAL
    assert row in peers_of(Row(entry.name, row.mode))


def test_every_link_is_used() -> None:
    known = {row.model for row in peer_rows()}
    assert set(peer.LINKS) <= known
    assert set(peer.LEFT_OUT) <= {row.key for row in peer_rows()}


def test_a_model_without_a_counterpart() -> None:
    assert peers_of(Row("mamba-2L")) == []
    assert [row.model for row in peers_of(Row("resnet18"))] == ["ResNet18", "resnet18"]


@pytest.mark.parametrize(
    ("ours", "theirs", "host_ops", "moves"),
    [
        (Row("resnet18", status=ON_DEVICE), "resnet18", Verdict.EQUAL, Verdict.BETTER),
        (Row("mobilenetv2", status=ON_DEVICE), "mobilenet_v2", Verdict.EQUAL, Verdict.EQUAL),
        (
            Row("swin_t", status=WITH_HOST_OPS, ops_remaining=51, crossings_within=7),
            "swin_t", Verdict.WORSE, Verdict.BETTER,
        ),
        (Row("resnet18", status=ON_DEVICE, crossings_within=2), "resnet18", Verdict.EQUAL, Verdict.WORSE),
        (Row("resnet18", status=FAILS), "resnet18", Verdict.WORSE, Verdict.WORSE),
        (Row("t5-base", status=WITH_HOST_OPS, ops_remaining=3), "t5-base", Verdict.BETTER, Verdict.BETTER),
        (Row("t5-base", status=FAILS), "t5-base", Verdict.EQUAL, Verdict.EQUAL),
    ],
)  # fmt: skip
def test_fewer_is_better_and_failing_is_worst(ours: Row, theirs: str, host_ops: Verdict, moves: Verdict) -> None:
    found = compare(ours, row_of(theirs))
    assert (found.host_ops, found.moves) == (host_ops, moves)
    assert found.is_worse == (Verdict.WORSE in (host_ops, moves))
