"""The command `torch-ttnn` and what all its sub-commands share: parsing, errors, exit codes."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any

import click

from torch_ttnn import __version__
from torch_ttnn.cli import (
    cache,
    completion,
    demo,
    doctor,
    explain,
    generate,
    metrics,
    models,
    parameters,
    perf,
    report,
    results,
    run,
    stat,
)
from torch_ttnn.errors import UserError

COMMANDS = (stat, report, run, metrics, results, explain, perf, generate, models, demo, doctor, cache, completion)
SUCCESS, USAGE_ERROR, INTERRUPTED = 0, 2, 130  # commands return 1 if some models failed
NAME = "torch-ttnn"
VARIABLE = "_TORCH_TTNN_COMPLETE"  # set by a shell that asks for completions
SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 120}

DESCRIPTION = "PyTorch models on Tenstorrent hardware: what operations they use, and how they run."
EPILOG = """\
examples
  torch-ttnn stat resnet18 bert             record the operations they use, into stat/raw
  torch-ttnn stat --all torchvision -j 2    ... and all of torchvision's
  torch-ttnn report                         tables, pictures and a page: stat/index.html
  torch-ttnn run resnet18                   run it on the device, compare with torch
  torch-ttnn metrics --all -j 2             the results table of the whole zoo
  torch-ttnn results metrics --site site    ... as pages
  torch-ttnn explain resnet18               how it is compiled
  torch-ttnn perf resnet18                  predicted times on a card, and what would make it faster
  torch-ttnn doctor                         check the installation

`torch-ttnn COMMAND --help` has details. Exit codes: 0 success, 1 some models failed, 2 invalid usage, or a file that
cannot be read or written.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code. Invalid arguments and help raise `SystemExit`."""
    options = parse(argv)
    try:
        code = options.run(options)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        print("\nstopped; finished work is kept, and the same command resumes from there", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # `torch-ttnn … | head`
        sys.stderr.close()
        return SUCCESS
    except OSError as error:
        if (message := _description(error)) is None:
            raise
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - Python would write the rest again at exit
        print(f"{NAME} {options.command}: {message}", file=sys.stderr)
        return USAGE_ERROR
    except UserError as error:
        print(f"{NAME} {options.command}: {error}", file=sys.stderr)
        return USAGE_ERROR


def parse(argv: Sequence[str] | None = None) -> parameters.Options:
    """The parsed arguments of a command, with its name as `command` and its function as `run`."""
    try:
        found = program().main(
            None if argv is None else list(argv), prog_name=NAME, complete_var=VARIABLE, standalone_mode=False
        )
    except click.ClickException as error:
        error.show()
        raise SystemExit(error.exit_code) from error
    except click.Abort as error:
        raise SystemExit(INTERRUPTED) from error
    if not isinstance(found, parameters.Options):  # help or the version was shown: this is an exit code
        raise SystemExit(found or SUCCESS)
    return found


def program() -> click.Group:
    """The command with all its sub-commands."""
    group = _Program(
        NAME,
        help=DESCRIPTION,
        epilog=EPILOG,
        context_settings=SETTINGS,
        invoke_without_command=True,
        callback=_help_without_command,
        params=[
            parameters.Option(
                "--version",
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_version,
                help="show the version",
            )
        ],
    )
    for module in COMMANDS:
        group.add_command(_command(module))
    return group


class _Program(click.Group):
    """Lists commands in the order of `COMMANDS`, and does not reflow examples."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        parameters.write_epilog(self.epilog, formatter)


def _command(module: ModuleType) -> click.Command:
    name = module.__name__.rpartition(".")[2]

    def chosen(**given: Any) -> parameters.Options:
        plain = {key: list(value) if isinstance(value, tuple) else value for key, value in given.items()}
        return parameters.Options(command=name, run=module.run, **plain)

    return parameters.Command(
        name,
        params=list(module.PARAMETERS),
        callback=chosen,
        help=module.HELP[0].upper() + module.HELP[1:] + ".",
        short_help=module.HELP,
        epilog=module.EPILOG,
        context_settings=SETTINGS,
    )


@click.pass_context
def _help_without_command(context: click.Context) -> None:
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        context.exit(USAGE_ERROR)  # as click does without a command


def _version(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        click.echo(f"{NAME} {__version__}")
        context.exit()


# Errors about files that a user can fix. Any other OSError is a bug.
FILE_ERRORS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is exceeded",
    errno.EFBIG: "the file is too large",
    errno.EROFS: "the disk is read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ENOENT: "there is no such file or folder",
    errno.ENOTDIR: "a part of the path is not a folder",
    errno.EISDIR: "it is a folder",
    errno.EEXIST: "a file of that name exists",
    errno.ENAMETOOLONG: "the name is too long",
    errno.EIO: "the disk failed to read or write",
}


def _description(error: OSError) -> str | None:
    """One line about the file and the problem; None if the user cannot fix it."""
    if error.errno not in FILE_ERRORS:
        return str(error) if isinstance(error, FileNotFoundError | NotADirectoryError | PermissionError) else None
    path = error.filename2 or error.filename or "standard output"  # the only file without a name
    return f"{path}: {FILE_ERRORS[error.errno]}"
