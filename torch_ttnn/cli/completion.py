"""`torch-ttnn completion`: shell completion of commands, options, devices and models."""

from __future__ import annotations

import click

from torch_ttnn.cli.parameters import Argument, Options

HELP = "print the script for shell completion"
SHELLS = ("bash", "zsh", "fish")
EPILOG = """\
examples
  torch-ttnn completion bash >> ~/.bashrc
  torch-ttnn completion zsh >> ~/.zshrc
  torch-ttnn completion fish > ~/.config/fish/completions/torch-ttnn.fish
"""
PARAMETERS = [Argument("shell", type=click.Choice(SHELLS), help="which shell")]


def run(options: Options) -> int:
    from click.shell_completion import get_completion_class

    from torch_ttnn.cli.command import NAME, VARIABLE, program

    completion_class = get_completion_class(options.shell)
    assert completion_class is not None
    print(completion_class(program(), {}, NAME, VARIABLE).source())
    return 0
