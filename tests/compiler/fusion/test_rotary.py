"""Rotary embedding: halves as in Llama, neighbours as in GPT-J, and a part of each head."""

from __future__ import annotations

import pytest
import torch

from tests.compiler.fusion.captured import fused

X, ANGLE = torch.randn(2, 4, 7, 32), torch.randn(1, 1, 7, 32)
COS, SIN = ANGLE.cos(), ANGLE.sin()


def halves(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def chunks(x):
    one, other = x.chunk(2, dim=-1)
    return torch.cat((-other, one), dim=-1)


def neighbours(x):
    return torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)


def rotated(rotate):
    return lambda x, cos, sin: x * cos + rotate(x) * sin


@pytest.mark.parametrize("rotate", [halves, chunks])
def test_halves(rotate):
    result = fused(rotated(rotate), X, COS, SIN)
    assert result.names == {"rotary embedding": 1}
    assert result.calls == ["rotary_embedding"]


@pytest.mark.parametrize("decompose", [False, True])
def test_neighbours(decompose):
    result = fused(rotated(neighbours), X, COS, SIN, decompose=decompose)
    assert result.names == {"rotary embedding (interleaved)": 1}


@pytest.mark.parametrize("rotate", [halves, neighbours])
def test_a_part_of_each_head(rotate):
    def function(x, cos, sin):
        return torch.cat((rotated(rotate)(x[..., :32], cos, sin), x[..., 32:]), dim=-1)

    result = fused(function, torch.randn(2, 4, 7, 80), COS, SIN)
    assert result.calls == ["rotary_embedding"]


def test_positions_before_heads():
    result = fused(rotated(neighbours), X.transpose(1, 2), COS.transpose(1, 2), SIN.transpose(1, 2))
    assert result.calls == ["rotary_embedding"]


OTHERS = {
    "halves the other way round": lambda x: torch.cat((-x[..., :16], x[..., 16:]), dim=-1),
    "the first negated": lambda x: torch.cat((x[..., 16:], -x[..., :16]), dim=-1),
    "unequal parts": lambda x: torch.cat((-x[..., 8:], x[..., :8]), dim=-1),
    "another dimension": lambda x: torch.cat((-x[:, 2:], x[:, :2]), dim=1),
    "nothing negated": lambda x: torch.cat((x[..., 16:], x[..., :16]), dim=-1),
    "neighbours the other way round": lambda x: torch.stack((-x[..., ::2], x[..., 1::2]), dim=-1).flatten(-2),
}


@pytest.mark.parametrize("rotate", OTHERS.values(), ids=OTHERS)
def test_other_rotations_are_left(rotate):
    assert fused(rotated(rotate), X, COS, SIN).names == {}


def test_one_value_times_cos_and_another_rotated_is_left():
    assert fused(lambda x, y, cos, sin: y * cos + halves(x) * sin, X, X + 1, COS, SIN).names == {}


def test_a_tail_of_another_value_is_left():
    def function(x, y, cos, sin):
        return torch.cat((rotated(halves)(x[..., :32], cos, sin), y[..., 32:]), dim=-1)

    wide = torch.randn(2, 4, 7, 48)
    assert "rotary embedding (part of a head)" not in fused(function, wide, wide + 1, COS, SIN).names
