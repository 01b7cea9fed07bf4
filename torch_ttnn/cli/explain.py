"""`torch-ttnn explain`: how a model is compiled, without running it."""

from __future__ import annotations

import contextlib
import json

import click

from torch_ttnn.cli import choices, tables
from torch_ttnn.cli.parameters import JSON, Argument, Models, Option, Options

HELP = "show how a model is compiled: operations, host operations with reasons, moves, memory, predicted time"
EPILOG = """\
examples
  torch-ttnn explain resnet18
  torch-ttnn explain transformers:LlamaForCausalLM --html llama.html
"""


PARAMETERS: list[click.Parameter] = [
    Argument("model", type=Models(), help="a name, as in `torch-ttnn models --help`"),
    Option("--html", metavar="FILE", help="also write a page: the graph, memory over time, predicted times, tables"),
    choices.device(),
    *choices.INPUTS,
    JSON,
]


def run(options: Options) -> int:
    import torch

    import torch_ttnn
    from torch_ttnn.capture.programs import backward_compiled
    from torch_ttnn.zoo import catalog, torchvision_ops

    choices.check_device(options.device)
    choices.check_weights(options)
    weights = "pretrained" if options.pretrained else options.weights
    layers = None if weights else options.layers
    try:
        entry = catalog.resolve(
            options.model, shape=options.input_shape, batch=options.batch, length=options.length, layers=layers
        )
    except ValueError as error:
        raise choices.BadChoice(str(error)) from error
    if entry.source in choices.USE_TORCHVISION:
        torchvision_ops.note()
    model = entry.build(weights, seed=options.seed, randomise=False)
    arguments, keywords = entry.inputs(options.seed)
    backward = backward_compiled() if options.backward else contextlib.nullcontext()
    with torch.set_grad_enabled(options.backward), backward:
        explained = torch_ttnn.explain(model, *arguments, options={"device": options.device}, **keywords)
    if options.html:
        explained.to_html(options.html)
    if options.json:
        print(json.dumps(explained.to_json(), indent=1))
    else:
        tables.console().print(explained)
    return 0
