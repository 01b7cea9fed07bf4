"""A pytest plugin that runs tests written for `ttnn` on the emulator: it samples cases and writes their outcomes.

`python -m ttnn_emulator.conformance tests` runs every test file with it in a separate process. The tests are not
changed.
"""

from __future__ import annotations

import json
import os
import random
import resource
import sys
from typing import Any

import psutil
import pytest

import ttnn_emulator

ttnn_emulator.install_as_ttnn()

MEMORY_SHARE = 0.4  # of the machine's memory that one test file may use


def run(checkout: str, file: str, draw: int, seed: int, outcomes: str, log: str) -> None:
    """Run `draw` cases of a file of a checkout; 0 runs all."""
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(checkout)
    os.environ.update(TT_METAL_HOME=checkout, HF_HUB_OFFLINE="1")
    # The checkout comes first in the import path, as with pytest in the checkout: the emulator has its own package
    # `tests`, which would hide the folder of that name.
    hiding = [path for path in sys.path if os.path.exists(os.path.join(path, "tests", "__init__.py"))]
    sys.path[:] = [checkout, *[path for path in sys.path if path not in hiding]]
    limit = int(psutil.virtual_memory().total * MEMORY_SHARE)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    sys.exit(pytest.main(["-p", "no:cacheprovider", "-q", file], plugins=[DrawnTests(draw, seed, outcomes)]))


class DrawnTests:
    """Samples cases and writes the outcome of each as it ends."""

    def __init__(self, draw: int, seed: int, path: str) -> None:
        self.draw, self.seed, self.path = draw, seed, path
        self.outcomes: dict[str, dict[str, str]] = {}

    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        """Keep the requested number of cases per file, the same ones for the same seed."""
        if not self.draw:
            return
        by_file: dict[str, list[Any]] = {}
        for item in items:
            by_file.setdefault(item.nodeid.partition("::")[0], []).append(item)
        kept = set()
        for file, of_file in by_file.items():
            draw = random.Random(f"{self.seed}:{file}")
            kept |= {item.nodeid for item in draw.sample(of_file, min(self.draw, len(of_file)))}
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in kept])
        items[:] = [item for item in items if item.nodeid in kept]

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._write(report.nodeid, "error", str(report.longrepr))

    def pytest_runtest_logstart(self, nodeid: str, location: Any) -> None:
        """Write the start: a case that ends the process or hangs has no outcome."""
        self._write(nodeid, "started", "")

    def pytest_runtest_logreport(self, report: Any) -> None:
        known = self.outcomes.get(report.nodeid, {}).get("outcome")
        if (report.when == "call" or report.outcome != "passed") and known not in ("failed", "error"):
            reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else str(report.longrepr or "")
            self._write(report.nodeid, report.outcome, reason)

    def _write(self, nodeid: str, outcome: str, reason: str) -> None:
        self.outcomes[nodeid] = {"outcome": outcome, "reason": reason[-6000:]}
        with open(f"{self.path}.part", "w", encoding="utf-8") as file:
            json.dump(self.outcomes, file)
        os.replace(f"{self.path}.part", self.path)
