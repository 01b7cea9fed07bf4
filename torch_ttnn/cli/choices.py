"""Arguments that several sub-commands have: which models, what they are fed, how the jobs run."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping
from typing import Any

LIBRARIES = ("torchvision", "timm", "transformers", "zoo")
TASKS = ("classification", "segmentation", "detection", "video", "optical_flow")
TIMEOUT_SECONDS = 900
SHARE_OF_MEMORY = 0.8  # of the machine, for all jobs together, unless a limit is given


class BadChoice(ValueError):
    """Arguments that do not go together."""


def add_models(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("which models")
    group.add_argument(
        "models", nargs="*", metavar="MODEL", help="a name, a pattern (timm:resnet*), package.module:factory"
    )
    group.add_argument(
        "--all",
        nargs="?",
        const="zoo",
        choices=LIBRARIES,
        help="all models of a library (of the zoo, if none is named)",
    )
    group.add_argument(
        "--task", choices=TASKS, action="append", help="with --all torchvision: of what kind (again for more)"
    )


def add_inputs(parser: argparse.ArgumentParser) -> None:
    group = add_sizes(parser)
    weights = group.add_mutually_exclusive_group()
    weights.add_argument("--pretrained", action="store_true", help="published weights, loaded from the hub")
    weights.add_argument("--weights", metavar="PATH", help="a safetensors file, or a folder with one")
    group.add_argument("--backward", action="store_true", help="gradients too")


def add_sizes(parser: argparse.ArgumentParser) -> Any:
    """The group of arguments that say how large models and inputs are."""
    group = parser.add_argument_group("what they are")
    group.add_argument("--input-shape", type=shape, metavar="N,C,H,W", help="e.g. 1,3,224,224; tokens: N,LENGTH")
    group.add_argument("--batch", type=positive, metavar="N", help="how many images or texts at once")
    group.add_argument("--length", type=positive, metavar="N", help="how many tokens a text has")
    group.add_argument(
        "--layers",
        type=depth,
        default=2,
        metavar="N",
        help="layers of transformers' models; 'all' as published (default 2)",
    )
    group.add_argument("--seed", type=int, default=0, help="of random weights and inputs (default 0)")
    return group


def add_outputs(parser: argparse.ArgumentParser, folder: str) -> None:
    group = parser.add_argument_group("what to write")
    group.add_argument("-o", "--out", default=folder, metavar="FOLDER", help=f"where to (default {folder})")
    group.add_argument("--profile", action="store_true", help="a Chrome trace of each model, in FOLDER/profile")
    group.add_argument("--graphviz", action="store_true", help="a picture of each graph, in FOLDER/graphviz")


def add_jobs(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how to run")
    group.add_argument("-j", "--jobs", type=positive, default=1, metavar="N", help="models at a time (default 1)")
    group.add_argument(
        "--timeout",
        type=float,
        default=TIMEOUT_SECONDS,
        metavar="S",
        help=f"seconds a model may take (default {TIMEOUT_SECONDS})",
    )
    group.add_argument(
        "--memory",
        type=float,
        metavar="GB",
        help="memory a model may take (default: its share of 80 %% of the machine's)",
    )
    group.add_argument("--again", action="store_true", help="also what is done already")
    group.add_argument("-q", "--quiet", action="store_true", help="no progress bar")


def shape(text: str) -> list[int]:
    """
    >>> shape("1,3,224,224"), shape("1x3x32x32")
    ([1, 3, 224, 224], [1, 3, 32, 32])
    """
    parts = re.split(r"[,x×]", text)
    if not all(part.strip().isdigit() and int(part) > 0 for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is no shape; write 1,3,224,224")
    return [int(part) for part in parts]


def positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def depth(text: str) -> int | None:
    return None if text == "all" else positive(text)


def chosen_models(options: argparse.Namespace) -> list[str]:
    """The names of all models that were asked for, patterns resolved."""
    from torch_ttnn.zoo import catalog

    if options.task and options.all != "torchvision":
        raise BadChoice("--task goes with --all torchvision")
    names = catalog.expand(options.models)
    for task in options.task or [None]:
        names += catalog.names(options.all, task) if options.all else []
    if not names:
        raise BadChoice("no model was named; give names, or --all torchvision (torch-ttnn models lists them)")
    return list(dict.fromkeys(names))


def size_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """What a job is told about the sizes of a model and its inputs."""
    return {
        "shape": options.input_shape,
        "batch": options.batch,
        "length": options.length,
        "layers": options.layers,
    }


def model_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """What a job is told about the model, besides its name."""
    if options.weights is not None and not os.path.exists(options.weights):
        raise BadChoice(f"there is no file or folder {options.weights}")
    return {
        "out": os.path.abspath(options.out),
        "backward": options.backward,
        **size_arguments(options),
        "weights": "pretrained" if options.pretrained else options.weights and os.path.abspath(options.weights),
        "profile": options.profile,
        "graphviz": options.graphviz,
        "seed": options.seed,
    }


def check_models(names: list[str], arguments: Mapping[str, Any]) -> dict[str, str]:
    """The names under which models are traced, each of which must be there and take the inputs asked for."""
    from torch_ttnn.zoo import catalog

    found: dict[str, str] = {}
    for name in names:
        try:
            entry = catalog.resolve(name, shape=arguments["shape"], layers=arguments["layers"])
        except ValueError as error:
            raise BadChoice(str(error)) from error
        found.setdefault(entry.name, name)
    return found


def limits(options: argparse.Namespace) -> Any:
    import psutil

    from torch_ttnn.jobs import Limits

    try:
        memory = (
            options.memory * 2**30 if options.memory is not None else _share(psutil.virtual_memory().total, options)
        )
        return Limits(seconds=options.timeout, memory=int(memory))
    except ValueError as error:
        raise BadChoice(str(error)) from error


def _share(total: int, options: argparse.Namespace) -> float:
    return SHARE_OF_MEMORY * total / options.jobs
