"""Options shared by several sub-commands: models, inputs, and how jobs run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import click

from torch_ttnn.cli.parameters import Argument, Device, Models, Option, Options, depth, positive, shape
from torch_ttnn.errors import UserError

LIBRARIES = ("torchvision", "timm", "transformers", "zoo")
TASKS = ("classification", "segmentation", "detection", "video", "optical_flow")
USE_TORCHVISION = ("torchvision", "timm", "transformers")
TIMEOUT_SECONDS = 900
SHARE_OF_MEMORY = 0.8  # of the machine's, for all jobs together, by default
WHICH, SIZES, WRITTEN, RUNNING = "models", "sizes and weights", "output", "execution"
DEVICE_VARIABLE = "TORCH_TTNN_DEVICE"  # as in torch_ttnn.devices, which takes seconds to import
DEVICE_HELP = '"emulator", "emulator:<board>", "ttnn" or "ttnn:<id>"'


class BadChoice(UserError, ValueError):
    """Invalid or conflicting arguments."""


MODELS: list[click.Parameter] = [
    Argument(
        "models",
        nargs=-1,
        type=Models(),
        metavar="[MODEL]...",
        help="a name, a pattern (timm:resnet*), package.module:factory",
    ),
    Option(
        "--all",
        is_flag=False,
        flag_value="zoo",
        type=click.Choice(LIBRARIES),
        group=WHICH,
        help="all models of a library (default: the zoo)",
    ),
    Option(
        "--task",
        type=click.Choice(TASKS),
        multiple=True,
        group=WHICH,
        help="with --all torchvision: only this task (repeatable)",
    ),
]

SIZE_OPTIONS: list[click.Parameter] = [
    Option("--input-shape", type=shape, metavar="N,C,H,W", group=SIZES, help="e.g. 1,3,224,224; tokens: N,LENGTH"),
    Option("--batch", type=positive, metavar="N", group=SIZES, help="batch size"),
    Option("--length", type=positive, metavar="N", group=SIZES, help="tokens per text"),
    Option(
        "--layers",
        type=depth,
        default="2",
        metavar="N",
        group=SIZES,
        help="layers of transformers' models; 'all' as published (default 2)",
    ),
    Option("--seed", type=int, default=0, group=SIZES, help="of random weights and inputs (default 0)"),
]


def _one_of_two(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    other = "weights" if parameter.name == "pretrained" else "pretrained"
    if value and context.params.get(other):
        raise click.UsageError("--pretrained and --weights exclude each other", context)
    return value


INPUTS: list[click.Parameter] = [
    *SIZE_OPTIONS,
    Option(
        "--pretrained",
        is_flag=True,
        callback=_one_of_two,
        group=SIZES,
        help="published weights, loaded from the hub",
    ),
    Option(
        "--weights",
        metavar="PATH",
        callback=_one_of_two,
        group=SIZES,
        help="a safetensors file, or a folder with one",
    ),
    Option("--backward", is_flag=True, group=SIZES, help="also compute gradients"),
]


def outputs(folder: str) -> list[click.Parameter]:
    return [
        Option("-o", "--out", default=folder, metavar="FOLDER", group=WRITTEN, help=f"folder to write to ({folder})"),
        Option("--profile", is_flag=True, group=WRITTEN, help="write a Chrome trace of each model to FOLDER/profile"),
        Option("--graphviz", is_flag=True, group=WRITTEN, help="draw each graph into FOLDER/graphviz"),
    ]


JOBS: list[click.Parameter] = [
    Option("-j", "--jobs", type=positive, default=1, metavar="N", group=RUNNING, help="models at a time (default 1)"),
    Option(
        "--timeout",
        type=float,
        default=TIMEOUT_SECONDS,
        metavar="S",
        group=RUNNING,
        help=f"time limit per model in seconds (default {TIMEOUT_SECONDS})",
    ),
    Option(
        "--memory",
        type=float,
        metavar="GB",
        group=RUNNING,
        help="memory limit per model (default: its share of 80 % of the machine's)",
    ),
    Option("--again", is_flag=True, group=RUNNING, help="repeat what is already done"),
    Option("-q", "--quiet", is_flag=True, group=RUNNING, help="no progress bar"),
]


def device(prefix: str = "", group: str = RUNNING) -> Option:
    return Option("--device", type=Device(), group=group, help=prefix + DEVICE_HELP)


def check_device(wanted: str | None) -> None:
    """Raise before any job starts if a card was requested and cannot be used."""
    from torch_ttnn.devices import card

    named = wanted or os.environ.get(DEVICE_VARIABLE, "")
    if named:
        try:
            Device().convert(named, None, None)
        except click.BadParameter as error:
            raise BadChoice(error.message if wanted else f"{DEVICE_VARIABLE}: {error.message}") from error
    if named.partition(":")[0] == "ttnn":
        try:
            card.require_likely()
        except card.CardError as error:
            raise BadChoice(str(error)) from error


def chosen_models(options: Options) -> list[str]:
    """The names of all requested models, with patterns expanded."""
    from torch_ttnn.zoo import catalog

    if options.task and options.all != "torchvision":
        raise BadChoice("--task requires --all torchvision")
    names = catalog.expand(options.models)
    for task in options.task or [None]:
        names += catalog.names(options.all, task) if options.all else []
    if not names:
        raise BadChoice("name a model, or pass --all torchvision (torch-ttnn models lists them)")
    return list(dict.fromkeys(names))


def size_arguments(options: Options) -> dict[str, Any]:
    """Arguments of a job: sizes of the model and its inputs."""
    return {
        "shape": options.input_shape,
        "batch": options.batch,
        "length": options.length,
        "layers": options.layers,
    }


def check_weights(options: Options) -> None:
    """Raise before any job starts if the file of weights is missing or corrupt."""
    if options.weights is None:
        return
    if not os.path.exists(options.weights):
        raise BadChoice(f"there is no file or folder {options.weights}")
    from torch_ttnn.zoo.weights import check_file

    check_file(options.weights)


def model_arguments(options: Options) -> dict[str, Any]:
    """Arguments of a job: everything about the model but its name."""
    check_weights(options)
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
    """Display name -> requested name of each model; raises if one does not exist or does not take these inputs."""
    from torch_ttnn.zoo import catalog

    found: dict[str, str] = {}
    for name in names:
        try:
            entry = catalog.resolve(name, shape=arguments["shape"], layers=arguments["layers"])
        except ValueError as error:
            raise BadChoice(str(error)) from error
        found.setdefault(entry.name, name)
    return found


def note_torchvision(models: Iterable[str], options: Options) -> None:
    """Print a note if torchvision's operators do not load and one of the models uses a library that imports it."""
    from torch_ttnn.zoo import catalog, torchvision_ops

    if not options.quiet and any(catalog.resolve(name).source in USE_TORCHVISION for name in models):
        torchvision_ops.note()


def limits(options: Options) -> Any:
    import psutil

    from torch_ttnn.jobs import Limits

    try:
        memory = (
            options.memory * 2**30 if options.memory is not None else _share(psutil.virtual_memory().total, options)
        )
        return Limits(seconds=options.timeout, memory=int(memory))
    except ValueError as error:
        raise BadChoice(str(error)) from error


def _share(total: int, options: Options) -> float:
    return SHARE_OF_MEMORY * total / options.jobs
