"""`torch-ttnn generate`: text from a model, with tokens per second."""

from __future__ import annotations

import json
import sys

import click

from torch_ttnn.cli import choices, tables
from torch_ttnn.cli.parameters import JSON, Argument, Models, Option, Options, depth, positive

HELP = "generate text on the device, with tokens per second, measured here and predicted for a card"
EPILOG = """\
Weights and tokenizer come from the hub or a local folder. If neither has them, weights are random, and the command says
so. Times of this machine are those of the emulated device, not of a card.

examples
  torch-ttnn generate openai-community/gpt2 --prompt "The capital of France is" --new-tokens 32
  torch-ttnn generate ./my-llama --prompt "Once upon a time" --sample --seed 3
  torch-ttnn generate transformers:MambaForCausalLM --random --prompt hello --device emulator:p150 --json
"""

PARAMETERS: list[click.Parameter] = [
    Argument("model", type=Models(), help="a model of transformers: a name, a hub name, or a folder"),
    Option("--prompt", metavar="TEXT", required=True, help="the text to continue"),
    Option("--new-tokens", type=positive, default=32, metavar="N", help="tokens to generate (default 32)"),
    Option("--sample", is_flag=True, help="draw tokens at random in place of the best ones"),
    Option("--beams", type=positive, default=1, metavar="N", help="beams of a beam search (default 1: none)"),
    Option("--seed", type=int, default=0, group=choices.SIZES, help="of random weights and of sampling (default 0)"),
    Option("--weights", metavar="PATH", group=choices.SIZES, help="a safetensors file, or a folder with one"),
    Option("--random", is_flag=True, group=choices.SIZES, help="random weights, without asking the hub"),
    Option(
        "--layers",
        type=depth,
        default="2",
        metavar="N",
        group=choices.SIZES,
        help="layers of models with random weights; 'all' as published (default 2)",
    ),
    Option(
        "--precision",
        type=click.Choice(("bfloat16", "float32")),
        default="bfloat16",
        group=choices.RUNNING,
        help="dtype of the model (default bfloat16)",
    ),
    choices.device(),
    JSON,
]


def run(options: Options) -> int:
    choices.check_device(options.device)
    if options.random and options.weights:
        raise choices.BadChoice("--random and --weights exclude each other")
    choices.check_weights(options)
    import torch

    from torch_ttnn.workloads.generate import generate

    if options.device:
        torch.ttnn.use(options.device)  # type: ignore[attr-defined]
    try:
        made = generate(
            options.model,
            options.prompt,
            options.new_tokens,
            weights="random" if options.random else options.weights,
            layers=options.layers,
            dtype=getattr(torch, options.precision),
            seed=options.seed,
            sample=options.sample,
            beams=options.beams,
            note=_note,
            show=None if options.json else _show,
        )
    except ValueError as error:
        raise choices.BadChoice(str(error)) from error
    if options.json:
        print(json.dumps(made.to_json(), indent=1))
    else:
        print()
        tables.console().print(
            f"\n{made.figures}\ncompiled and warmed up in {made.compile_seconds:.1f} s", markup=False
        )
    return 0


def _note(text: str) -> None:
    print(f"torch-ttnn generate: {text}", file=sys.stderr)


def _show(text: str) -> None:
    print(text, end="", flush=True)
