"""Evaluates files: errors by family and board, rows without a prediction, totals of models."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ttnn_emulator.atomic_files import replacing
from ttnn_emulator.errors import EmulatorError
from ttnn_emulator.timing.evaluation import matmul_benchmarks, profiler_rows, unary_benchmarks
from ttnn_emulator.timing.evaluation.call_lists import board_of, listed_calls, published_ns
from ttnn_emulator.timing.evaluation.measurements import Measurement, UnknownFormat, Unpredictable, unreadable
from ttnn_emulator.timing.pricing import launches_of

MISSES = (Unpredictable, EmulatorError)
# Errors that a missing or malformed cell can raise.
UNREADABLE = (*MISSES, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, AssertionError)

# The reader of a CSV file, by columns that only its format has.
READERS = (
    (matmul_benchmarks.GEMM_COLUMNS, matmul_benchmarks.gemm_measurements),
    (matmul_benchmarks.HEIGHT_SHARDED_COLUMNS, matmul_benchmarks.height_sharded_measurements),
    (profiler_rows.COLUMNS, profiler_rows.profiler_measurements),
    (unary_benchmarks.COLUMNS, unary_benchmarks.unary_measurements),
)


@dataclass(frozen=True, slots=True)
class Prediction:
    """A measurement with its prediction, or the reason why there is none."""

    measurement: Measurement
    predicted_ns: float | None
    reason: str = ""

    @property
    def error(self) -> float:
        """|predicted ÷ measured − 1|; a miss counts as infinite."""
        if self.predicted_ns is None:
            return float("inf")
        return abs(self.predicted_ns / self.measurement.measured_ns - 1)


@dataclass(slots=True)
class Score:
    """The errors of one family on one board."""

    predictions: list[Prediction] = field(default_factory=list)

    @property
    def rows(self) -> int:
        return len(self.predictions)

    @property
    def misses(self) -> int:
        return sum(each.predicted_ns is None for each in self.predictions)

    def quantile(self, share: float) -> float:
        """The error that this share of the rows does not exceed."""
        errors = sorted(each.error for each in self.predictions)
        place = share * (len(errors) - 1)
        low, high = errors[int(place)], errors[min(int(place) + 1, len(errors) - 1)]
        return low if low == high else low + (high - low) * (place - int(place))

    @property
    def bias(self) -> float:
        """The median of predicted ÷ measured − 1."""
        ratios = [
            each.predicted_ns / each.measurement.measured_ns - 1
            for each in self.predictions
            if each.predicted_ns is not None
        ]
        return statistics.median(ratios) if ratios else float("nan")

    @property
    def ideal(self) -> float | None:
        """The median error of the library's PM IDEAL, where the file has it."""
        errors = [
            abs(each.measurement.ideal_ns / each.measurement.measured_ns - 1)
            for each in self.predictions
            if each.measurement.ideal_ns is not None
        ]
        return statistics.median(errors) if errors else None


def predictions_of(path: Path) -> Iterator[Prediction]:
    """The predictions for the rows of a CSV file."""
    rows = _rows_of(path)
    columns = frozenset(rows[0] if rows else ())
    reader = next((read for needed, read in READERS if needed <= columns), None)
    if reader is None:
        names = ", ".join(sorted(filter(None, columns)))
        raise UnknownFormat(f"{path}: its columns are those of no known format: {names}")
    measure = reader(path.name, rows[1:])
    for number, row in enumerate(rows[1:]):
        try:
            measurement = measure(number, row)
        except UNREADABLE as error:
            yield Prediction(unreadable(path.name, number), None, _reason(error))
        else:
            yield predict(measurement)


