"""Direct replays: from torch tensors to torch tensors, without ttnn tensors in between.

`from_torch`, `copy_host_to_device_tensor`, `execute_trace` and `to_torch` copy values from buffer to buffer, which for
a small model takes as long as one of its layers. For a bound trace (`bound_replay`), inputs are written directly to the
memory that its programs read, and results are read from the memory that they write: the same bits in fewer steps. The
tensors of the trace keep their values. With listeners, or during a capture, there is no direct replay.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from ttnn_emulator.enums import FLOAT_DTYPES, DataType
from ttnn_emulator.execution import listeners
from ttnn_emulator.execution.bound_replay import BoundTrace, BufferMemory, Replays, memory_of
from ttnn_emulator.hardware.activity import TraceRecord, Transfers
from ttnn_emulator.numerics import mode
from ttnn_emulator.numerics.formats import carriers
from ttnn_emulator.numerics.kernels import formats as format_kernels

if TYPE_CHECKING:
    from ttnn_emulator.execution.trace import Trace
    from ttnn_emulator.hardware.device import MeshDevice
    from ttnn_emulator.tensors.tensor import Tensor

Write = Callable[[torch.Tensor], Any]
Read = Callable[[], torch.Tensor]


@dataclass(frozen=True)
class DirectReplay:
    """Replays per call: from one torch tensor per input buffer to one torch tensor per requested result."""

    device: MeshDevice
    replays: Replays
    activity: TraceRecord
    bound: BoundTrace
    shapes: list[torch.Size]  # of the inputs
    writes: list[Write]
    reads: list[Read]
    transfers: Transfers  # of one call

    def __call__(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
        """The results for these inputs; None if the trace must run through `execute_trace`."""
        device, bound, lock = self.device, self.bound, self.replays.lock
        if listeners.active or device.capturing is not None or not device.is_open or bound.mode != mode.current():
            return None
        if not lock.acquire(blocking=False):  # another thread is replaying
            return None
        try:
            if self.replays.bound is not bound or not bound.is_unchanged():
                return None
            for values, shape, write in zip(inputs, self.shapes, self.writes):
                if values.shape != shape:
                    return None
                write(values)
            for run in bound.runs:
                run()
            self.activity.executions += 1
            device.activity.on_queue(0).add(self.transfers)
            return [read() for read in self.reads]
        finally:
            lock.release()


def direct_replay(
    device: MeshDevice, trace_id: int, buffers: Sequence[Tensor], results: Sequence[tuple[Tensor, torch.dtype | None]]
) -> DirectReplay | None:
    """How to replay a trace whose inputs from the host are `buffers`; None if it does not run bound, or not yet."""
    trace: Trace = device.traces[trace_id]
    replays = trace.replays
    bound = replays.bound
    if bound is None:
        return None
    copied = {id(each.storage): each.copy for each in bound.outside if each.copy is not None}
    targets = [copied.pop(id(buffer._storage), None) for buffer in buffers]
    found = [memory_of(tensor._storage, bound) for tensor, _ in results]
    if copied or any(target is None for target in targets) or any(each is None for each in found):
        return None
    return DirectReplay(
        device,
        replays,
        trace.activity,
        bound,
        [target.shape for target in targets],  # type: ignore[union-attr]
        [_writing(target, buffer.dtype) for target, buffer in zip(targets, buffers)],  # type: ignore[arg-type]
        [_reading(memory, tensor, dtype) for memory, (tensor, dtype) in zip(found, results)],  # type: ignore[arg-type]
        Transfers([buffer._spec for buffer in buffers], [tensor._spec for tensor, _ in results]),
    )


# -- values in and out ------------------------------------------------------------------------------------------------


def _writing(target: torch.Tensor, dtype: DataType) -> Write:
    """The conversion of a torch tensor to a buffer of `dtype`."""
    if dtype is not DataType.BFLOAT16:
        return lambda values: target.copy_(carriers.host_convert(values, dtype))
    is_narrow = target.dtype is torch.bfloat16
    loop = format_kernels.narrow_nearest_even_at if is_narrow else format_kernels.round_nearest_even_at
    address, count, sizes = target.data_ptr(), target.numel(), (4, target.element_size())

    def write(values: torch.Tensor) -> None:
        if values.dtype is torch.bfloat16:
            target.copy_(values if is_narrow else carriers.widened(values))
            return
        source = values.float().contiguous()
        carriers.in_parts(loop, source.data_ptr(), address, count, sizes)

    return write


def _reading(memory: BufferMemory, tensor: Tensor, dtype: torch.dtype | None) -> Read:
    """The conversion of a program's output to a torch tensor of `dtype`, or of the one that `to_torch` chooses."""
    values = memory.values.view(tuple(tensor._spec.shape))
    if tensor.dtype in FLOAT_DTYPES and dtype is torch.float32:
        return functools.partial(carriers.widened, values) if values.dtype is torch.bfloat16 else values.clone
    kind, chosen = tensor.dtype, dtype or carriers.TORCH_DTYPE[tensor.dtype]
    return lambda: carriers.to_torch_dtype(values, kind).to(chosen, copy=True)
