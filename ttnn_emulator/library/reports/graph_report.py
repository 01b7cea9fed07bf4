"""`ttnn.graph_report`: captured graphs as a database for ttnn-visualizer.

`import_report` reads files of `ttnn.graph.end_graph_capture_to_file`. An operation of the report is an outermost call;
the calls inside it are its captured graph.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import pathlib
import sqlite3
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from ttnn_emulator.execution.graph_facts import (  # noqa: F401  (names of ttnn.graph_report)
    extract_operation_durations,
    extract_total_duration_from_graph,
)
from ttnn_emulator.execution.graph_file import REPORT_VERSION as SUPPORTED_REPORT_VERSION
from ttnn_emulator.library.comparison.records import has_comparison_records
from ttnn_emulator.library.reports.buffer_rows import CapturedChunks, import_chunks
from ttnn_emulator.library.reports.database_rows import (  # noqa: F401
    Node,
    compute_tensor_lifetime_records,
    import_devices,
    import_graph,
    import_metadata,
    import_tensor_comparison_records,
    operations_by_node,
)
from ttnn_emulator.library.reports.database_schema import (  # noqa: F401
    CREATE_INDEX_STACK_TRACES_SOURCE_FILE_SQL,
    CREATE_SOURCE_FILES_TABLE_SQL,
    CREATE_STACK_TRACES_TABLE_WITH_SOURCE_SQL,
    DATABASE_SCHEMA_VERSION,
    create_database_schema,
    new_database,
    save_database_schema_version,
)
from ttnn_emulator.library.settings.config import MAX_REPORT_NAME

# tt-metal v0.81.1: ttnn/ttnn/graph_report.py, PYTHON_IO_SIDECAR_SUFFIX
PYTHON_IO_SIDECAR_SUFFIX = ".python_io.json"
COMPARISON_RECORDS_SIDECAR_SUFFIX = ".comparison_records.json"
COMPARISON_RECORDS_FALLBACK_NAME = "comparison_records.json"
# tt-metal v0.81.1: ttnn/ttnn/graph_report.py, _OPERATION_ID_STRIDE_PER_RANK_FILE
FILE_STRIDE = 10_000  # between operation ids of two files of one rank
# tt-metal v0.81.1: ttnn/ttnn/graph_report.py, _REPORT_NAME_HASH_LENGTH
HASH_LENGTH = 8


# -- whole reports ----------------------------------------------------------------------------------------------------


def _report_files(path: pathlib.Path) -> list[pathlib.Path]:
    if path.is_file():
        return [path]
    beside = (PYTHON_IO_SIDECAR_SUFFIX, COMPARISON_RECORDS_SIDECAR_SUFFIX)
    own = ("config.json", COMPARISON_RECORDS_FALLBACK_NAME)
    found = [each for each in sorted(path.glob("*.json")) if not each.name.endswith(beside) and each.name not in own]
    if not found:
        raise FileNotFoundError(f"there is no captured graph in {path}")
    return found


def _beside(file: pathlib.Path, suffix: str) -> Any:
    path = file.with_suffix(suffix)
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def import_report(
    report_path: str | pathlib.Path,
    output_dir: str | pathlib.Path,
    db_name: str = "db.sqlite",
    generate_svgs: bool = False,
) -> pathlib.Path:
    """Write a database from a captured graph, or from all graphs in a folder, and return its path."""
    folder = pathlib.Path(output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    database = folder / db_name
    seen: dict[int, int] = defaultdict(int)
    with new_database(database) as cursor:
        for file in _report_files(pathlib.Path(report_path)):
            report = json.loads(file.read_text(encoding="utf-8"))
            if report.get("version") != SUPPORTED_REPORT_VERSION:
                raise ValueError(f"{file} has version {report.get('version')}, not {SUPPORTED_REPORT_VERSION}")
            rank = int(report.get("metadata", {}).get("rank", 0))
            _import_file(cursor, file, report, rank, seen[rank] * FILE_STRIDE)
            seen[rank] += 1
            if report.get("cluster_descriptor"):
                (folder / "cluster_descriptor.yaml").write_text(report["cluster_descriptor"], encoding="utf-8")
            if generate_svgs:
                generate_svg(report["graph"], folder / f"{file.stem}.svg")
    return database


def _import_file(cursor: sqlite3.Cursor, file: pathlib.Path, report: Node, rank: int, base: int) -> None:
    python_io = _beside(file, PYTHON_IO_SIDECAR_SUFFIX) or report.get("python_io", [])
    import_devices(cursor, report.get("devices", []), rank)
    import_graph(
        cursor,
        report["graph"],
        base,
        report.get("devices"),
        python_io,
        report.get("per_operation_buffers"),
        rank,
        record_tensor_lifetime=any(record.get("python_stack_trace") for record in python_io),
    )
    _import_chunks(cursor, report, rank, base)
    total = extract_total_duration_from_graph(report["graph"])
    facts = {**report.get("metadata", {}), "total_duration": total, **get_tt_metal_git_report_metadata()}
    import_metadata(cursor, facts)
    compared = _beside(file, COMPARISON_RECORDS_SIDECAR_SUFFIX)
    if compared is not None:
        import_tensor_comparison_records(cursor, compared, rank)


def _import_chunks(cursor: sqlite3.Cursor, report: Node, rank: int, base: int) -> None:
    operations = operations_by_node(report["graph"], base)
    captured = CapturedChunks(report)
    buffers = {int(node): each for node, each in report.get("per_operation_buffers", {}).items()}
    after_each = ((operations[node], captured.of(node, each)) for node, each in buffers.items() if node in operations)
    import_chunks(cursor, after_each, rank)


def flush_comparison_records_to_db(report_dir: str | pathlib.Path) -> None:
    """Write comparison records, if any, to the report's database."""
    from ttnn_emulator.library.comparison import records as comparison_records

    if not has_comparison_records():
        return
    folder = pathlib.Path(report_dir)
    folder.mkdir(parents=True, exist_ok=True)
    found = comparison_records.all_records()
    (folder / COMPARISON_RECORDS_FALLBACK_NAME).write_text(json.dumps(found), encoding="utf-8")
    connection = sqlite3.connect(folder / "db.sqlite")
    try:
        cursor = connection.cursor()
        create_database_schema(cursor)
        save_database_schema_version(cursor)
        import_tensor_comparison_records(cursor, found)
        connection.commit()
    finally:
        connection.close()
        comparison_records.reset_comparison_records_data()


