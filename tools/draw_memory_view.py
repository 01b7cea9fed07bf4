"""Draws the picture of the memory view: python -m tools.draw_memory_view [--visualizer COMMAND] [folder]

It profiles a script, opens the report in ttnn-visualizer, which is installed in a temporary environment
unless its command is given, and photographs an operation with a browser (Chromium).
"""

from __future__ import annotations

import argparse
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

from tests import browser, visualizer

ROOT = pathlib.Path(__file__).parents[1]
SCRIPT = ROOT / "tests" / "emulator" / "profiling" / "recorded_script.py"
OPERATION = "ttnn.linear"
SIZE = {"width": 1500, "height": 1100}
MARGIN = 10  # pixels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", default=ROOT / "docs" / "pictures", type=pathlib.Path)
    parser.add_argument("--visualizer", help="the command of an installed ttnn-visualizer")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        command = options.visualizer or visualizer.installed(work / "environment")
        report = work / "report"
        subprocess.run([sys.executable, "-m", "ttnn_emulator", "--profile", str(report), str(SCRIPT)], check=True)
        draw(command, report, options.folder / "memory_view.png")


def draw(command: str, report: pathlib.Path, picture: pathlib.Path) -> None:
    query = "SELECT min(operation_id) FROM operations WHERE name = ?"
    (operation,) = sqlite3.connect(report / "db.sqlite").execute(query, (OPERATION,)).fetchone()
    with visualizer.running(command) as server, browser.running() as chromium:
        page = chromium.new_page(viewport=SIZE)
        page.goto(server.url(server.report(report), f"/operations/{operation}"), wait_until="commit")
        loads = page.get_by_text("Peak L1 memory load per core")
        loads.first.wait_for(timeout=600_000)
        page.wait_for_timeout(3_000)  # the times are there
        begin, end = page.get_by_text("Device operations", exact=True).last.bounding_box(), loads.last.bounding_box()
        left, top = begin["x"] - MARGIN, begin["y"] - MARGIN
        height = end["y"] + end["height"] + MARGIN - top
        area = {"x": left, "y": top, "width": SIZE["width"] - left - MARGIN, "height": height}
        page.screenshot(path=picture, full_page=True, clip=area)


if __name__ == "__main__":
    main()
