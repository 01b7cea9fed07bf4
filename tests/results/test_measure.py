"""Rows describe what happened to a model, including failures."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from tests.results import subjects
from tests.zoo.installed import need
from torch_ttnn import zoo
from torch_ttnn.backend import compile
from torch_ttnn.compiler.ir.metadata import ORIGIN, annotate
from torch_ttnn.options import TorchTtnnOption
from torch_ttnn.results import Row, measure
from torch_ttnn.results.measure import Conditions, Subject, measure_model
from torch_ttnn.results.portable_text import portable
from torch_ttnn.results.program_fields import fields_of
from torch_ttnn.results.record import Task, Variation
from torch_ttnn.results.variations import Outcomes, variations
from torch_ttnn.workloads.agreement import agreement
from torch_ttnn.workloads.program_counts import counts
from torch_ttnn.workloads.timing import interleaved
from torch_ttnn.zoo import trained
from torch_ttnn.zoo.entry import ComparedPart

HERE = "tests.results.subjects:"
SAME = ("status", "programs", "ops_before", "ops_remaining", "device_ops", "uploads", "downloads", "crossings_within",
        "conversions", "host_ops", "moves", "fusions", "variations", "pcc", "relative_error", "gradient_pcc",
        "gradients", "losses", "dram_peak", "l1_peak")  # fmt: skip


def row(name: str, mode: str = "eval", **settings: object) -> Row:
    settings.setdefault("calls", 1)
    return Row.from_json(json.loads(json.dumps(measure_model(name, mode, **settings), allow_nan=False)))


def compiled_programs(model: torch.nn.Module, *inputs: torch.Tensor) -> list:
    options = TorchTtnnOption(cache_dir="")
    with torch.no_grad():
        compile(model.eval(), options=options)(*inputs)
    return options.programs


def outcomes(found: tuple[Variation, ...]) -> dict[tuple[str, str], int]:
    counted: dict[tuple[str, str], int] = {}
    for each in found:
        name = each.op.removeprefix("aten.").removesuffix(".default")
        counted[name, each.outcome] = counted.get((name, each.outcome), 0) + each.count
    return counted


def test_a_row_of_a_small_model() -> None:
    found = row(HERE + "small", seed=3)
    assert found.model == "tests.results.subjects.small"
    assert (found.status, found.mode, found.source, found.seed) == ("device", "eval", "factory", 3)
    assert found.inputs == "float32[4, 32]"
    assert found.parameters == 32 * 64 + 64 + 2 * 64 + 64 * 8 + 8
    assert found.programs == 1
    assert (found.uploads, found.downloads, found.crossings_within) == (1, 1, 0)
    assert found.ops_remaining == 0
    assert not found.host_ops
    assert {move.kind: move.count for move in found.moves if "torch" in move.kind} == {"from_torch": 1, "to_torch": 1}
    assert found.ops_before == sum(each.count for each in found.variations)
    assert found.ops_before_unique == len({each.op for each in found.variations})
    assert found.pcc > 0.999
    assert 0 < found.relative_error < 0.05
    assert found.first_seconds > 0
    assert found.compiled_seconds > 0
    assert found.original_seconds > 0
    assert found.calls == 1
    assert found.dram_peak >= found.weights > 0
    assert found.l1_peak > 0
    assert found.host_peak > 100 << 20
    assert found.device == "emulator:n150"
    assert {"torch", "ttnn", "torch_ttnn", "python", "sources", "precision"} <= set(found.versions)


def test_what_stays_on_the_host_has_its_reason_and_its_line() -> None:
    found = row(HERE + "sorting")
    assert found.status == "host"
    assert found.ops_remaining == sum(each.count for each in found.host_ops) > 0
    assert found.crossings_within > 0
    assert all(each.reason for each in found.host_ops)
    assert any("subjects.py:" in each.source and "det" in each.source for each in found.host_ops)
    assert not any(each.source.startswith("/") for each in found.host_ops), "no path of this machine"
    left = [each for each in found.variations if each.outcome == "host"]
    assert sum(each.count for each in left) == found.ops_remaining
    assert all(each.reason for each in left)


def test_counts_are_those_of_metrics_and_explain() -> None:
    programs = compiled_programs(subjects.Sorting(), torch.randn(4, 32))
    fields, counted = fields_of(programs), counts(programs)
    for name in ("ops_before", "uploads", "downloads", "crossings_within"):
        assert fields[name] == getattr(counted, name)
    assert fields["ops_remaining"] == len(counted.host_ops)
    assert fields["device_ops"] + fields["conversions"] == counted.device_ops + sum(counted.conversions.values())


def test_a_model_that_does_not_run_has_a_row() -> None:
    found = row(HERE + "broken")
    assert found.status == "fails"
    assert "no such layer" in found.reason
    assert "\n" not in found.reason
    assert "subjects.py" in found.details
    assert found.inputs == "float32[4, 32]"
    assert found.parameters > 0
    assert found.pcc is None


def test_operations_are_counted_even_if_the_compiler_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("the stage fails\nwith more to say")

    monkeypatch.setattr("torch_ttnn.compiler.runtime.specialisation.compile_graph", fail)
    found = row(HERE + "small")
    assert (found.status, found.programs) == ("fails", 0)
    assert found.reason.endswith("the stage fails")
    assert found.ops_before > 5
    assert 2 < found.ops_before_unique < found.ops_before


def test_an_unknown_mode_or_model_is_an_error() -> None:
    with pytest.raises(ValueError, match="there is no mode 'fly'; choose eval or train"):
        measure_model("mnist-cnn", "fly")
    with pytest.raises(zoo.UnknownModel):
        measure_model("no-such-model")


@pytest.mark.parametrize(
    ("name", "mode"), [("mnist-cnn", "eval"), (HERE + "sorting", "eval"), (HERE + "small", "train")]
)
def test_measuring_is_deterministic(name: str, mode: str) -> None:
    once, again = row(name, mode), row(name, mode)
    for field in SAME:
        assert getattr(once, field) == getattr(again, field), field
    assert again.original_losses == once.original_losses


class Twice(torch.nn.Module):
    """A part of a model: the model with one more output."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        found = self.model(x)
        return found, 2 * found


