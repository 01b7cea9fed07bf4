"""Packages import downwards only: from the command line to the compiler, never back up."""

from __future__ import annotations

import ast
import pathlib
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).parents[1] / "torch_ttnn"

# The packages that each package may import, besides itself. `backend` and `options` are modules.
COMPILER = {"backend", "compiler", "devices", "options", "errors", "system"}
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "system": set(),
    "pages": set(),
    "zoo": {"errors"},
    "jobs": {"errors", "system"},
    "devices": COMPILER,
    "options": COMPILER,
    "compiler": COMPILER,
    "backend": COMPILER | {"eager"},
    "tracer": COMPILER | {"pages"},
    "eager": COMPILER,
    "capture": COMPILER | {"eager"},
    "perf": COMPILER | {"capture", "pages"},
    "explain": COMPILER | {"capture", "pages", "perf"},
    "export": COMPILER | {"capture"},
    "check": COMPILER | {"capture", "explain", "zoo"},
    "generation": COMPILER | {"perf"},
    "workloads": COMPILER | {"generation", "tracer", "zoo"},
    "results": COMPILER | {"capture", "explain", "jobs", "pages", "perf", "tracer", "workloads", "zoo"},
}
ABOVE_ALL = ("__init__", "__main__", "cli")
# Options of the compiler that need a package above it, which is imported only when they are used.
ON_REQUEST = {
    ("backend", "tracer"): "tracer_option records the programs of a graph",
    ("options", "tracer"): "tracer_option may be a dict",
    ("compiler", "explain"): "metrics_path writes reports of programs",
    ("compiler", "export"): "export_code writes programs as scripts",
}


def imports(path: pathlib.Path) -> Iterator[tuple[str, bool]]:
    """Our packages that a module imports, and whether the import is deferred to a function call."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        for each in ast.walk(node):
            deferred = not isinstance(node, ast.Import | ast.ImportFrom)
            if isinstance(each, ast.ImportFrom) and each.module == "torch_ttnn":
                yield from ((alias.name, deferred) for alias in each.names if (ROOT / alias.name).exists())
                yield from ((alias.name, deferred) for alias in each.names if (ROOT / f"{alias.name}.py").exists())
            elif isinstance(each, ast.ImportFrom) and (each.module or "").startswith("torch_ttnn."):
                yield str(each.module).split(".")[1], deferred
            elif isinstance(each, ast.Import):
                yield from (
                    (alias.name.split(".")[1], deferred) for alias in each.names if alias.name.startswith("torch_ttnn.")
                )


def package_of(path: pathlib.Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def test_every_package_has_a_rule() -> None:
    assert {package_of(path) for path in ROOT.rglob("*.py")} == {*ALLOWED, *ABOVE_ALL}


@pytest.mark.parametrize("package", ALLOWED)
def test_imports_go_down(package: str) -> None:
    for path in (path for path in ROOT.rglob("*.py") if package_of(path) == package):
        for imported, deferred in imports(path):
            on_request = deferred and (package, imported) in ON_REQUEST
            assert imported in {package, *ALLOWED[package]} or on_request, f"{path} imports {imported}"


def test_no_package_of_the_upper_half_imports_back() -> None:
    """The rules have no cycle above the compiler."""
    upper = {name: allowed - COMPILER for name, allowed in ALLOWED.items() if name not in COMPILER}
    while upper:
        free = [name for name, allowed in upper.items() if not allowed & set(upper)]
        assert free, f"a cycle among {', '.join(upper)}"
        for name in free:
            del upper[name]
