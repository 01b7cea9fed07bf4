"""Weights of a program: prepared once, kept on the device, and prepared again when the model's tensors change.

To detect changes cheaply on every call, a program keeps a copy-on-write clone of each tensor that it read. The clone
shares memory with the original until either is written; then the original moves to another address. So comparing
addresses detects every change, in-place edits of `param.data` included. Memory that cannot be shared this way
(allocated by numpy, or mapped from a file) is compared by checksum.
"""

from __future__ import annotations

import weakref
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import torch
import torch.fx
from torch._C import _data_address  # type: ignore[attr-defined]

from torch_ttnn.compiler.analysis.index_bounds import Bounds
from torch_ttnn.compiler.analysis.nan_inputs import has_nan
from torch_ttnn.compiler.errors import BeyondBounds, ProgramError
from torch_ttnn.compiler.ir.arguments import call_with
from torch_ttnn.compiler.ir.metadata import CONSTANT, ORIGIN, PATH
from torch_ttnn.compiler.ir.source_lines import failed_call, stack_frames
from torch_ttnn.compiler.lowering.support.preparation import Room, selected
from torch_ttnn.compiler.runtime.dispatch_modes import unobserved
from torch_ttnn.compiler.stages import emit
from torch_ttnn.devices import Target


class DeviceWeight(Protocol):
    """A weight that is on the device already: it is downloaded to be prepared."""

    version: int  # changes whenever the values do
    __weakref__: Any

    def host(self) -> torch.Tensor: ...


class DeviceWatch:
    """Detects changes of a weight that is on the device."""

    address = 0

    def __init__(self, weight: DeviceWeight, when_gone: Callable[[], None]) -> None:
        self._gone = weakref.ref(weight, lambda _: when_gone())
        self._version = weight.version

    def has_changed(self, weight: DeviceWeight) -> bool:
        return self._gone() is not weight or weight.version != self._version

    def has_moved(self, weight: DeviceWeight) -> bool:
        return False


class Watch:
    """Detects changes of a tensor."""

    def __init__(self, tensor: torch.Tensor, when_gone: Callable[[], None]) -> None:
        self._gone = weakref.ref(tensor, lambda _: when_gone())
        self._clone: torch.Tensor | None = None
        self.address = 0
        self._checksum = 0
        if tensor.is_meta:
            return
        try:
            self._clone = torch._lazy_clone(tensor.detach())
            self.address = _data_address(tensor)
        except RuntimeError:  # memory that is not torch's own
            self._checksum = _checksum(tensor)

    def has_changed(self, tensor: torch.Tensor) -> bool:
        if tensor.is_meta:
            return False
        if self._clone is None:
            return _checksum(tensor) != self._checksum
        if _data_address(tensor) == self.address:
            return False
        # It may have moved only because its address was read.
        return not _same(tensor, self._clone)

    def has_moved(self, tensor: torch.Tensor) -> bool:
        return self._clone is not None and _data_address(tensor) != self.address


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    one = one.detach()
    if one.shape != other.shape or one.dtype != other.dtype or one.stride() != other.stride():
        return False
    return torch.equal(one, other) or _checksum(one) == _checksum(other)  # NaN differs from itself


def _checksum(tensor: torch.Tensor) -> int:
    data = tensor.detach().contiguous().reshape(-1).view(torch.uint8) if tensor.numel() else tensor.detach()
    return zlib.crc32(data.numpy().data) if tensor.numel() else 0