def test_a_row_compares_the_part_of_its_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    original = measure.agreement
    monkeypatch.setattr(measure, "agreement", lambda got, want: seen.append(len(got)) or original(got, want))
    entry = replace(zoo.find("mnist-cnn"), compared=ComparedPart(Twice, "PCC is of a part."))
    subject = Subject(entry, entry.build(), Conditions(calls=1), Conditions().options())
    found = measure.infer(subject)
    assert seen == [2], "the part's two outputs, not the model's one"
    assert found["pcc"] > 0.999
    assert found["compared"] == "PCC is of a part."
    assert found["ops_before"] == row("mnist-cnn").ops_before, "counts are of the whole"


def test_a_low_pcc_is_recorded_with_that_of_torch_in_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    assert row(HERE + "small").torch_pcc is None
    monkeypatch.setattr(measure, "NEAR", 2.0)
    found = row(HERE + "small")
    assert 0.99 < found.torch_pcc < 1, "it is measured, and not exact"


@pytest.mark.parametrize("name", ["ssdlite320_mobilenet_v3_large", "fasterrcnn_mobilenet_v3_large_320_fpn"])
def test_scores_and_offsets_of_all_boxes(name: str) -> None:
    need("torchvision")
    entry = zoo.find(name)
    model = entry.build(randomise=False)
    arguments, keywords = entry.inputs()
    with torch.no_grad():
        found = entry.compared.part(model)(*arguments, **keywords)
    levels = 3 if "rcnn" in name else 0  # of the first stage of two
    assert len(found) == 2 * levels + 2
    assert all(each.isfinite().all() and each.std() > 0 for each in found)


def test_batch_and_device_are_as_requested() -> None:
    found = row("mnist-cnn", batch=3, device="emulator:p150")
    assert (found.batch, found.inputs, found.device) == (3, "float32[3, 1, 28, 28]", "emulator:p150")


def test_precision_and_threads_are_as_requested_and_recorded() -> None:
    before = torch.get_num_threads()
    try:
        exact = row(HERE + "small", precision="float32", threads=1)
    finally:
        torch.set_num_threads(before)
    assert (exact.versions["precision"], exact.versions["threads"]) == ("float32", "1")
    usual = row(HERE + "small")
    assert (usual.versions["precision"], usual.versions["threads"]) == ("bfloat16", str(before))
    assert exact.relative_error < usual.relative_error / 2


@pytest.mark.parametrize(
    ("got", "want", "pcc"),
    [
        ([torch.tensor([1.0, 2.0])], [torch.tensor([1.0, 2.0])], 1.0),
        ([torch.tensor([1.0, 2.0])], [torch.tensor([2.0, 1.0])], -1.0),
        ([torch.ones(3)], [torch.ones(2)], 0.0),
        ([torch.tensor([1, 2])], [torch.tensor([1, 2])], 1.0),
        ([torch.tensor([1, 2])], [torch.tensor([1, 3])], 0.0),
        ([torch.tensor([1.0, float("nan")])], [torch.tensor([1.0, 2.0])], 0.0),
        ([torch.ones(2), torch.zeros(2)], [torch.ones(2), torch.ones(2)], 0.0),
    ],
)
def test_the_worst_output_counts(got: list, want: list, pcc: float) -> None:
    assert agreement(got, want).pcc == pytest.approx(pcc)


def test_another_number_of_outputs_is_an_error() -> None:
    with pytest.raises(AssertionError, match="returns 1 tensors, torch 2"):
        agreement([torch.ones(1)], [torch.ones(1)] * 2)


# -- times ------------------------------------------------------------------------------------------------------------


