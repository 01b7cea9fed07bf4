"""Compiles a few models of the zoo, on random weights, and shows a table of what happened."""

from __future__ import annotations

import argparse
import gc
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from torch_ttnn import devices, zoo
from torch_ttnn.metrics import Measurement, measure

MODELS = ("resnet18", "bert-large-qa")
HEADINGS = ("model", "ops", "device", "host", "to/from", "PCC", "compile", "torch", "ttnn")
LEGEND = (
    "ops: operations of the captured graphs · device: calls on the device · host: operations left to torch · "
    "to/from: tensors that cross"
)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m torch_ttnn", description=__doc__)
    parser.add_argument("models", nargs="*", default=MODELS, help=f"names of the zoo, by default {' '.join(MODELS)}")
    parser.add_argument("--list", action="store_true", help="list the models of the zoo")
    parser.add_argument("--repeats", type=int, default=3, help="warm calls that are timed (default 3)")
    parser.add_argument("--device", help='"emulator", "emulator:<board>", "ttnn" or "ttnn:<id>"')
    chosen = parser.parse_args(argv)
    console = Console(emoji=False)
    if chosen.list:
        for entry in zoo.entries():
            console.print(f"{entry.name:24} {entry.family:14} {entry.task}")
        return
    rows = []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=len(chosen.models))
        for name in chosen.models:
            progress.update(task, description=name)
            rows.append((name, _measured(name, chosen.repeats, chosen.device)))
            progress.advance(task)
    console.print(table(rows, devices.resolve(chosen.device).name))
    for name, row in rows:
        for op, reason, source in row.host_ops:
            console.print(f"{name}: {op} stays on the host: {reason}\n    {source}", highlight=False)


def _measured(name: str, repeats: int, device: str | None) -> Measurement:
    entry = zoo.find(name)
    measured = measure(entry.build(), [entry.inputs(0)], {"device": device}, repeats)
    measured.programs.clear()  # frees the weights
    gc.collect()
    return measured


def table(rows: Sequence[tuple[str, Measurement]], device: str) -> Table:
    made = Table(
        title=f"torch.compile(model, backend='ttnn') on an {device}, times on this machine",
        title_justify="left",
        caption=LEGEND,
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 0, 0, 1),  # fits a terminal of 80 columns
        pad_edge=False,
    )
    for heading in HEADINGS:
        made.add_column(heading, justify="left" if heading == "model" else "right", no_wrap=True)
    for name, row in rows:
        made.add_row(
            name,
            str(row.ops_before),
            str(row.device_ops),
            str(len(row.host_ops)),
            f"{row.uploads}/{row.downloads}",
            f"{row.pcc:.5f}",
            f"{row.compile_seconds:.1f} s",
            _milliseconds(row.eager_seconds),
            _milliseconds(row.compiled_seconds),
        )
    return made


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.0f} ms" if seconds >= 0.01 else f"{seconds * 1e3:.2f} ms"
