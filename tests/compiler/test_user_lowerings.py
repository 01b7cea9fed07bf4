"""User-defined lowerings, and operators that users keep on the host."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import torch_ttnn
from torch_ttnn import TorchTtnnOption
from torch_ttnn.compiler.ir.metadata import PATH, REASON
from torch_ttnn.compiler.lowering import LOWERINGS

aten = torch.ops.aten
DOCUMENT = Path(__file__).parents[2] / "docs" / "compiler.md"


@pytest.fixture(autouse=True)
def own_table(monkeypatch):
    """Undo the registrations of a test."""
    before = dict(LOWERINGS)
    yield
    LOWERINGS.clear()
    LOWERINGS.update(before)


@pytest.fixture(scope="module")
def swiglu():
    @torch.library.custom_op("torch_ttnn_test::swiglu", mutates_args=())
    def swiglu(x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        return x * torch.nn.functional.silu(gate)

    swiglu.register_fake(lambda x, gate: torch.empty_like(x))
    return torch.ops.torch_ttnn_test.swiglu.default


def run(function, *tensors, **options):
    torch._dynamo.reset()
    chosen = TorchTtnnOption(device="emulator", warn=False, **options)
    with torch.no_grad():
        return torch.compile(function, backend="ttnn", options=chosen)(*tensors), chosen


def reasons(options):
    return {str(node.target): REASON[node] for node in options.programs[0].graph.nodes if REASON.on(node)}


def paths(options):
    return [PATH[node] for node in options.programs[0].graph.nodes if PATH.on(node)]


def test_a_custom_operator_runs_on_the_device(swiglu):
    x, gate = torch.randn(2, 64), torch.randn(2, 64)
    _, without = run(lambda x, gate: swiglu(x, gate) + 1, x, gate)
    assert list(reasons(without)) == [str(swiglu)]

    @torch_ttnn.lowers(swiglu)
    def lowered(ttnn, x, gate):
        return ttnn.multiply(x, ttnn.silu(gate))

    found, options = run(lambda x, gate: swiglu(x, gate) + 1, x, gate)
    assert not reasons(options) and "ttnn.silu" in paths(options)
    torch.testing.assert_close(found, swiglu(x, gate) + 1, rtol=0.02, atol=0.05)


def test_a_lowering_of_ours_is_replaced_only_if_asked():
    with pytest.raises(ValueError, match="override=True"):
        torch_ttnn.lowers(aten.relu.default)(lambda ttnn, x: ttnn.abs(x))

    @torch_ttnn.lowers(aten.relu.default, override=True)
    def clamped(ttnn, x):
        return ttnn.clamp(x, min=0.0)

    found, options = run(torch.relu, torch.randn(4, 32))
    assert "ttnn.clamp" in paths(options) and "ttnn.relu" not in paths(options)
    assert (found >= 0).all()


def test_a_lowering_refuses_with_its_reason(swiglu):
    @torch_ttnn.lowers(swiglu, when=lambda ttnn, x, gate: "only matrices" if x.ndim != 2 else None)
    def lowered(ttnn, x, gate):
        if x.shape[-1] % 32:
            torch_ttnn.refuse("only whole tiles")
        return ttnn.multiply(x, ttnn.silu(gate))

    _, options = run(swiglu, torch.randn(4), torch.randn(4))
    assert reasons(options) == {str(swiglu): "only matrices"}
    _, options = run(swiglu, torch.randn(4, 5), torch.randn(4, 5))
    assert reasons(options) == {str(swiglu): "only whole tiles"}


def test_a_lowering_can_use_the_builder(swiglu):
    @torch_ttnn.lowers(swiglu)
    def lowered(ttnn, x, gate):
        return ttnn.multiply(x, ttnn.silu(gate))

    with pytest.raises(TypeError, match=re.escape("torch.ops.aten.gelu.default")):
        torch_ttnn.lowers(torch.nn.functional.gelu)


def test_the_cache_key_covers_the_lowering(swiglu, tmp_path):
    """A changed lowering is a cache miss."""
    x, gate = torch.randn(2, 64), torch.randn(2, 64)
    calls = "multiply", "add"
    for call in calls:
        text = f"def lowered(ttnn, x, gate):\n    return ttnn.{call}(x, gate)\n"
        namespace = {"__name__": "somebodys_module"}
        exec(compile(text, "somebodys_module", "exec"), namespace)
        torch_ttnn.lowers(swiglu, override=True)(namespace["lowered"])
        _, options = run(swiglu, x, gate, cache_dir=str(tmp_path))
        assert f"ttnn.{call}" in paths(options)
    assert len(list(tmp_path.glob("*.jsonl"))) == len(calls)


@pytest.mark.parametrize("name", ["aten.gelu", "aten.gelu.default", "aten::gelu", aten.gelu, aten.gelu.default])
def test_an_operator_is_kept_on_the_host(name):
    """Also where it would be fused into a linear."""
    model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.GELU(), torch.nn.Linear(32, 8)).eval()
    x = torch.randn(4, 32)
    found, options = run(model, x, host_ops=name)
    assert reasons(options) == {"aten.gelu.default": "the option host_ops keeps it on the host"}
    torch.testing.assert_close(found, model(x), rtol=0.05, atol=0.05)


def test_an_operator_that_would_be_decomposed_is_kept_whole():
    _, options = run(lambda x: torch.special.log_ndtr(x) + 1, torch.randn(4, 32), host_ops="aten.special_log_ndtr")
    assert list(reasons(options)) == ["aten.special_log_ndtr.default"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("aten.gelul", "did you mean 'aten.gelu'"),
        ("aten.gelu.tensor", "only 'default', 'out'"),
        ("aten.linear", "decomposes aten.linear before"),
        ("gelu", "no operator 'gelu'"),
    ],
)
def test_unknown_names(name, message):
    with pytest.raises(Exception, match=message):
        run(torch.nn.GELU(), torch.randn(4, 32), host_ops=name)


def test_explain_accepts_the_option():
    model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.GELU())
    report = torch_ttnn.explain(model, torch.randn(4, 32), options={"host_ops": ("aten.gelu",)})
    assert "the option host_ops keeps it on the host" in str(report)


def test_the_example_of_the_docs():
    text = DOCUMENT.read_text(encoding="utf-8")
    section = text.partition("### Your own lowerings")[2]
    example = re.search(r"```python\n(.*?)```", section, re.S)
    assert example is not None
    exec(compile(example[1], "docs/compiler.md", "exec"), {"__name__": "__example__"})
