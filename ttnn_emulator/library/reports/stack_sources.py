"""Source files of the stack traces of a report, stored in the report."""

from __future__ import annotations

import pathlib
import re
import sqlite3
import sys
import sysconfig
from collections.abc import Collection

FRAME = re.compile(r'File "([^"]+)", line (\d+)')
PLAIN = re.compile(r"^\s*([^\s:]+\.\w+):(\d+)")


def extract_stack_trace_file(stack_trace_text: str | None) -> str | None:
    """The first file of a stack trace: that of the innermost call."""
    for line in (stack_trace_text or "").splitlines():
        found = FRAME.search(line) or PLAIN.match(line)
        if found:
            return found[1]
    return None


def innermost_frame(stack_trace_text: str | None) -> tuple[str | None, int | None]:
    """File and line of the innermost call."""
    found = FRAME.search(stack_trace_text or "")
    return (found[1], int(found[2])) if found else (None, None)


def _roots() -> list[pathlib.Path]:
    """Folders of source files: the working directory, the import path and Python's own."""
    known = [".", *sys.path, sysconfig.get_paths()["stdlib"]]
    return [pathlib.Path(each).resolve() for each in known if each]


def normalize_existing_source_file_path(file_path: str | None) -> str | None:
    """The real path of an existing file in a source folder; a report must not include arbitrary files."""
    if not file_path:
        return None
    path = pathlib.Path(file_path).resolve()
    inside = any(path.is_relative_to(root) for root in _roots())
    return str(path) if inside and path.is_file() else None


def normalize_source_path_from_stack_trace(stack_trace_text: str | None) -> str | None:
    return normalize_existing_source_file_path(extract_stack_trace_file(stack_trace_text))


def read_source_file(normalized_path: str) -> str | None:
    """The content of a source file."""
    path = normalize_existing_source_file_path(normalized_path)
    return None if path is None else pathlib.Path(path).read_text(encoding="utf-8", errors="replace")


def get_source_file_id(cursor: sqlite3.Cursor, path: str, contents: str) -> int:
    """The id of a file in the report; new files are added."""
    cursor.execute("INSERT OR IGNORE INTO source_files (path, contents) VALUES (?, ?)", (path, contents))
    return cursor.execute("SELECT id FROM source_files WHERE path = ?", (path,)).fetchone()[0]


class SourceFiles:
    """The source files of a report.

    trusted  files to include wherever they are, as their code was seen running
    """

    def __init__(self, cursor: sqlite3.Cursor, trusted: Collection[str] = ()) -> None:
        self._cursor = cursor
        self._trusted = trusted
        self._ids: dict[str, int | None] = {}

    def id_of(self, stack_trace: str) -> int | None:
        """The id of the file of the innermost call; the files of all calls that are trusted are added, too."""
        for file, _ in FRAME.findall(stack_trace):
            if file in self._trusted:
                self._id(file)
        file = extract_stack_trace_file(stack_trace)
        return None if file is None else self._id(file)

    def _id(self, file: str) -> int | None:
        if file not in self._ids:
            self._ids[file] = self._add(file)
        return self._ids[file]

    def _add(self, file: str) -> int | None:
        path = file if file in self._trusted else normalize_existing_source_file_path(file)
        if path is None or not pathlib.Path(path).is_file():
            return None
        return get_source_file_id(self._cursor, path, pathlib.Path(path).read_text(encoding="utf-8", errors="replace"))
