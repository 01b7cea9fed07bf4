"""Memory reports of these tests leave out what other tests of the process left on open devices."""

from __future__ import annotations

from tests.emulator.profiling.conftest import without_earlier_tensors

__all__ = ["without_earlier_tensors"]
