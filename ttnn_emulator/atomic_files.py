"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import pathlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def replacing(path: str | os.PathLike) -> Iterator[pathlib.Path]:
    """Write to the path that this gives; it takes the place of `path` when the block ends, and is removed if it fails.

    Every writer has a temporary file of its own, so two processes that write the same file do not mix. What the system
    refuses (a full disk, a read-only folder) is raised with the name of `path`; it stays as it was.
    """
    target = pathlib.Path(path)
    with _named(target):
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f"{target.name}.", suffix=".part")
    os.close(handle)
    temporary = pathlib.Path(name)
    try:
        with _named(target, temporary):
            yield temporary
            temporary.chmod(0o644)  # temporary files are made for their owner alone
            temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def _named(target: pathlib.Path, temporary: pathlib.Path | None = None) -> Iterator[None]:
    """Errors of files that name none, or the temporary one, name the file that was to be written."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and (temporary is None or error.filename in (None, str(temporary), temporary)):
            error.filename, error.filename2 = str(target), None
        raise
