"""Results on disk: one JSON file a job, whole or not there, and found again by the next run."""

from __future__ import annotations

import json
import pathlib
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from torch_ttnn.jobs.job import Job, Outcome, Status
from torch_ttnn.tracer.records import file_stem
from ttnn_emulator.atomic_files import replacing

FORMAT, VERSION = "torch_ttnn.job", 1
ROOM = 1 << 16  # bytes that must be free: a row with its log


@dataclass(frozen=True)
class Results:
    """A folder of results.

    `conditions` are what else a result depends on (versions, say): one that came about under others is not taken.
    """

    folder: pathlib.Path
    conditions: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def path(self, job: Job) -> pathlib.Path:
        return self.folder / f"{file_stem(job.name)}.json"

    def find(self, job: Job) -> Outcome | None:
        """The good outcome of this very job, if it is there; one that failed is tried again."""
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
        """Raise if nothing can be written: known before a job starts, and before anything kept is replaced."""
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
        """What is known of a job; nothing, if its file is not there or is no result."""
        try:
            content = json.loads(self.path(job).read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        known = isinstance(content, dict) and content.get("format") == FORMAT and content.get("version") == VERSION
        return content if known else {}
