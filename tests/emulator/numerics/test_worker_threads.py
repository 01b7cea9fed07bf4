"""Pieces of work on torch's threads, or on our own if torch's are not available."""

from __future__ import annotations

import multiprocessing
import threading

import pytest
import torch

from ttnn_emulator.numerics.native import openmp, worker_threads


@pytest.fixture(params=["torch's threads", "our threads"])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(worker_threads, "WORKERS", 3)
    if request.param == "our threads":
        monkeypatch.setattr(openmp, "parallel", lambda: None)
    elif openmp.parallel() is None:
        pytest.skip("torch is not built with GNU OpenMP here")
    return request.param


def pieces(count: int) -> list[tuple[int]]:
    return [(number,) for number in range(count)]


def test_every_piece_is_done_once(threads):
    done: list[int] = []
    worker_threads.share(done.append, pieces(200))
    assert sorted(done) == list(range(200))


def test_errors_propagate(threads):
    def fails(number: int) -> None:
        raise ValueError(f"piece {number}")

    with pytest.raises(ValueError, match="piece"):
        worker_threads.share(fails, pieces(2))


def test_an_interrupt_propagates_and_the_threads_keep_working(threads):
    def interrupted(number: int) -> None:
        if number == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        worker_threads.share(interrupted, pieces(8))
    test_every_piece_is_done_once(threads)


def test_nested_sharing(threads):
    done: list[tuple[int, int]] = []

    def outer(number: int) -> None:
        worker_threads.share(lambda inner: done.append((number, inner)), pieces(3))

    worker_threads.share(outer, pieces(3))
    assert sorted(done) == [(one, other) for one in range(3) for other in range(3)]


def test_several_callers_at_once(threads):
    sums: dict[int, int] = {}

    def caller(number: int) -> None:
        for _ in range(20):
            done: list[int] = []
            worker_threads.share(done.append, pieces(number + 2))
            sums[number] = sums.get(number, 0) + sum(done)

    callers = [threading.Thread(target=caller, args=(number,)) for number in range(4)]
    for each in callers:
        each.start()
    for each in callers:
        each.join()
    assert sums == {number: 20 * sum(range(number + 2)) for number in range(4)}


def test_a_forked_process_does_not_wait_for_threads_of_its_parent(threads):
    test_every_piece_is_done_once(threads)
    child = multiprocessing.get_context("fork").Process(target=test_every_piece_is_done_once, args=(threads,))
    child.start()
    child.join(60)
    child.kill()
    assert child.exitcode == 0


@pytest.mark.skipif(openmp.parallel() is None, reason="torch is not built with GNU OpenMP here")
def test_no_more_threads_than_torch_is_set_to(monkeypatch):
    monkeypatch.setattr(worker_threads, "WORKERS", 3)
    before = torch.get_num_threads()
    seen: set[int] = set()
    torch.set_num_threads(1)
    try:
        worker_threads.share(lambda _: seen.add(threading.get_ident()), pieces(50))
    finally:
        torch.set_num_threads(before)
    assert seen == {threading.get_ident()}


def test_ranges_cover_everything():
    assert [end - start for start, end in worker_threads.cut(10, 100)] == [10]
    assert sum(end - start for start, end in worker_threads.cut(1000, 10)) == 1000
