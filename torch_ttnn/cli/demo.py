"""`torch-ttnn demo`: compiles and runs a few models and shows a table."""

from __future__ import annotations

import json

import click

from torch_ttnn.cli import choices, tables
from torch_ttnn.cli.parameters import JSON, Argument, Models, Option, Options, positive

HELP = "compile and run a few models of the zoo and show a table"
EPILOG = """\
examples
  torch-ttnn demo                           ResNet-18 and BERT-Large
  torch-ttnn demo mnist-cnn gpt2-2L
  torch-ttnn demo mnist-cnn --device emulator:p150 --json
"""
PARAMETERS: list[click.Parameter] = [
    Argument("models", nargs=-1, type=Models(), metavar="[MODEL]...", help="names of the zoo"),
    Option("--list", is_flag=True, help="list the models of the zoo"),
    Option("--repeats", type=positive, default=3, metavar="N", help="timed warm calls (default 3)"),
    choices.device(group="options"),
    Option("-q", "--quiet", is_flag=True, help="no progress bar"),
    JSON,
]


def run(options: Options) -> int:
    if options.list:
        return _listed(options)
    from torch_ttnn.cli import progress

    choices.check_device(options.device)
    with progress.Demonstrating(options.quiet) as shown:
        from torch_ttnn.workloads import demo

        models = options.models or demo.MODELS
        shown.begin(len(models))
        done = demo.demonstrate(models, repeats=options.repeats, device=options.device, started=shown.started)
    if options.json:
        print(json.dumps(done.to_json(), indent=1))
    else:
        done.show(tables.console())
    choices.note_torchvision((f"zoo:{name}" for name in models), options)
    return 0


def _listed(options: Options) -> int:
    from torch_ttnn import zoo

    if options.json:
        print(json.dumps([{"model": each.name, "family": each.family, "task": each.task} for each in zoo.entries()]))
    else:
        for entry in zoo.entries():
            print(f"{entry.name:24} {entry.family:14} {entry.task}")
    return 0
