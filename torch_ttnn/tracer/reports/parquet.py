"""The raw records of all traces as one Parquet file, for DuckDB, polars, pandas and the like."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from torch_ttnn.tracer.records import NOT_JSONABLE, TensorFact, Trace
from torch_ttnn.tracer.reports.summary import Call
from ttnn_emulator.atomic_files import replacing

GROUP = 20_000  # rows buffered in memory

_NAME = pa.dictionary(pa.int32(), pa.string())  # few distinct values
_SHAPES = pa.list_(pa.list_(pa.int64()))
SCHEMA = pa.schema(
    [
        ("model", _NAME),
        ("phase", _NAME),
        ("graph", pa.int64()),
        ("index", pa.int64()),
        ("op_type", _NAME),
        ("input_shapes", _SHAPES),
        ("input_dtypes", pa.list_(pa.string())),
        ("input_names", pa.list_(pa.string())),
        ("output_shapes", _SHAPES),
        ("output_dtypes", pa.list_(pa.string())),
        ("arguments", pa.string()),
        ("source", pa.string()),
        ("module", pa.string()),
        ("flops", pa.int64()),
        ("bytes_in", pa.int64()),
        ("bytes_out", pa.int64()),
        ("lowering", _NAME),
        ("reason", pa.string()),
    ]
)


class RecordTable:
    """Writes traces in row groups, so that memory use does not grow with their number."""

    def __init__(self, path: pathlib.Path) -> None:
        self._writer = pq.ParquetWriter(path, SCHEMA, compression="zstd")
        self._rows: list[tuple[Any, ...]] = []

    def add(self, trace: Trace, calls: Sequence[Call]) -> None:
        for index, call in enumerate(calls):
            self._rows.append(_row(trace, index, call))
            if len(self._rows) == GROUP:
                self._flush()

    def close(self) -> None:
        if self._rows:
            self._flush()
        self._writer.close()

    def _flush(self) -> None:
        columns = [pa.array(values, column.type) for values, column in zip(zip(*self._rows), SCHEMA)]
        self._rows.clear()
        self._writer.write_table(pa.table(columns, SCHEMA))


@contextmanager
def record_table(path: pathlib.Path) -> Iterator[RecordTable]:
    """A table that appears under its name once it is complete."""
    with replacing(path) as temporary, closing(RecordTable(temporary)) as table:
        yield table


def _row(trace: Trace, index: int, call: Call) -> tuple[Any, ...]:
    record = call.record
    return (
        *(trace.model, trace.phase, trace.graph, index, record.op_type),
        *(_shapes(record.inputs), _dtypes(record.inputs), [each.name for each in record.inputs]),
        *(_shapes(record.outputs), _dtypes(record.outputs), _object(call.arguments)),
        *(record.source, record.module, record.flops, record.bytes_in, record.bytes_out),
        *(record.lowering, record.reason),
    )


def _shapes(tensors: tuple[TensorFact, ...]) -> list[tuple[int, ...]]:
    return [each.shape for each in tensors]


def _dtypes(tensors: tuple[TensorFact, ...]) -> list[str]:
    return [each.dtype for each in tensors]


def _object(arguments: dict[str, str]) -> str:
    """The values are JSON texts, except `not_jsonable`."""
    shown = [f"{_quoted(name)}: {_WORD if text == NOT_JSONABLE else text}" for name, text in arguments.items()]
    return f"{{{', '.join(shown)}}}"


_quoted = lru_cache(maxsize=4096)(json.dumps)  # few distinct names
_WORD = _quoted(NOT_JSONABLE)