def generate_svg(graph: list[Node], output_path: str | pathlib.Path) -> pathlib.Path:
    """Draw a captured graph."""
    from ttnn_emulator.library.graph.captures import visualize

    visualize(graph, file_name=output_path)
    return pathlib.Path(output_path)


# -- where a report comes from ----------------------------------------------------------------------------------------


def sanitize_git_remote_url(url: str) -> str:
    """A remote's URL without user names, passwords and queries: reports are shared."""
    text = (url or "").strip()
    if "://" not in text:
        _, at, place = text.partition("@")
        return place if at and ":" in place else text
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https", "ssh", "git"):
        return text
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def get_tt_metal_git_report_metadata() -> dict[str, str]:
    """Commit and remote of the repository that contains the package; empty outside a repository."""

    def git_output(*command: str) -> str:
        here = str(pathlib.Path(__file__).resolve().parents[3])
        try:
            done = subprocess.run(
                ["git", "-C", here, *command], capture_output=True, text=True, timeout=30, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return done.stdout.strip() if done.returncode == 0 else ""

    return {
        "git_url": sanitize_git_remote_url(git_output("remote", "get-url", "origin")),
        "git_sha": git_output("rev-parse", "HEAD"),
    }


def derive_report_name(nodeid: str) -> str:
    """The name of a test's report: the file, the test, and a hash that distinguishes cases."""
    file, _, test = nodeid.partition("::")
    words = "_".join(filter(None, [pathlib.Path(file).stem, test.rpartition("::")[2]]))
    digest = hashlib.sha1(nodeid.encode()).hexdigest()[:HASH_LENGTH]
    return f"{words[: MAX_REPORT_NAME - HASH_LENGTH - 1]}_{digest}"


def run_pytest_graph_report_fixture(request: Any) -> Iterator[None]:
    """The body of a pytest fixture that captures a test and writes its report, if the settings request one."""
    library = sys.modules["ttnn_emulator"]
    with library.manage_config("report_name", library.CONFIG.report_name or derive_report_name(request.node.nodeid)):
        yield from _captured_test(request, library)


def _captured_test(request: Any, library: Any) -> Iterator[None]:
    config, graph = library.CONFIG, library.graph
    if graph.is_graph_capture_active():
        yield
        return
    folder = pathlib.Path(config.report_path)
    captures, pages = config.enable_graph_report, config.enable_detailed_buffer_report
    for name in ("mesh_device", "device"):  # closed after this fixture, not before it
        if name in request.fixturenames:
            request.getfixturevalue(name)
    if captures:
        if pages:
            graph.enable_detailed_buffer_tracing()
        graph.begin_graph_capture(graph.RunMode.NORMAL)
    try:
        yield
    finally:
        folder.mkdir(parents=True, exist_ok=True)
        if captures and graph.is_graph_capture_active():
            file = folder / "graph_capture.json"
            graph.end_graph_capture_to_file(file)
            import_report(folder, folder)
            file.unlink()
        elif not captures and config.enable_comparison_mode:
            flush_comparison_records_to_db(folder)
        if captures and pages:
            graph.disable_detailed_buffer_tracing()
        library.save_config_to_json_file(folder / "config.json")


def main() -> None:
    """`python -m ttnn.graph_report report.json folder`."""
    parser = argparse.ArgumentParser(description="Write a database from a captured graph")
    parser.add_argument("report", help="a captured graph, or a folder of them")
    parser.add_argument("output", help="the folder of the database")
    parser.add_argument("--svg", action="store_true", help="also draw the graph")
    arguments = parser.parse_args()
    import_report(arguments.report, arguments.output, generate_svgs=arguments.svg)
