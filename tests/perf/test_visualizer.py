"""`ttnn-visualizer` opens reports of models and of a script, and shows calls, buffers, source lines and times."""

from __future__ import annotations

import os
import pathlib
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests import browser, visualizer
from tests.patience import HANG_SECONDS
from torch_ttnn.perf.profile import profile
from torch_ttnn.zoo import catalog

SCRIPT = pathlib.Path(__file__).parents[1] / "emulator" / "profiling" / "recorded_script.py"
COMMAND = "TTNN_VISUALIZER"  # the command of an installed ttnn-visualizer; otherwise it is installed

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[visualizer.Visualizer]:
    command = os.environ.get(COMMAND) or visualizer.installed(tmp_path_factory.mktemp("environment"))
    with visualizer.running(command) as found:
        yield found


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser.running() as found:
        yield found


class View:
    """A report in the browser."""

    def __init__(self, server: visualizer.Visualizer, chromium: Any, folder: pathlib.Path) -> None:
        self.server = server
        self.view = server.report(folder)
        self.database = sqlite3.connect(folder / "db.sqlite")
        self.page = chromium.new_page(viewport={"width": 1500, "height": 1100})
        self.page.set_default_timeout(HANG_SECONDS * 1000)
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))

    def show(self, path: str, awaited: str) -> str:
        """The text of a page, once it has a certain text."""
        self.page.goto(self.server.url(self.view, path), wait_until="commit")  # it also loads a logo from elsewhere
        self.page.wait_for_function("text => document.body?.innerText.includes(text)", arg=awaited)
        assert not self.errors
        return self.page.inner_text("body")

    def operation(self, name: str) -> int:
        query = "SELECT min(operation_id) FROM operations WHERE name = ?"
        return self.database.execute(query, (name,)).fetchone()[0]

    def count(self, table: str) -> int:
        return self.database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]

    def dialog(self, button: str) -> str:
        """The text of the dialog that a button opens."""
        self.page.get_by_role("button", name=button).first.click()
        dialog = self.page.locator(".overlay-contents").last
        dialog.get_by_text("Close").or_(dialog.get_by_role("button")).first.wait_for()
        return dialog.inner_text()


@pytest.fixture(scope="module")
def script(server, chromium, tmp_path_factory) -> View:
    folder = tmp_path_factory.mktemp("script")
    command = [sys.executable, "-m", "ttnn_emulator", "--profile", str(folder), str(SCRIPT)]
    subprocess.run(command, check=True, capture_output=True, timeout=HANG_SECONDS)
    return View(server, chromium, folder)


def test_operations_of_a_script(script: View) -> None:
    line = next(n for n, text in enumerate(SCRIPT.read_text().splitlines(), 1) if "ttnn.linear" in text)
    text = script.show("/operations", "ttnn.conv2d")
    assert f"Showing {script.count('operations')} operations" in text
    assert f"ttnn.linear ({SCRIPT.name}:{line})" in text


def test_memory_of_an_operation(script: View) -> None:
    number = script.operation("ttnn.linear")
    text = script.show(f"/operations/{number}", "Peak L1 memory load per core")
    query = "SELECT address FROM buffers WHERE operation_id = ? AND buffer_type = 1"
    ((address,),) = script.database.execute(query, (number,)).fetchall()
    for shown in (str(address), "MatmulDeviceOperation", "CBs", "x 64 cores", "hidden = ttnn.linear(", "Tensor ID:"):
        assert shown in text, shown
    assert "Load a performance report" not in text  # one is loaded
    assert "hidden = ttnn.linear(x, weight" in script.dialog("Source")


def test_sharded_tensors_of_an_operation(script: View) -> None:
    text = script.show(f"/operations/{script.operation('ttnn.exp')}", "Peak L1 memory load per core")
    assert "HEIGHT_SHARDED" in text and "[(x=0,y=0) - (x=0,y=7)]" in text


def test_cores_of_an_operation(script: View) -> None:
    script.show(f"/operations/{script.operation('ttnn.exp')}", "All allocations per core")
    script.page.get_by_text("All allocations per core").first.click()
    script.page.get_by_text("detailed memory report").wait_for()
    cells = script.page.locator(".tensix")
    assert cells.count() >= 64


def test_refused_calls_show_their_error(script: View) -> None:
    script.show(f"/operations/{script.operation('ttnn.matmul')}", "View operation error")
    assert "32 and 256" in script.dialog("View operation error")


def test_tensors_and_buffers(script: View) -> None:
    assert f"3 ttnn.linear {SCRIPT.name}:" in script.show("/tensors", "tensors")
    text = script.show("/buffer-summary", "ttnn.linear")
    assert "Buffers by operation" in text and "L1 START" in text


def test_programs_are_linked_to_their_times(script: View) -> None:
    script.show("/performance", "MatmulDeviceOperation")
    links = script.page.locator("a[href*='/operations/']").evaluate_all("all => all.map(each => each.href)")
    found = {int(re.search(r"/operations/(\d+)", link)[1]) for link in links}
    assert {script.operation(name) for name in ("ttnn.linear", "ttnn.exp", "ttnn.conv2d")} <= found


@pytest.mark.parametrize(
    ("name", "operation", "file", "code"),
    [
        ("resnet18", "ttnn.conv2d", "resnet.py", "Conv2dDeviceOperation"),
        ("bert-large-qa", "ttnn.linear", "modeling_bert.py", "MatmulDeviceOperation"),
    ],
)
def test_models(server, chromium, tmp_path, name: str, operation: str, file: str, code: str) -> None:
    entry = catalog.resolve(name, layers=2 if name.startswith("bert") else None)
    arguments, keywords = entry.inputs(0)
    with torch.no_grad():
        profile(entry.build(randomise=False), *arguments, **keywords).write(tmp_path)
    view = View(server, chromium, tmp_path)
    text = view.show("/operations", operation)
    assert f"Showing {view.count('operations')} operations" in text
    assert re.search(rf"{operation} \({file}:\d+\)", text)
    number = view.operation(operation)
    text = view.show(f"/operations/{number}", "Peak L1 memory load per core")
    assert code in text and "CBs" in text and "Load a performance report" not in text
    (trace,) = view.database.execute(
        "SELECT stack_trace FROM stack_traces WHERE operation_id = ?", (number,)
    ).fetchone()
    line = trace.splitlines()[1].partition("  # ")[0].strip()
    assert line in view.dialog("Source")
    view.show("/buffer-summary", operation)
    view.show("/performance", code)
    assert view.page.locator(f"a[href*='/operations/{number}']").count() >= 1
