"""The fabric between chips: links, hops, and the workers that feed them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ttnn_emulator.enums import Arch
from ttnn_emulator.hardware import fabric
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.tensors.shapes import div_up


@dataclass(frozen=True, slots=True)
class Fabric:
    """Constants of an architecture.

    link_bytes_per_ns  of one link in one direction
    share              of it that tensors get; the rest are headers and acknowledgements
    page_ns            a worker's time per page: one worker feeds one direction of a link
    hop_ns             until the first packet has crossed one more chip
    start_ns           connecting to the routers, and waiting for all chips
    step_ns            of a sum that travels from chip to chip: until the next chip may add to it
    """

    link_bytes_per_ns: float
    share: float
    page_ns: float
    hop_ns: float
    start_ns: float
    step_ns: float


# Links and hops:
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/ccl/ccl_common.cpp, lookup_fabric_link_bw, lookup_fabric_hop_latency_ns
# Wormhole's pages, starts and steps are fits to the targets of gathers and scattered sums on a galaxy:
# tt-metal v0.77.0: tests/ttnn/unit_tests/operations/ccl/test_llama_prefill_ccl_ops_perf_nightly_TG.py, test_ag_ring
# Blackhole's are fits to profiler rows of scattered sums.
FABRICS = {
    Arch.WORMHOLE_B0: Fabric(12.5, 0.84, 530.0, 711.0, 9_000.0, 4_500.0),
    Arch.BLACKHOLE: Fabric(25.0, 0.84, 80.0, 515.0, 7_000.0, 4_500.0),
    Arch.GRAYSKULL: Fabric(12.5, 0.84, 530.0, 711.0, 9_000.0, 4_500.0),
}
# Links between neighbours on a board: a galaxy's chips are connected by four, a t3000's by one or two.
LINKS = {"galaxy": 4, "t3000": 1, "n300": 2}
DEFAULT_LINKS = 2


@dataclass(frozen=True, slots=True)
class Route:
    """How the chips of a group are connected.

    chips  of the group
    ring   whether the last one is connected to the first
    links  between neighbours
    """

    chips: int
    ring: bool
    links: int
    arch: Arch

    @property
    def fabric(self) -> Fabric:
        return FABRICS[self.arch]

    @property
    def hops(self) -> int:
        """Between the two chips that are furthest apart."""
        return self.chips // 2 if self.ring else self.chips - 1

    def pages_ns(self, pages: float, page_bytes: float) -> float:
        """Pages through all links of one direction."""
        fabric = self.fabric
        page = max(page_bytes / (fabric.link_bytes_per_ns * fabric.share), fabric.page_ns)
        return div_up(int(pages), self.links) * page

    def gathered_ns(self, pages: float, page_bytes: float) -> float:
        """Every chip gets the pages of all others: half of them from each side of a ring, all through a line's end."""
        crossing = (self.chips - 1) * pages / (2 if self.ring else 1)
        return self.pages_ns(crossing, page_bytes)


def route_of(board: Board, chips: int, links: int | None = None, topology: Any = None) -> Route:
    """The route through a group of chips; groups along an axis of a galaxy are rings."""
    ring = chips > 2 and (board.name.startswith("galaxy") or topology is fabric.Topology.Ring)
    return Route(chips, ring, links or LINKS.get(board.name.partition("-")[0], DEFAULT_LINKS), board.arch)
