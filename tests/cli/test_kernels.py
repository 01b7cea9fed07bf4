"""Kernels that are not compiled yet: detected, compiled ahead, and reported while they compile."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

from torch_ttnn.cli import kernels, progress
from ttnn_emulator.numerics.kernels import attention as loops
from ttnn_emulator.numerics.native import compile_ahead


@pytest.fixture
def fresh(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A machine without compiled kernels."""
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    return tmp_path


def test_the_groups_are_those_of_the_emulator() -> None:
    assert set(kernels.LAST) == set(compile_ahead.GROUPS)


def test_kernels_are_missing_until_the_last_of_each_group_is_there(fresh: pathlib.Path) -> None:
    assert kernels.missing()
    folder = kernels.folder_of(pathlib.Path(loops.__file__))
    assert folder.is_relative_to(fresh)
    folder.mkdir(parents=True, exist_ok=True)
    for name in kernels.LAST.values():
        assert kernels.missing()
        (folder / f"{name}-1.py311.nbi").touch()
    assert not kernels.missing()
    os.utime(folder / f"{name}-1.py311.nbi", (0, 0))
    assert kernels.missing(), "a kernel older than its source is stale"


@pytest.mark.slow
def test_compiling_ahead_leaves_nothing_missing(tmp_path: pathlib.Path) -> None:
    code = (
        "from torch_ttnn.cli import kernels\n"
        "assert kernels.missing()\n"
        "assert [process.wait() for process in kernels.compile_ahead()] == [0, 0]\n"
        "assert not kernels.missing()"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_importing_the_emulator_compiles_no_parallel_loops(tmp_path: pathlib.Path) -> None:
    """They take fifteen seconds on a new machine; counted in functions, not seconds."""
    code = (
        "from numba.core import event\n"
        "seen = set()\n"
        "class Listener(event.Listener):\n"
        "    def on_start(self, event): seen.add(event.data['qualname'])\n"
        "    def on_end(self, event): pass\n"
        "event.register('numba:run_pass', Listener())\n"
        "import ttnn_emulator\n"
        "print(sorted(name for name in seen if name.endswith('_pieces')))"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_compiled_kernels_are_reported() -> None:
    reported: list[tuple[str, int]] = []
    listener = progress.KernelListener(lambda name, count: reported.append((name, count)))
    listener.start()
    try:
        for passed in ("f", "f", "g"):
            listener._pass({"qualname": passed, "module": "ttnn_emulator.numerics.x", "args": "()"})
        listener._pass({"qualname": "h", "module": "numba.np", "args": "()"})
    finally:
        listener.stop()
    assert reported == [("f", 1), ("g", 2)]


def test_a_pipe_gets_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "missing", lambda: True)
    monkeypatch.setattr(kernels, "compile_ahead", list)
    with progress.Demonstrating() as shown:
        shown.begin(1)
        shown._compiling("a", 1)
    assert capsys.readouterr().err.count(progress.FIRST_TIME) == 1
    with progress.Demonstrating(quiet=True) as shown:
        shown._compiling("a", 1)
    assert progress.FIRST_TIME not in capsys.readouterr().err