class Weights:
    """The prepared tensors of one program."""

    def __init__(
        self,
        graph: torch.fx.Graph,
        made: Sequence[torch.fx.Node],
        statics: dict[int, torch.fx.Node],
        target: Target,
        keep: bool = True,
    ) -> None:
        self._made = list(made)
        self._target = target
        self._keep = keep
        self._numbers = list(statics)
        self._placeholder_number = {node: number for number, node in statics.items()}
        self._depends = _dependencies(graph, self._placeholder_number)
        self._watches: dict[int, Watch | DeviceWatch] = {}
        self._is_prepared = False
        self.tensors: list[Any] = [None] * len(self._made)
        self.when_released: Callable[[], None] = lambda: None
        target.border.holders.add(self)
        self.bounds: dict[int, Bounds] = {}  # of integer weights, which the program was compiled for
        self.refuse_nan = True
        self.uploads = 0  # number of preparations; a test reads it

    def current(self, inputs: Sequence[Any]) -> list[Any]:
        """The prepared tensors for these inputs, prepared again where their sources changed."""
        if not self._is_prepared:
            self._require_bounds(self._numbers, inputs)
            self._prepare(range(len(self._made)), inputs)
            self._watch(self._numbers, inputs)
            self._is_prepared = True  # not earlier: an interrupted preparation starts over
            return self.tensors
        changed, moved = set(), []
        for number, watch in self._watches.items():
            tensor = inputs[number]
            if watch.address and _data_address(tensor) == watch.address:
                continue
            if watch.has_changed(tensor):
                changed.add(number)
            elif watch.has_moved(tensor):
                moved.append(number)
        if not self._keep:
            changed = set(self._numbers)
        if changed:
            self._require_bounds(changed, inputs)
            stale = [k for k, node in enumerate(self._made) if self._depends[node] & changed]
            self._prepare(stale, inputs)
        self._watch([*changed, *moved], inputs)
        return self.tensors

    def _require_bounds(self, numbers: Iterable[int], inputs: Sequence[Any]) -> None:
        for number in numbers:
            weight = inputs[number]
            is_torchs = isinstance(weight, torch.Tensor)  # the device itself holds no NaN
            if number in self.bounds and not self.bounds[number].hold(weight if is_torchs else weight.host()):
                low, high = self.bounds[number]
                raise BeyondBounds(f"input {number}, a weight, has values beyond {low} to {high}")
            if self.refuse_nan and is_torchs and has_nan(weight):
                raise BeyondBounds(f"input {number}, a weight, has NaN, which the device does not preserve")

    def release(self) -> None:
        """Free everything; the next call prepares it again."""
        self.tensors = [None] * len(self._made)
        self._watches.clear()
        self._is_prepared = False
        self.when_released()

    def _watch(self, numbers: Sequence[int], inputs: Sequence[Any]) -> None:
        me = weakref.ref(self)

        def when_gone() -> None:
            weights = me()
            if weights is not None:
                weights.release()

        for number in numbers:
            kind = Watch if isinstance(inputs[number], torch.Tensor) else DeviceWatch
            self._watches[number] = kind(inputs[number], when_gone)

    def _prepare(self, which: Sequence[int], inputs: Sequence[Any]) -> None:
        room = Room()
        for k in which:
            self.tensors[k] = None  # frees its memory before the new one is allocated
            env: dict[torch.fx.Node, Any] = {}
            with torch.no_grad(), unobserved():
                made = self._evaluate(self._made[k], env, inputs, room)
                if isinstance(made, torch.Tensor):
                    made = made.detach() if self._made[k].op == "placeholder" else room.moved_out(made)
            room.clear()
            self.tensors[k] = made
            self.uploads += 1

    def _evaluate(self, node: torch.fx.Node, env: dict[torch.fx.Node, Any], inputs: Sequence[Any], room: Room) -> Any:
        if node in env:
            return env[node]
        if node.op == "placeholder":
            result = inputs[self._placeholder_number[node]]
            if not isinstance(result, torch.Tensor):
                result = result.host()
        elif node.op == "get_attr":
            result = CONSTANT[node]
        else:

            def value_of(item: Any) -> Any:
                if isinstance(item, torch.fx.Node):
                    return self._evaluate(item, env, inputs, room)
                return self._target.border.argument(item)

            try:
                result = call_with(self._function(node, room), node.args, node.kwargs, value_of)
            except (ProgramError, BeyondBounds):  # of a nested call
                raise
            except Exception as error:
                name = PATH.get(node) or str(node.target)
                raise failed_call(error, emit.call_text(name, node.args, node.kwargs), ORIGIN.get(node)) from error
        env[node] = result
        return result

    def _function(self, node: torch.fx.Node, room: Room) -> Callable[..., Any]:
        """The function that computes an operation on weights."""
        if PATH.on(node):
            return self._target.border.function(PATH[node])
        target: Any = node.target
        if target is torch.ops.aten.index_select.default:
            return selected
        # On a card, it is unknown how long the driver reads its arguments.
        return room.joined if target is torch.ops.aten.cat.default and self._target.is_emulator else target


def __frames_of__(frame: Any, _: int) -> list[str]:
    """The frames of the model that a call on weights was written for; reports of the emulator ask."""
    node = frame.f_locals.get("node") if frame.f_code is Weights._evaluate.__code__ else None
    origin = ORIGIN.get(node) if node is not None else None
    return [] if origin is None else stack_frames(origin)


def _dependencies(graph: torch.fx.Graph, numbers: dict[torch.fx.Node, int]) -> dict[torch.fx.Node, frozenset[int]]:
    """For each node of `prepare`, the indices of the inputs that it depends on."""
    dependencies: dict[torch.fx.Node, frozenset[int]] = {}
    for node in graph.nodes:
        own = frozenset({numbers[node]}) if node in numbers else frozenset()
        dependencies[node] = own.union(*[dependencies[each] for each in node.all_input_nodes])
    return dependencies
