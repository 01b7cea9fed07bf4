"""Memory reports of these tests leave out what other tests of the process left on open devices."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from ttnn_emulator.tensors.tensor import Tensor


@pytest.fixture(autouse=True, scope="module")
def without_earlier_tensors() -> Iterator[None]:
    """A report begins with all tensors that are alive: here with those created since the module's tests began."""
    gc.collect()
    objects = gc.get_objects
    earlier = {id(each): each for each in objects() if type(each) is Tensor}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "get_objects", lambda: [each for each in objects() if id(each) not in earlier])
        yield
