"""Recorded answers of the real library: one JSON-lines file per family; its first line has the release and board."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterator
from typing import Any

from ttnn_emulator.atomic_files import replacing
from ttnn_emulator.conformance.case import Case
from ttnn_emulator.conformance.test_data import folder_of


def path_of(family: str) -> pathlib.Path:
    return folder_of("answers") / f"{family}.jsonl"


def recorded_families() -> list[str]:
    return sorted(path.stem for path in folder_of("answers").glob("*.jsonl"))


def read(family: str) -> Iterator[tuple[Case, dict[str, Any]]]:
    """Cases with the answers that were recorded for them."""
    with path_of(family).open(encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            entry = json.loads(line)
            yield {key: entry[key] for key in ("op", "args", "kwargs") if key in entry}, entry["answer"]


def header(family: str) -> dict[str, Any]:
    with path_of(family).open(encoding="utf-8") as lines:
        return json.loads(next(lines))


def write(family: str, about: dict[str, Any], entries: list[tuple[Case, dict[str, Any]]]) -> None:
    """Replace a family's file atomically."""
    with replacing(path_of(family)) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.write(json.dumps(about, separators=(",", ":")) + "\n")
        for case, answer in entries:
            file.write(json.dumps({**case, "answer": answer}, separators=(",", ":")) + "\n")
