"""Runs ttnn-visualizer from an environment of its own, and opens reports in it."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.patience import HANG_SECONDS

TOOL = ("ttnn-visualizer==0.108.0", "pandas<3")


def installed(folder: pathlib.Path) -> str:
    """Install the tool in a new environment and return its command."""
    venv.create(folder, with_pip=True)
    binaries = folder / ("Scripts" if os.name == "nt" else "bin")
    subprocess.run([str(binaries / "python"), "-m", "pip", "install", "--quiet", *TOOL], check=True)
    return str(binaries / "ttnn-visualizer")


@dataclass(frozen=True)
class Visualizer:
    """A running server."""

    port: int

    def report(self, folder: pathlib.Path) -> str:
        """Open the report of a folder, with its performance sheet if there is one; returns the id of the view."""
        paths = {"profiler_path": str(folder.resolve())}
        if (folder / "ops_perf_results.csv").exists():
            paths["performance_path"] = str(folder.resolve())
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/api/instance/local-paths",
            json.dumps(paths).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=HANG_SECONDS) as answer:
            return json.load(answer)["instance_id"]

    def url(self, view: str, path: str = "/") -> str:
        return f"http://127.0.0.1:{self.port}{path}?instanceId={view}"

    def is_up(self) -> bool:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/up", timeout=5).close()
        except urllib.error.HTTPError:  # it answers, even if it wants more arguments
            return True
        except OSError:
            return False
        return True


@contextmanager
def running(command: str) -> Iterator[Visualizer]:
    """The server on a free port; it and its workers end with the block."""
    with tempfile.TemporaryDirectory() as data, open(pathlib.Path(data) / "log", "wb") as log:
        server = Visualizer(_free_port())
        environment = os.environ | {
            "APP_DATA_DIRECTORY": f"{data}/app",
            "REPORT_DATA_DIRECTORY": f"{data}/reports",
            "HOST": "127.0.0.1",
            "BROWSER": "true",  # it opens a browser: a command that does nothing
            "USAGE_RECORDING_DISABLED": "true",
        }
        for name in ("APP_DATA_DIRECTORY", "REPORT_DATA_DIRECTORY"):
            pathlib.Path(environment[name]).mkdir()
        process = subprocess.Popen(
            [command, "--port", str(server.port)],
            env={name: value for name, value in environment.items() if name != "PYTHONPATH"},
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=data,
            start_new_session=True,
        )
        try:
            deadline = time.monotonic() + HANG_SECONDS
            while not server.is_up():
                text = (pathlib.Path(data) / "log").read_text(errors="replace")
                assert process.poll() is None, f"{command} ended:\n{text}"
                assert time.monotonic() < deadline, f"{command} does not answer:\n{text}"
                time.sleep(0.5)
            yield server
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(HANG_SECONDS)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
