"""`torch-ttnn demo`: compiles a few models of the zoo with random weights, and tabulates the measurements."""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table

from torch_ttnn import devices, zoo
from torch_ttnn.workloads.measure import Measurement, measure

if TYPE_CHECKING:
    from rich.console import Console

MODELS = ("resnet18", "bert-large-qa")
REPEATS = 3
HEADINGS = ("model", "ops", "device", "host", "to/from", "PCC", "compile", "torch", "ttnn")
LEGEND = (
    "ops: operations of the captured graphs · device: calls on the device · host: operations left to torch · "
    "to/from: tensors uploaded and downloaded"
)


@dataclasses.dataclass
class Demonstration:
    """Measurements of compiled models."""

    device: str
    rows: list[tuple[str, Measurement]]

    def show(self, console: Console) -> None:
        console.print(table(self.rows, self.device))
        for name, row in self.rows:
            for op, reason, source in row.host_ops:
                console.print(f"{name}: {op} stays on the host: {reason}\n    {source}", markup=False)

    def to_json(self) -> dict[str, Any]:
        models = []
        for name, row in self.rows:
            fields = {key: value for key, value in vars(row).items() if key != "programs"}
            models.append({"model": name, **fields})
        return {"device": self.device, "models": models}


def demonstrate(
    models: Sequence[str],
    *,
    repeats: int = REPEATS,
    device: str | None = None,
    started: Callable[[str], None] = lambda name: None,
) -> Demonstration:
    """Measure models by their names in the zoo; `started` is called with the name of each as it begins."""
    found = [zoo.find(name) for name in models]  # unknown names fail before the first model runs
    rows = []
    for entry in found:
        started(entry.name)
        rows.append((entry.name, _measured(entry, repeats, device)))
    return Demonstration(devices.resolve(device).name, rows)


def _measured(entry: zoo.ModelEntry, repeats: int, device: str | None) -> Measurement:
    measured = measure(entry.build(), [entry.inputs(0)], {"device": device}, repeats)
    measured.programs.clear()  # frees the weights
    gc.collect()
    return measured


def table(rows: Sequence[tuple[str, Measurement]], device: str) -> Table:
    rendered = Table(
        title=f"torch.compile(model, backend='ttnn') on an {device}, times on this machine",
        title_justify="left",
        caption=LEGEND,
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 0, 0, 1),  # fits a terminal of 80 columns
        pad_edge=False,
    )
    for heading in HEADINGS:
        rendered.add_column(heading, justify="left" if heading == "model" else "right", no_wrap=True)
    for name, row in rows:
        rendered.add_row(
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
    return rendered


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.0f} ms" if seconds >= 0.01 else f"{seconds * 1e3:.2f} ms"
