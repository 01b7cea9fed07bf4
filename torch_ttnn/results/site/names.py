"""File names of the site's pages: safe for any text on every file system."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from torch_ttnn.system.file_names import short_digest

LONGEST = 80
_FOREIGN = re.compile(r"[^A-Za-z0-9._-]+")
_RESERVED = re.compile(r"(?i:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)")  # reserved by Windows, with any extension


def file_names(folder: str, texts: Iterable[str]) -> dict[str, str]:
    """Text -> path of its page within the site. A text has the same path in every run, unless another text differs
    from it only in case.

    >>> file_names("ops", ["aten.add.Tensor"])
    {'aten.add.Tensor': 'ops/aten.add.Tensor.html'}
    >>> file_names("models", ["../../x"])
    {'../../x': 'models/x-9cdf6a50.html'}
    """
    stems = {text: _stem(text) for text in texts}
    taken = Counter(stem.casefold() for stem in stems.values())
    paths: dict[str, str] = {}
    used: set[str] = set()
    for text, stem in sorted(stems.items()):
        wanted = stem if taken[stem.casefold()] == 1 else _marked(stem, text)
        free = next(each for each in _numbered(wanted) if each.casefold() not in used)  # a text may end like a digest
        used.add(free.casefold())
        paths[text] = f"{folder}/{free}.html"
    return paths


def _stem(text: str) -> str:
    """The text itself if it is a valid file name everywhere, else its valid characters and a digest."""
    kept = _FOREIGN.sub("-", text)[:LONGEST].strip(".-")
    if kept == text and kept and not _RESERVED.match(kept):
        return kept
    return _marked(f"_{kept}" if _RESERVED.match(kept) else kept, text)


def _marked(stem: str, text: str) -> str:
    return f"{stem or 'name'}-{short_digest(text)}"


def _numbered(stem: str) -> Iterator[str]:
    yield stem
    yield from (f"{stem}-{number}" for number in itertools.count(2))
