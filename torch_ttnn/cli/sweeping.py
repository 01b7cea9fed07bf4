"""Runs one job per model, for `stat` and `run`."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from torch_ttnn.cli import choices
from torch_ttnn.cli.parameters import Options

LIBRARIES = ("torch", "torchvision", "timm", "transformers")
PRELOAD = ("torch_ttnn.workloads.preload",)


def sweep(options: Options, function: str, arguments: Mapping[str, Any], rows: str) -> list[Any]:
    """The outcomes of `function` for all chosen models; rows are stored in the folder `rows` of the output."""
    from torch_ttnn import jobs

    folder = pathlib.Path(arguments["out"])
    named = choices.check_models(choices.chosen_models(options), arguments)
    choices.note_torchvision(named.values(), options)
    wanted = [jobs.Job(shown, function, {"model": name, **arguments}) for shown, name in named.items()]
    return jobs.run(
        wanted,
        folder / rows,
        executor=jobs.LocalExecutor(options.jobs, PRELOAD if len(wanted) > 1 else ()),
        limits=choices.limits(options),
        conditions=versions(),
        again=options.again,
        valid=lambda outcome: all((folder / name).exists() for name in outcome.result["files"]),
        watcher=None if options.quiet else jobs.Display(),
    )


def versions() -> dict[str, str]:
    """Versions that results depend on."""
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
