"""How operations and models changed between two runs; those with fewer lowered calls come first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from torch_ttnn.tracer.reports.summary import ModelPhase, OpSummary
from torch_ttnn.tracer.reports.verdicts import locations, lowered_share

# In display order: regressions first.
KINDS = ("regressed", "improved", "added", "gone", "changed", "same")

Aspects = Mapping[str, Callable[[Any], Any]]

OP_ASPECTS: Aspects = {
    "calls": lambda op: op.count,
    "models": lambda op: op.models,
    "FLOPs": lambda op: op.flops,
    "bytes": lambda op: (op.bytes_in, op.bytes_out),
    "lowering": lambda op: op.lowering,
    "sizes": lambda op: (op.input_sizes, op.output_sizes, op.shapes),
    "dtypes": lambda op: op.dtypes,
    "arguments": lambda op: op.arguments,
}
MODEL_ASPECTS: Aspects = {
    "graphs": lambda model: model.graphs,
    "calls": lambda model: model.ops,
    "operations": lambda model: model.distinct_ops,
    "FLOPs": lambda model: model.flops,
    "bytes": lambda model: (model.bytes_in, model.bytes_out),
    "lowering": lambda model: model.lowering,
}


def change_of_op(before: OpSummary | None, after: OpSummary | None) -> list[str]:
    """One of `KINDS`, and what is different."""
    return _change(before, after, OP_ASPECTS, lambda op: lowered_share(locations(op.lowering)))


def change_of_model(before: ModelPhase | None, after: ModelPhase | None) -> list[str]:
    """One of `KINDS`, and what is different."""
    return _change(before, after, MODEL_ASPECTS, lambda model: lowered_share(model.lowering))


def _change(before: Any, after: Any, aspects: Aspects, lowered: Callable[[Any], Fraction | None]) -> list[str]:
    if before is None or after is None:
        return ["added" if before is None else "gone"]
    different = [name for name, aspect in aspects.items() if aspect(before) != aspect(after)]
    share, share_now = lowered(before), lowered(after)
    if share is not None and share_now is not None and share != share_now:
        return ["regressed" if share_now < share else "improved", *different]
    return ["changed", *different] if different else ["same"]
