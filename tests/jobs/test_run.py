"""A run resumes an earlier one, and leaves no processes behind when it is interrupted."""

from __future__ import annotations

import io
import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest
from rich.console import Console

from tests.jobs.test_isolation import WORK, await_, gone
from torch_ttnn import jobs
from torch_ttnn.jobs import Display, Job, LocalExecutor, Outcome, Results, Status


def counting(folder: pathlib.Path, **more: object) -> Job:
    return Job("count", WORK + "count", {"file": str(folder / "times.txt"), **more})


def test_finished_jobs_are_reused(tmp_path: pathlib.Path) -> None:
    job = counting(tmp_path)
    assert jobs.run([job], tmp_path)[0].result == 1
    assert jobs.run([job], tmp_path)[0].result == 1
    assert jobs.run([job], tmp_path, again=True)[0].result == 2


def test_changed_arguments_run_a_job_again(tmp_path: pathlib.Path) -> None:
    assert jobs.run([counting(tmp_path)], tmp_path)[0].result == 1
    assert jobs.run([counting(tmp_path)], tmp_path, conditions={"torch": "2.13"})[0].result == 2
    assert jobs.run([counting(tmp_path)], tmp_path, conditions={"torch": "2.13"})[0].result == 2
    other = Job("count", WORK + "count", {"file": str(tmp_path / "other.txt")})
    assert jobs.run([other], tmp_path, conditions={"torch": "2.13"})[0].result == 1


def test_an_invalid_result_is_recomputed(tmp_path: pathlib.Path) -> None:
    jobs.run([counting(tmp_path)], tmp_path)
    assert jobs.run([counting(tmp_path)], tmp_path, valid=lambda outcome: outcome.result != 1)[0].result == 2


def test_failures_are_repeated(tmp_path: pathlib.Path) -> None:
    job = Job("it", WORK + "leave", {"code": 1})
    for _ in range(2):
        assert jobs.run([job], tmp_path)[0].status is Status.CRASH
    assert Results(tmp_path).find(job) is None
    assert json.loads((tmp_path / "it.json").read_text())["status"] == "crash"


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"format": "other"}', "\xff", "[" * 100_000])
def test_a_corrupt_result_is_recomputed(damage: str, tmp_path: pathlib.Path) -> None:
    job = counting(tmp_path)
    (tmp_path / "count.json").write_text(damage, encoding="latin-1")
    assert jobs.run([job], tmp_path)[0].result == 1


def test_a_result_contains_the_job_and_its_outcome(tmp_path: pathlib.Path) -> None:
    jobs.run([Job("a/b", WORK + "add", {"a": 1, "b": 2})], tmp_path)
    (path,) = tmp_path.glob("*.json")
    assert path.name.startswith("a_b-")
    content = json.loads(path.read_text())
    assert content["name"] == "a/b"
    assert content["arguments"] == {"a": 1, "b": 2}
    assert content["result"]["sum"] == 3
    assert not list(tmp_path.glob("*.part"))


def test_two_jobs_with_one_name_are_rejected(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ValueError, match="share a result: count"):
        jobs.run([counting(tmp_path), counting(tmp_path)], tmp_path)


def test_arguments_must_be_json() -> None:
    with pytest.raises(TypeError, match="arguments of job 'it'"):
        Job("it", "json:dumps", {"obj": {1}})
    with pytest.raises(ValueError, match=r"package\.module:function"):
        Job("it", "json.dumps").call()


class Backwards:
    """An executor in this process, last job first."""

    def run(self, wanted, limits, logs):
        for job in reversed(wanted):
            yield job, None
            yield job, Outcome(job.name, Status.OK, job.call())


def test_a_custom_executor(tmp_path: pathlib.Path) -> None:
    wanted = [Job(text, "json:loads", {"s": text}) for text in "123"]
    assert [row.result for row in jobs.run(wanted, tmp_path, executor=Backwards())] == [1, 2, 3]


def test_the_display_counts_and_names_failures(tmp_path: pathlib.Path) -> None:
    text = io.StringIO()
    console = Console(file=text, width=100)
    wanted = [Job("good", WORK + "add", {"a": 1, "b": 2}), Job("bad[x]", WORK + "fail", {"message": "no [layer]"})]
    jobs.run(wanted[:1], tmp_path, watcher=Display(console))
    jobs.run(wanted, tmp_path, watcher=Display(console))
    assert "1 of 2 were already done" in text.getvalue()
    assert "bad[x]: ValueError: no [layer]" in text.getvalue()


SCRIPT = """
import sys
from torch_ttnn import jobs
if __name__ == "__main__":
    folder = sys.argv[1]
    wanted = [jobs.Job("quick", "tests.jobs.work:add", {"a": 1, "b": 2})]
    wanted += [jobs.Job(f"hang{n}", "tests.jobs.work:hang", {"note": f"{folder}/pids{n}"}) for n in range(3)]
    jobs.run(wanted, folder, executor=jobs.LocalExecutor(2))
"""


def accept_interrupts() -> None:
    """Background processes of a shell ignore interrupts, and so do their children."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["interrupted", "killed"])
def test_an_interrupted_run_keeps_results_and_leaves_no_process(how: int, tmp_path: pathlib.Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).parents[2])}  # the parent of `tests`
    command = [sys.executable, str(script), str(tmp_path)]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=environment, preexec_fn=accept_interrupts
    )
    notes = [tmp_path / "pids0", tmp_path / "pids1"]
    assert await_(lambda: all(note.exists() for note in notes), 120)
    process.send_signal(how)
    assert process.wait(30) != 0
    if how == signal.SIGINT:
        assert "KeyboardInterrupt" in process.communicate()[1]
    for pid in " ".join(note.read_text() for note in notes).split():
        assert await_(lambda pid=pid: gone(int(pid)))
    assert json.loads((tmp_path / "quick.json").read_text())["result"]["sum"] == 3
    assert not (tmp_path / "hang0.json").exists()
    assert not (tmp_path / "pids2").exists()


def test_modules_are_imported_once_for_all_jobs(tmp_path: pathlib.Path) -> None:
    wanted = [Job(str(n), WORK + "add", {"a": n, "b": 0}) for n in range(6)]
    rows = jobs.run(wanted, tmp_path, executor=LocalExecutor(1, preload=("torch_ttnn",)))
    assert len({row.result["pid"] for row in rows}) == 6
    assert sorted(row.seconds for row in rows)[3] < 2, "a fork, not an import of torch"
