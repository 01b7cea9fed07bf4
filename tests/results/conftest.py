"""Fixtures for the tests of results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser import running


@pytest.fixture(scope="module")  # not of the session: while it runs, no other test could start an event loop
def browser() -> Iterator[Any]:
    with running() as started:
        yield started
