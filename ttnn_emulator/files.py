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

    Every writer has a temporary file of its own, so two processes that write the same file do not mix.
    """
    target = pathlib.Path(path)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f"{target.name}.", suffix=".part")
    os.close(handle)
    temporary = pathlib.Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)  # temporary files are made for their owner alone
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
