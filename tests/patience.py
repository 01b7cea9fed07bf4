"""Timeout of tests: long enough that only a hang exceeds it, even on a slow or busy machine."""

HANG_SECONDS = 3600.0
