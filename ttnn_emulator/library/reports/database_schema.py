"""The schema of a report's database, which ttnn-visualizer reads.

Names, columns and types are those of release 0.81.1 (`ttnn.graph_report.create_database_schema`, version 3.5).
"""

from __future__ import annotations

import itertools
import pathlib
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ttnn_emulator.atomic_files import replacing

# tt-metal v0.81.1: ttnn/ttnn/graph_report.py, DATABASE_SCHEMA_VERSION
DATABASE_SCHEMA_VERSION = "3.5"

_RANK = "rank int NOT NULL DEFAULT 0"
_SIZES = (
    "num_y_cores num_x_cores num_y_compute_cores num_x_compute_cores worker_l1_size l1_num_banks l1_bank_size "
    "address_at_first_l1_bank address_at_first_l1_cb_buffer num_banks_per_storage_core num_compute_cores "
    "num_storage_cores total_l1_memory total_l1_for_tensors total_l1_for_interleaved_buffers "
    "total_l1_for_sharded_buffers cb_limit"
).split()
DEVICE_COLUMNS = ("device_id", *_SIZES)
_COMPARED = "tensor_id int, golden_tensor_id int, matches int, desired_pcc float, actual_pcc float"

CREATE_SOURCE_FILES_TABLE_SQL = (
    "CREATE TABLE IF NOT EXISTS source_files (id INTEGER PRIMARY KEY, path text UNIQUE NOT NULL, contents text)"
)
CREATE_STACK_TRACES_TABLE_WITH_SOURCE_SQL = (
    "CREATE TABLE IF NOT EXISTS stack_traces "
    f"(operation_id int, stack_trace text, source_file_id int REFERENCES source_files(id), {_RANK})"
)
CREATE_INDEX_STACK_TRACES_SOURCE_FILE_SQL = (
    "CREATE INDEX IF NOT EXISTS idx_stack_traces_source_file_id ON stack_traces (source_file_id)"
)

# Table → its columns except the rank, and those that are unique together with the rank.
# tt-metal v0.81.1: ttnn/ttnn/graph_report.py, create_database_schema
TABLES: dict[str, tuple[str, str]] = {
    "devices": (", ".join(f"{name} int" for name in DEVICE_COLUMNS), ""),
    "operations": ("operation_id int, name text, duration float", "operation_id"),
    "operation_arguments": ("operation_id int, name text, value text", ""),
    "sub_device_managers": ("device_id int, sub_device_manager_id int", "device_id, sub_device_manager_id"),
    "sub_devices": (
        "device_id int, sub_device_manager_id int, sub_device_id int, worker_core_ranges text",
        "device_id, sub_device_manager_id, sub_device_id",
    ),
    "operation_executions": (
        "execution_id int, operation_id int, device_id int, physical_device_id int, runtime_id int, "
        "global_call_count int, command_queue_id int",
        "execution_id",
    ),
    "execution_sub_devices": (
        "execution_id int, device_id int, sub_device_manager_id int, sub_device_id int",
        "execution_id, device_id, sub_device_manager_id, sub_device_id",
    ),
    "device_tensors": ("tensor_id int, device_id int, address int", ""),
    "buffers": (
        "operation_id int, device_id int, address int, max_size_per_bank int, buffer_type int, buffer_layout int",
        "",
    ),
    "captured_graph": ("operation_id int, captured_graph text", ""),
    "nodes": ("operation_id int, unique_id int, node_operation_id int, name text", ""),
    "edges": (
        "operation_id int, source_unique_id int, sink_unique_id int, source_output_index int, sink_input_index int, "
        "key int",
        "",
    ),
    "errors": (
        "operation_id int, operation_name text, error_type text, error_message text, stack_trace text, timestamp text",
        "",
    ),
    "input_tensors": ("operation_id int, input_index int, tensor_id int", ""),
    "output_tensors": ("operation_id int, output_index int, tensor_id int", ""),
    "tensor_lifetime": (
        "tensor_id int, producer_operation_id int, last_use_operation_id int, deallocate_operation_id int, "
        "producer_source_file text, producer_source_line int, last_use_source_file text, last_use_source_line int",
        "tensor_id",
    ),
    "tensor_consumers": (
        "tensor_id int, operation_id int, input_index int",
        "tensor_id, operation_id, input_index",
    ),
    "tensor_producers": (
        "tensor_id int, operation_id int, output_index int",
        "tensor_id, operation_id, output_index",
    ),
    "local_tensor_comparison_records": (_COMPARED, "tensor_id"),
    "global_tensor_comparison_records": (_COMPARED, "tensor_id"),
    "buffer_chunks": (
        "operation_id int, device_id int, address int, bank_id int, core_x int, core_y int, chunk_address int, "
        "chunk_size int, page_size int, num_pages int, buffer_type int",
        "",
    ),
}


@contextmanager
def new_database(path: pathlib.Path) -> Iterator[sqlite3.Cursor]:
    """A database with the schema, which takes the place of `path` when the block ends without an error."""
    with replacing(path) as temporary:
        connection = sqlite3.connect(temporary)
        try:
            cursor = connection.cursor()
            cursor.execute("PRAGMA journal_mode = OFF")  # the file is dropped if the block fails
            cursor.execute("PRAGMA synchronous = OFF")
            create_database_schema(cursor)
            save_database_schema_version(cursor)
            yield cursor
            connection.commit()
        finally:
            connection.close()


def create_database_schema(cursor: sqlite3.Cursor) -> None:
    """Create missing tables."""
    for table, (columns, unique) in TABLES.items():
        together = f", UNIQUE({unique}, rank)" if unique else ""
        cursor.execute(f"CREATE TABLE IF NOT EXISTS {table} ({columns}, {_RANK}{together})")
    cursor.execute(
        "CREATE TABLE IF NOT EXISTS tensors (tensor_id int, shape text, dtype text, layout text, memory_config text, "
        f"device_id int, address int, buffer_type int, {_RANK}, storage_type text, UNIQUE(tensor_id, rank))"
    )
    cursor.execute("CREATE TABLE IF NOT EXISTS report_metadata (key text UNIQUE, value text)")
    cursor.execute(CREATE_SOURCE_FILES_TABLE_SQL)
    cursor.execute(CREATE_STACK_TRACES_TABLE_WITH_SOURCE_SQL)
    cursor.execute(CREATE_INDEX_STACK_TRACES_SOURCE_FILE_SQL)


def save_database_schema_version(cursor: sqlite3.Cursor) -> None:
    save_metadata(cursor, {"schema_version": DATABASE_SCHEMA_VERSION})


def save_metadata(cursor: sqlite3.Cursor, facts: dict[str, object]) -> None:
    rows = [(key, str(value)) for key, value in facts.items()]
    cursor.executemany("INSERT OR REPLACE INTO report_metadata VALUES (?, ?)", rows)


def insert(cursor: sqlite3.Cursor, table: str, rows: Iterable[tuple]) -> None:
    """Add rows; existing unique rows are kept."""
    remaining = iter(rows)
    for first in remaining:
        places = ", ".join("?" * len(first))
        cursor.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({places})", itertools.chain([first], remaining))
