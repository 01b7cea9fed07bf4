"""The order in which a convolution or a pool allocates and frees L1.

The order is the library's own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ttnn_emulator.enums import Layout
from ttnn_emulator.execution.launch_memory import Free, Launch, Move, Stage, Take, TakeOutput
from ttnn_emulator.ops.data_movement.layout import layout_flow
from ttnn_emulator.ops.flows.value_flow import Flow
from ttnn_emulator.tensors.spec import Spec


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d.cpp, conv2d_L1
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_utils.cpp, shard_or_reshard_tensor_if_required,
# fold_input_tensor_if_required and tilize_with_optional_deallocation
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/pool/generic/generic_pools.cpp, pool2d_L1
@dataclass
class Course:
    """The input on its way to the kernel: its current buffer, and the allocations and frees so far.

    source  parameter of the call that holds the input
    frees   whether the caller deallocates the input
    """

    source: str
    spec: Spec
    frees: bool
    stages: list[Stage] = field(default_factory=list)
    name: str = ""

    def __post_init__(self) -> None:
        self.name = self.source

    @property
    def is_copy(self) -> bool:
        return self.name != self.source

    @property
    def in_l1(self) -> bool:
        return self.spec.on_device and self.spec.memory_config.is_l1

    def copy(self, name: str, spec: Spec, *, moves: bool = False, frees: bool = True, drops: bool = True) -> None:
        """A kernel copied the value to a new buffer.

        moves  the new buffer is moved into the space of the freed one
        frees  the old buffer is freed if the caller deallocates the input
        drops  the old buffer is also freed if it was a copy
        """
        if spec.memory_config.is_l1:
            self.stages.append(Take(name, spec))
        freed = frees and self.frees and self.in_l1
        if freed or (drops and self.is_copy and self.in_l1):
            self.stages.append(Free(self.name))
        if freed and moves and spec.memory_config.is_l1:
            self.stages.append(Move(name))
        self.name, self.spec = name, spec

    def tilize(self) -> None:
        if self.spec.layout is not Layout.TILE:
            self.copy("tiles", layout_flow(Flow(self.spec), Layout.TILE).spec)

    def gather(self, bytes_per_core: int, cores: int, *, frees: bool, moves: bool) -> None:
        """The halo operation gathers the neighbours' borders into a new buffer (`ttnn::halo`)."""
        self.stages.append(Take("halo", None, bytes_per_core, cores))
        if frees and self.in_l1:
            self.stages.append(Free(self.name))
        if moves:
            self.stages.append(Move("halo"))

    def compute(self, made: list[Spec], outputs: list[Spec], l1_bytes: int) -> None:
        """The kernel allocates outputs and circular buffers; then outputs move to the requested memory."""
        direct = [one.memory_config == other.memory_config for one, other in zip(made, outputs)]
        for number, (spec, is_output) in enumerate(zip(made, direct)):
            self.stages.append(TakeOutput(number) if is_output else Take(f"result {number}", spec))
        self.stages.append(Launch(l1_bytes))

    def hand_out(self, made: list[Spec], outputs: list[Spec]) -> None:
        for number, (one, other) in enumerate(zip(made, outputs)):
            if one.memory_config != other.memory_config:
                self.stages += [TakeOutput(number), Free(f"result {number}")]
