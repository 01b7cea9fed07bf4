"""Citations of the library's sources have one style, so that a grep lists all of them."""

from __future__ import annotations

import pathlib
import re
import tokenize

import pytest

ROOT = pathlib.Path(__file__).parents[2] / "ttnn_emulator"
MODULES = sorted(ROOT.rglob("*.py"))
SUFFIXES = r"(?:cpp|hpp|h|py|md|json)"

# `# tt-metal v0.81.1: <path from the repository's root>, <symbol or topic>`. The symbol may be on the next line.
ROOTS = r"(?:ttnn|tt_metal|tech_reports|tests|tools)"
CITATION = re.compile(rf"# tt-metal v\d+\.\d+\.\d+: {ROOTS}/[\w./-]+\.{SUFFIXES},(?P<symbol>.*)")

ASKED = re.compile(r"# asked ttnn \d+\.\d+\.\d+: \S")
SOURCE_FILE = re.compile(r"\b\w+\.(?:cpp|hpp|h)\b")


def comments(path: pathlib.Path) -> dict[int, str]:
    with path.open("rb") as stream:
        return {
            token.start[0]: token.string
            for token in tokenize.tokenize(stream.readline)
            if token.type == tokenize.COMMENT
        }


def wrong_citations(path: pathlib.Path) -> list[str]:
    found = comments(path)
    wrong = []
    for line, text in found.items():
        if "tt-metal" in text:
            match = CITATION.fullmatch(text)
            continued = found.get(line + 1, "").removeprefix("#")
            if match is None or not (match["symbol"].strip() or continued.strip()):
                wrong.append(f"{path.name}:{line}: {text}")
        if "asked ttnn" in text and not ASKED.match(text):
            wrong.append(f"{path.name}:{line}: {text}")
    return wrong


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_comments_cite_the_library_in_one_style(path):
    assert wrong_citations(path) == []


@pytest.mark.parametrize("path", sorted((ROOT / "ops").rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_operations_name_source_files_in_citations_only(path):
    lines = path.read_text().splitlines()
    assert [line for line in lines if SOURCE_FILE.search(line) and "# tt-metal v" not in line] == []


@pytest.mark.parametrize(
    "comment",
    [
        "# tt-metal: ttnn/cpp/ttnn/operations/matmul/matmul.cpp, matmul",
        "# tt-metal v0.81.1: matmul.cpp, matmul",
        "# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/matmul/matmul.cpp",
        "# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/matmul/matmul.cpp,",
        "# asked ttnn, 16",
    ],
)
def test_other_styles_are_reported(tmp_path, comment):
    module = tmp_path / "module.py"
    module.write_text(f"{comment}\nWIDTH = 16\n")
    assert len(wrong_citations(module)) == 1


def test_the_style_is_accepted(tmp_path):
    module = tmp_path / "module.py"
    module.write_text(
        "# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/matmul/matmul.cpp, matmul\n"
        "WIDTH = 16\n"
        "# tt-metal v0.81.1: ttnn/cpp/ttnn/operations/matmul/matmul.cpp,\n"
        "# linear and addmm\n"
        "HEIGHT = 16\n"
        "# asked ttnn 0.81.1: L1 use of a mock card\n"
        "BYTES = 2048\n"
    )
    assert wrong_citations(module) == []
