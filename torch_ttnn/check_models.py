"""`python -m torch_ttnn.check_models`: compile models and put every call to the real `ttnn` on a mock card."""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Sequence

import torch
from rich.console import Console
from rich.progress import Progress

from torch_ttnn import zoo
from torch_ttnn.check import check_programs
from torch_ttnn.explain import explain


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m torch_ttnn.check_models", description=__doc__)
    parser.add_argument("models", nargs="*", help="names of the zoo; all of them by default")
    chosen = parser.parse_args(argv).models or zoo.names()
    console = Console(emoji=False, highlight=False)
    wrong = 0
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=len(chosen))
        for name in chosen:
            progress.update(task, description=name)
            torch._dynamo.reset()
            entry = zoo.find(name)
            args, kwargs = entry.inputs(0)
            with torch.no_grad():
                programs = explain(entry.build(), *args, **kwargs).programs
            found = check_programs(programs, names=[name], install=True)
            wrong += len(found.findings)
            console.print(f"{name}: {found}")
            gc.collect()
            progress.advance(task)
    console.print(f"{wrong} of all calls were rejected or typed differently by ttnn")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
