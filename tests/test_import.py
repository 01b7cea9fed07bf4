"""Importing the package has no side effects and takes no time."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

import torch_ttnn
from torch_ttnn.cli.command import COMMANDS

NAMES = [module.__name__.rpartition(".")[2] for module in COMMANDS]


def test_sys_path_is_unchanged() -> None:
    code = (
        "import sys; before = list(sys.path)\n"
        "import torch_ttnn, torch_ttnn.check, ttnn_emulator.conformance.server\n"
        "assert sys.path == before, sys.path"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


HEAVY = ("numba", "numpy", "pandas", "rich", "scipy", "sympy", "torch", "torchvision", "transformers", "ttnn_emulator")


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_the_package_imports_nothing_else() -> None:
    """Counted in modules, because seconds depend on the machine."""
    code = f"import sys, torch_ttnn; print([name for name in {HEAVY} if name in sys.modules])"
    assert run(code).strip() == "[]"


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], [], *([name, "--help"] for name in NAMES)])
def test_help_imports_neither_torch_nor_the_emulator(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom torch_ttnn.cli import main\n"
        f"try: main({arguments})\nexcept SystemExit: pass\n"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    assert run(code).splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", torch_ttnn.__all__)
def test_public_names_do_not_depend_on_earlier_imports(name: str) -> None:
    """`torch_ttnn.explain` is the function, also after the package of the same name, or a part of it, was imported."""
    code = (
        "import importlib, sys, torch_ttnn\n"
        "for module in ('backend', 'check.models', 'explain.page', 'export.script', 'options', 'check', 'explain'):\n"
        "    importlib.import_module(f'torch_ttnn.{module}')\n"
        "import torch_ttnn.explain.data\n"
        "from torch_ttnn.explain import page, text\n"
        "assert page.__name__ == 'torch_ttnn.explain.page' and 'torch_ttnn.explain.data' in sys.modules\n"
        f"assert {name!r} in dir(torch_ttnn)\n"
        f"print(type(torch_ttnn.{name}).__name__, type(getattr(torch_ttnn, {name!r})).__name__)\n"
    )
    kind = "module" if name == "tracer" else "type" if name[0].isupper() or name == "eager" else "function"
    assert run(code).split() == [kind, kind]


def test_a_missing_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'explian'"):
        torch_ttnn.explian  # noqa: B018


def test_the_backend_is_found_by_its_name_alone() -> None:
    code = "import torch; print(torch.compile(torch.nn.Linear(4, 4), backend='ttnn')(torch.ones(2, 4)).shape)"
    assert "torch.Size([2, 4])" in run(code)


def test_a_checkout_that_is_not_installed_registers_its_backends(tmp_path: pathlib.Path) -> None:
    """No metadata, no entry points: importing the package registers them."""
    code = (
        "import sys; from importlib import metadata\n"
        "def missing(name): raise metadata.PackageNotFoundError(name)\n"
        "metadata.distribution = missing\n"
        "metadata.entry_points = lambda **group: metadata.EntryPoints()\n"
        "import torch, torch_ttnn\n"
        "print({'ttnn', 'torch_stat'} <= set(torch._dynamo.list_backends()))\n"
        "print(torch.compile(torch.nn.Linear(4, 4), backend='ttnn')(torch.ones(2, 4)).shape)"
    )
    assert run(code).split("\n")[:2] == ["True", "torch.Size([2, 4])"]
