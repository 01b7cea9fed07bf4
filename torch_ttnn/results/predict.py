"""The job of `torch-ttnn metrics --predict`: compile a model as its row was measured, and predict its time.

Nothing runs on the device, nor with torch where that can be avoided: weights have no values and outputs are not
computed. Models whose later graphs depend on the results of earlier ones are built with values and run by torch.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import nn

from torch_ttnn.capture.programs import Captured, backward_compiled, capture
from torch_ttnn.compiler.ir.metadata import REASON
from torch_ttnn.compiler.runtime.program import Program
from torch_ttnn.options import TorchTtnnOption
from torch_ttnn.results.measure import PRECISIONS, inputs_text
from torch_ttnn.results.program_fields import predicted_by
from torch_ttnn.results.provenance import sources
from torch_ttnn.results.record import EVAL, TRAIN, BadRow, Predicted, Row
from torch_ttnn.results.training import disable_dropout, raise_biases
from torch_ttnn.workloads.trace import Wanted
from torch_ttnn.zoo import ModelEntry, trained
from torch_ttnn.zoo.fake import on_meta

COUNTS = ("ops_before", "ops_remaining")  # compared with those of the row


class OtherModel(ValueError):
    """The model of a row is not the one that was measured."""


@dataclasses.dataclass(frozen=True)
class Prediction:
    """What compiling a model says about its row. `counts` are fields of the row by name."""

    predicted: Predicted
    counts: dict[str, int]
    sources: str

    def differences(self, row: Row) -> list[str]:
        """What differs from the measured row, as sentences: then the row describes another program."""
        return [
            f"{row.key}: {name} was {getattr(row, name)} when the row was measured and is {count} now"
            for name, count in self.counts.items()
            if getattr(row, name) != count
        ]

    @classmethod
    def from_json(cls, content: Any) -> Prediction:
        try:
            return cls(Predicted(**content["predicted"]), dict(content["counts"]), content["sources"])
        except (TypeError, KeyError) as error:
            raise BadRow(f"not a prediction of this version: {error}") from error


def arguments_of(row: Row, name: str = "") -> dict[str, Any]:
    """The arguments of `predict_model` for a measured row; `name` is that of its model in the catalog."""
    return {
        "model": name or row.model,
        "mode": row.mode,
        "seed": row.seed,
        "device": row.device or None,
        "precision": row.versions.get("precision"),
        "batch": row.batch,
        "inputs": row.inputs,
    }


def predict_model(
    model: str,
    mode: str = EVAL,
    *,
    seed: int = 0,
    device: str | None = None,
    precision: str | None = None,
    batch: int | None = None,
    inputs: str = "",
) -> dict[str, Any]:
    """The `Prediction` of a row as JSON. `inputs` are those of the row, as text: another model is refused."""
    entry = Wanted(model=model, out="", backward=mode == TRAIN, seed=seed).entry
    if batch not in (None, entry.batch):
        entry = Wanted(model=model, out="", backward=mode == TRAIN, seed=seed, batch=batch).entry
    options = TorchTtnnOption(device=device, precision=precision or PRECISIONS[mode], cache_dir="")
    found = inputs_text(*entry.inputs(seed))
    if inputs and found != inputs:
        raise OtherModel(f"the row was measured with inputs {inputs}, {model} has {found} now: measure it again")
    programs = compiled(entry, mode, options, seed)
    predicted = predicted_by(programs)
    return dataclasses.asdict(Prediction(predicted, counts_of(programs), sources()))


def compiled(entry: ModelEntry, mode: str, options: TorchTtnnOption, seed: int = 0) -> list[Program]:
    """The programs of a model in one mode."""
    if not entry.needs_values:
        try:
            captured = _capture(on_meta(entry), entry, mode, options, seed)
            if captured.graphs == 1 and not captured.missed:  # no Python saw values between graphs
                return [program for _, program in captured.found]
        except Exception:  # values matter, or the model is at fault: the attempt with values shows which
            pass
    return [program for _, program in _capture(entry.build(seed=seed), entry, mode, options, seed).found]


def _capture(model: nn.Module, entry: ModelEntry, mode: str, options: TorchTtnnOption, seed: int) -> Captured:
    torch._dynamo.reset()
    torch.manual_seed(seed)
    if mode == TRAIN:
        model.train()
        if entry.name not in trained.TASKS:
            raise_biases(model)
        disable_dropout(model)
    with torch.set_grad_enabled(mode == TRAIN), backward_compiled():
        return capture(model, *entry.inputs(seed), options=options)


def counts_of(programs: list[Program]) -> dict[str, int]:
    """The fields of a row that `COUNTS` names."""
    before = sum(program.ops_before for program in programs)
    remaining = sum(1 for program in programs for node in program.graph.nodes if REASON.on(node))
    return dict(zip(COUNTS, (before, remaining)))
