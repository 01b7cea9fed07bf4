"""The wheel is small, and runs the README's first example without the rest of the repository."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile

import pytest

from tests.test_documents import README, ROOT, blocks

LARGEST = 8_000_000  # bytes of the wheel
SOURCES = ("torch_ttnn", "ttnn_emulator", "pyproject.toml", "README.md", "LICENSE")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Built from a copy, because a build leaves files in the folder that it builds from."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        source, target = ROOT / name, folder / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    build = ["wheel", ".", "--quiet", "--no-deps", "--no-build-isolation", "-w", "out"]
    subprocess.run([sys.executable, "-m", "pip", *build], cwd=folder, check=True)
    (found,) = (folder / "out").glob("*.whl")
    return found


@pytest.fixture(scope="module")
def python(wheel: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Python of a new environment with the wheel.

    Its dependencies are not installed again, which would be gigabytes of torch: a path file adds those of this
    environment. Path files there are not followed, so an editable install of this repository is not found by it.
    """
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    found = str(folder / ("Scripts" if os.name == "nt" else "bin") / "python")
    install = ["--python", found, "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", *install], check=True)
    query = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = pathlib.Path(subprocess.run([found, "-c", query], capture_output=True, text=True).stdout.strip())
    here = dict.fromkeys([sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
    (packages / "dependencies.pth").write_text("\n".join(here) + "\n")
    return found


def run(python: str, *arguments: str, cwd: pathlib.Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run([python, *arguments], cwd=cwd, env=environment, capture_output=True, text=True)


def test_the_wheel_is_small(wheel: pathlib.Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        parts = {each.filename: each.compress_size for each in archive.infolist()}
    assert not [name for name in parts if name.endswith(".safetensors")]
    assert sum(parts.values()) <= LARGEST, sorted(parts, key=parts.__getitem__)[-10:]


def test_the_wheel_contains_the_files_of_all_pages(wheel: pathlib.Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    kept = [path for path in (ROOT / "torch_ttnn").rglob("*") if path.suffix in (".html", ".css", ".js", ".csv")]
    assert {path.relative_to(ROOT).as_posix() for path in kept} <= names and len(kept) > 20


def test_the_first_example_runs(python: str, tmp_path: pathlib.Path) -> None:
    """The one line that compiles a model, and the example after it, which explains one."""
    one_line, explained = [content for language, content in blocks(README) if language == "python"][:2]
    example = tmp_path / "example.py"
    example.write_text(
        f"import torch\nmodel = torch.nn.Linear(4, 4)\n{one_line}\nprint(model(torch.ones(2, 4)).shape)\n{explained}\n"
        "import ttnn_emulator\nprint(torch_ttnn.__file__, ttnn_emulator.__file__)\n"
    )
    done = run(python, str(example), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "torch.Size([2, 4])" in done.stdout and (tmp_path / "report.html").stat().st_size > 10_000
    assert str(ROOT) not in done.stdout.splitlines()[-1], "the checkout was found in place of the wheel"


def test_a_command_says_how_to_get_the_weights_it_lacks(python: str, tmp_path: pathlib.Path) -> None:
    done = run(python, "-m", "torch_ttnn.cli", "explain", "mnist-cnn-trained", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    (error,) = [line for line in done.stderr.splitlines() if line.startswith("torch-ttnn explain:")]
    assert "torch_ttnn_weights" in error and "pip install ./weights" in error
