"""Atomic file writes."""

from __future__ import annotations

import os
import pathlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def replacing(path: str | os.PathLike) -> Iterator[pathlib.Path]:
    """Yield a temporary path that replaces `path` when the block ends, and is removed if the block fails.

    Every writer has its own temporary file, so concurrent writers of one file do not interfere. System errors (a full
    disk, a read-only folder) are raised with the name of `path`, which is left unchanged.
    """
    target = pathlib.Path(path)
    with _named(target):
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f"{target.name}.", suffix=".part")
    os.close(handle)
    temporary = pathlib.Path(name)
    try:
        with _named(target, temporary):
            yield temporary
            temporary.chmod(0o644)  # temporary files are created readable by their owner only
            temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def _named(target: pathlib.Path, temporary: pathlib.Path | None = None) -> Iterator[None]:
    """Make errors without a file name, or with the temporary one, name the target file."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and (temporary is None or error.filename in (None, str(temporary), temporary)):
            error.filename, error.filename2 = str(target), None
        raise
