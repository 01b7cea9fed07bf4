"""Profiler measurements by program: always empty, as in the library without a profiler."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

NO_ID = 1 << 63  # of a program or trace without an id
NEVER = (1 << 64) - 1  # the start time of a program that did not run


@dataclass
class ProgramExecutionUID:
    """The run of a program, and the replay of a trace."""

    runtime_id: int = NO_ID
    trace_id: int = NO_ID
    trace_id_counter: int = NO_ID


@dataclass
class ProgramSingleAnalysisResult:
    """One measured span, in cycles of the card."""

    start_timestamp: int = NEVER
    end_timestamp: int = 0
    duration: int = 0


@dataclass
class ProgramAnalysisData:
    """All spans of one run of a program."""

    program_execution_uid: ProgramExecutionUID = field(default_factory=ProgramExecutionUID)
    program_analyses_results: dict[str, ProgramSingleAnalysisResult] = field(default_factory=dict)
    core_count: int = 0
    num_available_cores: int = 0

    def __repr__(self) -> str:
        return (
            f"ProgramAnalysisData(program_execution_uid={self.program_execution_uid}, "
            f"program_analyses_results_size={len(self.program_analyses_results)}, core_count={self.core_count}, "
            f"num_available_cores={self.num_available_cores})"
        )


def get_all_programs_perf_data() -> dict[int, Any]:
    """Measurements of all programs so far, by chip."""
    return {}


def get_latest_programs_perf_data() -> dict[int, Any]:
    """Measurements since the profiler was last read, by chip."""
    return {}


def get_all_kernel_duration_summary() -> dict[int, Any]:
    """Shortest, longest and average kernel of all programs so far, by chip."""
    return {}


def get_latest_kernel_duration_summary() -> dict[int, Any]:
    """Shortest, longest and average kernel since the profiler was last read, by chip."""
    return {}
