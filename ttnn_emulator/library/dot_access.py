"""`ttnn.dot_access`: dictionaries with keys as attributes."""

from __future__ import annotations

from typing import Any


class DotAccessDict(dict):
    """`settings.width` for `settings["width"]`."""

    __getattr__ = dict.__getitem__
    __delattr__ = dict.__delitem__


def make_dot_access_dict(dictionary: dict, *, ignore_types: Any = None) -> Any:
    """Convert nested dictionaries to `DotAccessDict`; values of `ignore_types` stay unchanged."""
    if isinstance(dictionary, DotAccessDict) or (ignore_types is not None and isinstance(dictionary, ignore_types)):
        return dictionary

    def converted(value: Any) -> Any:
        return make_dot_access_dict(value, ignore_types=ignore_types) if isinstance(value, dict) else value

    return DotAccessDict({key: converted(value) for key, value in dictionary.items()})
