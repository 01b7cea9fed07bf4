"""`ttnn.dot_access`: dictionaries whose keys are attributes too."""

from __future__ import annotations

from typing import Any


class DotAccessDict(dict):
    """`settings.width` for `settings["width"]`."""

    __getattr__ = dict.__getitem__
    __delattr__ = dict.__delitem__


def make_dot_access_dict(dictionary: dict, *, ignore_types: Any = None) -> Any:
    """A dictionary, and those within it, with keys as attributes; those of `ignore_types` stay as they are."""
    if isinstance(dictionary, DotAccessDict) or (ignore_types is not None and isinstance(dictionary, ignore_types)):
        return dictionary

    def made(value: Any) -> Any:
        return make_dot_access_dict(value, ignore_types=ignore_types) if isinstance(value, dict) else value

    return DotAccessDict({key: made(value) for key, value in dictionary.items()})
