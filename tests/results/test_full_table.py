"""The full table in Markdown: all rows, correct numbers, and escaped names."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.results.invented import REASONS, VERSIONS, results
from torch_ttnn.results.documents import markdown as md
from torch_ttnn.results.documents.columns import COMMON
from torch_ttnn.results.documents.full_table import document
from torch_ttnn.results.documents.older_compiler import LEFT_OUT, link, peer_rows
from torch_ttnn.results.documents.versus_older import pairs, verdict_line, verdicts
from torch_ttnn.results.record import EVAL, FAILS, ON_DEVICE, TRAIN, WITH_HOST_OPS, HostOp, Predicted, Row, Task

ROWS = results(24)
ROW = Row(
    "resnet18", batch=8, status=WITH_HOST_OPS, ops_before=1393, ops_before_unique=21, ops_remaining=12,
    ops_remaining_unique=2, uploads=3, downloads=2, crossings_within=4, first_seconds=12.345, original_seconds=0.5,
    compiled_seconds=0.0123, pcc=0.989999, parameters=11_689_512, dram_peak=3 * 2**20, device="emulator:n150",
    host_ops=(HostOp("aten.sort.default", "values | shapes", "timm/a.py:3: x.sort()", 12),),
)  # fmt: skip


def sections(text: str) -> dict[str, str]:
    """Heading -> text below it."""
    parts = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def section(text: str, start: str) -> str:
    return next(content for title, content in sections(text).items() if title.startswith(start))


def lines(text: str) -> list[list[str]]:
    """Cells of the lines of a table, without its head."""
    found = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in cells] for cells in found][1:]


def test_cells_match_their_headings():
    (cells,) = lines(section(document([ROW]), "Inference (1)"))
    assert cells[: len(COMMON)] == [
        "resnet18", "🚧", "Yes", "8", "1,393 (21)", "12 (2)", "5 (4)", "12.3", "0.500", "0.0123", "0.98999", "",
    ]  # fmt: skip
    assert cells[len(COMMON) :] == ["11.7", "3.0 MiB"]


def test_predicted_times_are_apart_from_measured_ones():
    assert COMMON[-1].title == "Predicted Device Time (ms)"
    assert "not measured" in COMMON[-1].meaning
    predicted = Predicted("n150", 9, 1.2e-3, 4e-5, 0, 0, 0, 0, error=0.25, uncalibrated=0.1, sources="abc")
    for row, cell in ((replace(ROW, predicted=predicted), "1.24"), (ROW, "")):
        (cells,) = lines(section(document([row]), "Inference (1)"))
        assert cells[len(COMMON) - 1] == cell
        assert ("by the timing model of sources abc; they are no measurements" in document([row])) is bool(cell)
        assert ("± 25%" in document([row])) is bool(cell)


def test_every_row_is_there_once_and_in_order():
    text = document(ROWS)
    for title, mode in (("Inference", EVAL), ("Training", TRAIN)):
        keys = [cells[0].removesuffix(" †") for cells in lines(section(text, f"{title} ("))]
        assert keys == sorted(row.key for row in ROWS if row.mode == mode)


def test_a_row_that_fails_shows_no_counts_that_look_good():
    failed = Row("x", status=FAILS, reason="OutOfMemory: no room", ops_before=9, ops_before_unique=3, pcc=1.0)
    text = document([failed])
    cells = lines(section(text, "Inference (1)"))[0]
    assert cells[:7] == ["x", "❌", "No", "1", "9 (3)", "–", "–"]
    assert cells[10] == "–"
    assert lines(section(text, "Rows that fail")) == [["x", "OutOfMemory: no room"]]


def test_host_ops_have_their_reason_and_line():
    (cells,) = lines(section(document([ROW]), "Operations that stay on the host"))
    assert cells == ["resnet18", "aten.sort.default", "12", r"values \| shapes", "timm/a.py:3: x.sort()"]
    found = lines(section(document(ROWS), "Operations that stay on the host"))
    assert len(found) == sum(len(row.host_ops) for row in ROWS) > 3
    assert {cells[3] for cells in found} == set(REASONS)


def test_low_correlations_are_listed_worst_first():
    rows = [Row(name, status=ON_DEVICE, pcc=pcc) for name, pcc in (("a", 0.98), ("b", 0.5), ("c", 0.99))]
    assert [cells[:2] for cells in lines(section(document(rows), "Rows with a PCC below"))] == [
        ["b", "0.50000"], ["a", "0.98000"],
    ]  # fmt: skip


def test_tasks_show_both_and_the_difference():
    row = replace(ROW, tasks=(Task("MNIST test set", "accuracy, %", 10000, 99.1, 98.9),))
    (cells,) = lines(section(document([row]), "Tasks with real data"))
    assert cells == ["resnet18", "MNIST test set", "accuracy, %", "10,000", "99.10", "98.90", "-0.20"]
    assert "Tasks with real data" not in sections(document([ROW]))


def test_the_page_says_what_was_measured_on_what():
    text = document(ROWS)
    assert "do not edit" in text[:200]
    assert "The device is the emulated n150" in text and "say nothing about the speed of a card" in text
    for name, version in VERSIONS.items():
        assert f"{name} {version}" in text
    on_card = document([replace(ROW, device="ttnn:0", seed=7)])
    assert "The device is a card (ttnn:0)" in on_card and "Seed 7." in on_card and "emulated" not in on_card
    for column in COMMON:
        assert f"- **{column.title}**: {column.meaning}" in text


def test_differences_from_the_published_model_are_listed():
    text = document([replace(ROW, reduced="2 layers in place of 12.")])
    assert lines(section(text, "Inference (1)"))[0][0] == "resnet18 †"
    text = document([replace(ROW, reduced="2 layers in place of 12.", compared="A part.")])
    assert lines(section(text, "What differs")) == [["resnet18", "2 layers in place of 12. A part."]]
    text = document([replace(ROW, reduced="2 layers in place of 12.")])
    assert lines(section(text, "What differs")) == [["resnet18", "2 layers in place of 12."]]


# -- against the older compiler ---------------------------------------------------------------------------------------


def test_the_comparison_lists_exceptions_and_all():
    rows = [
        Row("densenet121", status=ON_DEVICE, programs=1),  # 597 transfers there
        Row("vgg16", status=WITH_HOST_OPS, ops_remaining=3, programs=1),  # none left to the host there
        Row("t5-small", status=FAILS),  # fails there as well
    ]
    assert {key: verdict for key, (verdict, _) in verdicts(rows).items()} == {
        "densenet121": "better", "vgg16": "worse", "t5-small": "equal",
    }  # fmt: skip
    assert "1 better, 1 equal, 1 worse, of 3 published rows" in verdict_line(rows)[0]
    text = section(document(rows), "Against the older compiler")
    exceptions, everything = text.split("### All common rows (3)")
    assert [cells[0] for cells in lines(exceptions)] == ["vgg16"]
    assert [cells[0] for cells in lines(everything)] == ["densenet121", "t5-small", "vgg16"]
    assert lines(everything)[0][2:7] == ["0", "0", "0", "597", "better"]


def test_rows_without_a_counterpart_have_a_reason():
    found = {cells[0]: cells[1] for cells in lines(section(document([]), "Left out"))}
    assert len(found) == len({peer.key for peer in peer_rows()})
    for key, reason in LEFT_OUT.items():
        assert found[md.plain(key)] == md.plain(reason)
    measured = [Row(ours.entry, peer.mode) for peer in peer_rows() if (ours := link(peer))]
    assert len(pairs(dict.fromkeys(measured))) == len(peer_rows()) - len(LEFT_OUT)
    assert ("Left out" in document(measured)) == bool(LEFT_OUT)


# -- hostile texts ---------------------------------------------------------------------------------------------------


def test_equal_rows_give_an_equal_text():
    shuffled = random.Random(1).sample(ROWS, len(ROWS))
    assert document(shuffled) == document(ROWS)


@given(st.text(st.characters(exclude_categories=[]), max_size=40))
def test_no_text_breaks_a_table_or_becomes_markup(text: str):
    row = replace(ROW, model=f"m{text}", host_ops=(HostOp(text, text, text),), reduced=text, reason=text, family=text)
    page = document([row])
    page.encode()  # lone surrogates are replaced
    for title in ("Inference (1)", "Operations that stay on the host"):
        assert len({len(cells) for cells in lines(section(page, title))}) == 1
        assert len(lines(section(page, title))) == 1
    assert "<" not in page.replace(page.splitlines()[2], "")


@pytest.mark.parametrize(
    "attack", ["a|b", "`x`", "[x](javascript:y)", "<script>", "*b*", "_b_", "<!-- -->", "\\|", "a\nb"]
)
def test_attacks_are_shown_as_they_are(attack: str):
    shown = md.plain(attack)
    plain = re.sub(r"\\(.)", r"\1", shown).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    assert plain == attack.replace("\n", " ")
    assert shown != attack
