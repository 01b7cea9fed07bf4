"""The device is registered when torch is imported, quickly, and never keeps torch from being imported."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest
import torch

from torch_ttnn.eager.device import registration
from torch_ttnn.eager.device.kernels import KERNELS

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def installed(tmp_path: pathlib.Path) -> dict[str, str]:
    """An environment in which the package's metadata is that of this checkout."""
    info = tmp_path / "torch_ttnn-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch_ttnn\nVersion: 0\n")
    entry = "[torch.backends]\nttnn = torch_ttnn.eager.device.registration:register\n"
    backends = "[torch_dynamo_backends]\nttnn = torch_ttnn:backend\ntorch_stat = torch_ttnn.tracer:backend\n"
    (info / "entry_points.txt").write_text(entry + backends)
    return {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}


def run(code: str, environment: dict[str, str]) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_torch_alone_knows_the_device(installed: dict[str, str]) -> None:
    code = "import torch; print((torch.ones(2, 2).to('ttnn') + 1).device)"
    assert run(code, installed) == "ttnn:0"


def test_importing_torch_imports_neither_the_compiler_nor_the_emulator(installed: dict[str, str]) -> None:
    code = (
        "import sys, torch\n"
        "heavy = ('numba', 'ttnn_emulator', 'torch_ttnn.compiler', 'torch_ttnn.devices')\n"
        "print([name for name in heavy if name in sys.modules], torch.device('ttnn', 0))"
    )
    assert run(code, installed) == "[] ttnn:0"


def test_importing_the_package_imports_no_torch(installed: dict[str, str]) -> None:
    assert run("import sys, torch_ttnn; print('torch' in sys.modules)", installed) == "False"


def test_another_owner_of_the_dispatch_key_is_a_warning(installed: dict[str, str]) -> None:
    code = (
        "import os; os.environ['TORCH_DEVICE_BACKEND_AUTOLOAD'] = '0'\n"
        "import warnings, torch; torch.utils.rename_privateuse1_backend('other')\n"
        "from torch_ttnn.eager.device.registration import register\n"
        "with warnings.catch_warnings(record=True) as caught: warnings.simplefilter('always'); register()\n"
        "print(caught[0].message)"
    )
    assert "could not register the device 'ttnn'" in run(code, installed)


def test_every_kernel_is_registered() -> None:
    assert {*registration.OF_DEVICE, *registration.OF_AUTOGRAD} == set(KERNELS)


def test_accelerator() -> None:
    assert torch.accelerator.current_accelerator() == torch.device("ttnn")
    assert torch.accelerator.is_available() and torch.accelerator.device_count() >= 1
    torch.accelerator.synchronize()
    before = torch.accelerator.memory_allocated()
    x = torch.zeros(64, 64, device="ttnn")
    assert torch.accelerator.memory_allocated() - before >= x.nbytes
