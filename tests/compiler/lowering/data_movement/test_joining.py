"""Concatenation, stacking, replaced slices and padding, in storage order."""

import torch

from tests.compiler.against_torch import check
from tests.compiler.lowering.moving import moves, numbers

F = torch.nn.functional


def test_dense_blocks_are_joined_channels_last():
    def joined(x, y):
        images = [x.permute(0, 3, 1, 2), y.permute(0, 3, 1, 2)]
        return torch.cat(images, 1).permute(0, 2, 3, 1)

    assert moves(joined, numbers([1, 7, 7, 32]), numbers([1, 7, 7, 64], seed=1)).device_ops == ["ttnn.concat"]


def test_a_class_token_in_front():
    out = moves(
        lambda token, x: torch.cat([token.expand(2, -1, -1), x], 1), numbers([1, 1, 32]), numbers([2, 49, 32]),
        statics=(0,),
    )  # fmt: skip
    assert out.device_ops == ["ttnn.concat"]


def test_dtypes_are_promoted_as_torch_does():
    moves(lambda x, y: torch.cat([x, y]), numbers([3], torch.int64), numbers([4], torch.float32))
    moves(lambda x, y: torch.cat([x, y]), numbers([3], torch.bool), numbers([4], torch.int64))
    moves(lambda x, y: torch.cat([x, y, x]), numbers([3], torch.bool), numbers([4], torch.float16))


def test_large_integers_stay_exact():
    x = torch.tensor([[2**31 - 1, -(2**31)], [123456789, -1]])
    moves(lambda x: torch.cat([x, x.t(), x.flip(0)], 1), x)


def test_many_tensors():
    moves(lambda *x: torch.cat(x, -1), *[numbers([2, 3], seed=seed) for seed in range(60)])


def test_a_part_replaced():
    """As torchvision's Swin marks the windows of its mask."""
    out = moves(lambda x, y: torch.slice_scatter(x, y, 1, 3, 5), numbers([4, 9]), numbers([4, 2], seed=1))
    assert out.device_ops == ["ttnn.slice", "ttnn.slice", "ttnn.concat"]


def test_the_gradient_of_a_slice_and_of_a_selection():
    backward = torch.ops.aten
    moves(lambda g: backward.slice_backward(g, [3, 9], 1, 1, 8, 1), numbers([3, 7]))
    moves(lambda g: backward.slice_backward(g, [3, 9], 1, 1, 9, 3), numbers([3, 3]))
    moves(lambda g: backward.select_backward(g, [3, 9], 1, -2), numbers([3]))


def test_rows_in_front_of_tiles():
    """The library pads tiles only at the end: padding in front uses rows."""
    out = moves(lambda x: F.pad(x, (1, 2, 3, 4)), numbers([2, 5, 33]))
    assert out.device_ops == ["ttnn.pad"]


def test_an_image_is_padded_in_storage_order():
    out = moves(lambda x: F.pad(x.permute(0, 3, 1, 2), (1, 1, 1, 1)).permute(0, 2, 3, 1), numbers([1, 7, 7, 32]))
    assert out.device_ops == ["ttnn.pad"]


def test_padding_with_a_value_that_rows_of_float32_cannot_be_filled_with():
    check(lambda x: F.pad(x, (1, 2), value=1.3), torch.randn(4, 5), precision="float32", relative=0, absolute=0)


def test_padding_with_minus_infinity():
    moves(lambda x: F.pad(x, (1, 0), value=float("-inf")), numbers([4, 5]))


def test_negative_padding_crops():
    moves(lambda x: F.pad(x, (-1, 2, 0, -3)), numbers([3, 4, 5]))


def test_small_borders_are_slices_and_large_ones_are_read_by_row():
    small = moves(lambda x: F.pad(x, (1, 1), mode="reflect"), numbers([2, 3, 40]))
    large = moves(lambda x: F.pad(x, (30, 30), mode="reflect"), numbers([2, 3, 40]))
    assert small.device_ops.count("ttnn.slice") == 2
    assert "ttnn.moreh_getitem" in large.device_ops