def _rows_of(path: Path) -> list[dict[str, str]]:
    """The header as a row of its own names, then the rows."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file)
            header = {name: name for name in rows.fieldnames or ()}
            if not header:
                raise UnknownFormat(f"{path} is empty")
            return [header, *rows]
    except (UnicodeDecodeError, csv.Error) as error:
        raise UnknownFormat(f"{path} is not a CSV file: {error}") from error


def predict(measurement: Measurement) -> Prediction:
    try:
        return Prediction(measurement, measurement.predict())
    except UNREADABLE as error:
        return Prediction(measurement, None, _reason(error))


def _reason(error: Exception) -> str:
    text = (str(error) or type(error).__name__).splitlines()[0]
    return text if isinstance(error, MISSES) else f"{type(error).__name__}: {text}"


def scores(predictions: Iterable[Prediction]) -> dict[tuple[str, str], Score]:
    """Scores by family and board."""
    found: dict[tuple[str, str], Score] = {}
    for each in predictions:
        key = each.measurement.family, each.measurement.board
        found.setdefault(key, Score()).predictions.append(each)
    return dict(sorted(found.items()))


@dataclass(slots=True)
class ModelTime:
    """The predicted time of a call list.

    kernels_ns       the sum of kernel times
    uncalibrated_ns  the part of families without measured times
    programs         programs on the chip
    published_ns     the published sum of kernel times, if it is known
    by_operation     kernel time by operation
    """

    name: str
    board: str
    calls: int = 0
    programs: int = 0
    kernels_ns: float = 0.0
    uncalibrated_ns: float = 0.0
    published_ns: float | None = None
    by_operation: dict[str, float] = field(default_factory=dict)
    misses: list[str] = field(default_factory=list)
    rows: list[float | None] = field(default_factory=list)

    @property
    def ratio(self) -> float | None:
        return None if self.published_ns is None else self.kernels_ns / self.published_ns

    @property
    def uncalibrated(self) -> float:
        """The share of the time that comes from families without measured times."""
        return self.uncalibrated_ns / self.kernels_ns if self.kernels_ns else 0.0


def time_of_list(path: Path) -> ModelTime:
    """The predicted time of the calls of a list."""
    total = ModelTime(path.stem, board_of(path).name, published_ns=published_ns(path))
    for listed in listed_calls(path):
        total.calls += listed.count
        try:
            if listed.call is None:
                raise Unpredictable(listed.reason)
            launches = launches_of(listed.call)
        except UNREADABLE as error:
            total.misses.append(f"row {listed.row}, {listed.name}: {_reason(error)}")
            total.rows.append(None)
            continue
        ns = sum(launch.kernel_ns for launch in launches)
        total.rows.append(ns)
        total.programs += listed.count * len(launches)
        total.kernels_ns += listed.count * ns
        total.uncalibrated_ns += listed.count * sum(each.kernel_ns for each in launches if not each.calibrated)
        total.by_operation[listed.name] = total.by_operation.get(listed.name, 0.0) + listed.count * ns
    return total


def write_predictions(path: Path, sources: Sequence[tuple[Path, Sequence[float | None]]]) -> None:
    """Write the rows of all sources with a column `predicted_ns`; calls of lists have their operation and number."""
    header: list[str] = []
    tables: list[list[dict[str, Any]]] = []
    for source, predicted in sources:
        rows: list[dict[str, Any]] = []
        if source.suffix == ".csv":
            columns, *read = _rows_of(source)
            rows += read
        else:
            columns = {"list": "", "row": "", "op": "", "count": ""}
            for listed in listed_calls(source):
                rows.append({"list": source.stem, "row": listed.row, "op": listed.name, "count": listed.count})
        for row, ns in zip(rows, predicted):
            row["predicted_ns"] = "" if ns is None else f"{ns:.1f}"
        header += [name for name in columns if name not in header and name != "predicted_ns"]
        tables.append(rows)
    with replacing(path) as temporary, open(temporary, "w", newline="", encoding="utf-8") as file:
        # csv stores the cells beyond the columns under the name None.
        writer = csv.DictWriter(file, [*header, "predicted_ns"], extrasaction="ignore")
        writer.writeheader()
        for rows in tables:
            writer.writerows(rows)
