"""docs/timing.md: its tables are those of the evaluation, its example prints what is shown."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from ttnn_emulator.timing.__main__ import main
from ttnn_emulator.timing.evaluation.markdown import BEGIN, END

DATA = Path(__file__).parents[1] / "data"
PAGE = Path(__file__).parents[4] / "docs" / "timing.md"
NEAR = 3.0  # percentage points
REGENERATE = (
    "python -m ttnn_emulator.timing evaluate tests/emulator/timing/data/*.{csv,jsonl} --markdown docs/timing.md"
)
NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?%?")


def rows_of(text: str) -> dict[str, list[str]]:
    """Cells of the tables by family and board, or by list."""
    lines = text.partition(BEGIN)[2].partition(END)[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return {f"{first}, {second}": rest for first, second, *rest in cells}


def test_the_tables_are_current(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n", encoding="utf-8")
    files = sorted([*DATA.glob("*.csv"), *DATA.glob("*.jsonl")])
    assert main(["evaluate", *map(str, files), "--markdown", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text
    shown, found = rows_of(PAGE.read_text(encoding="utf-8")), rows_of(text)
    assert list(shown) == list(found), REGENERATE
    for name, cells in found.items():
        for ours, theirs in zip(shown[name], cells, strict=True):
            if ours.endswith("%") and theirs.endswith("%"):
                assert float(ours[:-1]) == pytest.approx(float(theirs[:-1]), abs=NEAR), (name, REGENERATE)
            elif NUMBER.fullmatch(ours) and NUMBER.fullmatch(theirs):
                assert float(ours) == pytest.approx(float(theirs), rel=NEAR / 100), (name, REGENERATE)


def test_a_page_without_marks_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text("no marks\n", encoding="utf-8")
    assert main(["evaluate", str(DATA / "gemm_flops.csv"), "--markdown", str(page)]) == 2
    assert "between which the tables belong" in capsys.readouterr().err
    assert page.read_text(encoding="utf-8") == "no marks\n"


def test_the_example_prints_what_is_shown() -> None:
    code, shown = re.findall(r"^```(?:python)?\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)[
        :2
    ]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(PAGE), "exec"), {"__name__": "example"})
    assert printed.getvalue() == shown
