"""What the clock says of one program on the chip."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ttnn_emulator.timing.calibration import error_of, is_calibrated

if TYPE_CHECKING:
    from ttnn_emulator.enums import MathFidelity
    from ttnn_emulator.tensors.spec import Spec


class Bound(enum.Enum):
    """What a program waits for most of its time."""

    COMPUTE = "compute"
    DRAM = "DRAM"
    NOC = "NoC"
    LATENCY = "latency"

    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class Launch:
    """One program on the chip, and how long it is predicted to run.

    program     the profiler's OP CODE
    family      the part of the timing model that predicted it
    cores       cores that work
    kernel_ns   DEVICE KERNEL DURATION: from the first core's start to the last core's end
    bound       what most of that time goes to
    compute_ns  time of the compute kernels if data were always ready
    data_ns     time of the data movement if nothing were computed
    flops       floating-point operations of matrix products
    dram_bytes  bytes read from and written to DRAM
    inputs      what it reads; empty if it is the only program of its call, which reads what the call does
    outputs     what it writes; likewise
    fidelity    of its matrix products, if it has any
    settings    the program config, for programs that have one
    """

    program: str
    family: str
    cores: int
    kernel_ns: float
    bound: Bound
    compute_ns: float = 0.0
    data_ns: float = 0.0
    flops: float = 0.0
    dram_bytes: float = 0.0
    inputs: tuple[Spec, ...] = ()
    outputs: tuple[Spec, ...] = ()
    fidelity: MathFidelity | None = None
    settings: Any = None

    def of(
        self,
        inputs: tuple[Spec, ...],
        outputs: tuple[Spec, ...],
        fidelity: MathFidelity | None = None,
        settings: Any = None,
    ) -> Launch:
        """Complete a launch that was just created with its tensors and settings."""
        set_field = object.__setattr__
        set_field(self, "inputs", inputs)
        set_field(self, "outputs", outputs)
        if fidelity is not None:
            set_field(self, "fidelity", fidelity)
        if settings is not None:
            set_field(self, "settings", settings)
        return self

    @property
    def error(self) -> float:
        """The relative error to expect of `kernel_ns`; 0.2 means ± 20 %."""
        return error_of(self.family)

    @property
    def calibrated(self) -> bool:
        """Whether the family's predictions were compared with times measured on silicon."""
        return is_calibrated(self.family)
