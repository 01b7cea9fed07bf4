"""The command `torch-ttnn` and what all its sub-commands share: parsing, errors, exit codes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from torch_ttnn.cli import demo, explain, metrics, models, report, results, run, stat

COMMANDS = (stat, report, run, metrics, results, explain, models, demo)
GOOD, SOME_FAILED, WRONG_USE, INTERRUPTED = 0, 1, 2, 130

DESCRIPTION = "PyTorch models on Tenstorrent hardware: what operations they use, and how they run."
EPILOG = """\
examples
  torch-ttnn stat resnet18 bert             which operations do they use? into stat/raw
  torch-ttnn stat --all torchvision -j 2    ... and all of torchvision's
  torch-ttnn report                         tables, pictures and a page of it: stat/index.html
  torch-ttnn run resnet18                   run it on the device, compare with torch
  torch-ttnn metrics --all -j 2             the results table of the whole zoo
  torch-ttnn results metrics --site site    ... as pages
  torch-ttnn explain resnet18               what the compiler makes of it

`torch-ttnn COMMAND --help` tells more. Exit codes: 0 all went well, 1 some models failed, 2 wrong use.
"""


class UsageError(Exception):
    """What the user asked for cannot be done; the message says why."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; gives its exit code."""
    options = parser().parse_args(argv)
    try:
        return options.run(options)
    except KeyboardInterrupt:
        print("\nstopped; what is done is kept, and the same command goes on from there", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # `torch-ttnn … | head`
        sys.stderr.close()
        return GOOD
    except _user_errors() as error:
        print(f"torch-ttnn {options.command}: {error}", file=sys.stderr)
        return WRONG_USE


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="torch-ttnn",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = made.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in COMMANDS:
        name = module.__name__.rpartition(".")[2]
        added = commands.add_parser(
            name,
            help=module.HELP,
            description=module.HELP[0].upper() + module.HELP[1:] + ".",
            epilog=module.EPILOG,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(added)
        added.set_defaults(run=module.run)
    return made


def _user_errors() -> tuple[type[Exception], ...]:
    """Errors that say what to do next; any other is a fault of ours and shows its traceback."""
    from torch_ttnn import zoo
    from torch_ttnn.cli.choices import BadChoice
    from torch_ttnn.jobs.ray_executor import RayError
    from torch_ttnn.results.readme import BadMarks
    from torch_ttnn.results.record import BadRow
    from torch_ttnn.tracer.reports import MissingPackage
    from torch_ttnn.tracer.summary import NoTraces
    from torch_ttnn.zoo.catalog.factories import FactoryError
    from torch_ttnn.zoo.catalog.transformers_inputs import UnknownArgument
    from torch_ttnn.zoo.catalog.transformers_models import NoConfig

    return (
        BadChoice, zoo.UnknownModel, zoo.LibraryMissing, zoo.NotPublished, zoo.WeightsError, FactoryError,
        UnknownArgument, NoConfig, NoTraces, MissingPackage, RayError, BadRow, BadMarks, FileNotFoundError,
        NotADirectoryError, PermissionError,
    )  # fmt: skip
