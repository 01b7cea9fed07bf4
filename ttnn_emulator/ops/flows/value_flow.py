"""A value passing through the kernels of one call.

Layout changes, reshapes and permutes of the library are chains of smaller operations, each with its own checks. Here
such a chain is derived on specs, step by step, and becomes one plan: intermediate values are not allocated.

    flow = untilize(Flow(spec)); flow = viewed(flow, shape); return flow.plan("input_tensor")
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ttnn_emulator.execution.operation_table import Bindable, Plan
from ttnn_emulator.numerics.native.threaded_copies import contiguous, copied, copying
from ttnn_emulator.ops.support.buffer_views import Reread
from ttnn_emulator.tensors.spec import Spec

Step = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Program:
    """A program that the library launches on the way.

    code    the library's device operation
    source  what it reads
    result  what it writes
    how     what specs do not say, e.g. the order of a permutation
    """

    code: str
    source: Spec
    result: Spec
    how: Any = None


@dataclass(frozen=True)
class Flow:
    """The current spec, the steps of its carrier so far, and whether it has left its original buffer.

    Steps that keep the dtype take narrow carriers, too. `recast` says that some step does not.
    """

    spec: Spec
    steps: tuple[Step, ...] = ()
    moved: bool = False
    l1_bytes: int = 0
    recast: bool = False
    programs: tuple[Program, ...] = ()

    def into(self, spec: Spec, step: Step | None = None, *, by: str | None, how: Any = None, l1_bytes: int = 0) -> Flow:
        """A kernel has written it to a new buffer. `by` is its device operation; None if nothing runs on a device."""
        steps = self.steps if step is None else (*self.steps, step)
        programs = self.programs if by is None else (*self.programs, Program(by, self.spec, spec, how))
        return Flow(spec, steps, True, max(self.l1_bytes, l1_bytes), self._recasts(spec), programs)

    def view(self, spec: Spec, step: Step | None = None) -> Flow:
        """The same buffer, seen under another spec."""
        steps = self.steps if step is None else (*self.steps, step)
        return Flow(spec, steps, self.moved, self.l1_bytes, self._recasts(spec), self.programs)

    def _recasts(self, spec: Spec) -> bool:
        return self.recast or spec.dtype is not self.spec.dtype

    def plan(self, source: str, output: str | None = None) -> Plan:
        """The plan of the whole chain from parameter `source`, into parameter `output` if one is given."""
        keeps: dict[str, Any] = {"l1_bytes": self.l1_bytes, "narrow": not self.recast, "work": self.programs}
        if output is not None:
            return Plan(self.spec, self._copying(), reads=(source,), into=(output,), **keeps)
        if not self.moved:
            step = self.steps[0] if len(self.steps) == 1 else None
            padded = step.old if isinstance(step, Reread) else None
            chain = self._chain() if self.steps else None
            return Plan(self.spec, chain, reads=(), shares=source, padded=padded, work=self.programs)
        return Plan(self.spec, self._copying(), reads=(source,), **keeps)

    def _chain(self) -> Step:
        steps = _combined(self.steps)
        if len(steps) == 1:
            return steps[0]

        def run(values: torch.Tensor) -> torch.Tensor:
            for step in steps:
                values = step(values)
            return values

        return run

    def _copying(self) -> Step:
        """The chain, with a result that shares no memory with what went in."""
        chain = self._chain()
        if isinstance(chain, CombinedPermute) and chain.direct.then is not None:
            return chain
        bind = functools.partial(_bind, chain)

        def run(values: torch.Tensor) -> torch.Tensor:
            result = chain(values)
            return copied(result) if _share_memory(result, values) else contiguous(result)

        return Bindable(run, bind)


def _bind(chain: Step, carriers: Sequence[torch.Tensor], constant: Sequence[bool]) -> Any:
    """See `Bindable`: another shape of the same memory needs no work; another order is copied."""
    (values,) = carriers
    seen = chain(values)
    if not _share_memory(seen, values):
        return None
    return (None, seen) if seen.is_contiguous() else copying(seen)


def _share_memory(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


@dataclass(frozen=True)
class Reshaped:
    """A step that gives the carrier another shape."""

    shape: tuple[int, ...]

    def __call__(self, values: torch.Tensor) -> torch.Tensor:
        return values if values.shape == self.shape else values.reshape(self.shape)


@dataclass(frozen=True)
class Permuted:
    """A step that permutes. `then` is what the kernel does to the values; it returns a new tensor."""

    order: tuple[int, ...]
    then: Step | None = None

    def __call__(self, values: torch.Tensor) -> torch.Tensor:
        permuted = values.permute(self.order)
        return permuted if self.then is None else self.then(permuted)


@dataclass(frozen=True)
class CombinedPermute:
    """One permute for carriers of `shape`, the original steps for all others."""

    shape: tuple[int, ...]
    direct: Permuted
    steps: tuple[Step, ...]

    def __call__(self, values: torch.Tensor) -> torch.Tensor:
        if values.shape == self.shape:
            return self.direct(values)
        for step in self.steps:
            values = step(values)
        return values


def reshaped(shape: tuple[int, ...]) -> Step:
    return Reshaped(tuple(shape))


def _combined(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """A permute between adding and removing leading ones is a permute of the tensor itself."""
    if len(steps) != 3:
        return steps
    first, permuted, last = steps
    if not (isinstance(first, Reshaped) and isinstance(permuted, Permuted) and isinstance(last, Reshaped)):
        return steps
    extra = len(first.shape) - len(last.shape)
    order = tuple(dim - extra for dim in permuted.order[extra:])
    source = first.shape[extra:]
    leads = first.shape[:extra] == (1,) * extra and permuted.order[:extra] == tuple(range(extra))
    if extra <= 0 or not leads or tuple(source[dim] for dim in order) != last.shape:
        return steps
    return (CombinedPermute(source, Permuted(order, permuted.then), (first, permuted, last)),)
