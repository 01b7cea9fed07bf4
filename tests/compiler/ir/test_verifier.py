"""The verifier accepts the compiler's graphs, and detects every kind of invalid graph."""

from __future__ import annotations

import operator
import pathlib
import re
from collections.abc import Callable

import pytest
import torch
import torch.fx

import ttnn_emulator as ttnn
from tests.compiler.against_torch import run
from torch_ttnn.compiler import pipeline
from torch_ttnn.compiler.errors import VerifyError
from torch_ttnn.compiler.ir import metadata
from torch_ttnn.compiler.ir.metadata import NUMBER, OUTPUT_VALS, PATH, PREPARED, REASON, SPEC, annotate
from torch_ttnn.compiler.ir.verifier import CAPTURED, MAIN, PREPARE, verify, verify_compilation, violations
from torch_ttnn.compiler.runtime.program import Program


def program_of() -> Program:
    """Two device operations, a host operation, and a weight."""
    weight = torch.randn(32, 32)
    made = run(lambda x, w: torch.relu(torch.cumsum(torch.sort(x @ w)[1], 0) + x), torch.eye(32), weight, statics=(1,))
    return made.program


def node(graph: torch.fx.Graph, path: str) -> torch.fx.Node:
    return next(each for each in graph.nodes if PATH.get(each) == path)


def test_programs_are_valid():
    program = program_of()
    verify(program.captured.graph, CAPTURED)
    verify(program.lowered.main, MAIN, full=True)
    verify(program.lowered.prepare, PREPARE, full=True)
    verify_compilation(program, full=True)


def forget_the_spec(graph: torch.fx.Graph) -> str:
    del node(graph, "ttnn.relu").meta["spec"]
    return "specs"


def forget_the_reason(graph: torch.fx.Graph) -> str:
    next(each for each in graph.nodes if REASON.on(each)).meta["reason"] = ""
    return "reasons"


def use_before_it_is_made(graph: torch.fx.Graph) -> str:
    next(iter(graph.nodes)).prepend(node(graph, "ttnn.relu"))
    return "order"


def use_a_node_of_another_graph(graph: torch.fx.Graph) -> str:
    stranger = torch.fx.Graph().placeholder("stranger")
    relu = node(graph, "ttnn.relu")
    relu._args = (stranger,)
    relu._input_nodes = {stranger: None}
    return "order"


def give_a_device_operation_a_host_tensor(graph: torch.fx.Graph) -> str:
    node(graph, "ttnn.relu").args = (node(graph, "ttnn.to_torch"),)
    return "places"


def return_a_device_tensor(graph: torch.fx.Graph) -> str:
    output = next(iter(reversed(graph.nodes)))
    output.args = ((node(graph, "ttnn.relu"),),)
    return "results"


def return_another_dtype(graph: torch.fx.Graph) -> str:
    output = next(iter(reversed(graph.nodes)))
    annotate(output, vals=[val.to(torch.float64) for val in OUTPUT_VALS[output]])
    return "results"


def call_a_module(graph: torch.fx.Graph) -> str:
    node(graph, "ttnn.relu").op = "call_module"
    return "kinds"


def take_an_output_that_is_not_there(graph: torch.fx.Graph) -> str:
    item = next(each for each in graph.nodes if each.target is operator.getitem)
    item.args = (item.args[0], 7)
    return "indices"


def lose_the_number_of_an_input(graph: torch.fx.Graph) -> str:
    del next(each for each in graph.nodes if NUMBER.on(each)).meta["number"]
    return "inputs"


def give_a_weight_another_spec(graph: torch.fx.Graph) -> str:
    weight = next(each for each in graph.nodes if PREPARED.on(each))
    annotate(weight, spec=ttnn.spec_tensor((1, 1), ttnn.bfloat16, device=SPEC[weight].device()))
    return "specs"


def call_a_function_without_a_name(graph: torch.fx.Graph) -> str:
    inverse = next(each for each in graph.nodes if REASON.on(each))
    inverse.target = lambda *args: torch.linalg.inv_ex(*args)
    return "names"


BREAKS = [
    forget_the_spec,
    forget_the_reason,
    use_before_it_is_made,
    use_a_node_of_another_graph,
    give_a_device_operation_a_host_tensor,
    return_a_device_tensor,
    return_another_dtype,
    call_a_module,
    take_an_output_that_is_not_there,
    lose_the_number_of_an_input,
    give_a_weight_another_spec,
    call_a_function_without_a_name,
]


