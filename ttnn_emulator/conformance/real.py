"""Runs calls on the real library: a process of another Python, on a mock card."""

from __future__ import annotations

import json
import os
import pathlib
import select
import subprocess
import tempfile
from typing import Any

from ttnn_emulator.api.recorded import ttnn_version
from ttnn_emulator.conformance import environment, mock_card

HERE = pathlib.Path(__file__).parent
ANSWER_SECONDS = 60  # time limit per question


class RealTtnn:
    """Runs calls on the real `ttnn`. If a call crashes the library, the process is restarted.

    >>> with RealTtnn() as real:                                                            # doctest: +SKIP
    ...     real.ask({"op": "ttnn.exp", "args": [{"T": [[2, 3], "bfloat16", "TILE", "DRAM"]}]})
    {'ok': True, 'out': {'T': [[2, 3], [32, 32], 'bfloat16', 'TILE', 'DRAM']}}
    """

    def __init__(self, python: str | None = None, board: str = "n150") -> None:
        self.python = os.path.abspath(python or environment.ttnn_python(ttnn_version()))
        self.version = environment.installed_version(self.python)
        self._folder = tempfile.TemporaryDirectory(prefix="ttnn-mock-")
        package = environment.package_folder(self.python)
        inherited = {name: value for name, value in os.environ.items() if name not in mock_card.OF_SEVERAL_CHIPS}
        self._environment = {**inherited, **mock_card.prepare(self._folder.name, package, board)}
        self._process: subprocess.Popen | None = None

    def start(self, script: pathlib.Path | None = None) -> subprocess.Popen:
        return subprocess.Popen(
            [self.python, str(script or HERE / "server.py")],
            cwd=self._folder.name,  # the library writes a folder "generated" where it runs
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            bufsize=1,
        )

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """The library's answer; a crash is an answer, too."""
        if self._process is None:
            self._process = self.start()
            if not self._process.stdout.readline():  # type: ignore[union-attr]
                raise RuntimeError(f"ttnn did not start on a mock card under {self.python}")
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(question) + "\n")
            answered = bool(select.select([self._process.stdout], [], [], ANSWER_SECONDS)[0])
            line = self._process.stdout.readline() if answered else ""
        except BrokenPipeError:
            answered, line = True, ""
        if not line:
            self.close_process()
            message = "the library crashed" if answered else f"the library gave no answer in {ANSWER_SECONDS} s"
            return {"ok": False, "type": "Crash", "error": message}
        return json.loads(line)

    def record_api(self) -> str:
        """The public API of the installed library, as JSON text."""
        done = subprocess.run(
            [self.python, str(HERE / "record_api.py")],
            cwd=self._folder.name,
            env=self._environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def close_process(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    stream.close()
            self._process = None

    def __enter__(self) -> RealTtnn:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close_process()
        self._folder.cleanup()
