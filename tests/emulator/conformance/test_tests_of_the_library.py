"""`python -m ttnn_emulator.conformance tests`: runs tests written for `ttnn` on the emulator, unchanged."""

from __future__ import annotations

import json
import pathlib

import pytest

from tests.patience import HANG_SECONDS
from ttnn_emulator.conformance import __main__ as command
from ttnn_emulator.conformance import unit_tests

TESTS = """
import os

import pytest
import torch
import ttnn
from tests.words import FOUR


@pytest.mark.parametrize("size", range(1, 40))
def test_drawn(size):
    with ttnn.open_device(device_id=0) as device:
        x = ttnn.from_torch(torch.ones(size, FOUR), layout=ttnn.TILE_LAYOUT, device=device)
        assert ttnn.to_torch(ttnn.add(x, 1)).sum() == 8 * size


"""
ENDINGS = """
import os

import pytest
import ttnn


def test_passes():
    assert ttnn.TILE_SIZE == 32


def test_fails():
    assert ttnn.TILE_SIZE == 31


def test_skips():
    pytest.skip("not here")


def test_of_another_release():
    ttnn.an_operation_of_next_year()


def test_with_kernels():
    ttnn.generic_op([], None)


def test_ends_the_process():
    os._exit(3)
"""


@pytest.fixture
def checkout(tmp_path: pathlib.Path) -> pathlib.Path:
    folder = tmp_path / unit_tests.UNIT_TESTS
    folder.mkdir(parents=True)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "tests" / "words.py").write_text("FOUR = 4\n")  # its own folder `tests`, as in tt-metal
    (folder / "test_add.py").write_text(TESTS)
    (folder / "test_endings.py").write_text(ENDINGS)
    return tmp_path


def test_cases_are_sampled_and_classified(checkout: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = checkout / "endings.json"
    arguments = ["tests", str(checkout), "--draw", "6", "--output", str(output)]
    assert command.main(arguments) == 1  # 7 of 9 pass
    endings = {each["case"].partition("::")[2]: each for each in json.loads(output.read_text())}
    drawn = [name for name in endings if name.startswith("test_drawn")]
    assert len(drawn) == 6 and all(endings[name]["outcome"] == "passed" for name in drawn)
    outcomes = {name: each["outcome"] for name, each in endings.items() if name not in drawn}
    assert outcomes == {
        "test_passes": "passed",
        "test_fails": "failed",
        "test_skips": "skipped",
        "test_of_another_release": "out of scope",
        "test_with_kernels": "out of scope",
        "test_ends_the_process": "failed",
    }
    assert endings["test_ends_the_process"]["reason"] == "the process ended within this test"
    assert "assert 32 == 31" in endings["test_fails"]["reason"]
    printed = capsys.readouterr().out
    assert "77.8%" in printed and "custom kernels: 1" in printed


def test_another_seed_samples_other_cases(checkout: pathlib.Path) -> None:
    def drawn(seed: int) -> list[str]:
        file = f"{unit_tests.UNIT_TESTS}/test_add.py"
        return [ending.case for ending in unit_tests.run_file(checkout, file, draw=5, seed=seed, timeout=HANG_SECONDS)]

    assert drawn(0) == drawn(0) != drawn(1)


def test_a_file_that_hangs_is_stopped(checkout: pathlib.Path) -> None:
    file = checkout / unit_tests.UNIT_TESTS / "test_endless.py"
    file.write_text("def test_endless():\n    while True:\n        pass\n")
    (ending,) = unit_tests.run_file(checkout, str(file.relative_to(checkout)), draw=0, seed=0, timeout=15)
    assert ending.outcome == "failed"


def test_a_folder_without_tests_is_reported_in_one_line(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["tests", str(tmp_path / "nowhere")]) == 2
    assert command.main(["tests", str(tmp_path)]) == 2
    assert command.main(["tests", str(tmp_path), "tests/no_such_file.py"]) == 2
    printed = capsys.readouterr().out.replace("\n", "")
    assert "nowhere" in printed and "there are no tests in" in printed and "no_such_file.py" in printed
