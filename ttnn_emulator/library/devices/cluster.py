"""`ttnn.cluster`: the cards of the host."""

from __future__ import annotations

import pathlib
import tempfile
from typing import Any

from ttnn_emulator.enums import ALL_ENUMS, Arch
from ttnn_emulator.hardware.boards import default_board_name, find_board

ClusterType: Any = ALL_ENUMS["ClusterType"]

# Boards that the library no longer supports (e150) have no named cluster type.
_KIND_OF_BOARD = {"n150": "N150", "n300": "N300", "t3000": "T3K", "p150": "P150"}


def get_cluster_type() -> Any:
    """The cluster type of the default board."""
    name = default_board_name()
    if find_board(name).arch is Arch.GRAYSKULL:
        return ClusterType.INVALID
    return ClusterType[_KIND_OF_BOARD.get(name, "CUSTOM")]


def cluster_descriptor(name: str | None = None) -> str:
    """The chips of a board, by default of the host's, and their connections, as YAML."""
    board = find_board(name or default_board_name())
    rows, columns = board.mesh
    chips = list(range(board.chips))
    links = [(chip, chip + 1) for chip in chips if (chip + 1) % columns] + [
        (chip, chip + columns) for chip in chips[: (rows - 1) * columns]
    ]
    lines = ["arch:", *(f"  {chip}: {board.arch.name.lower()}" for chip in chips), "chips:"]
    for chip in chips:
        lines += [f"  {chip}:", *(f"    - {at}" for at in (chip % columns, chip // columns, 0, 0))]
    lines += ["chip_unique_ids:", *(f"  {chip}: {chip}" for chip in chips), "ethernet_connections:"]
    for one, other in links:
        lines += ["  -", *(f"    - {{chip: {chip}, chan: 0}}" for chip in (one, other))]
    lines += ["  []"] if not links else []
    lines += ["chips_with_mmio:", *(f"  - {chip}: {chip}" for chip in chips), "io_device_type: PCIe", "boards:", "  -"]
    lines += [f"    - board_type: {board.name}", "    - chips:", *(f"        - {chip}" for chip in chips)]
    return "\n".join(lines) + "\n"


def serialize_cluster_descriptor() -> str:
    """Write the cluster to a YAML file in a new folder and return its path."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="umd_")) / "cluster_descriptor.yaml"
    path.write_text(cluster_descriptor(), encoding="utf-8")
    return str(path)
