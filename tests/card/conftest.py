"""Tests on the real library with a mock card. They need its Python: `make card` finds or creates one."""

from __future__ import annotations

import importlib.util

import pytest
import torch

from torch_ttnn import devices
from torch_ttnn.devices import card

HAS_LIBRARY = importlib.util.find_spec("ttnn") is not None and card.is_stand_in()


@pytest.fixture
def target() -> devices.Target:
    """The mock card, opened as users open a card."""
    if not HAS_LIBRARY:
        pytest.skip("needs the real ttnn and a mock card: run by `make card`")
    return devices.resolve("ttnn")


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()