def test_slow_models_are_called_less_often() -> None:
    taken = iter([5.0, 1.0, 5.0, 1.0, 5.0, 1.0])
    times = interleaved([lambda: next(taken), lambda: next(taken)], calls=10, seconds=13)
    assert times.calls == 2
    assert times.medians == (5.0, 1.0)


def test_the_first_round_warms_up() -> None:
    taken = iter([9.0, 1.0, 2.0, 3.0])
    assert interleaved([lambda: next(taken)], calls=3, warm_up=True).medians == (2.0,)
    assert interleaved([lambda: 50.0], calls=3, seconds=60, warm_up=True).calls == 1, "too slow to warm up"


def test_both_runs_are_interleaved_with_separate_inputs() -> None:
    entry = zoo.find("mnist-cnn")
    subject = Subject(entry, entry.build(), Conditions(calls=2))
    called = []
    runs = [lambda inputs: called.append(("torch", inputs)), lambda inputs: called.append(("device", inputs))]
    measure.warm_times(runs, subject)
    assert [name for name, _ in called] == ["torch", "device"] * 3
    first, second = called[0][1][0][0], called[1][1][0][0]
    assert first is not second
    assert torch.equal(first, second)


# -- outcomes of operations -------------------------------------------------------------------------------------------


def test_fused_operations_are_removed() -> None:
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU())
    found = variations(compiled_programs(model, torch.randn(1, 3, 8, 8)))
    assert outcomes(found) == {
        ("convolution", "converted"): 1,
        ("_native_batch_norm_legit_no_training", "removed"): 1,
        ("relu", "removed"): 1,
    }


def test_attention_counts_as_its_products() -> None:
    need("transformers")
    entry = zoo.find("distilbert-2L")
    options = TorchTtnnOption(cache_dir="")
    arguments, keywords = entry.inputs(0)
    with torch.no_grad():
        compile(entry.build(randomise=False), options=options)(*arguments, **keywords)
    found = outcomes(variations(options.programs))
    assert not any(outcome == "host" for _, outcome in found)
    assert found["_scaled_dot_product_flash_attention_for_cpu", "converted"] == 2
    assert found["addmm", "converted"] == 2 * 4 + 1, "queries, keys and values are one product"
    assert found["addmm", "removed"] == 2 * 2
    assert ("gelu", "converted") not in found, "part of the product before it"


def test_arguments_exclude_tensors_and_defaults() -> None:
    model = torch.nn.Conv2d(3, 8, 3, stride=2)
    counted = variations(compiled_programs(model, torch.randn(1, 3, 9, 9)))
    found = next(each for each in counted if "convolution" in each.op)
    assert found.inputs == "float32[1, 3, 9, 9], float32[8, 3, 3, 3], float32[8]"
    assert "stride=[2, 2]" in found.arguments
    assert "groups=1" in found.arguments, "which has no default"
    assert "bias" not in found.arguments


def test_operations_of_a_fusion_on_the_host_are_on_the_host() -> None:
    (program,) = compiled_programs(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()), torch.ones(2, 8))
    fused = program.fusions[0]["result"]
    origin = next(node for node in program.graph.nodes if getattr(ORIGIN.get(node), "name", "") == fused)
    annotate(origin, reason="for this test")
    outcomes = Outcomes(program, {})
    names = [node.name for node in program.captured.graph.nodes if "relu" in node.name or "addmm" in node.name]
    assert [outcomes.of(name).kind for name in names] == ["host", "host"]
    assert outcomes.of(names[0]).reason == "for this test"


# -- tasks, texts -----------------------------------------------------------------------------------------------------


def test_tasks_run_on_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trained, "TASKS", {"mnist-cnn": "tests.results.test_measure:scores"})
    assert row("mnist-cnn", task_items=7).tasks == (Task("digits", "accuracy, %", 7, 50.0, 51.0),)
    assert row("mnist-cnn", tasks=False).tasks == ()


def test_a_task_without_its_data_is_skipped_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trained, "TASKS", {"mnist-cnn": "tests.results.test_measure:without_data"})
    found = row("mnist-cnn")
    assert (found.status, found.tasks) == ("device", ())
    assert found.details == "its task on real data was skipped: no digits here: fetch them"


def without_data(model: object, compiled: object, limit: int | None = None) -> list[Task]:
    raise trained.DataError("no digits here: fetch them")


def scores(model: object, compiled: object, limit: int | None = None) -> list[Task]:
    assert callable(model)
    assert compiled is not model
    return [Task("digits", "accuracy, %", limit or 0, 50.0, 51.0)]


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("/opt/x/lib/python3.11/site-packages/timm/a.py:3: x", "timm/a.py:3: x"),
        ('File "/a/b/site-packages/c.py", line 2', 'File "c.py", line 2'),
        (subjects.__file__ + ":9", "tests/results/subjects.py:9"),
        ("1 / 2 and /etc", "1 / 2 and /etc"),
    ],
)
def test_folders_of_this_machine_are_removed(text: str, short: str) -> None:
    assert portable(text) == short
