"""The data folder: of a checkout or of --data, or an error with a hint."""

from __future__ import annotations

import pathlib

import pytest

from ttnn_emulator.conformance import __main__ as command
from ttnn_emulator.conformance import case_tables, recorded, test_data


@pytest.fixture(autouse=True)
def reset_data_folder():
    yield
    test_data._named.clear()


@pytest.mark.parametrize("name", ("record", "compare", "golden", "report"))
def test_the_error_of_a_missing_folder_has_its_name_and_a_hint(
    name: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main([name, "--data", str(tmp_path)]) == 2
    said = capsys.readouterr().out
    assert str(tmp_path) in said and "checkout" in said and "--data" in said


@pytest.mark.parametrize("name", ("record", "compare"))
def test_an_unknown_case_table_is_an_error_that_lists_the_known_ones(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ending:
        command.main([name, "softmax", "no_such_table"])
    assert ending.value.code == 2
    said = capsys.readouterr().err
    assert "no_such_table" in said and "softmax" in said


def test_another_folder_replaces_the_checkout(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = tmp_path / "cases" / "of_mine"
    cases.mkdir(parents=True)
    for folder in (cases, cases.parent):
        (folder / "__init__.py").touch()
    (cases / "_shared.py").write_text("SHAPE = (5, 33)\n")
    (cases / "mine.py").write_text(
        "from ttnn_emulator.conformance.case import T, call\n"
        "from ._shared import SHAPE\n"
        "BOARD = 'p150'\n"
        "def cases():\n"
        "    yield call('ttnn.relu', T(SHAPE))\n"
    )
    (tmp_path / "answers").mkdir()
    test_data.use(tmp_path)
    assert case_tables.families() == ["mine"] and case_tables.board_of("mine") == "p150"
    assert case_tables.numeric_rows_of("mine") == ()
    (case,) = case_tables.cases_of("mine")
    refusal = {"ok": False, "type": "RuntimeError", "error": "refused"}
    recorded.write("mine", {"ttnn": "0", "board": "p150"}, [(case, refusal)])
    assert recorded.recorded_families() == ["mine"] and recorded.header("mine")["board"] == "p150"
    assert command.main(["compare", "--data", str(tmp_path)]) == 1
    assert "1 operations, 1 cases" in capsys.readouterr().out
