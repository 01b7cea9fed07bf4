"""Captured graphs as databases, and the fixture that writes them for tests."""

from __future__ import annotations

import sqlite3
from types import SimpleNamespace

import pytest

import ttnn_emulator as ttnn

REPORT = ttnn.graph_report


@pytest.fixture
def device():
    with ttnn.open_device(device_id=0) as opened:
        yield opened


def work(device):
    x = ttnn.ones([64, 64], layout=ttnn.TILE_LAYOUT, device=device)
    y = ttnn.mish(ttnn.add(x, 2.0, memory_config=ttnn.L1_MEMORY_CONFIG))
    ttnn.deallocate(x)
    return y


@pytest.fixture
def rows(device, tmp_path):
    """All rows of a table of a report."""
    with ttnn.graph.full_graph_capture(str(tmp_path / "report.json")):
        kept = work(device)
    connection = sqlite3.connect(REPORT.import_report(tmp_path / "report.json", tmp_path / "db"))
    yield lambda table: connection.execute(f"SELECT * FROM {table}").fetchall()
    connection.close()
    kept.deallocate()


def test_outermost_calls_are_operations(rows):
    names = ["ttnn.ones", "ttnn.add", "ttnn.mish", "ttnn.deallocate"]
    assert [(number, name) for number, name, *_ in rows("operations")] == list(enumerate(names, 1))
    assert len(rows("captured_graph")) == len(rows("stack_traces")) == len(rows("nodes")) == 4
    assert all("test_graph_report.py" in trace for _, trace, *_ in rows("stack_traces"))
    assert [path.endswith("test_graph_report.py") for _, path, _ in rows("source_files")] == [True]


def test_tensors_connect_operations(rows):
    made = {tensor: operation for operation, _, tensor, _ in rows("output_tensors")}
    assert [made[tensor] for _, _, tensor, _ in rows("input_tensors")] == [1, 2, 1]
    lives = {producer: (last, freed) for _, producer, last, freed, *_ in rows("tensor_lifetime")}
    assert lives[1] == (2, 4)


def test_buffers_and_pages_are_recorded_after_each_call(rows):
    held = [(operation, kind) for operation, _, _, _, kind, *_ in rows("buffers")]
    assert held[0] == (1, 0) and (3, 1) in held
    assert sum(pages for *_, pages, _, _ in rows("buffer_chunks")) >= 4
    assert {number for number, *_ in rows("devices")} >= {0}
    assert ("schema_version", REPORT.DATABASE_SCHEMA_VERSION) in rows("report_metadata")


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://me:secret@host.org/a.git?x=1", "https://host.org/a.git"),
        ("ssh://git@host.org:22/a.git", "ssh://host.org:22/a.git"),
        ("git@host.org:a/b.git", "host.org:a/b.git"),
        ("/a/folder", "/a/folder"),
        ("", ""),
    ],
)
def test_remote_urls_lose_credentials(url, kept):
    assert REPORT.sanitize_git_remote_url(url) == kept


def test_reports_are_named_after_tests():
    one, other = (REPORT.derive_report_name(f"tests/test_a.py::TestB::test_c[{case}]") for case in "xy")
    assert one != other and one.startswith("test_a_test_c[x]_") and len(one) <= 64


def test_a_fixture_captures_a_test(device, tmp_path):
    node = SimpleNamespace(nodeid="tests/test_a.py::test_b")
    request = SimpleNamespace(node=node, fixturenames=["device"], getfixturevalue=lambda name: device)
    settings = {"root_report_path": tmp_path, "enable_logging": True, "enable_graph_report": True}
    before = {name: getattr(ttnn.CONFIG, name) for name in settings}
    ttnn.CONFIG.enable_fast_runtime_mode = False
    try:
        for name, value in settings.items():
            setattr(ttnn.CONFIG, name, value)
        fixture = REPORT.run_pytest_graph_report_fixture(request)
        next(fixture)
        kept = work(device)
        assert next(fixture, "done") == "done"
    finally:
        for name, value in before.items():
            setattr(ttnn.CONFIG, name, value)
        ttnn.CONFIG.enable_fast_runtime_mode = True
    (folder,) = tmp_path.iterdir()
    assert {path.name for path in folder.glob("*")} >= {"db.sqlite", "config.json"}
    assert not ttnn.graph.is_graph_capture_active() and ttnn.CONFIG.report_name is None
    kept.deallocate()


def test_comparisons_are_stored(tmp_path):
    record = {"tensor_id": 1, "golden_tensor_id": 2, "matches": True, "desired_pcc": 0.9, "actual_pcc": 0.95}
    ttnn.graph.record_tensor_comparison_data(local_tensor_comparison_records=[record])
    ttnn.graph.flush_comparison_records_to_db(tmp_path)
    found = sqlite3.connect(tmp_path / "db.sqlite").execute("SELECT * FROM local_tensor_comparison_records").fetchall()
    assert found == [(1, 2, 1, 0.9, 0.95, 0)] and not ttnn.graph.has_comparison_records()
