"""`ttnn.cluster`: which cards the host has."""

from __future__ import annotations

from typing import Any

from ttnn_emulator.boards import default_board_name, find_board
from ttnn_emulator.enums import ALL_ENUMS, Arch

ClusterType: Any = ALL_ENUMS["ClusterType"]

# Boards that the library no longer knows (e150) are no cluster of a named kind.
_KIND_OF_BOARD = {"n150": "N150", "n300": "N300", "t3000": "T3K", "p150": "P150"}


def get_cluster_type() -> Any:
    """The kind of cluster that the default board makes up."""
    name = default_board_name()
    if find_board(name).arch is Arch.GRAYSKULL:
        return ClusterType.INVALID
    return ClusterType[_KIND_OF_BOARD.get(name, "CUSTOM")]
