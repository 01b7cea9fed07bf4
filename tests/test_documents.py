"""README and docs are correct: commands run, code prints what is shown, links are valid."""

from __future__ import annotations

import doctest
import importlib
import os
import pathlib
import re
import subprocess
import sys

import pytest

from tests.patience import HANG_SECONDS

ROOT = pathlib.Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))]
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
PREDICTED = re.compile(r"[\d,.]+ (?:[nµm]s|%)|[\d,.]+/s")
NEAR = 0.3  # allowed relative difference of predicted times, which follow every refinement of the timing model
CLOSE = 0.05  # allowed relative difference of shown numbers: processors round float32 differently


WITH_EXAMPLES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for package in ("ttnn_emulator", "torch_ttnn")
    for path in sorted((ROOT / package).rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


def blocks(text: str) -> list[tuple[str, str]]:
    """(language, content) of every fenced block."""
    return re.findall(r"^```(\w*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def block_after(mark: str) -> str:
    return blocks(README[README.index(mark) :])[0][1]


def run(*command: str, folder: pathlib.Path = ROOT) -> str:
    environment = os.environ | {"COLUMNS": "120", "TERM": "dumb", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=HANG_SECONDS, env=environment)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def make(target: str, *options: str) -> str:
    """Run a target in the environment that the tests run in."""
    return run("make", "-s", "-o", "setup", f"VENV={sys.prefix}", *options, target)


def assert_shown(shown: str, printed: str) -> None:
    """Equal words and close numbers."""
    words = [re.sub(r"\s+", " ", NUMBER.sub("#", text)).strip() for text in (shown, printed)]
    assert words[0] == words[1], f"shown:\n{shown}\nprinted:\n{printed}"
    for ours, theirs in zip(NUMBER.findall(shown), NUMBER.findall(printed)):
        assert float(ours) == pytest.approx(float(theirs), rel=CLOSE), f"shown:\n{shown}\nprinted:\n{printed}"


def test_the_example_script_prints_what_is_shown() -> None:
    command, shown = (content for _, content in blocks(README[README.index("## The device alone") :])[:2])
    assert command.startswith("python ")
    assert_shown(shown, run(sys.executable, *command.split()[1:]))


def test_make_run_prints_what_is_shown() -> None:
    """Host operations and moves are the same, calls and PCC are near, times are not compared.

    The number of captured operations changes with the releases of transformers and torchvision.
    """
    shown, printed = block_after("`make run` prints:"), make("run")
    rows = [_rows(text) for text in (shown, printed)]
    assert [(row[0], *row[3:5]) for row in rows[0]] == [(row[0], *row[3:5]) for row in rows[1]], printed
    for ours, theirs in zip(*rows):
        assert [int(each) for each in ours[1:3]] == pytest.approx([int(each) for each in theirs[1:3]], rel=0.05), (
            printed
        )
        assert float(ours[5]) == pytest.approx(float(theirs[5]), abs=1e-3)
    assert [row[0] for row in rows[0]] == ["resnet18", "bert-large-qa"]
    assert all(row[3] == "0" for row in rows[1])
    assert shown.splitlines()[0].split() == printed.strip().splitlines()[0].split()


def _rows(text: str) -> list[list[str]]:
    """model, ops, device, host, to/from, PCC … of each line of the table."""
    return [line.split() for line in text.splitlines() if re.match(r"\s*[\w-]+\s+\d+\s+\d+\s+\d+\s+\d+/\d+", line)]


def test_the_one_line_works(tmp_path: pathlib.Path) -> None:
    code = next(content for language, content in blocks(README) if language == "python")
    setup, call = "import torch\nmodel = torch.nn.Linear(4, 4)\n", "\nprint(model(torch.ones(2, 4)).shape)"
    assert "torch.Size([2, 4])" in run(sys.executable, "-c", setup + code + call)


@pytest.mark.parametrize(
    ("heading", "mark"), [("## See what happened", "It prints:"), ("## What is emulated", "This prints:")]
)
def test_the_code_prints_what_is_shown(heading: str, mark: str, tmp_path: pathlib.Path) -> None:
    section = README[README.index(heading) :]
    code = next(content for language, content in blocks(section) if language == "python")
    shown = blocks(section[section.index(mark) :])[0][1]
    printed = run(sys.executable, "-c", code.replace('"report.html"', f'"{tmp_path / "report.html"}"'))
    texts = [re.sub(r"compiled in .*", "", text, flags=re.DOTALL) for text in (shown, printed)]
    for ours, theirs in zip(*map(predicted, texts)):
        assert ours == pytest.approx(theirs, rel=NEAR, abs=5), printed
    assert_shown(*[PREDICTED.sub("predicted", text) for text in texts])


def predicted(text: str) -> list[float]:
    """Predicted times in nanoseconds, calls per second, and percentages."""
    units = {"ns": 1.0, "µs": 1e3, "ms": 1e6}
    found = [re.split(r" |/", each.replace(",", "")) for each in PREDICTED.findall(text)]
    return [float(number) * units.get(unit, 1.0) for number, unit in found]


def test_make_test_is_what_continuous_integration_runs() -> None:
    planned = make("test", "-n")
    assert "ruff check" in planned
    assert "mypy" in planned
    assert "pytest" in planned
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_torch_and_torchvision_come_from_one_index() -> None:
    """Operators of a torchvision from another index do not load with torch."""
    from ttnn_emulator.conformance import environment

    command = ["make", "-n", "-B", "VENV=nowhere", "TORCH_INDEX=https://an.index", "setup"]
    planned = run(*command).splitlines()
    first = next(line for line in planned if "pip" in line and "install" in line)
    assert "--index-url https://an.index" in first
    requirements = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for wanted in (environment.TORCH, environment.TORCHVISION):
        assert f'"{wanted}"' in first
        assert f'"{wanted}"' in requirements


def test_the_benchmarks_run() -> None:
    assert "matmul 1024³" in run(sys.executable, "benchmarks/emulator.py", "--rounds", "1")
    models = run(sys.executable, "benchmarks/models.py", "--rounds", "1", "--models", "mnist-cnn", "--no-inductor")
    assert "mnist-cnn" in models
    kept = run(sys.executable, "benchmarks/models.py", "--kept", "--rounds", "1", "--models", "mnist-cnn")
    assert "a later one" in kept and "mnist-cnn" in kept


@pytest.mark.parametrize("target", re.findall(r"`make (\w+)`", README))
def test_every_target_named_exists(target: str) -> None:
    assert make(target, "-n")


@pytest.mark.parametrize("command", ["record", "compare", "ask", "golden", "report", "api"])
def test_the_conformance_tool_explains_itself(command: str) -> None:
    assert "usage:" in run(sys.executable, "-m", "ttnn_emulator.conformance", command, "--help")


def test_the_scores_in_the_readme_are_those_of_the_report() -> None:
    report = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
    cases, operations = re.search(r"\*\*Rules\.\*\* ([\d,]+) calls of (\d+) operations", README).groups()  # type: ignore[union-attr]
    assert f"{operations} operations, {cases.replace(',', '')} cases" in report
    share = re.search(r"memory\s+config in ([\d.]+) % of them", README).group(1)  # type: ignore[union-attr]
    assert f"Agreement: **{share}%**" in report
    vectors, exact = re.search(r"Of (\d+) golden vectors .*, (\d+) are reproduced bit for bit", README).groups()  # type: ignore[union-attr]
    rows = re.findall(r"^\| (?:moved|elementwise|accumulated) \|.*\| (\d+) \| (\d+) \| \d+ \|$", report, re.MULTILINE)
    assert (int(vectors), int(exact)) == tuple(map(sum, zip(*((int(a), int(b)) for a, b in rows))))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_are_valid(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        if "://" not in target:
            assert ((ROOT / document).parent / target).exists(), f"{document} links to {target}"


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_docstring_examples_pass(name: str) -> None:
    outcome = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert outcome.failed == 0


def test_the_tracers_commands_print_what_is_shown(tmp_path: pathlib.Path) -> None:
    """Counts and FLOPs are equal; times and memory are not compared."""
    section = README[README.index("## Which operations do models use?") :]
    commands, shown = (content for _, content in blocks(section)[:2])
    printed = []
    for command in commands.strip().splitlines():
        program, *arguments = command.split()
        assert program == "torch-ttnn"
        printed.append(run(sys.executable, "-m", "torch_ttnn.cli", *arguments, folder=tmp_path))
    rows = [_traced_rows(text) for text in (shown, "".join(printed))]
    assert rows[0] == rows[1], "".join(printed)
    assert [row[0] for row in rows[0]] == ["resnet18", "mobilenet_v2"]
    assert shown.strip().splitlines()[-1] == printed[-1].strip().splitlines()[-1]
    assert (tmp_path / "stat" / "index.html").stat().st_size > 10_000


def _traced_rows(text: str) -> list[list[str]]:
    """model, graphs, forward, backward, kinds, FLOPs and values of each line of the table."""
    return [line.split()[:8] for line in text.splitlines() if " G " in line and line.rstrip().endswith("GiB")]


FOLDERS = "torch_ttnn|ttnn_emulator|tests|compiler|fusion|lowering|numerics|ops|api|execution"
PATHS = re.compile(rf"`((?:{FOLDERS})/[\w/.]+)`")
DOCUMENTS = ["README.md", "CONTRIBUTING.md", *sorted([f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")])]
ROOTS = ("", "torch_ttnn/", "ttnn_emulator/", "torch_ttnn/compiler/")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_paths_in_documents_exist(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    missing = [path for path in PATHS.findall(text) if not any((ROOT / root / path).exists() for root in ROOTS)]
    assert not missing


def test_contributing_shows_every_folder() -> None:
    """Folders of the first level, and those of the compiler."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for package in ("torch_ttnn", "ttnn_emulator", "torch_ttnn/compiler"):
        for path in (ROOT / package).iterdir():
            if (path / "__init__.py").exists():
                assert f"`{path.relative_to(ROOT).as_posix()}/`" in text


def test_contributing_walks_through_few_files() -> None:
    """At most two files per kind of addition, test included; all of them are patterns of existing files."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    walks = re.findall(r"^## (Add [^\n]+)\n\nFiles: (.*?)\n\n", text, re.M | re.S)
    assert [name for name, _ in walks] == [
        "Add a lowering", "Add a fusion", "Add a zoo model", "Add a command", "Add an operation of the device",
    ]  # fmt: skip
    for _, files in walks:
        patterns = re.findall(r"`([\w<>/]+/[\w<>.]+\.py)`", files)
        assert 1 <= len(patterns) <= 2
        for pattern in patterns:
            assert list(ROOT.glob(re.sub(r"<\w+>", "*", pattern))), f"no file is like {pattern}"


def test_twenty_things_are_where_contributing_says() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text[text.index("### Where would you look for it?") : text.index("\n## Add a lowering")]
    rows = re.findall(r"^\| (.+?) \| `([^`]+)` \|$", section, re.M)
    assert len(rows) >= 20
    assert len({thing for thing, _ in rows}) == len(rows)
    assert [path for _, path in rows if not (ROOT / path).exists()] == []
