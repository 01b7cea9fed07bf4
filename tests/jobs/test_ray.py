"""Jobs on a Ray cluster have the same outcomes as local jobs. Ray runs on this machine for these tests."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator

import pytest

from tests.jobs.test_isolation import WORK, await_, gone
from tests.patience import HANG_SECONDS
from torch_ttnn import jobs
from torch_ttnn.jobs import Job, Limits, LocalExecutor, Status, ray_executor
from torch_ttnn.jobs.ray_executor import RayError, RayExecutor

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'torch_ttnn[ray]'")
MINUTES = Limits(seconds=HANG_SECONDS)


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    """One Ray for all tests of this file."""
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100 << 20)
    yield
    ray.shutdown()


def one(folder: pathlib.Path, function: str, limits: Limits = MINUTES, **arguments: object) -> jobs.Outcome:
    return jobs.run([Job("it", WORK + function, arguments)], folder, limits=limits, executor=RayExecutor())[0]


def test_outcomes_equal_local_ones(tmp_path: pathlib.Path) -> None:
    wanted = [
        Job("good", WORK + "add", {"a": 1, "b": 2}),
        Job("a/b", WORK + "environment", {"name": "TORCH_TTNN_DEVICE"}),
        Job("fails", WORK + "fail", {"message": "no such layer"}),
        Job("crashes", WORK + "crash"),
        Job("leaves", WORK + "leave", {"code": 5}),
        Job("memory", WORK + "allocate"),
        Job("unknown", WORK + "nothing_there"),
        Job("large", WORK + "large", {"size": 300_000}),
    ]
    there = jobs.run(wanted, tmp_path / "ray", executor=RayExecutor(2), limits=MINUTES)
    here = jobs.run(wanted, tmp_path / "local", executor=LocalExecutor(2), limits=MINUTES)
    for mine, theirs in zip(there, here):
        assert (mine.name, mine.status, mine.reason) == (theirs.name, theirs.status, theirs.reason)
        assert bool(mine.details) == bool(theirs.details)
    assert there[0].result["sum"] == here[0].result["sum"]
    assert there[0].result["pid"] != os.getpid()
    assert there[7].result == here[7].result
    for log in sorted((tmp_path / "local" / "logs").iterdir()):
        other = tmp_path / "ray" / "logs" / log.name
        assert other.exists()
        if "crash" not in log.name:  # it contains addresses
            assert other.read_text() == log.read_text()


def test_a_hang_is_killed_at_its_limit_with_its_children(tmp_path: pathlib.Path) -> None:
    outcome = one(tmp_path, "hang", limits=Limits(seconds=30), note=str(tmp_path / "pids"))
    assert outcome.status is Status.TIMEOUT
    assert "not done after 30 s; it was in hang (work.py:" in outcome.reason
    for pid in (tmp_path / "pids").read_text().split():
        assert await_(lambda pid=pid: gone(int(pid)))


def test_the_memory_limit_is_enforced(tmp_path: pathlib.Path) -> None:
    outcome = one(tmp_path, "fill", limits=Limits(seconds=HANG_SECONDS, memory=1 << 30), gigabytes=3)
    assert outcome.status is Status.MEMORY
    assert "the limit is 1.0 GiB" in outcome.reason


def test_no_more_jobs_run_at_a_time_than_requested(tmp_path: pathlib.Path) -> None:
    events = RayExecutor(1).run([Job(str(n), WORK + "add", {"a": n, "b": 0}) for n in range(3)], MINUTES, tmp_path)
    seen = [(job.name, outcome is None) for job, outcome in events]
    assert seen == [(name, starts) for name in "012" for starts in (True, False)]


def test_closing_stops_running_jobs(tmp_path: pathlib.Path) -> None:
    wanted = [Job(f"hang{n}", WORK + "hang", {"note": str(tmp_path / f"pids{n}")}) for n in range(3)]
    events = RayExecutor(2).run(wanted, MINUTES, tmp_path)
    assert [next(events)[0].name for _ in range(2)] == ["hang0", "hang1"]
    notes = [tmp_path / "pids0", tmp_path / "pids1"]
    assert await_(lambda: all(note.exists() for note in notes), 120)
    events.close()
    for pid in " ".join(note.read_text() for note in notes).split():
        assert await_(lambda pid=pid: gone(int(pid)))
    assert not (tmp_path / "pids2").exists()


@pytest.mark.slow
def test_a_worker_that_dies_once_costs_nothing(tmp_path: pathlib.Path) -> None:
    outcome = one(tmp_path, "kill_worker_until", file=str(tmp_path / "tries"), times=1)
    assert outcome.status is Status.OK, outcome
    assert outcome.result == 2


@pytest.mark.slow
def test_a_worker_that_dies_always_costs_one_row(tmp_path: pathlib.Path) -> None:
    wanted = [
        Job("dies", WORK + "kill_worker_until", {"file": str(tmp_path / "tries"), "times": 99}),
        Job("good", WORK + "add", {"a": 1, "b": 1}),
    ]
    dead, good = jobs.run(wanted, tmp_path, executor=RayExecutor(2), limits=MINUTES)
    assert dead.status is Status.CRASH
    assert "its worker died, and so did the one that retried it" in dead.reason
    assert (tmp_path / "tries").read_text() == "xx"
    assert good.ok


def test_requests_beyond_any_machine_are_rejected(tmp_path: pathlib.Path) -> None:
    with pytest.raises(RayError, match=r"no machine of the cluster has the 1 CPUs and 8192\.0 GiB .* they have 2 CPUs"):
        one(tmp_path, "add", limits=Limits(memory=8 << 40), a=1, b=1)
    with pytest.raises(ValueError, match="at least one worker"):
        RayExecutor(0)


def test_without_ray_the_error_says_what_to_install(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_executor, "find_spec", lambda name: None)
    with pytest.raises(RayError, match=r'pip install "torch_ttnn\[ray\]"'):
        one(tmp_path, "add", a=1, b=1)
