"""Functions that prepare weights equal torch's for any strides, and free their scratch memory."""

from __future__ import annotations

import itertools

import pytest
import torch

from torch_ttnn.compiler.lowering.support.preparation import LARGEST, Room, saturated, selected

ROWS_FIRST, COLUMNS_FIRST = torch.clone, lambda matrix: matrix.mT.contiguous().mT


@pytest.mark.parametrize("dim", [0, 1, -1, -2])
@pytest.mark.parametrize("order", list(itertools.product([ROWS_FIRST, COLUMNS_FIRST], repeat=2)))
def test_matrices_are_joined(dim, order):
    parts = [stored(torch.randn(6, 6)) for stored in order]
    assert torch.equal(Room().joined(parts, dim), torch.cat(parts, dim))


def test_other_tensors_are_concatenated_as_in_torch():
    for parts in ([torch.ones(2), torch.ones(3, dtype=torch.int64)], [torch.empty(0), torch.ones(2, 3)]):
        assert torch.equal(Room().joined(parts), torch.cat(parts))


def test_concatenated_weights_stay_until_the_room_is_cleared():
    room = Room()
    room.joined([torch.zeros(50), torch.zeros(50)])
    room.clear()
    one, other = torch.randn(20), torch.randn(30)
    first = room.joined([one, other])
    second = room.joined([first, one])
    third = room.joined([second, torch.randn(1000)])
    assert torch.equal(first, torch.cat([one, other]))
    assert torch.equal(second, torch.cat([one, other, one]))
    assert torch.equal(third[:70], second)


def test_kept_weights_are_copied_out_of_the_room():
    room = Room()
    made = room.joined([torch.ones(4), torch.ones(4)])
    kept, own = room.moved_out(made[2:6]), torch.ones(3)
    room.clear()
    room.joined([torch.zeros(4), torch.zeros(4)])
    assert torch.equal(kept, torch.ones(4))
    assert room.moved_out(own) is own


@pytest.mark.parametrize("dim", [0, 1, -1, -2])
@pytest.mark.parametrize("stored", [ROWS_FIRST, COLUMNS_FIRST])
def test_rows_and_columns_are_selected(dim, stored):
    matrix, index = stored(torch.randn(6, 9)), torch.tensor([4, 0, 0, 5])
    assert torch.equal(selected(matrix, dim, index), matrix.index_select(dim, index))


def test_finite_values_stay_finite():
    least = torch.finfo(torch.float32).min
    given = torch.tensor([least, -least, float("inf"), -float("inf"), 1.0])
    wanted = torch.tensor([-LARGEST, LARGEST, float("inf"), -float("inf"), 1.0])
    assert torch.equal(saturated(given), wanted)
    assert torch.equal(saturated(-given), -wanted)
    small = torch.ones(3)
    assert saturated(small) is small
