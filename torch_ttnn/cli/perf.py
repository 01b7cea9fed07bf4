"""`torch-ttnn perf`: the predicted time of a model or a script on a card."""

from __future__ import annotations

import json
import sys
import traceback
from typing import Any

import click

from torch_ttnn.cli import choices, tables
from torch_ttnn.cli.parameters import JSON, Argument, Models, Option, Options, boards

HELP = "predict where the time of a model or a script goes on a card, and what would make it faster"
PRECISIONS = ("bfloat16", "float32")
EPILOG = """\
MODEL is a name, as in `torch-ttnn models --help`; a name that ends in .py is a script that says `import ttnn`, or
compiles for the emulated device. -o writes ops_perf_results.csv and db.sqlite, which tt-perf-report and
ttnn-visualizer read, and performance.html. All times are predictions for a card; none is a time of this machine.

examples
  torch-ttnn perf resnet18
  torch-ttnn perf bert-large-qa --layers all --board p150 -o perf
  torch-ttnn perf resnet18 --batch 16 --training --json
  torch-ttnn perf examples/attention.py -o perf
"""


PARAMETERS: list[click.Parameter] = [
    Argument("model", type=Models(), help="a model, or a script"),
    Argument("arguments", nargs=-1, metavar="[ARGUMENT]...", help="arguments of a script, after --"),
    Option("--board", metavar="BOARD", group=choices.RUNNING, help="the card (default n150)"),
    Option(
        "--precision",
        type=click.Choice(PRECISIONS),
        default="bfloat16",
        group=choices.RUNNING,
        help="dtype of float32 tensors on the device (default bfloat16)",
    ),
    *choices.SIZE_OPTIONS,
    Option("--training", is_flag=True, group=choices.SIZES, help="forward and backward pass"),
    Option(
        "-o",
        "--out",
        metavar="FOLDER",
        group=choices.WRITTEN,
        help="write the sheet, the memory view and the page to this folder",
    ),
    JSON,
]


def run(options: Options) -> int:
    if options.board is not None and options.board not in boards():
        raise choices.BadChoice(f"no board is called {options.board!r}; known boards: {', '.join(boards())}")
    if options.model.endswith(".py"):
        return _script(options)
    if options.arguments:
        raise choices.BadChoice(f"only scripts take arguments, not the model {options.model}")
    _finish(_of_model(options), options)
    return 0


def _of_model(options: Options) -> Any:
    import torch

    from torch_ttnn.perf.profile import profile
    from torch_ttnn.zoo import catalog, torchvision_ops

    try:
        entry = catalog.resolve(
            options.model,
            shape=options.input_shape,
            batch=options.batch,
            length=options.length,
            layers=options.layers,
        )
    except ValueError as error:
        raise choices.BadChoice(str(error)) from error
    if entry.source in choices.USE_TORCHVISION:
        torchvision_ops.note()
    model = entry.build(None, seed=options.seed, randomise=False)
    arguments, keywords = entry.inputs(options.seed)
    device = "emulator" if options.board is None else f"emulator:{options.board}"
    wanted = {"device": device, "precision": options.precision}
    with torch.set_grad_enabled(options.training):
        found = profile(model, *arguments, options=wanted, **keywords)
    found.name = entry.name
    return found


def _script(options: Options) -> int:
    import pathlib

    from torch_ttnn.perf.script import profile_script

    if not pathlib.Path(options.model).is_file():
        raise choices.BadChoice(f"there is no script {options.model}")
    ran = profile_script(options.model, options.arguments, options.board)
    if ran.error is not None and not isinstance(ran.error, SystemExit):
        traceback.print_exception(ran.error)
    if ran.profile is None:
        print(f"torch-ttnn perf: {options.model} ran no program on an emulated device", file=sys.stderr)
    else:
        _finish(ran.profile, options)
    return _code(ran.error)


def _code(error: BaseException | None) -> int:
    """The exit code that the script would have had."""
    if error is None:
        return 0
    code = error.code if isinstance(error, SystemExit) else 1
    return code if isinstance(code, int) else 0 if code is None else 1


def _finish(found: Any, options: Options) -> None:
    if options.out:
        found.write(options.out)
    if options.json:
        print(json.dumps(found.to_json(), indent=1))
        return
    tables.console().print(found)
    if options.out:
        print(f"written to {options.out}: ops_perf_results.csv, performance.html, db.sqlite", file=sys.stderr)
