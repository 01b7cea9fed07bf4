"""Slices, selections and splits, in storage order."""

import pytest
import torch

from tests.compiler.against_torch import check
from tests.compiler.lowering.moving import moves, numbers
from torch_ttnn.compiler.ir.metadata import PATH, SPEC

BOUNDS = [(1, -1, 1), (-99, 99, 2), (3, 99, 3), (None, None, 4), (-2, None, 1)]


@pytest.mark.parametrize(("start", "end", "step"), BOUNDS)
def test_bounds_as_in_torch(start, end, step):
    moves(lambda x: x[start:end:step], numbers([9, 5]))


def test_an_empty_slice_stays_on_the_host_and_says_why():
    out = check(lambda x: (x + 1)[3:2], torch.randn(5, 4), on_device=False)
    assert "empty" in next(iter(out.host_ops.values()))


def test_queries_keys_and_values_of_a_fused_projection():
    """timm's attention: one operation of the library, no permutation of five dimensions."""

    def heads(x):
        return x.reshape(2, 50, 3, 4, 32).permute(2, 0, 3, 1, 4).unbind(0)

    assert moves(heads, numbers([2, 50, 384])).device_ops == ["ttnn.experimental.nlp_create_qkv_heads"]


def test_heads_that_are_not_whole_tiles_are_sliced_from_the_projection():
    def heads(x):
        return x.reshape(2, 50, 3, 8, 16).permute(2, 0, 3, 1, 4).unbind(0)

    out = moves(lambda x: [each + 1 for each in heads(x)], numbers([2, 50, 384]))
    slices = [node for node in out.program.graph.nodes if PATH.get(node) == "ttnn.slice"]
    assert [node.args[1] for node in slices] == [[0, 0, 0], [0, 0, 128], [0, 0, 256]]
    assert [SPEC[node].spec.shape for node in slices] == [(2, 50, 128)] * 3


def test_channels_of_a_channels_last_image_are_split_in_storage_order():
    out = moves(lambda x: [y.permute(0, 2, 3, 1) for y in x.permute(0, 3, 1, 2).chunk(2, 1)], numbers([1, 5, 6, 64]))
    assert out.device_ops == ["ttnn.slice", "ttnn.slice"]


def test_unused_parts_are_not_sliced():
    out = moves(lambda x: x.split(2, 1)[1], numbers([3, 8]))
    assert out.device_ops == ["ttnn.slice"]


def test_the_first_token():
    assert "ttnn.slice" in moves(lambda x: (x + 1)[:, 0], numbers([2, 50, 32])).device_ops


@pytest.mark.parametrize("shape", [[1], [5], [33]])
def test_vectors(shape):
    moves(lambda x: (x[:1], x[-1], x[::2]), numbers(shape))


def test_empty_part_of_a_split():
    """A part without elements is returned with the others, and may be used."""
    x = torch.randn(4, 5)
    check(lambda x: x.split([0, 3, 2], 1), x, on_device=False)
    check(lambda x: [torch.cat([each, each]) * 2 for each in x.split([2, 0, 3], 1)], x, on_device=False)
