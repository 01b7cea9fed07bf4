"""Runs the unit tests of a tt-metal checkout on the emulator, unchanged, and reports which pass.

A test counts unless it skips itself or is out of scope: the emulator is one host with single chips and their Python
API, of one release. Whether a test is out of scope follows from its error, never from its name.
"""

from __future__ import annotations

import json
import multiprocessing
import pathlib
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from ttnn_emulator.conformance import drawn_tests, lacking

UNIT_TESTS = "tests/ttnn/unit_tests"

# Errors of tests that are out of scope, searched in the error lines of a failure.
OUT_OF_SCOPE = (
    ("another release of ttnn", r"AttributeError: (ttnn has no |module 'ttnn[\w.]*' has no attribute)"),
    ("another release of ttnn", r"ImportError: cannot import name .* from 'ttnn"),
    ("another release of ttnn", r"ModuleNotFoundError: No module named 'ttnn"),
    ("a package that is not installed", r"ModuleNotFoundError: No module named '(?!ttnn|tt_lib|tests|models)"),
    ("torchvision of another build than torch", r"operator torchvision::nms does not exist"),
    ("a download", r"LocalEntryNotFoundError|OfflineModeIsEnabled|We couldn't connect to|is not a local folder"),
)
# Groups of `api/lacking.json` that will not be emulated; a missing name of another group is a failure.
GROUPS_OUT_OF_SCOPE = ("custom kernels", "Quasar", "several chips and hosts")
NOT_EMULATED = re.compile(r"NotEmulated: (ttnn[\w.]*)|(ttnn[\w.]*) exists in ttnn but is not emulated")


@dataclass(frozen=True)
class Ending:
    """The outcome of one case of a test."""

    case: str
    outcome: str  # passed, skipped, failed, out of scope
    reason: str = ""


@dataclass
class Summary:
    """Cases by outcome."""

    endings: list[Ending] = field(default_factory=list)

    def count(self, outcome: str) -> int:
        return sum(ending.outcome == outcome for ending in self.endings)

    @property
    def share(self) -> float:
        """The share of passing cases among those that count."""
        counted = self.count("passed") + self.count("failed")
        return self.count("passed") / counted if counted else 0.0

    @property
    def reasons_out_of_scope(self) -> Counter[str]:
        return Counter(ending.reason for ending in self.endings if ending.outcome == "out of scope")

    def by_folder(self) -> dict[str, Summary]:
        found: dict[str, Summary] = {}
        for ending in self.endings:
            folder = str(pathlib.PurePosixPath(ending.case.partition("::")[0]).parent)
            found.setdefault(folder, Summary()).endings.append(ending)
        return found


def test_files(checkout: pathlib.Path, chosen: Sequence[str] = ()) -> list[str]:
    """The test files below the given folders, relative to the checkout."""
    found = []
    for each in chosen or (UNIT_TESTS,):
        path = checkout / each
        files = sorted(path.rglob("test_*.py")) if path.is_dir() else [path] if path.is_file() else []
        found += [str(file.relative_to(checkout)) for file in files]
    return found


def run_file(checkout: pathlib.Path, file: str, *, draw: int, seed: int, timeout: float) -> list[Ending]:
    """Run cases of one file in a separate process, forked from one that has imported the emulator."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([drawn_tests.__name__])
    with tempfile.TemporaryDirectory() as folder:
        outcomes, log = pathlib.Path(folder) / "outcomes.json", pathlib.Path(folder) / "log.txt"
        process = context.Process(
            target=drawn_tests.run, args=(str(checkout), file, draw, seed, str(outcomes), str(log))
        )
        process.start()
        process.join(timeout)
        ended = "the process ended within this test"
        if process.is_alive():
            ended = f"timed out after {timeout:.0f} s"
            process.kill()
            process.join()
        if not outcomes.exists():
            tail = log.read_text(encoding="utf-8", errors="replace")[-2000:] if log.exists() else ended
            return [] if "no tests ran" in tail else [Ending(file, "failed", tail)]
        read = json.loads(outcomes.read_text(encoding="utf-8"))
    return [ending_of(case, each["outcome"], each["reason"], ended) for case, each in read.items()]


def ending_of(case: str, outcome: str, reason: str, ended: str) -> Ending:
    """The outcome of a case: failures out of scope do not count."""
    if outcome in ("passed", "skipped"):
        return Ending(case, outcome, reason)
    if outcome == "started":
        return Ending(case, "failed", ended)
    errors = "\n".join(line for line in reason.splitlines() if line.startswith("E ")) or reason
    for why, pattern in OUT_OF_SCOPE:
        if re.search(pattern, errors):
            return Ending(case, "out of scope", why)
    if _takes_other_arguments(errors):
        return Ending(case, "out of scope", "another release of ttnn")
    for match in NOT_EMULATED.finditer(errors):
        group = group_of(match[1] or match[2])
        if group in GROUPS_OUT_OF_SCOPE:
            return Ending(case, "out of scope", group)
    return Ending(case, "failed", reason)


def _takes_other_arguments(errors: str) -> bool:
    """Whether a call names an argument that no signature of the recorded release has."""
    refused = re.search(r"SignatureError: \S+: incompatible arguments \((.*?)\)\n(.*)", errors, re.DOTALL)
    if refused is None:
        return False
    named = re.findall(r"\b(\w+)=", refused[1])
    return any(not re.search(rf"\b{name}:", refused[2]) for name in named)


def group_of(name: str) -> str:
    """The group of a name that is not emulated."""
    for group in lacking.groups():
        if any(re.search(pattern, name) for pattern in group["names"]):
            return group["group"]
    return ""


def run_files(
    checkout: pathlib.Path, files: Sequence[str], *, draw: int, seed: int, timeout: float, processes: int
) -> Iterator[tuple[str, list[Ending]]]:
    """Run files in parallel and yield the outcomes of each, in the order of the files."""
    with ThreadPoolExecutor(processes) as pool:

        def run(file: str) -> tuple[str, list[Ending]]:
            return file, run_file(checkout, file, draw=draw, seed=seed, timeout=timeout)

        yield from pool.map(run, files)
