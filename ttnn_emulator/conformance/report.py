"""Writes `docs/conformance.md`: the score of every operation, and every difference by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ttnn_emulator.api.recorded import operation_names, ttnn_version
from ttnn_emulator.conformance.case import case_id
from ttnn_emulator.conformance.compare import Difference, Score
from ttnn_emulator.conformance.golden import ACCUMULATED, ELEMENTWISE, MOVED, Result
from ttnn_emulator.table import OPERATIONS

HEADER = """# Conformance with the real `ttnn`

Written by `python -m ttnn_emulator.conformance report`; do not edit. Every case was put to the released `ttnn` {version}
on a mock n150 and to the emulator. They agree when both accept or both refuse and, if they accept, the output's shape,
padded shape, dtype, layout and memory config are equal.
"""


def page(score: Score, results: Iterable[Result]) -> str:
    """The whole document."""
    results = list(results)
    return "\n".join(
        [
            HEADER.format(version=ttnn_version()),
            *_summary(score),
            *_golden(results),
            *_differences(score),
            *_table(score),
        ]
    )


def _summary(score: Score) -> list[str]:
    public = {name for name in operation_names() if name in OPERATIONS}
    return [
        f"- {len(score.cases)} operations, {score.total} cases ({score.total / len(score.cases):.0f} an operation), "
        f"{score.refused_share:.1%} of them refused by the library.",
        f"- Agreement: **{score.share:.2%}** ({score.total - len(score.differences)} of {score.total}).",
        f"- {len(public)} of the library's operations are emulated.",
        "",
    ]


def _golden(results: list[Result]) -> list[str]:
    lines = [
        "## Golden vectors",
        "",
        "What the chip's own kernels answer, bit by bit (`python -m ttnn_emulator.conformance golden`).",
        "",
        "| kind | vectors | all bits equal | within the bar |",
        "|---|---:|---:|---:|",
    ]
    for kind in (MOVED, ELEMENTWISE, ACCUMULATED):
        of_kind = [result for result in results if result.vector.kind == kind]
        exact = sum(result.exact == 1.0 and not result.error for result in of_kind)
        lines.append(f"| {kind} | {len(of_kind)} | {exact} | {sum(result.passes for result in of_kind)} |")
    inexact = sorted(
        (result for result in results if result.exact < 1.0 or result.error), key=lambda result: result.vector.name
    )
    if inexact:
        lines += ["", "Vectors whose bits are not all equal:", ""]
        lines += [f"- {result}" for result in inexact]
    return [*lines, ""]


def _differences(score: Score) -> list[str]:
    if not score.differences:
        return ["## Differences", "", "None.", ""]
    lines = ["## Differences", ""]
    ordered = sorted(score.differences, key=lambda item: (item.case["op"], case_id(item.case)))
    for difference in ordered:
        lines.append(f"- `{case_id(difference.case)}`: {_explained(difference)}")
    return [*lines, ""]


def _explained(difference: Difference) -> str:
    if difference.kind == "we refuse":
        return f"we refuse: {difference.emulated['error']}"
    if difference.kind == "we accept":
        return f"`ttnn` refuses: {difference.real['error']}"
    return f"`ttnn` gives {difference.real['out']}, we give {difference.emulated['out']}"


def _table(score: Score) -> list[str]:
    lines = ["## Every operation", "", "| operation | cases | refused by `ttnn` | agree |", "|---|---:|---:|---:|"]
    wrong = Counter(difference.case["op"] for difference in score.differences)
    for op in sorted(score.cases):
        count = score.cases[op]
        lines.append(f"| `{op}` | {count} | {score.refused[op]} | {1 - wrong[op] / count:.1%} |")
    return [*lines, ""]
