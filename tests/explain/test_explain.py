"""`torch_ttnn.explain`: its contents, no effects on Dynamo and the model, and models without values."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import textwrap

import pytest
import torch
from torch import nn

from tests.compiler.small_models import transformer
from torch_ttnn import TorchTtnnOption
from torch_ttnn.compiler.errors import TorchTtnnError
from torch_ttnn.explain import explain

X = torch.randn(2, 33, 64)


@pytest.fixture(autouse=True)
def inference():
    with torch.no_grad():
        yield


def test_json_has_exactly_these_keys():
    content = explain(transformer(1), X).to_json()
    assert set(content) == {"programs", "memory", "predicted", "missed", "compile_seconds", "numerics", "versions"}
    (program,) = content["programs"]
    assert set(program) == {
        "device_ops", "host_ops", "moves", "border_ops", "fusions", "ops_before", "predicted", "code",
    }  # fmt: skip
    assert set(content["predicted"]) == {"boards", "operations"}
    assert set(program["predicted"]) == {"boards", "operations", "calls"}
    assert set(content["memory"]) == {"dram_peak", "l1_peak", "weights"}
    assert all(set(move) == {"kind", "bytes", "reason"} for move in program["moves"])
    assert {"capture", "lower", "program", "predict"} <= set(content["compile_seconds"])
    assert {"torch", "ttnn", "torch_ttnn", "python"} <= set(content["versions"])
    json.dumps(content)


def test_summary_counts_what_the_program_has():
    explanation = explain(transformer(1), X)
    (program,) = explanation.to_json()["programs"]
    assert program["device_ops"]["ttnn.linear"] == explanation.code.count("= ttnn.linear(")
    text = str(explanation)
    assert "inference" in text
    assert "0 host operations" in text
    assert "n150: fits" in text
    assert "compiled in" in text


def test_moves_say_how_much_and_why():
    moves = explain(nn.ReLU(), torch.randn(64, 64)).to_json()["programs"][0]["moves"]
    assert [(move["kind"], move["bytes"]) for move in moves] == [("from_torch", 8192), ("to_torch", 8192)]
    assert "input 0" in moves[0]["reason"]
    assert "output" in moves[1]["reason"]


class LeavesOneToTheHost(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(torch.linalg.inv_ex(x)[0])


def test_host_ops_have_reason_and_line():
    explanation = explain(LeavesOneToTheHost(), torch.eye(32))
    (host_op,) = explanation.to_json()["programs"][0]["host_ops"]
    assert host_op["op"] == "aten.linalg_inv_ex.default"
    assert host_op["reason"]
    assert "test_explain.py:" in host_op["source"]
    assert "torch.linalg.inv_ex(x)" in host_op["source"]
    assert host_op["reason"].split()[0] in str(explanation)


class Breaks(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(x)
        torch._dynamo.graph_break()
        return torch.tanh(x)


def test_every_graph_is_explained():
    explanation = explain(Breaks(), X)
    assert len(explanation.programs) == 2
    first, second = explanation.to_json()["programs"]
    assert "ttnn.relu" in first["device_ops"]
    assert "ttnn.tanh" in second["device_ops"]
    assert explanation.code.count("def forward") == 2


def test_repeated_calls_do_not_affect_torch_compile():
    model = nn.Linear(8, 4)
    limit = torch._dynamo.config.recompile_limit
    for _ in range(limit + 2):
        assert explain(model, torch.ones(2, 8)).programs
    compiled = []
    torch.compile(model, backend=lambda graph, inputs: compiled.append(graph) or graph.forward)(torch.ones(2, 8))
    assert len(compiled) == 1


def test_repeated_calls_with_graph_breaks():
    model = Breaks()
    for _ in range(torch._dynamo.config.recompile_limit + 2):
        assert len(explain(model, X).programs) == 2
    compiled = []
    torch.compile(model, backend=lambda graph, inputs: compiled.append(graph) or graph.forward)(X)
    assert len(compiled) == 2


def test_the_programs_are_those_of_torch_compile():
    class NormThenBreak(nn.Module):  # the CPU's batch norm returns other strides than its meta function
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.norm(x.transpose(1, 2)).transpose(1, 2).reshape(-1, 8)
            torch._dynamo.graph_break()
            return x + 1

    model, x = NormThenBreak().eval(), torch.randn(2, 5, 8)
    options = TorchTtnnOption(cache_dir="", warn=False)
    torch.compile(model, backend="ttnn", options=options)(x)
    assert [each.code for each in explain(model, x).programs] == [each.code for each in options.programs]


def test_views_and_copies_of_the_host_are_counted():
    explanation = explain(lambda x: (x * 2).transpose(1, 2), X)
    (program,) = explanation.to_json()["programs"]
    assert [(each["op"], each["bytes"]) for each in program["border_ops"]] == [("aten.permute.default", 0)]
    assert "goes to an output" in program["border_ops"][0]["reason"]
    assert "views and copies by the host around moves: aten.permute.default × 1" in str(explanation)
    assert "views and copies by the host" in explanation.to_html()
    copied = explain(lambda x: (x * 2).to(memory_format=torch.channels_last), torch.randn(2, 3, 4, 4))
    assert sum(each.bytes for each in copied.report.programs[0].border_ops) == 2 * 3 * 4 * 4 * 4
    assert not explain(nn.ReLU(), X).report.programs[0].border_ops


def test_a_program_with_nothing_on_the_device_says_so():
    for function in (lambda x: torch.linalg.inv_ex(x)[0], lambda x: x.t().clone()):
        explanation = explain(function, torch.eye(32))
        assert "nothing of inference runs on the device" in str(explanation)
        assert "nothing of inference runs on the device" in explanation.to_html()
    assert "nothing of" not in str(explain(nn.ReLU(), X))


def test_options_are_used_and_not_modified():
    options = TorchTtnnOption(precision="float32")
    explanation = explain(nn.ReLU(), X, options=options)
    assert "ttnn.float32" in explanation.code
    assert not options.programs
    assert explain(nn.ReLU(), X, options={"precision": "float32"}).code == explanation.code


def test_keyword_arguments():
    def scaled(x: torch.Tensor, *, other: torch.Tensor) -> torch.Tensor:
        return x * other

    assert "ttnn.multiply" in explain(scaled, X, other=X).code


def test_nothing_to_compile():
    with pytest.raises(TorchTtnnError, match="nothing was compiled"):
        explain(lambda x: x.shape[0], X)


def test_a_model_without_values_has_the_same_program():
    with torch.device("meta"):
        model = transformer(1)
    explanation = explain(model, torch.empty(2, 33, 64, device="meta"))
    assert explanation.code == explain(transformer(1), X).code
    assert explanation.memory == explain(transformer(1), X).memory
    assert all(parameter.is_meta for parameter in model.parameters())


def test_a_model_larger_than_this_machine():
    with torch.device("meta"):
        model = transformer(2, width=32768, heads=256)  # 2 × 8 × 32768² weights: 32 GiB in bfloat16
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    explanation = explain(model, torch.empty(1, 64, 32768, device="meta"))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert explanation.memory.weights > 32 << 30
    assert grown < 1 << 30
    assert {fit.board for fit in explanation.report.fits if fit.fits} == {"t3000"}
    assert "an estimate" in str(explanation)


def test_graph_breaks_without_values_are_noted():
    with torch.device("meta"):
        model = Breaks()
    assert "zeros replaced" in str(explain(model, torch.empty(2, 8, device="meta")))
    assert "zeros replaced" not in str(explain(model, torch.ones(2, 8)))


@pytest.mark.slow
def test_llama_70b_in_two_gib():
    code = """
        import resource, torch
        from torch_ttnn.zoo.torchvision_ops import ensure_operators
        library = ensure_operators()
        from transformers import LlamaConfig, LlamaForCausalLM
        from torch_ttnn.explain import explain

        config = LlamaConfig(
            num_hidden_layers=80, hidden_size=8192, num_attention_heads=64, num_key_value_heads=8,
            intermediate_size=28672, vocab_size=128256,
        )
        with torch.device("meta"):
            model = LlamaForCausalLM(config).eval()
        with torch.no_grad():
            explained = explain(model, torch.zeros(1, 128, dtype=torch.int64, device="meta"))
        memory = explained.memory
        assert all(time.kernels_ns > 1e8 for time in explained.times.values())
        print(memory.weights, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    """
    pytest.importorskip("transformers")
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    weights, kibibytes = map(int, done.stdout.split()[-2:])
    assert 131 << 30 < weights < 133 << 30  # 70.6 billion weights in bfloat16, and their padding
    assert kibibytes < 2 << 20


@pytest.mark.parametrize("mode", ["fast", "auto", "exact"])
def test_it_says_which_numerics_results_are_from(mode, tmp_path):
    explanation = explain(nn.ReLU(), torch.randn(64, 64), options={"numerics": mode})
    assert explanation.to_json()["numerics"] == mode
    assert f"results are from {mode} numerics" in " ".join(str(explanation).split())
    assert f"results are from {mode} numerics" in explanation.to_html()


def test_fast_is_the_default_and_names_the_cost_of_exact():
    assert "takes" in str(explain(nn.ReLU(), torch.randn(64, 64))).split("exact")[1]
