"""A failing job affects no other job, and its outcome has a reason."""

from __future__ import annotations

import os
import pathlib
import time

import psutil
import pytest

from tests.patience import HANG_SECONDS
from torch_ttnn import jobs
from torch_ttnn.jobs import Job, Limits, LocalExecutor, Status, isolated
from torch_ttnn.jobs.isolated import Isolated, processes

WORK = "tests.jobs.work:"
ENOUGH = Limits(seconds=HANG_SECONDS)


def one(folder: pathlib.Path, function: str, limits: Limits = ENOUGH, **arguments: object) -> jobs.Outcome:
    return jobs.run([Job("it", WORK + function, arguments)], folder, limits=limits)[0]


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def await_(what, seconds: float = HANG_SECONDS) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if what():
            return True
        time.sleep(0.05)
    return False


def test_a_result_comes_back_from_another_process(tmp_path: pathlib.Path) -> None:
    outcome = one(tmp_path, "add", a=2, b=3)
    assert outcome.ok
    assert outcome.result["sum"] == 5
    assert outcome.result["pid"] != os.getpid()
    assert outcome.reason == ""
    assert outcome.seconds > 0
    assert (tmp_path / "logs" / "it.txt").read_text() == "2 and 3\n"


@pytest.mark.parametrize(
    ("function", "arguments", "status", "reason"),
    [
        ("fail", {"message": "no such layer"}, Status.ERROR, "ValueError: no such layer"),
        ("crash", {}, Status.CRASH, "SIGSEGV"),
        ("leave", {"code": 5}, Status.CRASH, "exit code 5 and no result"),
        ("leave", {"code": 0}, Status.CRASH, "exit code 0 and no result"),
        ("stop_python", {}, Status.ERROR, "SystemExit: 3"),
        ("allocate", {}, Status.MEMORY, "RuntimeError"),
        ("not_json", {}, Status.ERROR, "not JSON serializable"),
        ("nothing_there", {}, Status.ERROR, "nothing_there"),
    ],
)
def test_failures_have_their_reason(
    function: str, arguments: dict, status: Status, reason: str, tmp_path: pathlib.Path
) -> None:
    outcome = one(tmp_path, function, **arguments)
    assert outcome.status is status
    assert reason in outcome.reason
    assert outcome.result is None
    assert outcome.details, "the traceback"


def test_other_jobs_continue(tmp_path: pathlib.Path) -> None:
    wanted = [
        Job("crashes", WORK + "crash"),
        Job("good", WORK + "add", {"a": 1, "b": 1}),
        Job("fails", WORK + "fail", {"message": "no"}),
        Job("also good", WORK + "add", {"a": 2, "b": 2}),
    ]
    rows = jobs.run(wanted, tmp_path, executor=LocalExecutor(2))
    assert [row.name for row in rows] == [job.name for job in wanted]
    assert [row.status.value for row in rows] == ["crash", "ok", "error", "ok"]


def test_a_hang_is_killed_at_its_limit_with_its_children(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolated, "GRACE_SECONDS", HANG_SECONDS)  # a slow machine needs time to write the stack
    job = Job("it", WORK + "hang", {"note": str(tmp_path / "pids")})
    running = Isolated(job, ENOUGH, tmp_path / "log.txt", processes())
    assert await_((tmp_path / "pids").exists)
    running.limits = Limits(seconds=0.01)  # already exceeded
    outcome = running.outcome()
    assert outcome.status is Status.TIMEOUT
    assert "not done after 0.01 s; it was in hang (work.py:" in outcome.reason
    assert outcome.seconds >= 0.01
    for pid in (tmp_path / "pids").read_text().split():
        assert await_(lambda pid=pid: gone(int(pid)))


def test_the_memory_limit_is_enforced(tmp_path: pathlib.Path) -> None:
    outcome = one(tmp_path, "fill", limits=Limits(seconds=HANG_SECONDS, memory=1 << 30), gigabytes=4)
    assert outcome.status is Status.MEMORY
    assert "the limit is 1.0 GiB" in outcome.reason
    assert outcome.peak_memory > 1 << 30


def test_invalid_limits_are_rejected() -> None:
    with pytest.raises(ValueError, match="0 seconds"):
        Limits(seconds=0)
    with pytest.raises(ValueError, match="at least one worker"):
        LocalExecutor(0)


def test_a_result_larger_than_a_pipe_arrives(tmp_path: pathlib.Path) -> None:
    assert len(one(tmp_path, "large", size=3_000_000).result) == 3_000_000


def test_variables_of_the_environment_reach_jobs(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert one(tmp_path / "1", "environment", name="SET_LATE").result is None
    monkeypatch.setenv("SET_LATE", "yes")
    assert one(tmp_path / "2", "environment", name="SET_LATE").result == "yes"


def test_jobs_share_the_cores(tmp_path: pathlib.Path) -> None:
    workers = os.cpu_count() or 1
    rows = jobs.run([Job("it", WORK + "threads")], tmp_path, executor=LocalExecutor(workers))
    assert rows[0].result == 1


def test_torch_computes_in_a_process_that_was_forked_with_it_loaded(tmp_path: pathlib.Path) -> None:
    """A fork loses running threads of the server; importing torch starts none that matter."""
    context = processes(("torch_ttnn",))
    outcome = Isolated(Job("it", WORK + "train"), ENOUGH, tmp_path / "log.txt", context).outcome()
    assert outcome.result == 512.0, outcome
