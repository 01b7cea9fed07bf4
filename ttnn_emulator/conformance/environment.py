"""Finds a Python that has a `ttnn` wheel and installs the wheel in a virtual environment."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Sequence

from ttnn_emulator.atomic_files import replacing

WHEEL_PYTHONS = ("3.12", "3.10")  # the versions with wheels of ttnn 0.81.1
PYTHON_VARIABLE = "TTNN_PYTHON"
TORCH, TORCHVISION = "torch>=2.11,<2.14", "torchvision>=0.26,<0.29"  # as in pyproject.toml
TORCH_INDEX_VARIABLE = "TORCH_INDEX"  # the package index of torch, if not the default


class NoSuitablePython(RuntimeError):
    """No Python has a matching wheel."""


def cache_folder() -> pathlib.Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(base) / "torch_ttnn"


def candidates() -> list[str]:
    """Interpreters to try, best first."""
    found: list[str] = []
    for version in WHEEL_PYTHONS:
        if sys.version.startswith(version + "."):
            found.append(sys.executable)
        named = shutil.which(f"python{version}")
        if named:
            found.append(named)
        for root in (os.environ.get("PYENV_ROOT"), os.path.join(os.path.expanduser("~"), ".pyenv")):
            if root:
                found += [str(path) for path in sorted(pathlib.Path(root).glob(f"versions/{version}.*/bin/python"))]
    return list(dict.fromkeys(found))


def find_python() -> str:
    """The first candidate that starts and has the right version."""
    for candidate in candidates():
        probe = [candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        try:
            version = subprocess.run(probe, capture_output=True, text=True, timeout=300, check=True).stdout.strip()
        except (OSError, subprocess.SubprocessError):
            continue
        if version in WHEEL_PYTHONS:
            return candidate
    raise NoSuitablePython(
        f"ttnn has wheels for Python {' and '.join(reversed(WHEEL_PYTHONS))}; none was found. "
        f"Install one, or set {PYTHON_VARIABLE} to a Python that has ttnn."
    )


def installed_version(python: str) -> str:
    """The version of `ttnn` that an interpreter has; empty if none."""
    probe = "from importlib import metadata; print(metadata.version('ttnn'))"
    done = subprocess.run([python, "-c", probe], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def existing_python(version: str) -> str:
    """A Python that has `ttnn` of this version already; empty if there is none."""
    python_of_user = os.environ.get(PYTHON_VARIABLE)
    if python_of_user and installed_version(python_of_user) == version:
        return python_of_user
    python = _folder(version) / "bin" / "python"
    return str(python) if python.exists() and installed_version(str(python)) == version else ""


def _folder(version: str) -> pathlib.Path:
    return cache_folder() / f"ttnn-{version}"


def ttnn_python(version: str, requirements: Sequence[str] = ()) -> str:
    """A Python with `ttnn` of this version, installed on first use (a download of about 150 MB).

    `requirements` are installed with it in one command, so that versions are compatible; with torch this takes
    gigabytes. A Python set by the user is not changed.
    """
    existing = existing_python(version)
    if existing and (existing == os.environ.get(PYTHON_VARIABLE) or _has(version, requirements)):
        return existing
    folder = _folder(version)
    python = folder / "bin" / "python"
    if not existing:
        base = find_python()
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([base, "-m", "venv", str(folder)], check=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    index = os.environ.get(TORCH_INDEX_VARIABLE)
    if requirements and index:
        # In one command: operators of a torchvision from another index do not load with this torch.
        together = [*install, "--index-url", index, TORCH, TORCHVISION]
        if subprocess.run(together).returncode:
            subprocess.run([*install, "--index-url", index, TORCH], check=True)
    subprocess.run([*install, f"ttnn=={version}", *requirements], check=True)
    if requirements:
        with replacing(_stamp(version)) as temporary:
            temporary.write_text(_as_text(requirements), encoding="utf-8")
    return str(python)


def _stamp(version: str) -> pathlib.Path:
    """The file that lists the installed requirements."""
    return _folder(version) / "installed.txt"


def _has(version: str, requirements: Sequence[str]) -> bool:
    stamp = _stamp(version)
    return not requirements or (stamp.exists() and stamp.read_text(encoding="utf-8") == _as_text(requirements))


def _as_text(requirements: Sequence[str]) -> str:
    """The requirements, with the project files that they refer to."""
    projects = [pathlib.Path(each.partition("[")[0]) / "pyproject.toml" for each in requirements]
    return "\n".join([*requirements, *[each.read_text(encoding="utf-8") for each in projects if each.exists()]])


def package_folder(python: str) -> str:
    """The folder of `ttnn` of an interpreter, without importing it."""
    probe = "import importlib.util as u; print(u.find_spec('ttnn').submodule_search_locations[0])"
    return subprocess.run([python, "-c", probe], capture_output=True, text=True, check=True).stdout.strip()
