"""`ttnn.InterProcessCounterChannel`: a count of events that one process writes and another reads, in shared memory."""

from __future__ import annotations

import mmap
import os
import struct
import time

from ttnn_emulator.errors import InvalidArgument

FOLDER = "/dev/shm"
# Events written, events read, whether the last reader shut down cleanly.
_FIELDS = struct.Struct("<QQQ")
_PRODUCED, _CONSUMED, _CLEAN = range(3)
_POLL_SECONDS = 0.005


class InterProcessCounterChannel:
    """The writing end, which creates and removes the segment; `connect` returns the reading end."""

    _was_clean = False

    def __init__(self, shm_name: str) -> None:
        path = _path(shm_name)
        try:
            file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        except FileExistsError as error:
            raise InvalidArgument(f"{path} exists: remove the file, which an earlier run left there") from error
        os.ftruncate(file, _FIELDS.size)
        self._attach(shm_name, file, is_owner=True)
        self._set(_CLEAN, 1)

    @classmethod
    def connect(cls, shm_name: str, connect_timeout_ms: int = 30000) -> InterProcessCounterChannel:
        """The reading end, as soon as the segment exists."""
        path = _path(shm_name)
        deadline = time.monotonic() + connect_timeout_ms / 1000
        while not (os.path.exists(path) and os.path.getsize(path) >= _FIELDS.size):
            if time.monotonic() >= deadline:
                raise InvalidArgument(f"{path} was not created within {connect_timeout_ms} ms")
            time.sleep(_POLL_SECONDS)
        channel = cls.__new__(cls)
        channel._attach(shm_name, os.open(path, os.O_RDWR), is_owner=False)
        channel._was_clean = bool(channel._get(_CLEAN))
        channel._set(_CLEAN, 0)
        return channel

    def _attach(self, shm_name: str, file: int, *, is_owner: bool) -> None:
        self._name = shm_name
        self._is_owner = is_owner
        self._memory: mmap.mmap | None = mmap.mmap(file, _FIELDS.size)
        os.close(file)

    @property
    def shm_name(self) -> str:
        return self._name

    def inject(self, n: int) -> None:
        """Count `n` more events."""
        self._require(self._is_owner, "inject can only be called by the owner")
        self._set(_PRODUCED, self._get(_PRODUCED) + n)

    def pending(self) -> int:
        """The number of unread events."""
        self._require(not self._is_owner, "pending can only be called by a connector")
        return self._get(_PRODUCED) - self._get(_CONSUMED)

    def try_consume_all(self) -> int:
        """Read all pending events and return their number."""
        self._require(not self._is_owner, "try_consume_all can only be called by a connector")
        found = self.pending()
        self._set(_CONSUMED, self._get(_CONSUMED) + found)
        return found

    def had_clean_prior_shutdown(self) -> bool:
        """Whether the previous reader shut down cleanly."""
        self._require(not self._is_owner, "had_clean_prior_shutdown can only be called by a connector")
        return self._was_clean

    def shutdown(self) -> None:
        """Close the channel; the owner removes the segment."""
        if self._memory is None:
            return
        if self._is_owner:
            if os.path.exists(_path(self._name)):
                os.unlink(_path(self._name))
        else:
            self._set(_CLEAN, 1)
        self._memory.close()
        self._memory = None

    def __del__(self) -> None:
        if getattr(self, "_memory", None) is not None:
            self.shutdown()

    def _get(self, field: int) -> int:
        return _FIELDS.unpack(self._open()[: _FIELDS.size])[field]

    def _set(self, field: int, value: int) -> None:
        struct.pack_into("<Q", self._open(), 8 * field, value)

    def _open(self) -> mmap.mmap:
        if self._memory is None:
            raise InvalidArgument(f"the channel {self._name} was shut down")
        return self._memory

    def _require(self, condition: bool, message: str) -> None:
        self._open()
        if not condition:
            raise InvalidArgument(message)


def _path(shm_name: str) -> str:
    if not shm_name.startswith("/") or "/" in shm_name[1:]:
        raise InvalidArgument(f"{shm_name!r} must start with a slash and contain no other")
    return FOLDER + shm_name
