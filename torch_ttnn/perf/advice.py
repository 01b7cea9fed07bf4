"""Advice that makes a program faster, each with the predicted gain of following it.

A gain is the difference of two predictions: the program as it is, and the program with changed calls, planned again by
the emulator and priced again by the timing model. Advice that would gain nothing is left out.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch_ttnn.compiler.ir.arguments import leaves
from torch_ttnn.perf.calls import Call, Calls, Change, PlannedCall, Ref, repeated
from torch_ttnn.perf.changes import (
    CONVOLUTIONS,
    ORDER,
    PRODUCTS,
    Everywhere,
    Fidelity,
    InL1,
    Interleaved,
    KeptShards,
    SmallWeights,
    first_result,
    longest,
    scheme_of,
    sufficient_fidelity,
)
from torch_ttnn.perf.end_to_end import EndToEndTimes
from torch_ttnn.perf.placements import fits_in_l1
from torch_ttnn.perf.program_time import Mode
from ttnn_emulator import MathFidelity, MeshDevice
from ttnn_emulator.tensors.memory_config import L1_MEMORY_CONFIG
from ttnn_emulator.timing.dispatch import DISPATCH
from ttnn_emulator.timing.launches import Bound

FEW_CORES = 0.5  # of the board's
LEAST_SHARE = 0.002  # of the device's time; smaller gains are not shown
SHOWN_PLACES = 5


class Kind(enum.Enum):
    """What is wrong."""

    HOST = "host-bound gaps"
    CORES = "too few cores"
    PLACEMENT = "placement of tensors"
    DRAM = "DRAM-bound"
    FIDELITY = "fidelity higher than needed"
    LAYOUT = "layout conversions"

    __hash__ = object.__hash__


class Accuracy(enum.Enum):
    """How following an advice affects results."""

    SAME = "same results"
    ROUNDS = "rounds differently: compare the results"

    __hash__ = object.__hash__


@dataclass(frozen=True)
class Advice:
    """One thing to change.

    calls    how many calls it concerns
    gain_ns  of one call of the model, by the timing model
    places   the operations and source lines that gain most
    """

    kind: Kind
    text: str
    calls: int
    gain_ns: float
    accuracy: Accuracy = Accuracy.SAME
    places: tuple[str, ...] = ()


class Advisor:
    """Asks for the time of changed programs."""

    def __init__(self, calls: Calls, planned: Sequence[PlannedCall], device: MeshDevice, modes: EndToEndTimes) -> None:
        self.calls = calls
        self.planned = planned
        self.device = device
        self.board = device.board
        self.modes = modes
        self.gap_ns = DISPATCH[self.board.arch].gap_ns
        self.before = {id(each.call): self._call_ns(each) for each in planned}
        self.total = sum(self.before.values())

    def advice(self) -> list[Advice]:
        """All advice, by gain."""
        rules = (self._host, self._placement, self._shards, self._cores, self._weights, self._fidelity, self._layouts)
        found = [advice for rule in rules for advice in rule()]
        return sorted(
            [each for each in found if each.gain_ns > LEAST_SHARE * self.total], key=lambda each: -each.gain_ns
        )

    # -- rules ------------------------------------------------------------------------------------------------------

    def _host(self) -> Iterator[Advice]:
        """Gaps in which the device waits for the host."""
        as_is, traced = (self.modes.times.get(mode) for mode in (Mode.AS_IS, Mode.TRACED))
        if as_is is None or traced is None:
            return
        launched = sum(len(each.launches(self.board)) * each.call.times for each in self.planned)
        yield Advice(
            Kind.HOST,
            "run the calls as a trace, so that the device does not wait for the host between programs: "
            + self.calls.trace_how,
            launched,
            as_is.latency_ns - traced.latency_ns,
        )

    def _placement(self) -> Iterator[Advice]:
        """Results that fit into L1 and are in DRAM."""
        chosen = fits_in_l1(self.planned, self.device)
        yield from self._changed(
            Kind.PLACEMENT,
            "keep results in L1 that fit there: memory_config=ttnn.L1_MEMORY_CONFIG",
            InL1(chosen),
        )

    def _shards(self) -> Iterator[Advice]:
        """Convolutions and pools that write their shards to DRAM, from where the next one reads them."""
        chosen = fits_in_l1(self.planned, self.device)
        schemes = {first_result(each.call): scheme_of(each, self.board) for each in self.planned}
        yield from self._changed(
            Kind.PLACEMENT,
            "leave results of convolutions and pools in shards in L1 (no memory_config), and keep the shard_layout of "
            "each convolution: Conv2dConfig(shard_layout=…, reshard_if_not_optimal=True)",
            KeptShards(chosen, {key: scheme for key, scheme in schemes.items() if scheme is not None}),
        )

    def _cores(self) -> Iterator[Advice]:
        """Programs on less than half of the grid."""
        slow = {first_result(each.call) for each in self.planned if self._has_few_cores(each)}
        grid = self.board.grid
        size = f"{grid[0]} x {grid[1]}"
        yield from self._changed(
            Kind.CORES,
            f"let the library choose the program for all {size} cores: core_grid, and no program_config",
            Everywhere(slow, grid),
        )
        yield from self._changed(
            Kind.CORES,
            "spread sharded operands over all cores first: ttnn.to_memory_config(…, ttnn.L1_MEMORY_CONFIG)",
            Interleaved(slow),
            self._conversions_ns,
        )

    def _weights(self) -> Iterator[Advice]:
        """Products and convolutions that wait for their weights."""
        bound = {
            first_result(each.call)
            for each in self.planned
            if each.call.name in (*PRODUCTS, *CONVOLUTIONS)
            and (launch := longest(each, self.board)) is not None
            and launch.bound in (Bound.DRAM, Bound.NOC)
        }
        operands = {
            leaf for each in self.calls.calls if first_result(each) in bound for leaf in self._input_operands(each)
        }
        if operands:
            yield from self._changed(
                Kind.DRAM,
                "keep weights of products in bfloat8_b, which is half as many bytes",
                _only(SmallWeights(operands), bound),
                accuracy=Accuracy.ROUNDS,
            )

    def _fidelity(self) -> Iterator[Advice]:
        """Products whose fidelity is higher than their operands need, or than results usually need."""
        exact: dict[Hashable, MathFidelity] = {}
        lower: dict[Hashable, MathFidelity] = {}
        for each in self.planned:
            launch = longest(each, self.board)
            if launch is None or launch.fidelity is None:
                continue
            enough = sufficient_fidelity(launch)
            if enough is not None:
                exact[first_result(each.call)] = enough
            elif ORDER.index(launch.fidelity) > ORDER.index(MathFidelity.HiFi2):
                lower[first_result(each.call)] = MathFidelity.HiFi2
        yield from self._changed(
            Kind.FIDELITY,
            "use the lowest fidelity that sees all bits of the operands of a product",
            Fidelity(exact),
        )
        yield from self._changed(
            Kind.FIDELITY,
            "try HiFi2, which drops the lowest bits of one operand of a product",
            Fidelity(lower),
            accuracy=Accuracy.ROUNDS,
        )

    def _layouts(self) -> Iterator[Advice]:
        """Calls that only convert layouts, dtypes or placements; without them, their time is saved."""
        conversions = [each for each in self.planned if each.call.name in CONVERSIONS and each.records]
        if conversions:
            yield Advice(
                Kind.LAYOUT,
                "create tensors in the layout, dtype and memory that their users need, without conversions",
                sum(each.call.times for each in conversions),
                sum(self.before[id(each.call)] for each in conversions),
                places=self._places({id(each.call): self.before[id(each.call)] for each in conversions}),
            )

    # -- gains ------------------------------------------------------------------------------------------------------

    def _changed(
        self,
        kind: Kind,
        text: str,
        change: Change,
        cost_ns: Callable[[PlannedCall], float] = lambda planned: 0.0,
        accuracy: Accuracy = Accuracy.SAME,
    ) -> Iterator[Advice]:
        """The advice to make a change, if it gains anything."""
        after = list(repeated(self.calls, self.device, change, self.planned))
        gains = {id(each.call): self.before[id(each.call)] - self._call_ns(each) - cost_ns(each) for each in after}
        count = sum(each.call.times for each in after if each.changed)
        if count:
            yield Advice(kind, text, count, sum(gains.values()), accuracy, self._places(gains))

    def _call_ns(self, planned: PlannedCall) -> float:
        launches = planned.launches(self.board)
        return planned.call.times * sum(launch.kernel_ns + self.gap_ns for launch in launches)

    def _conversions_ns(self, planned: PlannedCall) -> float:
        """The time of the conversions that a changed call needs before it."""
        if not planned.changed:
            return 0.0
        call = planned.call
        known = {key: spec for each in self.planned for key, spec in each.outputs.items()} | self.calls.inputs
        read = [known.get(leaf.key) for leaf in leaves((call.args, dict(call.kwargs))) if isinstance(leaf, Ref)]
        sharded = [spec for spec in read if spec is not None and spec.on_device and spec.is_sharded]
        converted = Calls(self.board, [_conversion(number, call) for number in range(len(sharded))])
        converted.inputs.update(enumerate(sharded))
        return sum(self._call_ns(each) for each in repeated(converted, self.device))

    def _has_few_cores(self, planned: PlannedCall) -> bool:
        launch = longest(planned, self.board)
        return launch is not None and launch.cores <= FEW_CORES * self.board.cores

    def _input_operands(self, call: Call) -> Iterator[Hashable]:
        for leaf in leaves((call.args, dict(call.kwargs))):
            if isinstance(leaf, Ref) and leaf.key in self.calls.inputs:
                yield leaf.key

    def _places(self, gains: dict[int, float]) -> tuple[str, ...]:
        """Where the gain is: operation and line, most first."""
        found: Counter[str] = Counter()
        for each in self.planned:
            gain = gains.get(id(each.call), 0.0)
            if gain > 0:
                origin = each.call.origin
                found[f"{each.call.name} {origin.source or origin.module}".strip()] += gain  # type: ignore[assignment]
        return tuple([place for place, _ in found.most_common(SHOWN_PLACES)])


CONVERSIONS = frozenset(
    (
        "ttnn.to_layout ttnn.tilize ttnn.tilize_with_val_padding ttnn.tilize_with_zero_padding ttnn.untilize "
        "ttnn.untilize_with_unpadding ttnn.to_memory_config ttnn.interleaved_to_sharded ttnn.sharded_to_interleaved "
        "ttnn.reshard ttnn.typecast ttnn.to_dtype"
    ).split(" ")
)


def _only(change: Change, calls: Iterable[Hashable]) -> Change:
    wanted = frozenset(calls)

    def changed(call: Call, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]] | None:
        return change(call, args, kwargs) if first_result(call) in wanted else None

    return changed


def _conversion(number: int, call: Call) -> Call:
    kwargs = {"memory_config": L1_MEMORY_CONFIG}
    return Call("ttnn.to_memory_config", (Ref(number),), kwargs, Ref(("converted", number)), call.origin, call.times)
