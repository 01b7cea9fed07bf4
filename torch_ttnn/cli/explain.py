"""`torch-ttnn explain`: what the compiler makes of a model, without running it."""

from __future__ import annotations

import argparse

from torch_ttnn.cli import choices

HELP = "show what the compiler makes of a model: device operations, host operations with reasons, moves, memory"
EPILOG = """\
examples
  torch-ttnn explain resnet18
  torch-ttnn explain transformers:LlamaForCausalLM --html llama.html
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="a name, as in `torch-ttnn models --help`")
    parser.add_argument("--html", metavar="FILE", help="also as a page: the graph, memory over time, tables")
    choices.add_inputs(parser)


def run(options: argparse.Namespace) -> int:
    import torch

    import torch_ttnn
    from torch_ttnn.zoo import catalog

    weights = "pretrained" if options.pretrained else options.weights
    layers = None if weights else options.layers
    try:
        entry = catalog.resolve(
            options.model, shape=options.input_shape, batch=options.batch, length=options.length, layers=layers
        )
    except ValueError as error:
        raise choices.BadChoice(str(error)) from error
    model = entry.build(weights, seed=options.seed, lively=False)
    arguments, keywords = entry.inputs(options.seed)
    with torch.set_grad_enabled(options.backward):
        explained = torch_ttnn.explain(model, *arguments, **keywords)
    print(explained)
    if options.html:
        explained.to_html(options.html)
    return 0
