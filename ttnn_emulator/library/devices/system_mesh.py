"""`ttnn._ttnn.multi_device.SystemMeshDescriptor`: the chips of the host, as a mesh."""

from __future__ import annotations

from ttnn_emulator.hardware.boards import default_board_name, find_board
from ttnn_emulator.hardware.mesh_coordinates import MeshCoordinate, MeshShape


class SystemMeshDescriptor:
    """All chips of the default board, all on one host."""

    def __init__(self) -> None:
        self._shape = MeshShape(*find_board(default_board_name()).mesh)

    def shape(self) -> MeshShape:
        return self._shape

    def local_shape(self) -> MeshShape:
        return self._shape

    def get_device_id(self, coordinate: MeshCoordinate) -> int:
        return coordinate.number_in(self._shape)

    def is_local(self, coordinate: MeshCoordinate) -> bool:
        coordinate.number_in(self._shape)
        return True

    def all_local(self) -> bool:
        return True
