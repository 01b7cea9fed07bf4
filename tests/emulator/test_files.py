"""Files are written atomically."""

from __future__ import annotations

import pytest

from ttnn_emulator.atomic_files import replacing


def test_a_file_is_replaced_after_it_is_written(tmp_path) -> None:
    target = tmp_path / "report.json"
    target.write_text("old")
    with replacing(target) as temporary:
        temporary.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(tmp_path, error) -> None:
    target = tmp_path / "report.json"
    target.write_text("old")
    with pytest.raises(error), replacing(target) as temporary:
        temporary.write_text("half")
        raise error
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_two_writers_do_not_share_a_temporary_file(tmp_path) -> None:
    target = tmp_path / "report.json"
    with replacing(target) as first, replacing(target) as second:
        assert first != second
        first.write_text("first")
        second.write_text("second")
    assert target.read_text() == "first"  # the last writer
