"""Tensors that stay on the device between programs: how one is stored, and which of a graph's tensors do."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from torch_ttnn.compiler.ir.storage_order import Form
from ttnn_emulator.tensors.spec import Spec


@dataclass(frozen=True)
class Resident:
    """How a tensor is stored on the device: the spec there, and the order of its dimensions."""

    spec: Spec
    form: Form


class Written(enum.Enum):
    """What stands for a result that the program has written into the memory of an input."""

    IN_PLACE = "in place"


@dataclass(frozen=True)
class Residents:
    """The tensors of one graph that are on the device before or after the program.

    inputs   how the inputs that are there already are stored, by index
    results  whether results stay there: all, none, or one flag for each
    written  the input whose new value a result is, by the index of the result: written in place where possible
    """

    inputs: Mapping[int, Resident] = field(default_factory=dict)
    results: bool | Sequence[bool] = False
    written: Mapping[int, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.inputs) or bool(self.results)

    def stays(self, result: int) -> bool:
        """Whether a result stays on the device."""
        return self.results if isinstance(self.results, bool) else self.results[result]
