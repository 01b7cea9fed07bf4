"""Code that Dynamo leaves to Python: `explain` names it with its line, and compiling warns where possible."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn

import torch_ttnn
from torch_ttnn.compiler.errors import TorchTtnnError
from torch_ttnn.compiler.frontend.graph_breaks import BREAK, LIMIT, SKIPPED
from torch_ttnn.explain import explain

X = torch.randn(4, 8)


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()
    with torch.no_grad():
        yield
    torch._dynamo.reset()


class Breaks(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(x)
        torch._dynamo.graph_break()
        return torch.tanh(x)


class Inner(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x)


class Loops(nn.Module):
    """A break within a loop: Dynamo cannot resume after it, and leaves the whole function to Python."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(2):
            torch._dynamo.graph_break()
            x = self.inner(x)
        return x


class Recompiles(nn.Module):
    def shifted(self, x: torch.Tensor, how: str) -> torch.Tensor:
        return x + len(how)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for number in range(12):
            torch._dynamo.graph_break()
            x = self.shifted(x, "x" * number)
        return x


class AllSkipped(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(2):
            torch._dynamo.graph_break()
            x = x + 1
        return x


def missed_by(model: nn.Module) -> list[tuple[str, str, str]]:
    return [(each["kind"], each["reason"], each["source"]) for each in explain(model, X).to_json()["missed"]]


def test_graph_breaks_have_reason_and_line():
    ((kind, reason, source),) = missed_by(Breaks())
    assert kind == BREAK
    assert "graph_break()" in reason and "User-inserted graph break" in reason
    assert "test_graph_breaks.py:" in source and source.endswith("torch._dynamo.graph_break()")


def test_skipped_functions():
    ((kind, reason, source),) = missed_by(Loops())
    assert kind == SKIPPED
    assert "User-inserted graph break" in reason
    assert "test_graph_breaks.py:" in source


def test_recompile_limits():
    found = [(reason, source) for kind, reason, source in missed_by(Recompiles()) if kind == LIMIT]
    ((reason, source),) = found
    assert str(torch._dynamo.config.recompile_limit) in reason
    assert "recompile_limit" in reason
    assert "test_graph_breaks.py:" in source and source.endswith("shifted")


def test_text_and_page_show_missed_code():
    explanation = explain(Breaks(), X)
    assert "left to Python by torch.compile" in str(explanation)
    assert "User-inserted" in str(explanation)
    page = explanation.to_html()
    assert "left to Python by torch.compile" in page and "User-inserted" in page


def test_a_model_without_graphs_raises_an_error_with_the_reason():
    with pytest.raises(TorchTtnnError, match=r"nothing was compiled(.|\n)*skipped function at .*test_graph_breaks.py"):
        explain(AllSkipped(), X)


def test_nothing_is_missed_without_breaks():
    explain(Breaks(), X)
    assert missed_by(nn.Linear(8, 8)) == []


def test_compiling_warns_of_a_break():
    expected = "graph break at .*test_graph_breaks.py:.*User-inserted"
    with pytest.warns(torch_ttnn.GraphBreakWarning, match=expected) as found:
        torch.compile(Breaks(), backend="ttnn")(X)
    assert len(found) == 1
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.compile(Breaks(), backend="ttnn", options={"warn": False})(X)
        torch.compile(nn.Linear(8, 8), backend="ttnn")(X)


def test_compiling_warns_at_the_recompile_limit():
    @torch.compile(backend="ttnn")
    def shifted(x: torch.Tensor, how: str) -> torch.Tensor:
        return x + len(how)

    limit = torch._dynamo.config.recompile_limit
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for number in range(limit):
            assert not [each for each in found if each.category is torch_ttnn.GraphBreakWarning]
            shifted(X, "x" * number)
    (only,) = [each for each in found if each.category is torch_ttnn.GraphBreakWarning]
    assert "recompile_limit" in str(only.message)
