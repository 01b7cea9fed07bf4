"""The results block in README.md: only the text between the markers is written, deterministically."""

from __future__ import annotations

import pathlib
import random

import pytest

from tests.results.invented import results
from torch_ttnn.results import Row, pages
from torch_ttnn.results.documents import readme
from torch_ttnn.results.documents.readme import BEGIN, END, BadMarkers

ROWS = results(24)
AROUND = f"# Title\n\nBefore.\n\n{BEGIN}\nold\n{END}\n\nAfter {{}}.\n"


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    file = tmp_path / "README.md"
    file.write_text(AROUND, encoding="utf-8")
    return file


def test_only_the_text_between_the_markers_changes(path: pathlib.Path):
    assert readme.stale(path, ROWS)
    assert readme.update(path, ROWS)
    text = path.read_text(encoding="utf-8")
    before, after = AROUND.split("\nold\n")
    assert text == f"{before}\n{readme.block(ROWS)}\n{after}"
    assert not readme.stale(path, ROWS)
    assert not readme.update(path, ROWS)


def test_other_rows_make_it_stale_and_equal_ones_do_not(path: pathlib.Path):
    readme.update(path, ROWS)
    assert not readme.stale(path, random.Random(0).sample(ROWS, len(ROWS)))
    assert readme.stale(path, ROWS[1:])


def test_the_block_has_totals_headlines_and_the_device():
    text = readme.block(ROWS)
    evals = [row for row in ROWS if row.mode == "eval"]
    assert f"**{len(evals)} models**, {len(evals)} inference and {len(ROWS) - len(evals)} training rows." in text
    heads = text.split("| Model |")[1].splitlines()[0]
    for title in (
        "Run Success", "Torch Ops (Before)", "Torch Ops (Remain)", "To/From Device Ops", "Original Run Time (s)",
        "Compiled Run Time (s)", "Accuracy", "Status", "Batch", "First Run (s)",
        "Predicted Device Time (ms)",
    ):  # fmt: skip
        assert f" {title} |" in heads
    assert "\n| resnet18 |" in text or "\n| resnet18 † |" in text
    assert "resnet18 (train)" in text
    assert "| mnist-cnn | MNIST test set | accuracy, % | 10,000 | 99.12 | 99.10 | -0.02 |" in text
    assert "The device is the emulated n150" in text
    assert f"[All {len(ROWS)} rows](docs/results.md)" in text


def test_line_endings_are_preserved(path: pathlib.Path):
    path.write_bytes(AROUND.replace("\n", "\r\n").encode())
    readme.update(path, ROWS)
    content = path.read_bytes()
    assert content.count(b"\n") == content.count(b"\r\n")
    assert not readme.stale(path, ROWS)


WRONG = {
    "no markers": ("# Title\n", f"lacks the marker {BEGIN}"),
    "no end": (f"{BEGIN}\n", f"lacks the marker {END}"),
    "two begins": (f"{BEGIN}\n{BEGIN}\n{END}\n", f"has 2 times the marker {BEGIN}"),
    "wrong order": (f"{END}\n{BEGIN}\n", "swap them"),
}


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG)
def test_wrong_markers_are_reported_and_nothing_is_written(path: pathlib.Path, text: str, message: str):
    path.write_text(text, encoding="utf-8")
    for act in (readme.update, readme.stale):
        with pytest.raises(BadMarkers, match=message.replace("(", r"\(")):
            act(path, ROWS)
    assert path.read_text(encoding="utf-8") == text


def test_a_missing_file_is_reported(tmp_path: pathlib.Path):
    with pytest.raises(BadMarkers, match="does not exist"):
        readme.update(tmp_path / "none.md", ROWS)


def test_markers_in_names_are_escaped(path: pathlib.Path):
    readme.update(path, [Row(f"resnet18{END}", status="device", pcc=1.0), Row("resnet18", family=BEGIN, device=END)])
    assert readme.update(path, ROWS)
    assert path.read_text(encoding="utf-8").count(END) == 1


# -- all pages in one call --------------------------------------------------------------------------------------------


def test_pages_are_written_and_checked_together(path: pathlib.Path, tmp_path: pathlib.Path):
    table, folder = tmp_path / "docs" / "results.md", tmp_path / "site"
    assert pages.check(ROWS, readme=path, results_md=table) == [path, table]
    written = pages.write(ROWS, readme=path, results_md=table, site=folder, before=ROWS[:-1])
    assert written == [path, table, folder / "index.html"]
    assert (folder / "compare.html").exists()
    assert pages.check(ROWS, readme=path, results_md=table) == []
    assert pages.write(ROWS, readme=path, results_md=table) == []
    table.write_text(table.read_text(encoding="utf-8") + "edited", encoding="utf-8")
    assert pages.check(ROWS, readme=path, results_md=table) == [table]
