"""Citations of the library's sources have one style, so that a grep lists all of them."""

from __future__ import annotations

import ast
import json
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


# Entries of boards.json that describe our own table, not a chip or a card.
OWN_ENTRIES = {"chip", "mesh", "dispatch", "variants", "on_request"}


def test_every_fact_of_a_board_has_a_source():
    table = json.loads((ROOT / "hardware" / "boards.json").read_text(encoding="utf-8"))
    entries = {key for part in ("chips", "boards") for each in table[part].values() for key in each}
    assert entries - OWN_ENTRIES <= set(table["sources"])


# Numbers in modules of operations that are not the library's choice.
OWN_CONSTANTS = frozenset(
    # sizes of tiles, faces and integers, and alignments
    "TILE FACE HALF_ROW TF32_BITS DRAM_STEP L1_STEP L1_PAGE UINT32 INT32_LIMIT UINT32_LIMIT UNKNOWN MOST_CYCLES "
    "MOST_ROWS OUTPUT_STEP "
    # mathematics, permutations and dimensions
    "LN2 LN10 DEGREE FACTORIALS CORNERS CENTRE SWAP_HEIGHT SWAP_BATCH WIDTH_TO_CHANNELS CHANNELS_TO_WIDTH IDENTITY "
    "CN HC WH TO_FRONT HEIGHT_AND_WIDTH SMALL_POWERS "
    # thresholds between our own computations
    "ONE_WORKER MOST_WINDOWS".split()
)
# Facts that the recorded answers or golden vectors confirm, and whose place in the public sources was not found.
UNTRACED = frozenset("CODE_RESERVE WIDEST_FRAMES EIGHT NINTH".split())


def uncited_constants(source: str) -> list[str]:
    """Module-level names with numbers, without a citation in the lines directly above or on the same line."""
    lines = source.splitlines()
    names = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and has_numbers(node.value):
            first = node.lineno - 1
            while first > 0 and lines[first - 1].strip():
                first -= 1
            if not any(SOURCE.search(line) for line in lines[first : node.lineno]):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                names += [each.id for each in ast.walk(target) if isinstance(each, ast.Name)]
    return names


SOURCE = re.compile(r"# tt-metal v|# asked ttnn")
SMALL = range(-2, 3)  # flags, exponents and factors, which need no source


def has_numbers(value: ast.expr) -> bool:
    numbers = (each.value for each in ast.walk(value) if isinstance(each, ast.Constant))
    return any(isinstance(each, int | float) and each not in SMALL for each in numbers)


@pytest.mark.parametrize("path", sorted((ROOT / "ops").rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_constants_of_operations_are_cited(path):
    assert set(uncited_constants(path.read_text(encoding="utf-8"))) <= OWN_CONSTANTS | UNTRACED


def test_a_constant_without_a_source_is_reported():
    assert uncited_constants("WIDTH = 16\n") == ["WIDTH"]
    assert uncited_constants("# tt-metal v0.81.1: ttnn/cpp/a.cpp, width\nWIDTH = 16\nHEIGHT = 8\n") == []
    assert uncited_constants("# tt-metal v0.81.1: ttnn/cpp/a.cpp, width\nWIDTH = 16\n\nHEIGHT = 8\n") == ["HEIGHT"]
