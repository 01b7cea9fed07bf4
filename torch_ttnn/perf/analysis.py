"""Where the predicted time of a profile goes: by operation, program, module and source line; roofline; calibration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.profiling.attributes import tensors_of
from ttnn_emulator.profiling.performance_models import PEAK_DRAM_GB
from ttnn_emulator.profiling.timeline import ProgramRow
from ttnn_emulator.timing.chips import CHIPS, FIDELITY_CYCLES
from ttnn_emulator.timing.launches import Launch


@dataclass(frozen=True)
class Group:
    """Programs that have something in common.

    count      programs
    kernel_ns  their time; gap_ns: what lies before each of them
    cores      the most that one of them uses
    bound      what most of their time goes to
    """

    name: str
    count: int
    kernel_ns: float
    gap_ns: float
    cores: int
    bound: str


def by_operation(rows: Sequence[ProgramRow]) -> list[Group]:
    return grouped(rows, lambda row: row.program.origin.operation)


def by_program(rows: Sequence[ProgramRow]) -> list[Group]:
    return grouped(rows, lambda row: row.program.launch.program)


def by_module(rows: Sequence[ProgramRow]) -> list[Group]:
    return grouped(rows, lambda row: row.program.origin.module)


def by_source(rows: Sequence[ProgramRow]) -> list[Group]:
    return grouped(rows, lambda row: row.program.origin.source)


def grouped(rows: Iterable[ProgramRow], key: Callable[[ProgramRow], str]) -> list[Group]:
    """Groups by a name, longest first."""
    members: dict[str, list[ProgramRow]] = {}
    for row in rows:
        members.setdefault(key(row), []).append(row)
    groups = [_group(name, found) for name, found in members.items()]
    return sorted(groups, key=lambda group: -group.kernel_ns)


def _group(name: str, rows: Sequence[ProgramRow]) -> Group:
    bounds: dict[str, float] = {}
    for row in rows:
        launch = row.program.launch
        bounds[launch.bound.value] = bounds.get(launch.bound.value, 0.0) + launch.kernel_ns
    return Group(
        name,
        len(rows),
        sum(row.program.launch.kernel_ns for row in rows),
        sum(row.gap_ns for row in rows),
        max(row.program.launch.cores for row in rows),
        max(bounds, key=bounds.__getitem__),
    )


@dataclass(frozen=True)
class Calibration:
    """How far the kernels' time may be off, and the share of it that no measurement calibrates."""

    error: float
    uncalibrated: float


def calibration(launches: Sequence[Launch]) -> Calibration:
    """Errors weighted by time: programs of one family are wrong in the same direction, so they do not average out."""
    total = sum(launch.kernel_ns for launch in launches)
    if not total:
        return Calibration(0.0, 0.0)
    stated = sum(launch.kernel_ns * launch.error for launch in launches)
    rest = sum(launch.kernel_ns for launch in launches if not launch.calibrated)
    return Calibration(stated / total, rest / total)


@dataclass(frozen=True)
class Point:
    """A kind of program in the roofline: FLOP per byte of DRAM, and FLOP per nanosecond (GFLOP/s)."""

    name: str
    operation: str
    shape: str
    count: int
    kernel_ns: float
    intensity: float
    gflops: float
    bound: str


@dataclass(frozen=True)
class Roofline:
    """Limits of a board: GFLOP/s of the matrix units by fidelity, GB/s of DRAM. Grid and clock as programs see them."""

    peaks: dict[str, float]
    dram_gb: float
    points: list[Point]


def roofline(rows: Sequence[ProgramRow], board: Board) -> Roofline:
    """Programs with matrix products against the limits of the board."""
    # A tile product of 32 x 32 x 32 has 2 * 32^3 operations.
    per_cycle = 2 * 32**3
    clock = CHIPS[board.arch].clock_ghz
    peaks = {fidelity.name: per_cycle / cycles * clock * board.cores for fidelity, cycles in FIDELITY_CYCLES.items()}
    members: dict[tuple[str, str, str], list[Launch]] = {}
    for row in rows:
        launch = row.program.launch
        if launch.flops and launch.kernel_ns:
            inputs, _ = tensors_of(row.program)
            shape = " × ".join(str(list(spec.shape)) for spec in inputs[:2])
            members.setdefault((launch.program, row.program.origin.operation, shape), []).append(launch)
    points = [_point(*key, launches) for key, launches in members.items()]
    return Roofline(peaks, PEAK_DRAM_GB[board.arch], points)


def _point(name: str, operation: str, shape: str, launches: Sequence[Launch]) -> Point:
    time = sum(launch.kernel_ns for launch in launches)
    flops = sum(launch.flops for launch in launches)
    moved = sum(launch.dram_bytes for launch in launches)
    bound = max(launches, key=lambda launch: launch.kernel_ns).bound
    return Point(name, operation, shape, len(launches), time, flops / max(moved, 1.0), flops / time, bound.value)
