"""The recorded lowering of an operation is the compiler's answer for that operation alone."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest
import torch
from torch import nn

import torch_ttnn
from tests.compiler.small_models import cnn, transformer
from tests.tracer.traced import traces
from torch_ttnn.compiler.lowering import LOWERINGS
from torch_ttnn.compiler.stages.capture import decompositions
from torch_ttnn.tracer import TracerOption
from torch_ttnn.tracer.calls import Call, Verdict
from torch_ttnn.tracer.lowered import Lowerings
from torch_ttnn.tracer.questions import Input, Question, about_call

aten: Any = torch.ops.aten


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()


@pytest.fixture(scope="module")
def lowerings() -> Lowerings:
    return Lowerings()


def verdict_of(lowerings: Lowerings, op: Any, *args: Any, all_outputs: bool = False, **kwargs: Any) -> Verdict:
    return lowerings.of(about_call(Call(op, args, kwargs, op(*args, **kwargs)), all_outputs))


def test_an_operation_with_a_lowering_is_on_the_device(lowerings: Lowerings) -> None:
    assert verdict_of(lowerings, aten.relu.default, torch.ones(4, 8)) == Verdict("device")
    assert verdict_of(lowerings, aten.mm.default, torch.ones(4, 8), torch.ones(8, 2)) == Verdict("device")


def test_the_reason_is_the_compilers_own(lowerings: Lowerings) -> None:
    assert verdict_of(lowerings, aten.relu.default, torch.ones(4, dtype=torch.float64)) == Verdict(
        "host", "float64 has no counterpart on the device"
    )
    assert verdict_of(lowerings, aten.relu.default, torch.ones(0, 4)) == Verdict(
        "host", "an empty tensor has no counterpart on the device"
    )
    assert aten._linalg_svd.default not in LOWERINGS
    assert verdict_of(lowerings, aten._linalg_svd.default, torch.ones(4, 4)) == Verdict(
        "host", "no lowering is registered for this operation"
    )


def test_decomposed_operations_say_so(lowerings: Lowerings) -> None:
    assert aten.threshold_backward.default in decompositions()
    x = torch.ones(4, 4)
    assert verdict_of(lowerings, aten.threshold_backward.default, x, x, 0.0) == Verdict("decomposed")
    verdict = verdict_of(lowerings, aten.threshold_backward.default, x.double(), x.double(), 0.0)
    assert verdict.lowering == "decomposed"
    assert verdict.reason.startswith("aten.") and verdict.reason.endswith("float64 has no counterpart on the device")


def test_an_in_place_operation_is_functionalised(lowerings: Lowerings) -> None:
    verdict = verdict_of(lowerings, aten.add_.Tensor, torch.ones(4), torch.ones(4))
    assert verdict == Verdict("decomposed")  # into aten.add.Tensor


def test_value_dependent_operations_stay_on_the_host(lowerings: Lowerings) -> None:
    for op in (aten.nonzero.default, aten._local_scalar_dense.default):
        verdict = verdict_of(lowerings, op, torch.ones(1))
        assert verdict.lowering == "host" and "depends on values" in verdict.reason


def test_an_operation_without_a_fake_kernel_stays_on_the_host(lowerings: Lowerings) -> None:
    with torch.library._scoped_library("tracer_test", "DEF") as library:
        library.define("secret(Tensor x) -> Tensor")
        library.impl("secret", lambda x: x + 1, "CPU")
        verdict = verdict_of(lowerings, torch.ops.tracer_test.secret.default, torch.ones(3))
    assert verdict.lowering == "host" and "without running it" in verdict.reason


def test_unused_outputs_do_not_matter(lowerings: Lowerings) -> None:
    x = torch.randn(1, 2, 8, 8)
    assert verdict_of(lowerings, aten.max_pool2d_with_indices.default, x, [2, 2], [2, 2]).lowering == "device"
    read = verdict_of(lowerings, aten.topk.default, torch.randn(4, 64), 3, all_outputs=True)
    assert read.lowering in ("device", "host")


def test_equal_queries_are_cached_and_the_cache_is_bounded() -> None:
    lowerings = Lowerings(most=3)
    for _ in range(5):
        verdict_of(lowerings, aten.relu.default, torch.ones(4))
    assert lowerings.asked == 1
    for size in range(2, 8):
        verdict_of(lowerings, aten.relu.default, torch.ones(size))
    assert len(lowerings._answers) == 3
    one = Question((Input((2,), (1,), torch.float32, False),), None)
    assert one == Question((Input((2,), (1,), torch.float32, False),), None)
    assert one != Question((Input((2,), (1,), torch.float32, True),), None)


def test_numbers_of_different_types_are_different_questions(lowerings: Lowerings) -> None:
    def question(number: Any) -> Question:
        return about_call(Call(aten.add.Tensor, (torch.ones(2), number), {}, torch.ones(2)), False)

    assert len({question(1), question(1.0), question(True)}) == 3


@pytest.mark.parametrize(
    "build, shape", [(cnn, (1, 3, 16, 16)), (transformer, (1, 32, 64))], ids=["cnn", "transformer"]
)
def test_whole_models_agree_with_the_compiler(build: Any, shape: tuple, tmp_path: pathlib.Path) -> None:
    """What `explain` leaves to the host is what the records say; for these models, nothing."""
    model, x = build(), torch.randn(shape)
    with torch.no_grad():
        torch.compile(model, backend=torch_ttnn.tracer.backend(out_folder=tmp_path))(x)
        explained = torch_ttnn.explain(model, x).to_json()
    (trace,) = traces(tmp_path)
    assert [each.op_type for each in trace.records if each.lowering == "host" or each.reason] == []
    assert [program["host_ops"] for program in explained["programs"]] == [[]]


class WithHost(nn.Module):
    """An operation that has no lowering, between two that have one."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.svd(x.relu()).S + 1


