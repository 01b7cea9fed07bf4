"""Predicted times in an explanation: as text, as JSON, and as data of the page. They are never measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from torch_ttnn.perf.program_time import CallTime, Mode, ModelTime, ProgramTime, Unpredicted, summed
from torch_ttnn.perf.time_text import duration_text, rate_text, share_text

if TYPE_CHECKING:
    from torch_ttnn.explain.data import ProgramReport

Boards = Mapping[str, ModelTime | Unpredicted]

HOST = "without operations on the host, which have no predicted time"
NO_TRACE = "operations on the host divide the program, so it cannot be traced and runs as is"
ONE_CHIP = "predicted, not measured: a call on one chip that holds all weights"


def times_of(program: ProgramReport) -> Boards:
    """The times of one program by board."""
    return {board: summed([time], board) for board, time in program.times.items()}


def calls_of(program: ProgramReport, board: str) -> Mapping[str, CallTime]:
    """The calls of a program by node, with their times on a board."""
    time = program.times.get(board)
    return {call.node: call for call in time.calls} if isinstance(time, ProgramTime) else {}


def operations(times: Boards) -> list[tuple[str, int, dict[str, float]]]:
    """Every operation with its number of calls and its nanoseconds by board."""
    found: dict[str, tuple[int, dict[str, float]]] = {}
    for board, time in times.items():
        for name, (count, ns) in time.by_operation().items() if isinstance(time, ModelTime) else ():
            found.setdefault(name, (count, {}))[1][board] = ns
    return [(name, count, by_board) for name, (count, by_board) in found.items()]


# -- text -------------------------------------------------------------------------------------------------------------


def suffix(time: ModelTime | Unpredicted | None) -> str:
    """The time of a traced call and its calls per second, to follow a verdict about memory.

    >>> suffix(Unpredicted("n150", "no such core")), suffix(None)
    (', no predicted time', '')
    """
    if time is None:
        return ""
    if isinstance(time, Unpredicted):
        return ", no predicted time"
    traced = time.end_to_end(Mode.TRACED)
    return f", {duration_text(traced.latency_ns)}, {rate_text(traced.per_second)}" if time.programs else ""


def head(times: Boards, own: str) -> str:
    """What the times are; empty if there are none."""
    time = times.get(own)
    if isinstance(time, Unpredicted):
        return f"no predicted time on the {own}: {time.reason}"
    if time is None or not time.programs:
        return ""
    notes = [ONE_CHIP]
    notes += [HOST] if time.host_ops else []
    notes += [] if time.can_trace else [NO_TRACE]
    return "; ".join(notes)


def program_line(program: ProgramReport) -> str:
    """The time of a program on its own board; empty if it is unknown."""
    time = times_of(program).get(program.board)
    if not isinstance(time, ModelTime) or not time.programs:
        return ""
    return (
        f"predicted on the {program.board}: {duration_text(time.device_ns)} on the device, {time.programs:,} programs"
    )


def summary(times: Boards, own: str, most: int) -> Iterator[Any]:
    """The head, a table of boards, and a table of the operations that take most of the time on the own board."""
    text = head(times, own)
    if not text:
        return
    yield Text(f"\n{text}", style="bold")
    known = {board: time for board, time in times.items() if isinstance(time, ModelTime)}
    if known:
        yield _boards(known)
    for time in times.values():
        if isinstance(time, Unpredicted) and time.board != own:
            yield Text(f"  {time.board}: no predicted time: {time.reason}", style="yellow")
    if own in known:
        yield _operations(known, own, most)


def _boards(times: Mapping[str, ModelTime]) -> Table:
    columns = ("kernels", "error", "uncalibrated", "gaps", "transfers", *[mode.value for mode in Mode])
    table = _table("predicted time by board", "board", columns)
    for board, time in times.items():
        two = rate_text(time.end_to_end(Mode.TWO_QUEUES).per_second)
        table.add_row(
            board,
            duration_text(time.kernels_ns),
            f"± {share_text(time.error)}",
            share_text(time.uncalibrated_share),
            duration_text(time.gaps_ns),
            duration_text(time.transfers_ns),
            *[duration_text(time.end_to_end(mode).latency_ns) for mode in (Mode.AS_IS, Mode.TRACED)],
            two,
        )
    return table


def _operations(times: Mapping[str, ModelTime], own: str, most: int) -> Table:
    table = _table("where the time goes", "operation", ("times", "share", *times))
    total = times[own].kernels_ns or 1.0
    found = sorted(operations(times), key=lambda each: -each[2].get(own, 0.0))
    found = [each for each in found if any(each[2].values())]
    for name, count, by_board in found[:most]:
        cells = [duration_text(by_board[board]) if board in by_board else "" for board in times]
        table.add_row(name.removeprefix("ttnn."), str(count), share_text(by_board.get(own, 0.0) / total), *cells)
    if len(found) > most:
        table.caption = f"and {len(found) - most} more"
    return table


def _table(title: str, name: str, numbers: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 2))
    table.add_column(name, overflow="fold")
    for each in numbers:
        table.add_column(each, justify="right", no_wrap=True)
    return table


# -- data -------------------------------------------------------------------------------------------------------------


def to_json(times: Boards) -> dict[str, Any]:
    """Times by board, and by operation, in nanoseconds."""
    return {
        "boards": {board: _board_json(time) for board, time in times.items()},
        "operations": {name: {"times": count, "ns": by_board} for name, count, by_board in operations(times)},
    }


def calls_json(program: ProgramReport) -> list[dict[str, Any]]:
    """Every call of a program with its time by board; cores and bound are those on the program's own board."""
    by_board = {board: calls_of(program, board) for board in program.times}
    return [
        {
            "node": node,
            "operation": call.operation,
            "ns": {board: calls[node].kernels_ns for board, calls in by_board.items() if node in calls},
            "cores": call.longest.cores if call.longest else 0,
            "bound": call.longest.bound.value if call.longest else "",
        }
        for node, call in by_board.get(program.board, {}).items()
    ]


