"""Heads with the library's own operations."""

import pytest
import torch

from tests.compiler.against_torch import check
from tests.compiler.lowering.moving import moves, numbers
from torch_ttnn.compiler.ir.builder import ProgramBuilder
from torch_ttnn.compiler.lowering.support import heads

SPLIT = "ttnn.experimental.nlp_create_qkv_heads"


@pytest.fixture(autouse=True)
def wired(monkeypatch):
    monkeypatch.setattr(
        ProgramBuilder, "split_heads", lambda builder, *rest: heads.split_heads(builder.ttnn, builder, *rest)
    )
    monkeypatch.setattr(
        ProgramBuilder, "joined_heads", lambda builder, *rest: heads.joined_heads(builder.ttnn, builder, *rest)
    )


def scores(x, y, count):
    """Every head of [B, S, H * D] times a separate matrix."""
    batch, length, width = x.shape
    split = x.view(batch, length, count, width // count).transpose(1, 2)
    return torch.bmm(split.reshape(batch * count, length, width // count), y)


@pytest.mark.parametrize("length", [1, 32, 50])
def test_heads_of_whole_tiles_are_split_in_one_operation(length):
    out = check(lambda x, y: scores(x, y, 4), torch.randn(2, length, 128), torch.randn(8, 32, 5))
    assert out.device_ops == [*([] if length == 1 else [SPLIT]), "ttnn.matmul"]


def test_heads_of_a_flat_projection():
    out = check(lambda x, y: scores(x.view(2, 50, 128), y, 4), torch.randn(100, 128), torch.randn(8, 32, 5))
    assert out.device_ops == [SPLIT, "ttnn.matmul"]


def test_other_heads_are_permuted():
    out = check(lambda x, y: scores(x, y, 8), torch.randn(2, 50, 128), torch.randn(16, 16, 5))
    assert out.device_ops == ["ttnn.permute", "ttnn.matmul"]


def test_heads_are_put_together_in_one_operation():
    out = moves(lambda x: (x + 1).transpose(1, 2).reshape(2, 50, 128), numbers([2, 4, 50, 32]))
    assert out.device_ops == ["ttnn.add", "ttnn.transformer.concatenate_heads"]
    flat = moves(lambda x: (x + 1).transpose(1, 2).reshape(100, 128), numbers([2, 4, 50, 32]))
    assert flat.device_ops == ["ttnn.add", "ttnn.transformer.concatenate_heads"]


def test_heads_of_a_batched_product_are_put_together():
    out = check(
        lambda x, y: torch.bmm(x, y).view(2, 4, 50, 32).transpose(1, 2).reshape(2, 50, 128),
        torch.randn(8, 50, 16),
        torch.randn(8, 16, 32),
    )
    assert out.device_ops == ["ttnn.matmul", "ttnn.transformer.concatenate_heads"]
