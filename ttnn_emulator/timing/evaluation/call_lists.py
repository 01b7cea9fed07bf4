"""Call lists of whole models: one JSON object per device call, with its specs and the program that was chosen."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ttnn_emulator.enums import BufferType, DataType, Layout, ShardOrientation, TensorMemoryLayout
from ttnn_emulator.errors import EmulatorError
from ttnn_emulator.hardware.boards import Board, find_board, names_with_grids
from ttnn_emulator.hardware.core_grid import CoreCoord, CoreRange, CoreRangeSet
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig, ShardSpec
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.calls import Call
from ttnn_emulator.timing.evaluation.measurements import UnknownFormat, Unpredictable

# Lists of Blackhole cards were recorded on 13 columns of cores: the published numbers are those of such cards.
WIDEST = {"p150": "p150-13x10"}


@dataclass(frozen=True, slots=True)
class ListedCall:
    """A call of a list, or the reason why it cannot be read; `count` is how often the model makes it."""

    row: int
    name: str
    call: Call | None
    reason: str = ""
    count: int = 1


def board_of(path: Path) -> Board:
    """The board named in `<model>_<board>_b<batch>.jsonl`."""
    names = sorted(names_with_grids(), key=len, reverse=True)
    found = next((name for name in names if re.search(rf"(^|_){re.escape(name)}(_|$)", path.stem)), None)
    if found is None:
        raise UnknownFormat(f"{path} does not name a board, as in model_n150_b8.jsonl")
    return find_board(WIDEST.get(found, found))


def listed_calls(path: Path, board: Board | None = None) -> Iterator[ListedCall]:
    """The calls of a list."""
    board = board or board_of(path)
    for number, record in enumerate(_records(path)):
        name, count = str(record.get("op", "?")), int(record.get("count", 1))
        try:
            yield ListedCall(number, name, call_of(record, board), count=count)
        except (Unpredictable, EmulatorError) as error:
            yield ListedCall(number, name, None, str(error), count)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            yield ListedCall(number, name, None, f"not a call: {type(error).__name__}: {error}", count)


def _records(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise UnknownFormat(f"{path} is not text: {error}") from error
    if not any(line.strip() for line in lines):
        raise UnknownFormat(f"{path} is empty")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise UnknownFormat(f"{path}, line {number}: not JSON: {error}") from error
        if not isinstance(record, dict):
            raise UnknownFormat(f"{path}, line {number}: not an object with a call")
        yield record


def call_of(record: Mapping[str, Any], board: Board) -> Call:
    """A record as the call that the timing model prices."""
    return Call(
        record["op"],
        tuple([(each["arg"], spec_of(each)) for each in record["inputs"] if each.get("memory") != "host"]),
        tuple([spec_of(each) for each in record["outputs"] if each.get("memory") != "host"]),
        {**record.get("args", {}), "via": tuple(record.get("via", ()))},
        board,
    )


def spec_of(record: Mapping[str, Any]) -> Spec:
    """The spec of a recorded tensor; padding beyond the layout's own is kept."""
    layout = Layout.TILE if record["layout"] == "tile" else Layout.ROW_MAJOR
    shape, padded = tuple(record["shape"]), tuple(record["padded"])
    memory = memory_of(record["memory"])
    dtype = DataType[record["dtype"].upper()]
    spec = Spec.of(shape, dtype, layout, memory)
    if spec.padded_shape != padded and len(padded) >= 2 and padded[-1] and padded[-2]:
        return Spec.of(shape, dtype, layout, memory, alignment=padded[-2:])
    return spec


def memory_of(record: Mapping[str, Any]) -> MemoryConfig:
    """The memory config of a recorded tensor."""
    buffer = BufferType[record["buffer"].upper()]
    if record["kind"] == "interleaved":
        return DRAM_MEMORY_CONFIG if buffer is BufferType.DRAM else MemoryConfig(TensorMemoryLayout.INTERLEAVED, buffer)
    kind = TensorMemoryLayout[record["kind"].upper()]
    if record.get("shard") is None:
        raise Unpredictable(f"a tensor in {record['kind']} without shards")
    cores = CoreRangeSet(
        [CoreRange(CoreCoord(left, top), CoreCoord(right, bottom)) for left, top, right, bottom in record["grid"]]
    )
    orientation = ShardOrientation[record.get("orientation", "row_major").upper()]
    return MemoryConfig(kind, buffer, ShardSpec(cores, tuple(record["shard"]), orientation))


def published_ns(path: Path) -> float | None:
    """The published device time of a list: the column "device ms" of a table in README.md beside it."""
    readme = path.with_name("README.md")
    if not readme.exists():
        return None
    columns: list[str] = []
    for line in readme.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if "device ms" in cells:
            columns = cells
        elif columns and len(cells) == len(columns) and cells[0] in (path.stem, path.name):
            try:
                return float(cells[columns.index("device ms")].replace(",", "")) * 1e6
            except ValueError:
                return None
    return None