def _board_json(time: ModelTime | Unpredicted) -> dict[str, Any]:
    if isinstance(time, Unpredicted):
        return {"unpredicted": time.reason}
    ends = {mode: time.end_to_end(mode) for mode in Mode}
    return {
        "programs": time.programs,
        "kernels_ns": time.kernels_ns,
        "gaps_ns": time.gaps_ns,
        "transfers_ns": time.transfers_ns,
        "device_ns": time.device_ns,
        "modes": {
            mode.value: {"latency_ns": each.latency_ns, "interval_ns": each.interval_ns} for mode, each in ends.items()
        },
        "error": time.error,
        "uncalibrated": time.uncalibrated_share,
        "host_ops": time.host_ops,
        "can_trace": time.can_trace,
    }


def page_data(times: Boards, own: str) -> dict[str, Any]:
    """Rows of the page's tables."""
    known = {board: time for board, time in times.items() if isinstance(time, ModelTime)}
    total = known[own].kernels_ns if own in known else 0.0
    return {
        "head": head(times, own),
        "boards": [[board, *_board_row(time)] for board, time in known.items()],
        "columns": list(known),
        "operations": [
            [name, count, by_board.get(own, 0.0) / (total or 1.0), *[by_board.get(board, 0.0) for board in known]]
            for name, count, by_board in operations(known)
            if any(by_board.values())
        ],
    }


def _board_row(time: ModelTime) -> list[float]:
    ends = {mode: time.end_to_end(mode) for mode in Mode}
    parts = [time.programs, time.kernels_ns, time.error, time.uncalibrated_share, time.gaps_ns, time.transfers_ns]
    return [*parts, ends[Mode.AS_IS].latency_ns, ends[Mode.TRACED].latency_ns, ends[Mode.TWO_QUEUES].interval_ns]


def node_data(call: CallTime | None) -> tuple[float, str]:
    """Nanoseconds of a node, -1 without a time, and a sentence about its programs."""
    if call is None:
        return -1, ""
    if call.longest is None:
        return 0, "predicted: no program, a view"
    many = f"{len(call.launches)} programs, the longest" if len(call.launches) > 1 else "a program"
    launch = call.longest
    return call.kernels_ns, (
        f"predicted {duration_text(call.kernels_ns)} ± {share_text(launch.error)}: {many} on {launch.cores} cores, "
        f"bound by {launch.bound.value}"
    )
