"""The command `torch-ttnn`, one module per sub-command."""

from torch_ttnn.cli.command import main

__all__ = ["main"]
