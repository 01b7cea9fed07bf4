"""File names from arbitrary text."""

from __future__ import annotations

import hashlib
import re

LONGEST_STEM = 120  # bytes; file systems allow 255 for a whole name


def file_stem(text: str) -> str:
    """A text, such as the name of a model, as part of a file name; different texts get different stems.

    >>> file_stem("resnet18"), file_stem("../etc/passwd")
    ('resnet18', 'etc_passwd-7fef78f5')
    """
    safe = re.sub(r"[^\w.\-]+", "_", text).strip("._")
    while len(safe.encode()) > LONGEST_STEM:
        safe = safe[:-1]
    if safe and safe == text:
        return text
    return f"{safe or 'model'}-{short_digest(text)}"


def short_digest(text: str) -> str:
    """Eight hexadecimal digits that distinguish texts with the same safe form."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
