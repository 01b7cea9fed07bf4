"""A captured graph as a file: the graph, the devices, the buffers after every call, and the host."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ttnn_emulator.api.recorded import ttnn_version
from ttnn_emulator.atomic_files import replacing

if TYPE_CHECKING:
    from ttnn_emulator.execution.graph import GraphRecorder
    from ttnn_emulator.hardware.device import MeshDevice

# tt-metal v0.77.0: ttnn/api/ttnn/graph/graph_consts.hpp, kCurrentReportVersion
REPORT_VERSION = 1


def write_report(path: str | pathlib.Path, recorder: GraphRecorder, *, pages: bool) -> None:
    """Write a finished capture; with `pages`, the location of every page of the buffers in L1."""
    from ttnn_emulator.library.devices.cluster import cluster_descriptor

    devices = list(recorder.lives.devices.values())
    report: dict[str, Any] = {
        "version": REPORT_VERSION,
        "graph": recorder.nodes,
        "devices": _described(devices),
        "per_operation_buffers": {
            str(recorder.outermost[call - 1]): [life.facts() for life in lives]
            for call, lives in recorder.lives.after_each(len(recorder.outermost))
        },
        "cluster_descriptor": cluster_descriptor(),
        "metadata": {
            "rank": 0,
            "world_size": 1,
            "version": ttnn_version(),
            "capture_timestamp_ns": time.time_ns(),
            "total_duration_ns": recorder.nodes[-1].get("duration_ns", 0),
        },
    }
    if pages:
        report["buffer_pages"] = _pages(devices)
        report["buffer_pages_by_address"] = _pages_of_allocations(recorder)
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(report), encoding="utf-8")


def _described(devices: Iterable[MeshDevice]) -> list[dict[str, Any]]:
    """Every chip and every mesh by id."""
    from ttnn_emulator.library.reports.buffer_pages import get_device_info

    found: dict[int, dict[str, Any]] = {}
    for device in devices:
        board = device.board
        facts = dataclasses.asdict(get_device_info(device)) | {
            "arch": board.arch.name,
            "num_dram_channels": board.dram_banks,
            "dram_size_per_channel": board.dram_bank_bytes,
        }
        for number in (*device.get_device_ids(), device.id()):
            found.setdefault(number, {"device_id": number, **facts})
    return list(found.values())


def _pages(devices: Iterable[MeshDevice]) -> list[dict[str, Any]]:
    from ttnn_emulator.library.reports.buffer_pages import get_buffer_pages, page_facts

    return [page_facts(page) for device in devices if device.is_open for page in get_buffer_pages(device)]


def _pages_of_allocations(recorder: GraphRecorder) -> dict[str, list[dict[str, Any]]]:
    """The pages of every buffer in L1 by its address, with the node of the call after which it first exists."""
    from ttnn_emulator.library.reports.buffer_pages import bank_cores, page_facts, pages_of

    found: dict[str, list[dict[str, Any]]] = {}
    for life in recorder.lives.all:
        seen = life.outlives_its_call and life.first <= len(recorder.outermost)
        if seen and life.is_in_l1 and life.spec is not None:
            pages = pages_of(life.device, life.address, life.spec, bank_cores(life.device))
            snapshot = {"alloc_counter": recorder.outermost[life.first - 1], "pages": list(map(page_facts, pages))}
            found.setdefault(str(life.address), []).append(snapshot)
    return found
