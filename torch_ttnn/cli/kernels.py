"""The emulator's kernels in numba's cache on disk: where they are, whether any is missing, and compiling them ahead.

This module runs before the emulator is imported, and does not import it.
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

# The groups of `ttnn_emulator.numerics.native.compile_ahead`, and the kernel that each compiles last: if that is on
# disk, so are the others. Modules are those of `ttnn_emulator/numerics/kernels/`.
LAST = {"products": "attention.attend", "others": "normalization.norm_rows"}


def folders() -> list[pathlib.Path]:
    """All folders of compiled kernels."""
    return sorted(set(map(folder_of, _sources())))


def missing() -> bool:
    """Whether slow kernels are missing on disk, or older than their sources."""
    return not all(_is_cached(*name.split(".")) for name in LAST.values())


def compile_ahead() -> list[subprocess.Popen[bytes]]:
    """Start processes that compile the slow kernels. Kernels that fail there are compiled on first use."""
    command = [sys.executable, "-m", "ttnn_emulator.numerics.native.compile_ahead"]
    quiet: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return [subprocess.Popen([*command, group], env=environment, **quiet) for group in LAST]


def folder_of(source: pathlib.Path) -> pathlib.Path:
    """numba's cache folder for a source file, from numba itself for a function in that file."""
    from numba.core.caching import CompileResultCacheImpl

    scope: dict[str, Any] = {}
    exec(compile("def kernel(): pass", str(source), "exec"), scope)
    return pathlib.Path(CompileResultCacheImpl(scope["kernel"]).locator.get_cache_path())


def _emulator() -> pathlib.Path:
    found = importlib.util.find_spec("ttnn_emulator")
    assert found is not None and found.origin is not None
    return pathlib.Path(found.origin).parent


def _sources() -> Iterator[pathlib.Path]:
    """One file with kernels per folder that has any."""
    for folder in (path.parent for path in _emulator().rglob("__init__.py")):
        with_kernels = (path for path in folder.glob("*.py") if "from numba import" in path.read_text("utf-8"))
        yield from list(with_kernels)[:1]


def _is_cached(module: str, kernel: str) -> bool:
    source = _emulator() / "numerics" / "kernels" / f"{module}.py"
    compiled = folder_of(source).glob(f"{module}.{kernel}-*.nbi")
    return any(path.stat().st_mtime > source.stat().st_mtime for path in compiled)