@pytest.mark.parametrize("damage", BREAKS, ids=lambda damage: damage.__name__)
def test_invalid_graphs_are_detected(damage: Callable[[torch.fx.Graph], str]):
    graph = program_of().lowered.main
    rule = damage(graph)
    assert rule in {violation.rule for violation in violations(graph)}
    with pytest.raises(VerifyError, match=f"'{rule}'"):
        verify(graph)


def test_full_verification_detects_wrong_types():
    graph = program_of().lowered.main
    relu = node(graph, "ttnn.relu")
    annotate(relu, spec=ttnn.spec_tensor((32, 32), ttnn.float32, device=SPEC[relu].device()))
    verify(graph)
    with pytest.raises(VerifyError, match=r"relu.*'types'.*float32.*bfloat16"):
        verify(graph, full=True)


def test_full_verification_detects_a_call_that_the_table_refuses():
    graph = program_of().lowered.main
    matmul = next(each for each in graph.nodes if PATH.get(each) in ("ttnn.matmul", "ttnn.linear"))
    matmul.update_kwarg("transpose_b", "yes")
    with pytest.raises(VerifyError, match=f"{matmul.name} breaks the rule 'types'"):
        verify(graph, full=True)


def test_a_program_that_the_cache_changes_is_detected(monkeypatch):
    program = program_of()
    monkeypatch.setattr(
        "torch_ttnn.compiler.cache.serialisation._options_in", lambda options, nodes: {"dtype": "another"}
    )
    with pytest.raises(VerifyError, match=r"the cache changes the \w+ graph: .*another"):
        verify_compilation(program)


def test_crossings_within_a_graph_are_detected():
    program = run(lambda x: torch.tanh(torch.relu(x)), torch.randn(32, 32)).program
    graph = program.lowered.main
    relu, tanh = node(graph, "ttnn.relu"), node(graph, "ttnn.tanh")
    download, upload = node(graph, "ttnn.to_torch"), node(graph, "ttnn.from_torch")
    with graph.inserting_before(tanh):
        down = graph.create_node("call_function", download.target, (relu,))
        annotate(down, path="ttnn.to_torch", val=download.meta["val"])
        up = graph.create_node("call_function", upload.target, (down,), dict(upload.kwargs))
        annotate(up, path="ttnn.from_torch", spec=SPEC[upload])
    tanh.args = (up,)
    assert [(found.rule, found.node) for found in violations(graph)] == [("moves", down.name), ("moves", up.name)]


def test_weights_are_not_uploaded_on_every_call():
    weight = torch.randn(32, 32)
    graph = run(lambda x, w: torch.relu(x) + w, torch.randn(32, 32), weight, statics=(1,)).program.lowered.main
    held, upload = node(graph, "ttnn.add").args[1], node(graph, "ttnn.from_torch")
    with graph.inserting_before():
        kept = graph.placeholder("kept_on_the_host")
        annotate(kept, prepared=torch.fx.Graph().placeholder("weight"), val=weight)
    held.replace_all_uses_with(kept)
    with graph.inserting_before(node(graph, "ttnn.add")):
        up = graph.create_node("call_function", upload.target, (kept,), dict(upload.kwargs))
        annotate(up, path="ttnn.from_torch", spec=SPEC[upload])
    node(graph, "ttnn.add").replace_input_with(kept, up)
    assert [str(found) for found in violations(graph) if found.rule == "moves"] == [
        f"{up.name} breaks the rule 'moves': the weight kept_on_the_host is uploaded on every call"
    ]


def test_every_stage_is_verified(monkeypatch):
    def breaks(compilation):
        next(node for node in compilation.lowered.main.nodes if node.op == "call_function").meta.pop("spec")

    stages = [*pipeline.STAGES, pipeline.Stage("spoil", breaks)]
    monkeypatch.setattr(pipeline, "STAGES", stages)
    with pytest.raises(VerifyError):
        run(lambda x: x + 1, torch.ones(4))


def test_only_the_metadata_module_spells_its_keys():
    """Metadata of nodes is read and written with the typed keys of `compiler/ir/metadata.py`."""
    names = "|".join([value.name for value in vars(metadata).values() if isinstance(value, metadata.Key)])
    spelled = re.compile(rf"""meta(\.get\(|\.pop\(|\[)["']({names})["']|["']({names})["'] (not )?in \w+\.meta\b""")
    package = pathlib.Path(metadata.__file__).parents[2]
    for path in package.rglob("*.py"):
        if path != pathlib.Path(metadata.__file__):
            assert not spelled.search(path.read_text(encoding="utf-8")), path
