"""Errors that a user can act on. `torch-ttnn` prints their message without a traceback and exits with code 2."""

from __future__ import annotations


class UserError(Exception):
    """Base of all errors whose message says what to do next; any other error is a bug and keeps its traceback."""


class MissingPackage(UserError, ImportError):
    """An optional package is not installed; the message names it and says how to do without."""
