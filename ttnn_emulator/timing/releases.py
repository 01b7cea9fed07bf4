"""Kernels that changed between the releases whose times were measured.

Performance sheets of whole models were recorded in autumn 2025. The emulator's programs, and the published times of
tuned models, are those of the current release.
"""

from __future__ import annotations

import enum


class Release(enum.Enum):
    """The release of a program's kernels."""

    AUTUMN_2025 = "autumn 2025"
    CURRENT = "current"

    __hash__ = object.__hash__
