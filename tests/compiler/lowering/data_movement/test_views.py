"""Views and permutations: no operation until torch's order is needed."""

import torch

from tests.compiler.against_torch import check
from tests.compiler.lowering.moving import moves, numbers
from torch_ttnn.compiler.ir.metadata import PATH

F = torch.nn.functional


def test_a_transposed_product():
    out = check(lambda x, y: x.transpose(0, 1) @ y, torch.randn(8, 4), torch.randn(8, 5))
    assert "ttnn.permute" not in out.device_ops or out.device_ops.count("ttnn.permute") == 1


def test_views_with_several_users():
    out = check(lambda x: x.view(2, 3, 4).permute(0, 2, 1).permute(0, 2, 1).reshape(6, 4) + 1, torch.randn(6, 4))
    assert out.device_ops == ["ttnn.add"]


def test_views_alone_cost_nothing():
    assert moves(lambda x: x.unsqueeze(1).flatten(1).view(-1, 2, 3).squeeze(), numbers([4, 6])).device_ops == []


def test_views_of_inputs_are_not_transferred():
    """Even if other values are computed from the same inputs."""
    whole = numbers([4, 6], torch.int64)
    out = moves(lambda x, y, n: (x.view(6, 4).t(), y + 1, n.flatten(), x * 2), numbers([4, 6]), numbers([3, 5]), whole)
    paths = [PATH[node] for node in out.program.graph.nodes if PATH.on(node)]
    assert paths.count("ttnn.from_torch") == paths.count("ttnn.to_torch") == 2


def test_channels_last_images_stay_so_through_pointwise_operations_and_views():
    out = check(lambda x: (x.permute(0, 3, 1, 2) * 2).flatten(2).transpose(1, 2) + 1, torch.randn(2, 5, 6, 32))
    assert out.device_ops == ["ttnn.multiply", "ttnn.add"]


def test_shuffled_channels_are_permuted_in_storage_order():
    out = moves(lambda x: torch.channel_shuffle(x.permute(0, 3, 1, 2), 2).permute(0, 2, 3, 1), numbers([1, 5, 5, 12]))
    assert out.device_ops == ["ttnn.permute"]


def test_shuffled_pixels_stay_channels_last():
    out = moves(lambda x: torch.pixel_shuffle(x.permute(0, 3, 1, 2), 2).permute(0, 2, 3, 1), numbers([1, 3, 5, 16]))
    assert out.device_ops == ["ttnn.permute"]


def test_an_expanded_image_stays_channels_last():
    out = moves(
        lambda x: x.permute(0, 3, 1, 2).expand(4, 8, 3, 3).permute(0, 2, 3, 1).contiguous(), numbers([1, 3, 3, 8])
    )
    assert out.device_ops == ["ttnn.repeat"]


def test_key_value_heads_repeated_for_groups_of_queries():
    def repeat_kv(x):
        batch, heads, length, width = x.shape
        return x[:, :, None].expand(batch, heads, 4, length, width).reshape(batch, heads * 4, length, width)

    assert moves(repeat_kv, numbers([1, 2, 10, 32])).device_ops == ["ttnn.repeat"]


def test_as_strided_after_a_pool_is_a_view():
    out = moves(lambda x: x.as_strided((2, 8, 1, 1), (8, 1, 8, 8)), numbers([2, 8, 1, 1]))
    assert out.device_ops == []


def test_as_strided_with_an_offset_a_permutation_and_overlaps():
    moves(lambda x: x.as_strided((3, 4), (1, 3), 2), numbers([20]))
    moves(lambda x: x.t().as_strided((4, 5), (1, 4), 0), numbers([5, 4]))
    moves(lambda x: x.as_strided((5, 3), (2, 1), 1).clone(), numbers([12]))


def windows(x):
    return x.view(1, 2, 7, 2, 7, 32).permute(0, 1, 3, 2, 4, 5).reshape(-1, 49, 32)


def whole(x):
    return x.view(1, 2, 2, 7, 7, 32).permute(0, 1, 3, 2, 4, 5).reshape(1, 14, 14, 32)


def test_windows_are_one_permutation():
    out = check(lambda x, y: windows(torch.roll(x, (-3, -3), (1, 2))) @ y, numbers([1, 14, 14, 32]), torch.eye(32))
    assert out.device_ops == ["ttnn.roll", "ttnn.permute", "ttnn.matmul"]


def test_windows_and_back():
    moves(
        lambda x: torch.roll(whole(windows(torch.roll(x, (-3, -3), (1, 2)))), (3, 3), (1, 2)), numbers([1, 14, 14, 32])
    )


def test_undefined_values_are_zeros():
    out = check(lambda x: torch.empty_like(x).zero_() + x, torch.randn(3, 4))
    assert not out.host_ops
