"""Sliding windows, and their adjoint."""

import torch

from tests.compiler.against_torch import check
from tests.compiler.lowering.moving import moves, numbers

F = torch.nn.functional


def test_patches_that_do_not_overlap_only_move():
    out = moves(lambda x: F.unfold(x, 4, stride=4), numbers([1, 3, 16, 16]))
    assert out.device_ops == ["ttnn.permute"]
    back = moves(lambda x: F.fold(x, (16, 16), 4, stride=4), numbers([1, 48, 16]))
    assert back.device_ops == ["ttnn.permute"]


def test_a_kernel_is_one_slice_per_row_and_column():
    out = moves(lambda x: F.unfold(x, 3, padding=1), numbers([2, 3, 8, 8]))
    assert out.device_ops.count("ttnn.slice") == 6


def test_overlapping_patches_add_up():
    check(lambda x: F.fold(x, (8, 8), 3, padding=1), torch.randn(2, 27, 64))


def test_frames_of_a_signal():
    out = moves(lambda x: x.unfold(-1, 40, 20).clone(), numbers([2, 500]))
    assert "ttnn.moreh_getitem" in out.device_ops
