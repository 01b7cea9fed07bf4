"""Costs of the parts of a chip: the network on chip, DRAM, the matrix unit, the packer, launches.

Constants marked "fit" were fitted to times measured on silicon (`tests/emulator/timing/data`); docs/timing.md has the
errors that remain. All other constants name their source.
"""

from __future__ import annotations

from dataclasses import dataclass

from ttnn_emulator.enums import Arch, MathFidelity


@dataclass(frozen=True, slots=True)
class Path:
    """How a core moves data one way. A transaction takes the longer of issuing it and moving its bytes.

    latency_ns  from issuing a transaction to its completion; paid once for all transactions in flight together
    """

    issue_ns: float
    bytes_per_ns: float
    latency_ns: float

    def ns(self, transaction_bytes: float, transactions: float = 1.0) -> float:
        """The time that transactions occupy the core, without latency."""
        return transactions * max(self.issue_ns, transaction_bytes / self.bytes_per_ns)


@dataclass(frozen=True, slots=True)
class Chip:
    """Constants of one architecture. Bytes per nanosecond are GB/s.

    dram                      one core's path to DRAM
    dram_bytes_per_ns         all cores together, reading
    dram_write_bytes_per_ns   all cores together, writing
    l1_read, l1_write, local  paths to another core's L1, and within a core's own
    multicast_bytes_per_ns    from one sender to a line or a rectangle of cores
    semaphore_ns              a round of semaphores between a sender and its receivers
    receiver_ns               what one more receiver adds to it
    launch_ns                 from the first core's start to the last core's end when there is nothing to do
    unpack_bytes_per_cycle    from L1 to a source register
    pack_bytes_per_cycle      from the destination register to L1
    """

    clock_ghz: float
    dram: Path
    dram_bytes_per_ns: float
    dram_write_bytes_per_ns: float
    l1_read: Path
    l1_write: Path
    local: Path
    multicast_bytes_per_ns: float
    semaphore_ns: float
    receiver_ns: float
    launch_ns: float
    unpack_bytes_per_cycle: float
    pack_bytes_per_cycle: float

    def ns(self, cycles: float) -> float:
        return cycles / self.clock_ghz


# tt-metal v0.77.0: tech_reports/GEMM_FLOPS/GEMM_FLOPS.md, cycles per 32 x 32 x 32 product
FIDELITY_CYCLES = {MathFidelity.LoFi: 16, MathFidelity.HiFi2: 32, MathFidelity.HiFi3: 48, MathFidelity.HiFi4: 64}

# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/data_movement/common/common.cpp, noc_dram_bw, noc_l1_read_bw,
# noc_l1_write_bw, noc_l1_local_bw (GB/s by transaction size: proportional to it up to a limit) and
# get_cycles_for_transaction_size (latencies, at 1.0 GHz for Wormhole and 1.2 GHz for Blackhole)
WORMHOLE = Chip(
    clock_ghz=1.0,
    dram=Path(36.7, 28.4, 358.0),
    dram_bytes_per_ns=200.0,  # fit; the board's data sheet: 288
    dram_write_bytes_per_ns=190.0,  # fit
    l1_read=Path(18.6, 29.0, 259.0),
    l1_write=Path(23.6, 27.8, 256.0),
    local=Path(18.5, 27.8, 56.0),
    multicast_bytes_per_ns=24.2,  # fit
    semaphore_ns=157.0,  # fit
    receiver_ns=10.0,  # fit
    launch_ns=379.0,  # fit
    unpack_bytes_per_cycle=49.8,  # fit
    pack_bytes_per_cycle=126.0,  # fit
)
BLACKHOLE = Chip(
    clock_ghz=1.35,
    dram=Path(41.5, 50.4, 441.0),
    dram_bytes_per_ns=486.0,  # fit; the board's data sheet: 512
    dram_write_bytes_per_ns=260.0,  # fit
    l1_read=Path(23.9, 50.2, 336.0),
    l1_write=Path(31.4, 50.2, 337.0),
    # tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_op_program_factory_common.cpp,
    # get_local_l1_noc_transfer_rate; moves within L1 were measured at 80 GB/s
    local=Path(14.2, 80.5, 65.0),
    multicast_bytes_per_ns=211.0,  # fit
    semaphore_ns=160.0,  # fit
    receiver_ns=5.0,  # fit
    launch_ns=360.0,  # fit
    unpack_bytes_per_cycle=90.0,  # fit
    pack_bytes_per_cycle=64.0,  # fit
)
# No times of Grayskull are known: Wormhole's cycles at its own clock, and the bandwidth of its data sheet.
GRAYSKULL = Chip(
    clock_ghz=1.2,
    dram=Path(36.7, 25.0, 358.0),
    dram_bytes_per_ns=70.0,
    dram_write_bytes_per_ns=63.0,
    l1_read=Path(18.6, 29.0, 259.0),
    l1_write=Path(23.6, 27.8, 256.0),
    local=Path(18.5, 27.8, 56.0),
    multicast_bytes_per_ns=24.2,
    semaphore_ns=157.0,
    receiver_ns=10.0,  # fit
    launch_ns=379.0,
    unpack_bytes_per_cycle=49.8,
    pack_bytes_per_cycle=126.0,
)
CHIPS = {Arch.WORMHOLE_B0: WORMHOLE, Arch.BLACKHOLE: BLACKHOLE, Arch.GRAYSKULL: GRAYSKULL}
