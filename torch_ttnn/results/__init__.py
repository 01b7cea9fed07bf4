"""The results table: one row for every model, measured, kept, compared and shown."""

from __future__ import annotations

from torch_ttnn.results.record import BadRow, Row

__all__ = ["BadRow", "Row"]
