"""`torch-ttnn perf`: models, scripts, files, JSON and invalid arguments."""

from __future__ import annotations

import csv
import json
import pathlib
import subprocess
import sys

import pytest

from tests.patience import HANG_SECONDS
from torch_ttnn.cli import main
from torch_ttnn.cli.command import parse
from torch_ttnn.errors import UserError


def test_a_model(capsys: pytest.CaptureFixture, tmp_path: pathlib.Path) -> None:
    assert main(["perf", "mnist-cnn", "--board", "p150", "-o", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("mnist-cnn on the emulated p150: predicted times, not measured")
    rows = list(csv.DictReader((tmp_path / "ops_perf_results.csv").open(encoding="utf-8")))
    assert {row["DEVICE ARCH"] for row in rows} == {"blackhole"}
    assert (tmp_path / "performance.html").exists()


def test_json_of_training(capsys: pytest.CaptureFixture) -> None:
    assert main(["perf", "mnist-cnn", "--batch", "2", "--training", "--precision", "float32", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["board"] == "n150" and data["programs"] > 20
    forward = main(["perf", "mnist-cnn", "--batch", "2", "--precision", "float32", "--json"])
    assert forward == 0 and json.loads(capsys.readouterr().out)["programs"] < data["programs"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["perf", "mnist-cnn", "--board", "n15"], "no board is called 'n15'; known boards: e150, n150"),
        (["perf", "nothing.py"], "there is no script nothing.py"),
        (["perf", "mnist-cnn", "more"], "only scripts take arguments"),
        (["perf", "mnist-cn"], "mnist-cn"),
    ],
)
def test_invalid_arguments(arguments: list[str], message: str, capsys: pytest.CaptureFixture) -> None:
    options = parse(arguments)
    with pytest.raises(UserError, match=message.replace("(", r"\(")):
        options.run(options)
    assert main(arguments) == 2
    assert "Traceback" not in capsys.readouterr().err


SCRIPT = """
import sys
import torch
import ttnn

with ttnn.open_device(device_id=0) as device:
    x = ttnn.from_torch(torch.ones(64, 64), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    ttnn.relu(x)
sys.exit(int(sys.argv[1]))
"""


def test_a_script_keeps_its_exit_code(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "torch_ttnn.cli", "perf", str(script), "--board", "p150", "--", "7"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_SECONDS)
    assert done.returncode == 7, done.stderr
    assert done.stdout.startswith("mine.py on the emulated p150") and "UnaryDeviceOperation" in done.stdout
