"""`tt-perf-report` opens the sheets of models and of a script. It is installed in an environment of its own."""

from __future__ import annotations

import csv
import os
import pathlib
import subprocess
import sys
import venv

import pytest
import torch

from tests.patience import HANG_SECONDS
from torch_ttnn.perf.profile import profile
from torch_ttnn.zoo import catalog

TOOL = "tt-perf-report==1.4.1"
SCRIPT = """
import torch
import ttnn
from tracy import signpost

with ttnn.open_device(device_id=0, l1_small_size=32768) as device:
    x = ttnn.from_torch(torch.ones(1, 1, 1024, 64), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    w = ttnn.from_torch(torch.ones(64, 64), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    kernel = ttnn.from_torch(torch.ones(32, 64, 3, 3), dtype=ttnn.bfloat16)
    ttnn.relu(x)
    signpost("measured")
    y = ttnn.add(ttnn.linear(x, w), x)
    ttnn.conv2d(input_tensor=y, weight_tensor=kernel, in_channels=64, out_channels=32, device=device,
                kernel_size=(3, 3), padding=(1, 1), batch_size=1, input_height=32, input_width=32)
    ttnn.softmax(y, dim=-1)
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The command, with its own pandas."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    binaries = folder / ("Scripts" if os.name == "nt" else "bin")
    subprocess.run([str(binaries / "python"), "-m", "pip", "install", "--quiet", TOOL], check=True)
    return str(binaries / "tt-perf-report")


def report(tool: str, sheet: pathlib.Path) -> list[dict[str, str]]:
    """The rows that the tool makes of a sheet."""
    out = sheet.with_suffix(".report.csv")
    done = subprocess.run(
        [tool, "--no-color", "--csv", str(out), str(sheet)], capture_output=True, text=True, timeout=HANG_SECONDS
    )
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stdout + done.stderr
    return list(csv.DictReader(out.open(encoding="utf-8")))


@pytest.mark.parametrize("name", ["resnet18", "bert-large-qa"])
def test_models(tool: str, name: str, tmp_path: pathlib.Path) -> None:
    entry = catalog.resolve(name, layers=2 if name.startswith("bert") else None)
    arguments, keywords = entry.inputs(0)
    with torch.no_grad():
        found = profile(entry.build(), *arguments, **keywords)
    found.write(tmp_path)
    rows = [row for row in report(tool, tmp_path / "ops_perf_results.csv") if row["Device Time"]]
    assert len(rows) == len(found.programs)
    time = sum(float(row["Device Time"]) for row in rows)
    assert time * 1e3 == pytest.approx(found.kernels_ns, rel=0.01)
    products = [row for row in rows if "Matmul" in row["OP Code"] or "Conv2d" in row["OP Code"]]
    assert products and all(row["FLOPs %"] and row["Math Fidelity"] for row in products)


def test_a_script(tool: str, tmp_path: pathlib.Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "ttnn_emulator", "--profile", str(tmp_path), str(script)]
    subprocess.run(command, check=True, capture_output=True, timeout=HANG_SECONDS)
    codes = [row["OP Code"].split(" ")[0] for row in report(tool, tmp_path / "ops_perf_results.csv")]
    assert codes[:2] == ["MatmulDeviceOperation", "BinaryNgDeviceOperation"]  # from the last signpost on
    assert "Conv2dDeviceOperation" in codes and codes[-1] == "SoftmaxDeviceOperation"
