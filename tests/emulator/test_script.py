"""`python -m ttnn_emulator script.py` runs a script that imports `ttnn`, unchanged."""

from __future__ import annotations

import subprocess
import sys

from tests.patience import HANG_SECONDS

SCRIPT = """
import sys
import torch
import ttnn
import ttnn.transformer
from ttnn.types import CoreGrid

device = ttnn.open_device(device_id=0)
x = ttnn.from_torch(torch.full((32, 32), -1.0), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
print(ttnn.to_torch(ttnn.relu(x)).sum().item(), sys.argv[1:], CoreGrid(x=2, y=1).num_cores, __name__)
print(ttnn.get_arch_name(), device.compute_with_storage_grid_size())
ttnn.close_device(device)
"""


def run(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=HANG_SECONDS)


def test_a_script_runs_unchanged(tmp_path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(SCRIPT)
    done = run("-m", "ttnn_emulator", "--board", "p150", str(script), "--size", "3")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["0.0 ['--size', '3'] 2 __main__", "blackhole 11-10"]


def test_importing_the_emulator_does_not_shadow_ttnn() -> None:
    done = run("-c", "import sys, ttnn_emulator; print('ttnn' in sys.modules)")
    assert done.stdout.strip() == "False", done.stderr


def test_without_a_script_it_prints_help() -> None:
    done = run("-m", "ttnn_emulator")
    assert done.returncode == 2
    assert "the script to run" in done.stdout


def test_importing_prints_nothing() -> None:
    done = run("-c", "import ttnn_emulator")
    assert (done.stdout, done.stderr) == ("", "")
