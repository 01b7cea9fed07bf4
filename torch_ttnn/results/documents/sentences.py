"""Sentences about results: what they were measured on, and their totals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from torch_ttnn.perf.time_text import share_text
from torch_ttnn.results.documents import markdown as md
from torch_ttnn.results.record import NEAR, Row
from torch_ttnn.results.summary import ModeTotals, accuracy, totals

EMULATOR = "emulator"
NOTE = "<!-- Written from results/results.parquet by `torch-ttnn results --pages`; do not edit. -->"


def measured_on(rows: Sequence[Row], escape: Callable[[str], str] = md.plain) -> str:
    """Device, versions and seeds of the measurements; `escape` escapes names for the target format.

    >>> measured_on([Row("a", device="emulator:n150", versions={"torch": "2.13.0"})])[:64]
    'The device is the emulated n150: it computes as the chip does, o'
    """
    devices = sorted({row.device for row in rows if row.device})
    parts = [_device(device, escape) for device in devices] or ["The device of these rows is unknown."]
    if versions := versions_of(rows):
        parts.append(f"Measured with {', '.join(escape(f'{name} {each}') for name, each in versions)}.")
    if seeds := sorted({row.seed for row in rows}):
        parts.append(f"Seed {' and '.join(map(str, seeds))}.")
    return " ".join(parts)


def predicted_by(rows: Iterable[Row], escape: Callable[[str], str] = md.plain) -> str:
    """What predicted the times on the device, and how far to trust them; empty if no row has a prediction."""
    found = [row.predicted for row in rows if row.predicted is not None]
    if not found:
        return ""
    boards, sources = (sorted({getattr(each, name) for each in found}) for name in ("board", "sources"))
    kernels = sum(each.kernels_seconds for each in found) or 1.0
    error = sum(each.error * each.kernels_seconds for each in found) / kernels
    uncalibrated = sum(each.uncalibrated * each.kernels_seconds for each in found) / kernels
    return (
        f"Predicted device times are those of one chip of an {escape(' and '.join(boards))}, by the timing model of "
        f"sources {escape(' and '.join(sources))}; they are no measurements. Over the rows that have one "
        f"the expected error is ± {share_text(error)}, and no measurement on silicon calibrates "
        f"{share_text(uncalibrated)} of the time."
    )


def is_emulated(device: str) -> bool:
    return device.partition(":")[0] == EMULATOR


def versions_of(rows: Iterable[Row]) -> list[tuple[str, str]]:
    """Packages with all versions that occur."""
    found: dict[str, set[str]] = {}
    for row in rows:
        for name, version in row.versions.items():
            found.setdefault(name, set()).add(version)
    return [(name, " and ".join(sorted(found[name]))) for name in sorted(found)]


def totals_lines(rows: Sequence[Row]) -> list[str]:
    """The totals as a Markdown list."""
    found = totals(rows)
    both = (("inference", found.eval), ("training", found.train))
    counted = " and ".join(f"{mode.rows:,} {title}" for title, mode in both if mode.rows)
    lines = [f"- **{md.plural(found.models, 'model')}**, {counted or 'no'} rows."]
    return lines + [f"- **{title.capitalize()}**: {outcome(mode)}" for title, mode in both if mode.rows]


def outcome(mode: ModeTotals) -> str:
    """Outcome of the rows of one mode."""
    text = (
        f"{mode.on_device:,} of {mode.rows:,} rows ({md.share(mode.on_device, mode.rows)}) run entirely on the device, "
        f"{mode.with_host_ops:,} with operations on the host, {mode.failing:,} fail. "
        f"{mode.near:,} ({md.share(mode.near, mode.rows)}) have a PCC of at least {NEAR}; "
        f"both hold for {mode.good:,} ({md.share(mode.good, mode.rows)})."
    )
    if mode.worst:
        text += f" The lowest PCC is {md.pcc(accuracy(mode.worst))} ({md.plain(mode.worst.model)})."
    return text


def _device(device: str, escape: Callable[[str], str]) -> str:
    kind, _, which = device.partition(":")
    name = escape(which or device)
    if kind == EMULATOR:
        return (
            f"The device is the emulated {name}: it computes as the chip does, on the same CPU as torch. Its run times "
            "are those of this CPU and say nothing about the speed of a card."
        )
    return f"The device is a card ({escape(device)}): its run times are the card's, those of torch the CPU's."
