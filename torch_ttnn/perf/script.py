"""Profiles a script that says `import ttnn`, or that compiles models for the emulated device."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import ttnn_emulator
from torch_ttnn.perf.calls import repeated, spec_only_device
from torch_ttnn.perf.profile import Profile
from torch_ttnn.perf.script_calls import ScriptRecorder
from ttnn_emulator.hardware.boards import BOARD_VARIABLE
from ttnn_emulator.profiling.memory_report import MemoryReport
from ttnn_emulator.profiling.timeline import timeline


@dataclass(frozen=True)
class ScriptRun:
    """The profile of a script, which may have ended early; None if it ran no program on a device."""

    profile: Profile | None
    error: BaseException | None = None


def profile_script(path: str | os.PathLike, arguments: Sequence[str] = (), board: str | None = None) -> ScriptRun:
    """Run a script in this process, with the emulator as `ttnn`, and profile what it runs until it ends or fails."""
    if board is not None:
        os.environ[BOARD_VARIABLE] = board
    ttnn_emulator.install_as_ttnn()
    before = sys.argv
    sys.argv = [str(path), *arguments]
    recorder, memory = ScriptRecorder(), MemoryReport(Path(path).name)
    error: BaseException | None = None
    try:
        with recorder.recording(), memory.recording():
            runpy.run_path(str(path), run_name="__main__")
    except (Exception, SystemExit) as raised:
        error = raised
    finally:
        sys.argv = before
    return ScriptRun(_profile(recorder, memory), error)


def _profile(recorder: ScriptRecorder, memory: MemoryReport) -> Profile | None:
    calls = recorder.calls
    if calls is None:
        return None
    device = spec_only_device(calls.board, recorder.device)
    rows = timeline(recorder.entries)
    return Profile(memory.name, calls, list(repeated(calls, device)), rows, device, memory.write)
