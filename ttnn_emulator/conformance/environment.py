"""Finds a Python that the `ttnn` wheel is made for and installs the wheel in an environment of its own."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Sequence

from ttnn_emulator.atomic_files import replacing

WHEEL_PYTHONS = ("3.12", "3.10")  # the versions that ttnn 0.81.1 has wheels for
PYTHON_VARIABLE = "TTNN_PYTHON"
TORCH, TORCHVISION = "torch>=2.11,<2.14", "torchvision>=0.26,<0.29"  # as in pyproject.toml
TORCH_INDEX_VARIABLE = "TORCH_INDEX"  # where torch is taken from, if not from the usual registry


class NoFittingPython(RuntimeError):
    """No Python that the wheel can be installed into was found."""


def cache_folder() -> pathlib.Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(base) / "torch_ttnn"


def candidates() -> list[str]:
    """Interpreters worth trying, best first."""
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
    raise NoFittingPython(
        f"ttnn has wheels for Python {' and '.join(reversed(WHEEL_PYTHONS))}; none of them was found. "
        f"Install one, or set {PYTHON_VARIABLE} to a Python that has ttnn."
    )


def installed_version(python: str) -> str:
    """The version of `ttnn` that an interpreter has; empty if none."""
    probe = "from importlib import metadata; print(metadata.version('ttnn'))"
    done = subprocess.run([python, "-c", probe], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def existing_python(version: str) -> str:
    """A Python that has `ttnn` of this version already; empty if there is none."""
    given = os.environ.get(PYTHON_VARIABLE)
    if given and installed_version(given) == version:
        return given
    python = _folder(version) / "bin" / "python"
    return str(python) if python.exists() and installed_version(str(python)) == version else ""


def _folder(version: str) -> pathlib.Path:
    return cache_folder() / f"ttnn-{version}"


def ttnn_python(version: str, requirements: Sequence[str] = ()) -> str:
    """A Python with `ttnn` of this version, made on first use (a download of some 150 MB).

    `requirements` are installed beside it, in one go so that versions fit together; with torch these are gigabytes. A
    Python that the user names is taken as it is.
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
        # Together: operators of a torchvision from another index do not load beside this torch.
        together = [*install, "--index-url", index, TORCH, TORCHVISION]
        if subprocess.run(together).returncode:
            subprocess.run([*install, "--index-url", index, TORCH], check=True)
    subprocess.run([*install, f"ttnn=={version}", *requirements], check=True)
    if requirements:
        with replacing(_stamp(version)) as temporary:
            temporary.write_text(_described(requirements), encoding="utf-8")
    return str(python)


def _stamp(version: str) -> pathlib.Path:
    """Says what was installed beside the library."""
    return _folder(version) / "installed.txt"


def _has(version: str, requirements: Sequence[str]) -> bool:
    stamp = _stamp(version)
    return not requirements or (stamp.exists() and stamp.read_text(encoding="utf-8") == _described(requirements))


def _described(requirements: Sequence[str]) -> str:
    """The requirements, with the project files that some of them name."""
    projects = [pathlib.Path(each.partition("[")[0]) / "pyproject.toml" for each in requirements]
    return "\n".join([*requirements, *[each.read_text(encoding="utf-8") for each in projects if each.exists()]])


def package_folder(python: str) -> str:
    """Where `ttnn` lies for an interpreter, without importing it."""
    probe = "import importlib.util as u; print(u.find_spec('ttnn').submodule_search_locations[0])"
    return subprocess.run([python, "-c", probe], capture_output=True, text=True, check=True).stdout.strip()
