"""`torch-ttnn doctor`: checks the installation."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import platform
import re
import sys
from collections.abc import Callable
from importlib import metadata
from typing import TYPE_CHECKING

import click

from torch_ttnn import __version__
from torch_ttnn.cli import cache, choices, kernels, tables
from torch_ttnn.cli.parameters import JSON, Options

if TYPE_CHECKING:
    from rich.console import Console

HELP = "check versions, the device, the cache, and compile a small network"
EPILOG = """\
Exit code 0 if everything required works, else 1. A "note" is information, not a failure.

examples
  torch-ttnn doctor
  torch-ttnn doctor --device emulator:p150
  torch-ttnn doctor --json
"""
PARAMETERS: list[click.Parameter] = [choices.device(group="options"), JSON]
OK, NOTE, FAILS = "ok", "note", "FAILS"
OLDEST, NEWEST = (3, 10), (3, 13)  # of Python, as in pyproject.toml
NEAR = 0.99  # PCC of the self-test
LIBRARIES = ("transformers", "timm", "diffusers")


@dataclasses.dataclass
class Finding:
    """The result of one check."""

    name: str
    status: str
    text: str


def run(options: Options) -> int:
    from torch_ttnn.cli import progress

    checks: dict[str, Callable[[Options], tuple[str, str]]] = {
        "Python": _python,
        "torch": _torch,
        "torch_ttnn": _package,
        "torchvision": _torchvision,
        **{name: _library(name) for name in LIBRARIES},
        "ttnn": _ttnn,
        "device": _device,
        "cache": _cache,
        "self-test": _self_test,
    }
    findings = []
    console = tables.console()
    for name, check in checks.items():
        if name == "self-test" and kernels.missing():
            print(progress.FIRST_TIME, file=sys.stderr)
        findings.append(_checked(name, check, options))
        if not options.json:
            _show(console, findings[-1])
    if options.json:
        print(json.dumps([dataclasses.asdict(each) for each in findings], indent=1))
    return 1 if any(each.status == FAILS for each in findings) else 0


def _show(console: Console, finding: Finding) -> None:
    style = {OK: "green", NOTE: "yellow", FAILS: "red"}[finding.status]
    console.print(f"[{style}]{finding.status:5}[/{style}]", f"{finding.name:12}", end=" ")
    console.print(finding.text, markup=False, soft_wrap=True)


def _checked(name: str, check: Callable[[Options], tuple[str, str]], options: Options) -> Finding:
    """A check that raises fails; the others still run."""
    try:
        return Finding(name, *check(options))
    except Exception as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        return Finding(name, FAILS, f"{type(error).__name__}: {first}")


def _python(options: Options) -> tuple[str, str]:
    text = f"{platform.python_version()}, {sys.executable}"
    if OLDEST <= sys.version_info[:2] <= NEWEST:
        return OK, text
    return FAILS, f"{text}; torch_ttnn needs Python {OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}"


def _torch(options: Options) -> tuple[str, str]:
    import torch

    text = f"{torch.__version__}, {torch.get_num_threads()} threads"
    wanted = next((each for each in _requirements() if re.match(r"torch\b", each)), "")
    return (OK, text) if _fits(torch.__version__, wanted) else (FAILS, f"{text}; torch_ttnn needs {wanted}")


def _requirements() -> list[str]:
    try:
        return metadata.requires("torch_ttnn") or []
    except metadata.PackageNotFoundError:
        return []


def _fits(version: str, requirement: str) -> bool:
    """Whether a version meets the requirement; true if that cannot be determined."""
    try:
        from packaging.requirements import Requirement
    except ImportError:
        return True
    return not requirement or Requirement(requirement).specifier.contains(version, prereleases=True)


def _package(options: Options) -> tuple[str, str]:
    import torch_ttnn

    folder = os.path.dirname(torch_ttnn.__file__)
    try:
        installed = metadata.version("torch_ttnn")
    except metadata.PackageNotFoundError:
        return NOTE, f"{__version__}, {folder}, not installed: `pip install -e .` lets torch.compile find it by name"
    if installed != __version__:
        return NOTE, f"{__version__}, {folder}, but {installed} is installed: `pip install -e .` again"
    return OK, f"{__version__}, {folder}"


def _torchvision(options: Options) -> tuple[str, str]:
    from torch_ttnn.zoo.torchvision_ops import mismatch

    version = _version("torchvision")
    if not version:
        return NOTE, "not installed: `pip install torchvision` for its models, and for many of transformers'"
    why = mismatch()
    return (NOTE, f"{version}; {why}") if why else (OK, version)


def _library(name: str) -> Callable[[Options], tuple[str, str]]:
    def check(options: Options) -> tuple[str, str]:
        version = _version(name)
        return (OK, version) if version else (NOTE, f"not installed: `pip install {name}` for its models")

    return check


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _ttnn(options: Options) -> tuple[str, str]:
    """The real library, and whether a card is likely."""
    from torch_ttnn.devices import card

    if importlib.util.find_spec("ttnn") is None:
        return NOTE, "not installed, so the emulator runs; " + (
            f"with a card: `pip install ttnn=={card.SUPPORTED[0]}` (Python 3.10 and 3.12 on Linux)"
        )
    version = _version("ttnn") or "of an unknown version"
    if version not in card.SUPPORTED:
        return NOTE, f"{version}; torch_ttnn is checked against {', '.join(card.SUPPORTED)}"
    try:
        card.require_likely()
    except card.CardError as error:
        return NOTE, f"{version}; {error}"
    return OK, version


def _device(options: Options) -> tuple[str, str]:
    from torch_ttnn import devices

    choices.check_device(options.device)
    target = devices.resolve(options.device)
    board = target.typing.board
    named = os.environ.get(devices.VARIABLE)
    why = (
        f", from --device {options.device}" if options.device else f", from {devices.VARIABLE}={named}" if named else ""
    )
    grid = "×".join(map(str, board.grid))
    return OK, f"{target.name}: {board.chips} chip(s), {grid} cores at {board.clock_ghz:g} GHz{why}"


def _cache(options: Options) -> tuple[str, str]:
    parts, status = [], OK
    for kept in cache.cached(("programs", "kernels")):
        summary = kept.to_json()
        parts.append(f"{summary['files']} files of {kept.kind}, {cache.size_text(summary['bytes'])}, in {kept.folder}")
    folder = cache.program_folder()
    if folder is not None and not _writable(folder):
        status = NOTE
        parts.append(f"{folder} cannot be written, so every process recompiles; TORCH_TTNN_CACHE_DIR names another")
    return status, "; ".join(parts)


def _writable(folder: os.PathLike[str]) -> bool:
    """Whether files can be created in a folder, or the folder itself if it does not exist."""
    path = os.path.abspath(folder)
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return os.path.isdir(path) and os.access(path, os.W_OK | os.X_OK)


def _self_test(options: Options) -> tuple[str, str]:
    """Compile a small network as a user would, without the cache, and compare with torch."""
    import torch

    from torch_ttnn.workloads.measure import measure

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.LayerNorm(64)).eval()
    done = measure(model, [((torch.randn(32, 64),), {})], {"device": options.device, "cache_dir": ""})
    text = f"{done.device_ops} calls on the device, {len(done.host_ops)} on the host, PCC {done.pcc:.5f}"
    return (OK, text) if done.pcc >= NEAR and not done.host_ops else (FAILS, text)