def test_a_host_operation_of_a_model_has_the_reason_of_explain(tmp_path: pathlib.Path) -> None:
    x = torch.randn(4, 4)
    torch.compile(WithHost(), backend=torch_ttnn.tracer.backend(out_folder=tmp_path))(x)
    explained = torch_ttnn.explain(WithHost(), x).to_json()["programs"][0]["host_ops"]
    (trace,) = traces(tmp_path)
    ours = {each.op_type: each.reason for each in trace.records if each.lowering == "host"}
    assert ours == {each["op"]: each["reason"] for each in explained}
    assert ours


def test_constants_of_a_graph_are_known_to_the_question(tmp_path: pathlib.Path) -> None:
    """The compiler knows the values of a constant index, but not of the same index as an input."""

    def constant(x: torch.Tensor) -> torch.Tensor:
        return x[:, torch.arange(3)]

    with torch.no_grad():
        torch.compile(constant, backend=torch_ttnn.tracer.backend(out_folder=tmp_path))(torch.randn(4, 8))
        explained = torch_ttnn.explain(constant, torch.randn(4, 8)).to_json()["programs"][0]["host_ops"]
    (trace,) = traces(tmp_path)
    index = next(each for each in trace.records if each.op_type == "aten.index.Tensor")
    assert (index.lowering == "host") == bool(explained)


def test_graphs_with_one_option_object_share_answers(tmp_path: pathlib.Path) -> None:
    option = TracerOption(out_folder=tmp_path)
    for _ in range(3):
        torch._dynamo.reset()
        torch.compile(lambda x: x.relu(), backend="torch_stat", options=option)(torch.ones(4))
    assert len(traces(tmp_path)) == 3
    assert option.lowerings is not None and option.lowerings.asked == 1


def test_the_board_can_be_chosen(tmp_path: pathlib.Path) -> None:
    option = TracerOption(out_folder=tmp_path, device="emulator:p150")
    torch.compile(lambda x: x.relu(), backend="torch_stat", options=option)(torch.ones(4))
    assert traces(tmp_path)[0].records[0].lowering == "device"
