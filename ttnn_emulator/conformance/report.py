"""Writes `docs/conformance.md`: the score of every operation, and every difference by name.

The page has one section for the golden vectors and one per family of cases, so that a test can compare each section
with a score that it computes anyway.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ttnn_emulator.api.recorded import operation_names, ttnn_version
from ttnn_emulator.conformance.case import case_id
from ttnn_emulator.conformance.compare import Difference, Score
from ttnn_emulator.conformance.golden import ACCUMULATED, ELEMENTWISE, MOVED, Result
from ttnn_emulator.execution.operation_table import OPERATIONS

HEADER = """# Conformance with the real `ttnn`

Written by `python -m ttnn_emulator.conformance report`; do not edit. Every case was run on the released `ttnn`
{version} on a mock card and on the emulator. They agree when both accept or both refuse a call and, if they accept it,
the output's shape, padded shape, dtype, layout and memory config are equal.

"""
CRITERIA = {
    MOVED: "all bits equal",
    ELEMENTWISE: "95 % of bits equal, none off by more than 2 ULP",
    ACCUMULATED: "distance from the chip at most 1.25 × the chip's from float64",
}


RELEASES_BEGIN, RELEASES_END = "<!-- releases: begin -->", "<!-- releases: end -->"


def page(scores: Mapping[str, Score], results: Sequence[Result], releases: str = "") -> str:
    """The whole document, from the score of every family and the result of every golden vector.

    `releases` is the table between markers, which `torch_ttnn.check` writes (`releases_in`).
    """
    families = [family_section(family, scores[family]) for family in sorted(scores)]
    parts = [HEADER.format(version=ttnn_version()) + _summary(scores), golden_section(results)]
    return "\n".join([*parts, releases_section(releases), *families])


def releases_section(table: str) -> str:
    return "\n".join(
        [
            "## Releases of the library",
            "",
            "Written by `python -m torch_ttnn.check --ttnn VERSION … --page docs/conformance.md`.",
            "",
            f"{RELEASES_BEGIN}\n{table}\n{RELEASES_END}",
            "",
        ]
    )


def releases_in(text: str) -> str:
    """The table of releases of a page, empty if it has none.

    >>> releases_in(releases_section("| ttnn |"))
    '| ttnn |'
    """
    return text.partition(RELEASES_BEGIN)[2].partition(RELEASES_END)[0].strip()


def with_releases(text: str, table: str) -> str:
    """A page with another table of releases."""
    before, begun, rest = text.partition(RELEASES_BEGIN)
    _, ended, after = rest.partition(RELEASES_END)
    if not begun or not ended:
        raise ValueError(f"there are no markers {RELEASES_BEGIN} and {RELEASES_END} to write between")
    return f"{before}{RELEASES_BEGIN}\n{table}\n{RELEASES_END}{after}"


def _summary(scores: Mapping[str, Score]) -> str:
    total = Score()
    for score in scores.values():
        total.merge(score)
    public = {name for name in operation_names() if name in OPERATIONS}
    return (
        f"- {len(total.cases)} operations, {total.total} cases ({total.total / len(total.cases):.0f} per operation), "
        f"{total.refused_share:.1%} of them refused by the library.\n"
        f"- Agreement: **{total.share:.2%}** ({total.total - len(total.differences)} of {total.total}).\n"
        f"- {len(public)} of the library's operations are emulated.\n"
    )


def golden_section(results: Sequence[Result]) -> str:
    lines = [
        "## Golden vectors",
        "",
        "Outputs of the chip's own kernels, compared bit by bit (`python -m ttnn_emulator.conformance golden`).",
        "",
        "| kind | criterion | vectors | all bits equal | pass |",
        "|---|---|---:|---:|---:|",
    ]
    for kind, criterion in CRITERIA.items():
        of_kind = [result for result in results if result.vector.kind == kind and not result.vector.fault]
        exact = sum(result.exact == 1.0 and not result.error for result in of_kind)
        lines.append(
            f"| {kind} | {criterion} | {len(of_kind)} | {exact} | {sum(result.passes for result in of_kind)} |"
        )
    ordered = sorted(results, key=lambda result: result.vector.name)
    inexact = [f"- {each}" for each in ordered if not each.vector.fault and (each.exact < 1.0 or each.error)]
    faults = [f"- {each.vector.name}: {each.vector.fault}" for each in ordered if each.vector.fault]
    if inexact:
        lines += ["", "Vectors whose bits are not all equal:", "", *inexact]
    if faults:
        lines += [
            "",
            "Vectors with a wrong result of the chip, for which the emulator raises `ChipFault`:",
            "",
            *faults,
        ]
    return "\n".join([*lines, ""])


def family_section(family: str, score: Score) -> str:
    """The differences of a family by name, and the table of its operations."""
    lines = [f"## Cases of the family {family}", ""]
    ordered = sorted(score.differences, key=lambda item: (item.case["op"], case_id(item.case)))
    if ordered:
        lines += ["Differences:", "", *(f"- `{case_id(each.case)}`: {_explained(each)}" for each in ordered), ""]
    lines += ["| operation | cases | refused by `ttnn` | agree |", "|---|---:|---:|---:|"]
    wrong = Counter(difference.case["op"] for difference in score.differences)
    for op in sorted(score.cases):
        count = score.cases[op]
        lines.append(f"| `{op}` | {count} | {score.refused[op]} | {1 - wrong[op] / count:.1%} |")
    return "\n".join([*lines, ""])


def _explained(difference: Difference) -> str:
    if difference.kind == "emulator refuses":
        return f"the emulator refuses: {difference.emulated['error']}"
    if difference.kind == "emulator accepts":
        return f"`ttnn` refuses: {difference.real['error']}"
    return f"`ttnn` returns {difference.real['out']}, the emulator {difference.emulated['out']}"
