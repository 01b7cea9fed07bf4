"""The results table: one row per model, from measuring it to the pages that show it."""

from __future__ import annotations

from torch_ttnn.results.record import BadRow, Row

__all__ = ["BadRow", "Row"]
