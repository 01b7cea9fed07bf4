"""A headless browser for tests of our pages: they must load nothing else and cause no errors."""

from __future__ import annotations

import pathlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.patience import HANG_SECONDS

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --disable-background-networking"
).split()


@contextmanager
def running() -> Iterator[Any]:
    """A browser; the test is skipped if there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright (pip install playwright)")
    with api.sync_playwright() as playwright:
        found = [shutil.which(name) for name in NAMES] + [playwright.chromium.executable_path]
        path = next((each for each in found if each and pathlib.Path(each).exists()), None)
        if path is None:
            pytest.skip(f"needs a browser: none of {', '.join(NAMES)} is installed")
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Any, path: pathlib.Path, link: str = "", **settings: Any) -> Iterator[Any]:
    """The page of a file; on exit, asserts that it requested nothing else and had no error."""
    complaints: list[str] = []
    own = path.resolve().as_uri()

    def requested(request: Any) -> None:
        if request.url.split("#")[0] != own and not request.url.startswith("blob:"):  # blobs are created by the page
            complaints.append(f"requested {request.url}")

    context = browser.new_context(
        **{"viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce", **settings}
    )
    context.set_default_timeout(HANG_SECONDS * 1000)
    try:
        page = context.new_page()
        page.on("request", requested)
        page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.goto(own + link)
        yield page
        assert not complaints
    finally:
        context.close()
