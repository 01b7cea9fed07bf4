"""Arguments that several sub-commands have: which models, what they are fed, how the jobs run."""

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
SHARE_OF_MEMORY = 0.8  # of the machine, for all jobs together, unless a limit is given
WHICH, SIZES, WRITTEN, RUNNING = "which models", "what they are", "what to write", "how to run"
DEVICE_VARIABLE = "TORCH_TTNN_DEVICE"  # that of torch_ttnn.devices, which takes seconds to import
DEVICE_HELP = '"emulator", "emulator:<board>", "ttnn" or "ttnn:<id>"'


class BadChoice(UserError, ValueError):
    """Arguments that do not go together."""


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
        help="all models of a library (of the zoo, if none is named)",
    ),
    Option(
        "--task",
        type=click.Choice(TASKS),
        multiple=True,
        group=WHICH,
        help="with --all torchvision: of what kind (again for more)",
    ),
]

SIZE_OPTIONS: list[click.Parameter] = [
    Option("--input-shape", type=shape, metavar="N,C,H,W", group=SIZES, help="e.g. 1,3,224,224; tokens: N,LENGTH"),
    Option("--batch", type=positive, metavar="N", group=SIZES, help="how many images or texts at once"),
    Option("--length", type=positive, metavar="N", group=SIZES, help="how many tokens a text has"),
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
    Option("--backward", is_flag=True, group=SIZES, help="gradients too"),
]


def outputs(folder: str) -> list[click.Parameter]:
    return [
        Option("-o", "--out", default=folder, metavar="FOLDER", group=WRITTEN, help=f"where to (default {folder})"),
        Option("--profile", is_flag=True, group=WRITTEN, help="a Chrome trace of each model, in FOLDER/profile"),
        Option("--graphviz", is_flag=True, group=WRITTEN, help="a picture of each graph, in FOLDER/graphviz"),
    ]


JOBS: list[click.Parameter] = [
    Option("-j", "--jobs", type=positive, default=1, metavar="N", group=RUNNING, help="models at a time (default 1)"),
    Option(
        "--timeout",
        type=float,
        default=TIMEOUT_SECONDS,
        metavar="S",
        group=RUNNING,
        help=f"seconds a model may take (default {TIMEOUT_SECONDS})",
    ),
    Option(
        "--memory",
        type=float,
        metavar="GB",
        group=RUNNING,
        help="memory a model may take (default: its share of 80 % of the machine's)",
    ),
    Option("--again", is_flag=True, group=RUNNING, help="also what is done already"),
    Option("-q", "--quiet", is_flag=True, group=RUNNING, help="no progress bar"),
]


def device(prefix: str = "", group: str = RUNNING) -> Option:
    return Option("--device", type=Device(), group=group, help=prefix + DEVICE_HELP)


def check_device(wanted: str | None) -> None:
    """Whether a card can be used, if one was asked for: known before any job starts."""
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


def size_arguments(options: Options) -> dict[str, Any]:
    """What a job is told about the sizes of a model and its inputs."""
    return {
        "shape": options.input_shape,
        "batch": options.batch,
        "length": options.length,
        "layers": options.layers,
    }


def check_weights(options: Options) -> None:
    """Whether the file of weights is there and whole, if one was given: known before any job starts."""
    if options.weights is None:
        return
    if not os.path.exists(options.weights):
        raise BadChoice(f"there is no file or folder {options.weights}")
    from torch_ttnn.zoo.weights import check_file

    check_file(options.weights)


def model_arguments(options: Options) -> dict[str, Any]:
    """What a job is told about the model, besides its name."""
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


def note_torchvision(models: Iterable[str], options: Options) -> None:
    """Where torchvision does not load by itself, say so to who uses models of libraries that import it."""
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
