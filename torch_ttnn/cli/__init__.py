"""`torch-ttnn`: one command for everything, a module a sub-command."""

from torch_ttnn.cli.command import main

__all__ = ["main"]
