"""Results on disk: one JSON file per row while they are collected, one Parquet file for all rows."""

from __future__ import annotations

import dataclasses
import functools
import json
import logging
import os
import pathlib
import types
import typing
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from torch_ttnn.errors import MissingPackage
from torch_ttnn.jobs.job import Status
from torch_ttnn.jobs.store import FORMAT
from torch_ttnn.results.portable_text import portable
from torch_ttnn.results.record import EVAL, FAILS, TRAIN, VERSION, BadRow, Row
from torch_ttnn.results.summary import ordered
from ttnn_emulator.atomic_files import replacing

log = logging.getLogger("torch_ttnn")

ROWS = "rows"  # the folder of JSON files within a run's output
FILE = "results.parquet"
KEPT = pathlib.Path("results") / FILE  # committed: source of the pages, reference of checks
LEVEL = 19  # of zstd: the file is written rarely and committed
MARK = b"torch_ttnn.results"  # key of the schema's metadata that marks our files and holds their version


@dataclass(frozen=True)
class Found:
    """Rows of a folder, and the files that contain none, each with the reason."""

    rows: list[Row]
    left_out: tuple[tuple[str, str], ...] = ()


# -- one file of all rows ---------------------------------------------------------------------------------------------


def read(path: str | os.PathLike) -> list[Row]:
    """The rows of a Parquet file, or of a folder that a run wrote."""
    path = pathlib.Path(path)
    if path.is_dir():
        return rows(path)
    if not path.exists():
        raise FileNotFoundError(f"there are no results at {path}; `torch-ttnn metrics --all` measures some")
    pq = _parquet()
    try:
        table = pq.read_table(path)
    except (OSError, ValueError) as error:  # pyarrow's errors are both
        raise BadRow(f"{path} cannot be read as a Parquet file: {str(error).splitlines()[0]}") from error
    version = (table.schema.metadata or {}).get(MARK)
    if version != str(VERSION).encode():
        kind = f"of version {version.decode()}" if version else "of another kind"
        raise BadRow(f"{path} is a file {kind}, not of results in version {VERSION}; measure again to replace it")
    return [Row.from_json({"version": VERSION, **_without_pairs(content)}) for content in table.to_pylist()]


def write(given: Iterable[Row], path: str | os.PathLike) -> None:
    """Write rows as one Parquet file with nested columns, in a fixed order: equal rows give equal files."""
    known = ordered(given)
    if twice := sorted(key for key, count in Counter(row.key for row in known).items() if count > 1):
        raise BadRow(f"these rows occur more than once: {', '.join(twice)}")
    pq = _parquet()
    import pyarrow as pa

    fields = [pa.field(name, kind) for name, kind in _fields(Row)]
    schema = pa.schema(fields, metadata={MARK: str(VERSION).encode()})
    table = pa.Table.from_pylist([_with_pairs(dataclasses.asdict(row)) for row in known], schema=schema)
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        pq.write_table(table, temporary, compression="zstd", compression_level=LEVEL)


def _fields(kind: type) -> list[tuple[str, Any]]:
    """The columns of a dataclass, from the types of its fields."""
    hints = typing.get_type_hints(kind)
    return [(each.name, _column(hints[each.name])) for each in dataclasses.fields(kind)]


def _column(hint: Any) -> Any:
    import pyarrow as pa

    plain = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint in plain:
        return plain[hint]
    if origin in (types.UnionType, typing.Union):
        return _column(arguments[0])
    if origin is tuple:
        return pa.list_(_column(arguments[0]))
    if dataclasses.is_dataclass(hint):
        return pa.struct([pa.field(name, kind) for name, kind in _fields(typing.cast(type, hint))])
    return pa.map_(pa.string(), pa.string())


def _with_pairs(content: dict[str, Any]) -> dict[str, Any]:
    """Mappings as sorted lists of pairs, as Arrow's map columns take them."""
    return {name: sorted(value.items()) if name in _mappings() else value for name, value in content.items()}


def _without_pairs(content: dict[str, Any]) -> dict[str, Any]:
    return {name: dict(value) if name in _mappings() else value for name, value in content.items()}


@functools.cache
def _mappings() -> frozenset[str]:
    """The fields of a row that map texts to texts."""
    hints = typing.get_type_hints(Row)
    return frozenset(name for name, hint in hints.items() if typing.get_origin(hint) not in _NO_MAPPING)


_NO_MAPPING = (None, tuple, types.UnionType, typing.Union)


def _parquet() -> Any:
    if find_spec("pyarrow") is None:
        raise MissingPackage(
            "results are stored as Parquet, which needs pyarrow: pip install 'torch_ttnn[reports]'. The JSON files of "
            "the rows do not need it."
        )
    import pyarrow.parquet

    return pyarrow.parquet


# -- one file per row -------------------------------------------------------------------------------------------------


def rows(folder: str | os.PathLike) -> list[Row]:
    """The rows of a folder that a run wrote; other files are skipped and logged."""
    found = read_rows(folder)
    for name, why in found.left_out:
        log.warning("%s is left out: %s", name, why)
    return found.rows


def read_rows(folder: str | os.PathLike) -> Found:
    """All rows of a folder of JSON files, and the files that were left out."""
    folder = pathlib.Path(folder)
    within = folder / ROWS if (folder / ROWS).is_dir() else folder
    if not within.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}")
    good: list[Row] = []
    left_out: list[tuple[str, str]] = []
    for path in sorted(within.glob("*.json")):
        try:
            good.append(row_of(json.loads(path.read_bytes())))
        except (OSError, ValueError, RecursionError) as error:
            left_out.append((path.name, _why(error)))
    return Found(ordered(good), tuple(left_out))


def row_of(content: Any) -> Row:
    """The row in the result of a job, or a row that says why the job failed."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise BadRow("it is not the result of a job")
    if content.get("status") == Status.OK.value:
        return Row.from_json(content.get("result"))
    arguments = content.get("arguments")
    if not isinstance(arguments, dict) or arguments.get("mode") not in (EVAL, TRAIN):
        raise BadRow("it is the result of another kind of job")
    mode = arguments["mode"]
    about = {
        "model": str(content.get("name", "")).removesuffix(f" ({mode})"),
        "mode": mode,
        "status": FAILS,
        "reason": portable(str(content.get("reason", ""))),
        "details": portable(str(content.get("details", ""))),
        "host_peak": content.get("peak_memory", 0),
    }
    return Row.from_json({"version": VERSION, **about})


def _why(error: Exception) -> str:
    if isinstance(error, BadRow):
        return str(error)
    return f"it cannot be read ({type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no message'})"
