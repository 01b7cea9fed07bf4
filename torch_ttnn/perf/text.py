"""A profile as short text, most important first. Nothing wraps or is cut: in a pipe, lines are as long as they need."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from torch_ttnn.perf import analysis
from torch_ttnn.perf.advice import Advice
from torch_ttnn.perf.time_text import duration_text, rate_text

if TYPE_CHECKING:
    from torch_ttnn.perf.profile import Profile

SHOWN = 15  # rows per table; the page, the sheet and the JSON have all
UNLIMITED = 10_000  # width without a terminal
_INSTALLED = re.compile(r"^\S*/site-packages/")


def summary(profile: Profile) -> Group:
    """The profile as a `rich` renderable."""
    return Group(*_parts(profile))


def plain(profile: Profile) -> str:
    """The profile as plain text."""
    console = Console(file=io.StringIO(), width=UNLIMITED, color_system=None, highlight=False, emoji=False)
    console.print(summary(profile))
    return "\n".join(line.rstrip() for line in console.file.getvalue().split("\n"))  # type: ignore[attr-defined]


def _parts(profile: Profile) -> Iterator[Any]:
    rows = profile.programs
    yield Text(f"{profile.name} on the emulated {profile.board.name}: predicted times, not measured", style="bold")
    if not rows:
        yield Text("no program runs on the device")
        return
    hosts = len(profile.host_operations)
    yield Text(
        f"{len(rows)} programs take {duration_text(profile.kernels_ns)}"
        + (f"; the time of {hosts} operations on the host is not predicted" if hosts else "")
    )
    yield _accuracy(profile.calibration)
    yield _modes(profile)
    yield _groups("by program", "program", analysis.by_program(rows), profile.kernels_ns)
    yield _longest(profile)
    for title, heading, groups in (
        ("by module", "module", analysis.by_module(rows)),
        ("by source line", "source", analysis.by_source(rows)),
    ):
        if any(group.name for group in groups):
            yield _groups(title, heading, groups, profile.kernels_ns)
    yield from _advice(profile.advice)


def _accuracy(calibration: analysis.Calibration) -> Text:
    said = f"expected error of the sum: ± {calibration.error:.0%}"
    if calibration.uncalibrated >= 0.001:
        said += f"; {calibration.uncalibrated:.1%} of it is of operations that no measurement calibrates"
    return Text(said)


def _modes(profile: Profile) -> Table:
    table = _table("with transfers", "mode", "latency", "throughput")
    for mode, times in profile.end_to_end.times.items():
        table.add_row(mode.value, duration_text(times.latency_ns), rate_text(times.per_second))
    if profile.end_to_end.host_ops:
        table.add_row(Text("a trace cannot contain operations on the host"), "", "")
    return table


def _groups(title: str, heading: str, groups: Sequence[analysis.Group], total: float) -> Table:
    table = _table(title, heading, "programs", "time", "share", "cores", "bound")
    for group in groups[:SHOWN]:
        table.add_row(
            Text(source_text(group.name) or "(unknown)"),
            str(group.count),
            duration_text(group.kernel_ns),
            f"{group.kernel_ns / total:.1%}",
            str(group.cores),
            group.bound,
        )
    return _with_rest(table, len(groups))


def _longest(profile: Profile) -> Table:
    """The rows of the sheet that take longest."""
    names = {"utilization": "UTILIZATION (%)", "fidelity": "MATH FIDELITY"}
    table = _table("longest", "id", "program", "operation", "time", "cores", "bound", "DRAM", *names, "input", "output")
    cells = {row["GLOBAL CALL COUNT"]: row for row in profile.table if row.get("GLOBAL CALL COUNT")}
    rows = sorted(profile.programs, key=lambda row: -row.program.launch.kernel_ns)[:SHOWN]
    for row in rows:
        cell = cells[row.number]
        launch = row.program.launch
        shown = [cell.get(name) for name in names.values()]
        table.add_row(
            str(row.number),
            launch.program,
            row.program.origin.operation,
            f"{duration_text(launch.kernel_ns)} ± {launch.error:.0%}",
            f"{launch.cores}/{profile.board.cores}",
            launch.bound.value,
            f"{cell['DRAM BW UTIL (%)']:.0f} %",
            "" if shown[0] is None else f"{shown[0]:.0f} %",
            str(shown[1] or ""),
            *[tensor_text(cell, f"{kind}_0") for kind in ("INPUT", "OUTPUT")],
        )
    return _with_rest(table, len(profile.programs))


def tensor_text(cell: dict[str, Any], prefix: str) -> str:
    """A tensor of a row of the sheet, in short."""
    if f"{prefix}_LAYOUT" not in cell:
        return ""
    sizes = [re.findall(r"\[(\d+)\]", cell[f"{prefix}_{axis}_PAD[LOGICAL]"])[0] for axis in "WZYX"]
    memory = cell[f"{prefix}_MEMORY"].removeprefix("DEV_").partition("_")[2] or cell[f"{prefix}_MEMORY"]
    return f"{'x'.join(sizes)} {cell[f'{prefix}_DATATYPE'].lower()} {memory.lower()}"


def _advice(found: Sequence[Advice]) -> Iterator[Any]:
    yield Text()
    if not found:
        yield Text("no advice: no change that was tried is predicted to gain anything", style="bold")
        return
    yield Text("advice, with the predicted gain of following each alone", style="bold")
    for each in found:
        concerns = f"{each.calls} calls; {each.accuracy.value}"
        yield Text(f"  {duration_text(each.gain_ns)} {each.kind.value}: {each.text} ({concerns})")
        for place in each.places:
            yield Text(f"      {place_text(place)}", style="dim")


def place_text(place: str) -> str:
    """A place of an advice: an operation and its source line."""
    operation, _, where = place.partition(" ")
    return f"{operation} {source_text(where)}".strip()


def source_text(source: str) -> str:
    """A source line without the folder that packages are installed in."""
    return _INSTALLED.sub("", source)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    left = ("program", "operation", "bound", "mode", "module", "source", "fidelity", "input", "output")
    for column in columns:
        table.add_column(column, justify="left" if column in left else "right", no_wrap=True, overflow="ignore")
    return table


def _with_rest(table: Table, count: int) -> Table:
    if count > SHOWN:
        table.caption = f"and {count - SHOWN} more"
    return table
