"""Files that cannot be read or written: one line that names the file, exit code 2, and nothing lost."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch
from safetensors.torch import save_file

from tests.cli.test_command import MODELS
from torch_ttnn.cli import main
from torch_ttnn.results import Row, store
from torch_ttnn.results.documents.readme import BEGIN, END

BLOCK = 4096


@pytest.fixture
def workplace(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    (tmp_path / "mine.py").write_text(MODELS)
    (tmp_path / "README.md").write_text(f"# A\n{BEGIN}\n{END}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    return tmp_path


@pytest.fixture
def disk(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A small separate disk, if the user may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip("only root mounts disks")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def fill(disk: pathlib.Path) -> None:
    with pytest.raises(OSError, match="No space left"), open(disk / "filling", "wb", buffering=0) as file:
        while True:
            file.write(bytes(BLOCK))


def error_line(capsys: pytest.CaptureFixture[str]) -> str:
    """The only line on standard error."""
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1, lines
    return lines[0]


def prepared(command: str, disk: pathlib.Path) -> list[str]:
    """Arguments with which a command overwrites files on the disk."""
    if command in ("stat", "run"):
        return [command, "mine:tiny", "-o", str(disk / "out"), "-q", "--again"]
    if command == "metrics":
        pytest.importorskip("pyarrow")
        return ["metrics", "mnist-cnn", "--calls", "1", "-o", str(disk / "out"), "-q", "--again"]
    if command == "report":
        assert main(["stat", "mine:tiny", "-o", "traced", "-q"]) == 0
        return ["report", "traced", "-o", str(disk / "out"), "--no-pictures", "-q"]
    if command == "results":
        pytest.importorskip("pyarrow")
        store.write([Row("resnet18", status="device", pcc=0.9, ops_before=7, device="emulator:n150")], "run.parquet")
        return ["results", "run.parquet", "--site", str(disk / "out")]
    return ["explain", "mine:tiny", "--html", str(disk / "out" / "page.html")]


@pytest.mark.parametrize("command", ["stat", "run", "metrics", "report", "results", "explain"])
def test_a_full_disk_is_one_line(
    command: str, workplace: pathlib.Path, disk: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = prepared(command, disk)
    kept = disk / "out" / "kept.txt"
    kept.parent.mkdir()
    kept.write_text("kept")
    fill(disk)
    capsys.readouterr()
    assert main(arguments) == 2
    line = error_line(capsys)
    assert line.startswith(f"torch-ttnn {command}: ")
    assert line.endswith("the disk is full")
    assert str(disk) in line
    assert kept.read_text() == "kept"
    assert not list(disk.rglob("*.part")), "no partial file is left"


@pytest.mark.parametrize("command", ["stat", "report", "results", "explain"])
def test_a_read_only_disk_is_one_line(
    command: str, workplace: pathlib.Path, disk: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = prepared(command, disk)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    capsys.readouterr()
    assert main(arguments) == 2
    line = error_line(capsys)
    assert line.endswith("the disk is read-only")
    assert str(disk) in line


def test_earlier_results_survive_a_full_disk(workplace: pathlib.Path, disk: pathlib.Path) -> None:
    arguments = prepared("stat", disk)
    assert main(arguments) == 0
    before = {path: path.read_bytes() for path in (disk / "out").rglob("*.json")}
    assert before
    fill(disk)
    assert main(arguments) == 2
    assert {path: path.read_bytes() for path in (disk / "out").rglob("*.json")} == before


@pytest.mark.parametrize("command", ["stat", "report", "results", "explain"])
def test_a_file_in_the_way_of_a_folder_is_one_line(
    command: str, workplace: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = prepared(command, workplace)
    (workplace / "out").write_text("a file")
    capsys.readouterr()
    assert main(arguments) == 2
    assert str(workplace / "out") in error_line(capsys)
    assert (workplace / "out").read_text() == "a file"


def test_a_full_standard_output_is_one_line(workplace: pathlib.Path) -> None:
    if not pathlib.Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    called = [sys.executable, "-m", "torch_ttnn.cli", "models"]
    root = pathlib.Path(__file__).parents[2]
    with open("/dev/full", "w") as full:
        done = subprocess.run(called, stdout=full, stderr=subprocess.PIPE, text=True, cwd=root)
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["torch-ttnn models: standard output: the disk is full"]


def good() -> dict[str, torch.Tensor]:
    return {"layer.weight": torch.ones(4, 8), "layer.bias": torch.zeros(4)}


def cut_short(path: pathlib.Path) -> None:
    save_file(good(), path)
    path.write_bytes(path.read_bytes()[:-9])


def no_header(path: pathlib.Path) -> None:
    path.write_bytes(b"\xff" * 64)


def empty(path: pathlib.Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [cut_short, no_header, empty])
@pytest.mark.parametrize("command", ["stat", "run", "explain"])
def test_corrupt_weights_are_one_line_before_any_job(
    command: str, damage, workplace: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(workplace / "w.safetensors")
    assert main([command, "mine:tiny", "--weights", "w.safetensors"]) == 2
    assert "w.safetensors is corrupt, or not a safetensors file" in error_line(capsys)
    assert not (workplace / "stat").exists()


def test_a_corrupt_index_of_shards_is_one_line(workplace: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    (workplace / "w").mkdir()
    index = workplace / "w" / "model.safetensors.index.json"
    for text, what in (("{", "cannot be read as an index"), ('{"weight_map": {"a": "b"}}', "names the shard 'b'")):
        index.write_text(text)
        assert main(["stat", "mine:tiny", "--weights", "w"]) == 2
        assert what in error_line(capsys)
    index.write_text('{"weight_map": {"layer.weight": "b.safetensors"}}')
    empty(workplace / "w" / "b.safetensors")
    assert main(["stat", "mine:tiny", "--weights", "w"]) == 2
    assert "b.safetensors is corrupt" in error_line(capsys)
