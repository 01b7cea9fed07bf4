"""Fixtures and options for all tests."""

from __future__ import annotations

import os

import pytest
import torch
from hypothesis import HealthCheck, settings

import ttnn_emulator as ttnn
from torch_ttnn import devices
from torch_ttnn.devices import card

COMMON = {"deadline": None, "suppress_health_check": list(HealthCheck)}
settings.register_profile("default", max_examples=12, derandomize=True, **COMMON)
settings.register_profile("sweep", max_examples=400, **COMMON)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--sweep", action="store_true", help="run slow tests and many more generated examples")
    parser.addoption(
        "--card",
        action="store_true",
        help="run compiled programs on the real ttnn with a mock card as well, every call on both; values are compared",
    )


def pytest_configure(config: pytest.Config) -> None:
    os.environ["TORCH_TTNN_CACHE_DIR"] = ""  # programs are compiled, not loaded from this machine's cache
    os.environ["TORCH_TTNN_VERIFY"] = "full" if config.getoption("--sweep") else "1"
    if config.getoption("--card"):
        from tests.card.paired import open_paired

        card.open_card = open_paired
        os.environ[devices.VARIABLE] = "ttnn"
    settings.load_profile("sweep" if config.getoption("--sweep") else "default")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--sweep"):
        skip = pytest.mark.skip(reason="slow: run by `make sweep`")
        for item in items:
            if "slow" in item.keywords:
                item.add_marker(skip)


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Random values are the same in every run."""
    torch.manual_seed(0)


@pytest.fixture
def device():
    """An emulated n150 with the small L1 region that convolutions and pools need."""
    with ttnn.open_device(device_id=0, l1_small_size=32768) as opened:
        yield opened
