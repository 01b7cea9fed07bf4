"""Outcomes on disk: one JSON file per job, written atomically and reused by the next run."""

from __future__ import annotations

import json
import pathlib
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from torch_ttnn.jobs.job import Job, Outcome, Status
from torch_ttnn.system.file_names import file_stem
from ttnn_emulator.atomic_files import replacing

FORMAT, VERSION = "torch_ttnn.job", 1
ROOM = 1 << 16  # bytes that must be free: a result with its log


@dataclass(frozen=True)
class Results:
    """A folder of results.

    `conditions` are what results depend on besides arguments, such as versions; others are not reused.
    """

    folder: pathlib.Path
    conditions: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def path(self, job: Job) -> pathlib.Path:
        return self.folder / f"{file_stem(job.name)}.json"

    def find(self, job: Job) -> Outcome | None:
        """The stored successful outcome of this job, or None; failed jobs run again."""
        content = self._read(job)
        same = content.get("fingerprint") == job.fingerprint and content.get("conditions") == dict(self.conditions)
        if not same or content.get("status") != Status.OK.value:
            return None
        return Outcome(
            job.name,
            Status.OK,
            content.get("result"),
            seconds=content.get("seconds", 0.0),
            peak_memory=content.get("peak_memory", 0),
        )

    def keep(self, job: Job, outcome: Outcome) -> pathlib.Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        content = {
            "format": FORMAT,
            "version": VERSION,
            "function": job.function,
            "arguments": dict(job.arguments),
            "fingerprint": job.fingerprint,
            "conditions": dict(self.conditions),
            **asdict(outcome),
            "status": outcome.status.value,
        }
        with replacing(self.path(job)) as temporary:
            temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        return self.path(job)

    def require_room(self) -> None:
        """Raise if nothing can be written, before a job starts or a result is replaced."""
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            with tempfile.NamedTemporaryFile(dir=self.folder, suffix=".part") as file:
                file.write(bytes(ROOM))
                file.flush()
        except OSError as error:
            error.filename = str(self.folder)
            raise

    def forget(self, job: Job) -> None:
        self.path(job).unlink(missing_ok=True)

    def _read(self, job: Job) -> dict[str, Any]:
        """The stored content for a job; empty if its file is missing or not a result."""
        try:
            content = json.loads(self.path(job).read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        known = isinstance(content, dict) and content.get("format") == FORMAT and content.get("version") == VERSION
        return content if known else {}
