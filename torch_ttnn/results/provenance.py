"""What results depend on besides the model: versions of packages, and our sources."""

from __future__ import annotations

import functools
import hashlib
import pathlib
import platform
from contextlib import suppress
from importlib import metadata

import torch

import ttnn_emulator
from ttnn_emulator.api.recorded import ttnn_version

LIBRARIES = ("torchvision", "timm", "transformers")


def versions() -> dict[str, str]:
    """Versions a row was measured with; `sources` changes with every edit of the compiler or the emulator."""
    import torch_ttnn

    found = {
        "torch_ttnn": torch_ttnn.__version__,
        "ttnn": ttnn_version(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "sources": sources(),
    }
    for name in LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


@functools.cache
def sources() -> str:
    """A digest of the sources that determine how a model is compiled and computed."""
    digest = hashlib.sha256()
    for folder in (pathlib.Path(ttnn_emulator.__file__).parent, pathlib.Path(__file__).parents[1] / "compiler"):
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]
