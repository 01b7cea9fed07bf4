"""Columns of the results tables: heading, meaning, and how a row fills them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from torch_ttnn.explain.data import bytes_text
from torch_ttnn.results.documents import markdown as md
from torch_ttnn.results.documents.markdown import Column
from torch_ttnn.results.record import EVAL, FAILS, Row, Task

CHANGED = "†"  # marks models that are smaller than published, or changed so that both runs can be compared

MODEL = Column(
    "Model", f"its name in the zoo; {CHANGED} if it differs from the published model, or not all of it is compared"
)
STATUS = Column("Status", ", ".join(f"{md.SYMBOLS[status]} {text}" for status, text in md.MEANINGS.items()))
SUCCESS = Column("Run Success", "whether the compiled model runs without an error")
BATCH = Column("Batch", "items per call", number=True)
BEFORE = Column(
    "Torch Ops (Before)",
    "ATen operations of the captured graphs; in brackets, the number of distinct ones",
    number=True,
)
REMAIN = Column(
    "Torch Ops (Remain)", "those of them that the host runs; in brackets, the number of distinct ones", number=True
)
MOVES = Column(
    "To/From Device Ops",
    "tensors that cross between host and device in a warm call; in brackets, those that are neither inputs nor "
    "outputs of a graph",
    number=True,
)
FIRST = Column("First Run (s)", "the first call: compiling, preparing weights, running", number=True)
ORIGINAL = Column("Original Run Time (s)", "a warm call of the model by torch in float32 (median)", number=True)
COMPILED = Column(
    "Compiled Run Time (s)",
    "a warm call of the compiled model under the same conditions (median)",
    number=True,
)
ACCURACY = Column(
    "Accuracy",
    "Pearson's correlation (PCC) with torch in float32, rounded down: in inference the worst of all outputs, in "
    "training the worst of the gradients of all parameters in three steps",
    number=True,
)
PREDICTED = Column(
    "Predicted Device Time (ms)",
    "predicted by the timing model of the device, not measured: a call on one chip of the board, its programs and the "
    "gaps between them in a trace, without transfers and without operations on the host",
    number=True,
)
LOSSES = Column("Loss (torch, device)", "after the last of the three steps", number=True)
PARAMETERS = Column("Parameters (M)", "weights, in millions", number=True)
MEMORY = Column("DRAM Peak", "peak memory of the device, including weights", number=True)

Cell = Callable[[Row], str]
CELLS: dict[Column, Cell] = {
    MODEL: lambda row: md.plain(row.key) + (f" {CHANGED}" if row.reduced or row.compared else ""),
    STATUS: lambda row: md.SYMBOLS[row.status],
    SUCCESS: lambda row: "No" if row.status == FAILS else "Yes",
    BATCH: lambda row: f"{row.batch:,}",
    BEFORE: lambda row: md.with_unique(row.ops_before, row.ops_before_unique) if row.ops_before else md.UNKNOWN,
    REMAIN: lambda row: _if_run(row, md.with_unique(row.ops_remaining, row.ops_remaining_unique)),
    MOVES: lambda row: _if_run(row, f"{row.uploads + row.downloads:,} ({row.crossings_within:,})"),
    FIRST: lambda row: md.seconds(row.first_seconds),
    ORIGINAL: lambda row: md.seconds(row.original_seconds),
    COMPILED: lambda row: md.seconds(row.compiled_seconds),
    ACCURACY: lambda row: _if_run(row, md.pcc(row.pcc if row.mode == EVAL else row.gradient_pcc)),
    PREDICTED: lambda row: md.predicted_ms(row.predicted),
    LOSSES: lambda row: ", ".join(f"{losses[-1]:.4g}" for losses in (row.original_losses, row.losses) if losses),
    PARAMETERS: lambda row: md.millions(row.parameters),
    MEMORY: lambda row: bytes_text(row.dram_peak) if row.dram_peak else md.UNKNOWN,
}

COMMON = (MODEL, STATUS, SUCCESS, BATCH, BEFORE, REMAIN, MOVES, FIRST, ORIGINAL, COMPILED, ACCURACY, PREDICTED)
EVALUATED = (*COMMON, PARAMETERS, MEMORY)
TRAINED = (*COMMON, LOSSES, PARAMETERS, MEMORY)
TASKS = (
    Column("Model", ""),
    Column("Task", ""),
    Column("Metric", ""),
    Column("Items", "", number=True),
    Column("torch", "", number=True),
    Column("Device", "", number=True),
    Column("Difference", "", number=True),
)


def rows_table(columns: Sequence[Column], rows: Iterable[Row]) -> list[str]:
    """Rows with these columns."""
    return md.table(columns, [[CELLS[column](row) for column in columns] for row in rows])


def tasks_table(rows: Iterable[Row]) -> list[str]:
    """One line per task; empty if there is none."""
    lines = [_task(row, task) for row in rows for task in row.tasks]
    return md.table(TASKS, lines) if lines else []


def _task(row: Row, task: Task) -> list[str]:
    texts = (md.plain(row.key), md.plain(task.name), md.plain(task.metric))
    return [*texts, f"{task.items:,}", f"{task.torch:.2f}", f"{task.device:.2f}", f"{task.device - task.torch:+.2f}"]


def _if_run(row: Row, text: str) -> str:
    """Empty for failed rows, whose zeros would look like good results."""
    return md.UNKNOWN if row.status == FAILS else text
