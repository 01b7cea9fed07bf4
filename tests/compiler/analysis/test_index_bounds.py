"""Indices out of range raise torch's errors."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import torch_ttnn
from torch_ttnn.compiler.ir.metadata import REASON

TABLE = torch.linspace(-1, 1, 24).reshape(6, 4)
EMBEDDING = nn.Embedding.from_pretrained(TABLE)
ROW = torch.tensor([[0, 1, 2, 5]])

LOOKUPS = {  # name: (function, valid indices, invalid indices)
    "embedding": (lambda i: EMBEDDING(i), torch.tensor([0, 5]), torch.tensor([0, 6])),
    "embedding, negative": (lambda i: EMBEDDING(i), torch.tensor([0, 5]), torch.tensor([-1, 5])),
    "embedding of a reshaped input": (lambda i: EMBEDDING(i.reshape(2, 2)), ROW, ROW + 1),
    "embedding of a cast input": (lambda i: EMBEDDING(i.int()), ROW, ROW + 1),
    "index": (lambda i: TABLE[i], torch.tensor([-6, 5]), torch.tensor([-7, 5])),
    "index of the second dimension": (lambda i: TABLE[:, i], torch.tensor([-4, 3]), torch.tensor([0, 4])),
    "gather": (lambda i: TABLE.gather(0, i), ROW, ROW + 1),
    "gather along the last": (lambda i: TABLE.gather(1, i), ROW.clamp(max=3), ROW),
    "index_select": (lambda i: TABLE.index_select(0, i), ROW[0], ROW[0] + 1),
    "scatter": (lambda i: TABLE.scatter(0, i, torch.ones(1, 4)), ROW, ROW + 1),
    "scatter_add": (lambda i: TABLE.scatter_add(0, i, torch.ones(1, 4)), ROW, ROW + 1),
    "classes": (lambda i: functional.cross_entropy(TABLE, i), torch.tensor([0, 1, 2, 3, -100, 0]), torch.full((6,), 4)),
}


@pytest.mark.parametrize("name", LOOKUPS)
def test_an_index_out_of_range_raises_torchs_error(name: str) -> None:
    look_up, right, wrong = LOOKUPS[name]
    options = torch_ttnn.TorchTtnnOption()
    compiled = torch_ttnn.compile(look_up, options=options)
    with torch.no_grad():
        assert torch.allclose(compiled(right), look_up(right), atol=0.01)
        assert not options.programs or all(not REASON.on(node) for node in options.programs[0].graph.nodes)
        with pytest.raises((IndexError, RuntimeError)) as expected:
            look_up(wrong)
        with pytest.raises(type(expected.value)) as found:
            compiled(wrong)
        assert str(found.value) == str(expected.value)
        assert torch.allclose(compiled(right), look_up(right), atol=0.01)  # the next call works


def test_integers_that_are_not_indices_are_unbounded(caplog: pytest.LogCaptureFixture) -> None:
    compiled = torch_ttnn.compile(lambda i: i[:, 0:2] + EMBEDDING(i[:, 2:]).sum(-1).int())
    inside, beyond = torch.tensor([[3, 4, 5, 0]]), torch.tensor([[100, 200, 5, 0]])
    expected = beyond[:, :2] + EMBEDDING(beyond[:, 2:]).sum(-1).int()
    with torch.no_grad():
        compiled(inside)
        assert torch.equal(compiled(beyond), expected)
    assert "on the host" in caplog.text
