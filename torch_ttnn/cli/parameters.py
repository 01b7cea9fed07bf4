"""Building blocks of the commands on top of click: grouped options, examples, types of arguments."""

from __future__ import annotations

import difflib
import importlib.util
import json
import pathlib
import re
import types
from collections.abc import Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

Options = types.SimpleNamespace  # parsed arguments by name
GENERAL = "options"  # the heading of options without a group


class Option(click.Option):
    """An option that help shows under the heading `group`."""

    def __init__(self, *names: str, group: str = GENERAL, **settings: Any) -> None:
        super().__init__(names, **settings)
        self.group = group


class Argument(click.Argument):
    """A positional argument."""

    def __init__(self, name: str, **settings: Any) -> None:
        super().__init__([name], **settings)


class Command(click.Command):
    """A command with grouped options and verbatim examples in its help."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                groups.setdefault(getattr(parameter, "group", GENERAL), []).append(record)
        for heading in sorted(groups, key=lambda heading: heading == GENERAL):  # the general options last
            with formatter.section(heading.capitalize()):
                formatter.write_dl(groups[heading])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_epilog(self.epilog, formatter)


def write_epilog(epilog: str | None, formatter: click.HelpFormatter) -> None:
    """Verbatim: click would reflow paragraphs."""
    if epilog:
        formatter.write(f"\n{epilog.rstrip()}\n")


JSON = Option("--json", is_flag=True, help="print JSON")


def shape(text: str) -> list[int]:
    """
    >>> shape("1,3,224,224"), shape("1x3x32x32")
    ([1, 3, 224, 224], [1, 3, 32, 32])
    """
    parts = re.split(r"[,x×]", text)
    if not all(part.strip().isdigit() and int(part) > 0 for part in parts):
        raise click.BadParameter(f"{text!r} is not a shape; write 1,3,224,224")
    return [int(part) for part in parts]


def positive(text: Any) -> int:
    if not str(text).isdigit() or int(text) < 1:
        raise click.BadParameter(f"{text!r} is not a positive number")
    return int(text)


def depth(text: Any) -> int | None:
    return None if text == "all" else positive(text)


class Models(click.ParamType):
    """Names of models: completed here, resolved when the command runs."""

    name = "model"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from torch_ttnn import zoo

        return _completions(zoo.names(), incomplete)


class Device(click.ParamType):
    """A device name; invalid names and unknown boards are usage errors."""

    name = "device"
    KINDS = ("emulator", "ttnn")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        kind, colon, detail = str(value).partition(":")
        if kind not in self.KINDS:
            close = difflib.get_close_matches(kind, [*self.KINDS, *boards()], n=1)
            meant = f"emulator:{close[0]}" if close and close[0] in boards() else (close or [""])[0]
            hint = (
                f"Did you mean {meant!r}?" if close else 'Write "emulator", "emulator:<board>", "ttnn" or "ttnn:<id>".'
            )
            self.fail(f"no device is called {value!r}. {hint}", param, ctx)
        if kind == "ttnn" and colon and not detail.isdigit():
            self.fail(f'no device is called {value!r}; cards are numbered: "ttnn", "ttnn:0", "ttnn:1"', param, ctx)
        if kind == "emulator" and colon and detail not in boards():
            close = difflib.get_close_matches(detail, boards(), n=1)
            hint = f"Did you mean 'emulator:{close[0]}'?" if close else f"Known boards: {', '.join(boards())}."
            self.fail(f"no board is called {detail!r}. {hint}", param, ctx)
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return _completions(["emulator", "ttnn", *(f"emulator:{board}" for board in boards())], incomplete)


def boards() -> list[str]:
    """All names of boards, read from the emulator's table without importing the emulator."""
    found = importlib.util.find_spec("ttnn_emulator")
    if found is None or found.origin is None:
        return []
    table = json.loads(
        pathlib.Path(found.origin).parent.joinpath("hardware", "boards.json").read_text(encoding="utf-8")
    )["boards"]
    return [*table, *(f"{board}-{grid}" for board in table for grid in table[board].get("variants", ()))]


def _completions(known: Sequence[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in known if name.startswith(incomplete)]
