"""`torch-ttnn cache`: lists and clears what is cached on disk."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import shutil
import sys
from collections.abc import Iterator

import click

from torch_ttnn.cli import choices, kernels, tables
from torch_ttnn.cli.parameters import JSON, Argument, Option, Options

HELP = "list or clear what is cached on disk between runs"
EPILOG = """\
programs      compiled programs, so that other processes need not recompile the same graph
kernels       the emulator's kernels, compiled by numba for this machine
environments  releases of the real ttnn with their own torch, created by `make card` and `make conformance`

`clear` removes programs and kernels unless --kind is given; environments take long to recreate.

examples
  torch-ttnn cache
  torch-ttnn cache clear
  torch-ttnn cache clear --kind programs --yes
  torch-ttnn cache --json
"""
KINDS = ("programs", "kernels", "environments")
QUICK_TO_REBUILD = ("programs", "kernels")
PARAMETERS: list[click.Parameter] = [
    Argument(
        "action",
        required=False,
        type=click.Choice(("list", "clear")),
        default="list",
        help="list (default) or clear",
    ),
    Option("--kind", type=click.Choice(KINDS), multiple=True, help="only this kind (repeatable)"),
    Option("-y", "--yes", is_flag=True, help="remove without asking"),
    JSON,
]


@dataclasses.dataclass
class CachedFiles:
    """Files of one kind."""

    kind: str
    folder: str
    paths: list[pathlib.Path]

    @property
    def files(self) -> list[pathlib.Path]:
        return [file for path in self.paths for file in ([path] if path.is_file() else _files(path))]

    def to_json(self) -> dict[str, object]:
        found = self.files
        return {"kind": self.kind, "files": len(found), "bytes": sum(map(_size, found)), "folder": self.folder}


def run(options: Options) -> int:
    return _list(options) if options.action == "list" else _clear(options)


def _list(options: Options) -> int:
    found = [kept.to_json() for kept in cached(options.kind or KINDS)]
    if options.json:
        print(json.dumps(found, indent=1))
        return 0
    columns: tables.Columns = {
        "files": lambda row: str(row["files"]),
        "size": lambda row: size_text(row["bytes"]),
        "folder": lambda row: row["folder"],
    }
    tables.console().print(tables.table([str(row["kind"]) for row in found], found, columns, heading="kind"))
    return 0


def _clear(options: Options) -> int:
    chosen = cached(options.kind or QUICK_TO_REBUILD)
    rows = [kept.to_json() for kept in chosen]
    if not any(row["files"] for row in rows):
        print(json.dumps(rows, indent=1) if options.json else "nothing is cached")
        return 0
    if not options.yes:
        if not sys.stdin.isatty():
            raise choices.BadChoice("there is no terminal to ask for confirmation: pass --yes to remove without it")
        for row in rows:
            click.echo(f"{row['kind']}: {row['files']} files, {size_text(row['bytes'])}, in {row['folder']}", err=True)
        if not click.confirm("remove them?", err=True):
            return 1
    for kept in chosen:
        for path in kept.paths:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    if options.json:
        print(json.dumps(rows, indent=1))
    else:
        for row in rows:
            print(f"removed {row['files']} files of {row['kind']}, {size_text(row['bytes'])}")
    return 0


def cached(kinds: tuple[str, ...] | list[str] = KINDS) -> list[CachedFiles]:
    """The cached files by kind."""
    finders = {"programs": _programs, "kernels": _kernels, "environments": _environments}
    return [finders[kind]() for kind in KINDS if kind in kinds]


def program_folder() -> pathlib.Path | None:
    """The folder of compiled programs, or None. As in `torch_ttnn.compiler.cache.programs`, without its imports."""
    chosen = os.environ.get("TORCH_TTNN_CACHE_DIR")
    return user_folder() if chosen is None else pathlib.Path(chosen) if chosen else None


def user_folder() -> pathlib.Path:
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "torch_ttnn"


def _programs() -> CachedFiles:
    folder = program_folder()
    if folder is None:
        return CachedFiles("programs", "none: TORCH_TTNN_CACHE_DIR is empty", [])
    paths = [path for pattern in ("*.jsonl", "*.safetensors", "*.part") for path in folder.glob(pattern)]
    return CachedFiles("programs", str(folder), sorted(paths))


def _environments() -> CachedFiles:
    folder = user_folder()
    paths = [path for pattern in ("ttnn-*", "mock-*") for path in folder.glob(pattern) if path.is_dir()]
    return CachedFiles("environments", str(folder), sorted(paths))


def _kernels() -> CachedFiles:
    folders = kernels.folders()
    paths = [path for folder in folders for pattern in ("*.nbi", "*.nbc") for path in folder.glob(pattern)]
    return CachedFiles("kernels", os.pathsep.join(map(str, folders)), sorted(paths))


def _files(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    return (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _size(path: pathlib.Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # deleted meanwhile
        return 0


def size_text(count: object) -> str:
    """
    >>> size_text(512), size_text(3_500_000)
    ('512 B', '3.5 MB')
    """
    value = float(str(count))
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} GB"
