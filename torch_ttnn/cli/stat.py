"""`torch-ttnn stat`: records which operations models use, with their sizes and arguments."""

from __future__ import annotations

import click

from torch_ttnn.cli import choices, tables
from torch_ttnn.cli.parameters import JSON, Option, Options

HELP = "record which operations models use, with their sizes and arguments"
FUNCTION = "torch_ttnn.workloads.trace:trace_model"
ROWS = "runs"
EPILOG = """\
Models are named as in `torch-ttnn models --help`. Each runs in its own process, so that a crash, a hang or a lack of
memory costs one row only. After Ctrl-C the same command resumes. The operations are in FOLDER/raw, one JSON file per
graph, and FOLDER/runs has one row per model.

Tracing needs no values: unless --profile, --pretrained or --weights is given, models run on fake tensors, which takes
little time and memory. Models whose control flow depends on values run on real ones; --real does so for all models.
With --backward, models are in train mode.

examples
  torch-ttnn stat resnet18 mobilenet_v2 --backward
  torch-ttnn stat --all torchvision --task classification --task detection -j 2
  torch-ttnn stat 'timm:convnext*' --input-shape 1,3,288,288
  torch-ttnn stat transformers:LlamaForCausalLM --layers all --length 512
  torch-ttnn stat my_package.models:tiny --input-shape 8,64
  torch-ttnn stat resnet50 --profile --graphviz
  torch-ttnn report
"""


PARAMETERS: list[click.Parameter] = [
    *choices.MODELS,
    *choices.INPUTS,
    *choices.outputs("stat"),
    Option("--values", type=click.Choice(("auto", "fake", "real")), default="auto", hidden=True),
    Option("--fake", is_flag=True, help="fake tensors only; fail if a model needs values"),
    Option("--real", is_flag=True, help="real tensors"),
    Option(
        "--decompositions",
        type=click.Choice(("none", "core")),
        default="none",
        help="decompose operations into core ATen first",
    ),
    Option("--no-lowering", is_flag=True, help="do not query the compiler about each operation (faster)"),
    *choices.JOBS,
    JSON,
]


def run(options: Options) -> int:
    from torch_ttnn.cli.sweeping import sweep

    if options.fake and options.real:
        raise choices.BadChoice("--fake and --real exclude each other")
    arguments = {
        **choices.model_arguments(options),
        "values": "fake" if options.fake else "real" if options.real else options.values,
        "decompositions": options.decompositions,
        "lowering": not options.no_lowering,
    }
    return finish(options, sweep(options, FUNCTION, arguments, ROWS))


def finish(options: Options, outcomes: list) -> int:
    """Show the outcomes."""
    if options.json:
        return tables.as_json(outcomes)
    console = tables.console()
    tables.show(console, outcomes, COLUMNS)
    if any(outcome.ok for outcome in outcomes):
        where = "" if options.out == "stat" else f" {options.out}"
        console.print(f"operations are in {options.out}/raw; `torch-ttnn report{where}` writes tables and a page")
    return 0 if all(outcome.ok for outcome in outcomes) else 1


COLUMNS: tables.Columns = {
    "graphs": lambda outcome: str(outcome.result["graphs"]),
    "forward": lambda outcome: str(outcome.result["forward_ops"]),
    "backward": lambda outcome: str(outcome.result["backward_ops"] or ""),
    "kinds": lambda outcome: str(outcome.result["distinct_ops"]),
    "FLOPs": lambda outcome: tables.engineering(outcome.result["flops"]),
    "values": lambda outcome: outcome.result["values"],
    "time": lambda outcome: tables.seconds(outcome.seconds),
    "memory": lambda outcome: tables.gigabytes(outcome.peak_memory),
}
