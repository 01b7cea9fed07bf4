"""`torch-ttnn demo`: a few models compiled and run, in a table."""

from __future__ import annotations

import argparse

HELP = "compile and run a few models of the zoo and show a table"
EPILOG = """\
examples
  torch-ttnn demo
  torch-ttnn demo mnist-cnn gpt2-2L
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("models", nargs="*", metavar="MODEL", help="names of the zoo")


def run(options: argparse.Namespace) -> int:
    from torch_ttnn import demo

    demo.main(options.models)
    return 0
