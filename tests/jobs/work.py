"""Jobs for the tests: some succeed, some fail in various ways."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys
import time


def add(a: int, b: int) -> dict[str, int]:
    print(f"{a} and {b}")
    return {"sum": a + b, "pid": os.getpid()}


def fail(message: str) -> None:
    print("about to fail")
    raise ValueError(message)


def crash() -> None:
    ctypes.string_at(0)


def leave(code: int) -> None:
    print("leaving", flush=True)
    os._exit(code)


def stop_python() -> None:
    sys.exit(3)


def hang(note: str | None = None) -> None:
    """Start a grandchild, note both, and never end."""
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    if note is not None:
        noted = pathlib.Path(note)
        noted.with_suffix(".part").write_text(f"{os.getpid()} {other.pid}")
        noted.with_suffix(".part").rename(noted)
    while True:
        time.sleep(0.05)


def fill(gigabytes: float) -> None:
    blocks = []
    while sum(map(len, blocks)) < gigabytes * 2**30:
        blocks.append(b"x" * (32 << 20))
        time.sleep(0.02)
    time.sleep(600)


def allocate() -> None:
    import torch

    torch.empty(1 << 60)


def not_json() -> object:
    return {1, 2}


def large(size: int) -> str:
    return "x" * size


def count(file: str) -> int:
    """Count calls in a file."""
    path = pathlib.Path(file)
    times = (int(path.read_text()) if path.exists() else 0) + 1
    path.write_text(str(times))
    return times


def environment(name: str) -> str | None:
    return os.environ.get(name)


def threads() -> int:
    import torch

    return torch.get_num_threads()


def train() -> float:
    """Many threads, forward and backward."""
    import torch

    torch.set_num_threads(4)
    weight = torch.ones(512, 512, requires_grad=True)
    (torch.ones(512, 512) @ weight).sum().backward()
    assert weight.grad is not None
    return weight.grad.mean().item()


def kill_worker_until(file: str, times: int) -> int:
    """Kill the parent process the first few times; returns the number of the attempt."""
    tries = pathlib.Path(file)
    with tries.open("a") as noted:
        noted.write("x")
    number = len(tries.read_text())
    if number <= times:
        os.kill(_parent(), signal.SIGKILL)
        time.sleep(60)
    return number


def _parent() -> int:
    """The process that requested this one; a fork server may be in between."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    return parent.pid
