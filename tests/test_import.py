"""Importing the package changes nothing for the script that does."""

from __future__ import annotations

import subprocess
import sys


def test_the_path_of_modules_stays_as_it_is() -> None:
    code = (
        "import sys; before = list(sys.path)\n"
        "import torch_ttnn, torch_ttnn.check, ttnn_emulator.conformance.server\n"
        "assert sys.path == before, sys.path"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
