"""`torch-ttnn run`: runs models with a backend."""

from __future__ import annotations

import click

from torch_ttnn.cli import choices, stat, tables
from torch_ttnn.cli.parameters import JSON, Option, Options

HELP = "run models with a backend and compare with torch"
FUNCTION = "torch_ttnn.workloads.run:run_model"
BACKENDS = ("torch_ttnn", "torch_stat", "eager", "aot_eager")
EPILOG = """\
torch_ttnn compiles for the device and compares with eager torch: PCC, device operations, host operations with reasons,
and transfers. torch_stat records operations like `torch-ttnn stat`. eager and aot_eager are torch's own.

examples
  torch-ttnn run resnet18
  torch-ttnn run resnet18 --backward --device emulator:p150
  torch-ttnn run phiyodr/bert-large-finetuned-squad2 --layers all
  torch-ttnn run 'zoo:*' -j 2 -o runs
  torch-ttnn run resnet18 --backend eager --profile
"""


PARAMETERS: list[click.Parameter] = [
    *choices.MODELS,
    Option(
        "--backend",
        type=click.Choice(BACKENDS),
        default="torch_ttnn",
        group=choices.RUNNING,
        help="what runs the model (default torch_ttnn)",
    ),
    choices.device("for torch_ttnn: "),
    *choices.INPUTS,
    *choices.outputs("stat"),
    *choices.JOBS,
    JSON,
]


def run(options: Options) -> int:
    from torch_ttnn.cli.sweeping import sweep

    arguments = choices.model_arguments(options)
    if options.backend == "torch_stat":
        return stat.finish(options, sweep(options, stat.FUNCTION, arguments, stat.ROWS))
    if options.backend == "torch_ttnn":
        choices.check_device(options.device)
    arguments |= {"backend": options.backend, "device": options.device}
    return finish(options, sweep(options, FUNCTION, arguments, f"runs_{options.backend}"))


def finish(options: Options, outcomes: list) -> int:
    if options.json:
        return tables.as_json(outcomes)
    console = tables.console()
    columns = ON_DEVICE if options.backend == "torch_ttnn" else BY_TORCH
    tables.show(console, outcomes, columns)
    for outcome in outcomes:
        for operation, reason, source in outcome.result.get("host_ops", ()) if outcome.ok else ():
            console.print(f"{outcome.name}: {operation} stays on the host: {reason}\n    {source}", markup=False)
    return 0 if all(outcome.ok for outcome in outcomes) else 1


TIMES: tables.Columns = {
    "first": lambda outcome: tables.seconds(outcome.result["first_seconds"]),
    "warm": lambda outcome: tables.seconds(outcome.result["warm_seconds"]),
}
BY_TORCH: tables.Columns = {"mode": lambda outcome: outcome.result["mode"], **TIMES}
ON_DEVICE: tables.Columns = {
    "ops": lambda outcome: str(outcome.result["ops_before"]),
    "device": lambda outcome: str(outcome.result["device_ops"]),
    "host": lambda outcome: str(len(outcome.result["host_ops"])),
    "to/from": lambda outcome: f"{outcome.result['uploads']}/{outcome.result['downloads']}",
    "PCC": lambda outcome: f"{outcome.result['pcc']:.5f}",
    "gradients": lambda outcome: f"{outcome.result['gradient_pcc']:.5f}" if "gradient_pcc" in outcome.result else "",
    **TIMES,
    "torch": lambda outcome: tables.seconds(outcome.result["eager_seconds"]),
}
