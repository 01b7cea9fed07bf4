"""`python -m torch_ttnn.check`: check every call of compiled models with the real `ttnn` on a mock card."""

from __future__ import annotations

import argparse
import gc
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import Progress

from torch_ttnn import zoo
from torch_ttnn.check.checker import Check, Checker
from torch_ttnn.devices import card
from torch_ttnn.explain import explain
from ttnn_emulator.api.recorded import ttnn_version
from ttnn_emulator.atomic_files import replacing
from ttnn_emulator.conformance import environment
from ttnn_emulator.conformance.report import with_releases


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m torch_ttnn.check", description=__doc__)
    parser.add_argument("models", nargs="*", help="names of models in the zoo (default: all)")
    parser.add_argument(
        "--ttnn",
        action="append",
        metavar="VERSION",
        help=f"a release to check with (repeatable; default {ttnn_version()}). Each is installed once, in a "
        "separate environment",
    )
    parser.add_argument("--page", type=Path, help="write the table of releases into this page, between its markers")
    arguments = parser.parse_args(argv)
    console = Console(emoji=False, highlight=False)
    chosen = arguments.models or zoo.names()
    with ExitStack() as stack:
        versions = arguments.ttnn or [ttnn_version()]
        checkers = [stack.enter_context(Checker(environment.ttnn_python(version))) for version in versions]
        _check(chosen, checkers, console)
        results = [checker.result for checker in checkers]
    for result in results:
        console.print(str(result).splitlines()[0])
    if arguments.page is not None:
        text = with_releases(arguments.page.read_text(encoding="utf-8"), releases_table(results, len(chosen)))
        with replacing(arguments.page) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return 1 if any(not result.ok for result in results) else 0


def _check(names: Sequence[str], checkers: Sequence[Checker], console: Console) -> None:
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=len(names))
        for name in names:
            progress.update(task, description=name)
            torch._dynamo.reset()
            entry = zoo.find(name)
            args, kwargs = entry.inputs(0)
            with torch.no_grad():
                programs = explain(entry.build(), *args, options={"device": "emulator:n150"}, **kwargs).programs
            for checker in checkers:
                found = checker.put(programs, [name] * len(programs))
                console.print(f"{name}: ttnn {checker.result.version}: {len(found)} rejected or typed differently")
                for each in found:
                    console.print(str(each))
            del programs
            gc.collect()
            progress.advance(task)


def releases_table(results: Sequence[Check], models: int) -> str:
    """A Markdown table of the calls that each release accepts."""
    lines = [
        f"All calls of the compiled programs of {models} models, checked with each release on a mock n150:",
        "",
        "| ttnn | calls | distinct | rejected | typed differently | |",
        "|:--|--:|--:|--:|--:|:--|",
    ]
    for result in results:
        different = len(result.findings) - len(result.rejected)
        supported = "supported" if result.version in card.SUPPORTED else ""
        lines.append(
            f"| {result.version} | {result.calls:,} | {result.asked:,} | {len(result.rejected):,} | {different:,} "
            f"| {supported} |"
        )
    operations = sorted({each.call.partition("(")[0] for result in results for each in result.findings})
    for operation in operations:
        where = [
            f"{result.version} ({sum(each.call.startswith(operation + '(') for each in result.findings)})"
            for result in results
            if any(each.call.startswith(operation + "(") for each in result.findings)
        ]
        lines.append(f"{'' if operation != operations[0] else chr(10)}- `{operation}` differs in {', '.join(where)}.")
    return "\n".join(lines)
