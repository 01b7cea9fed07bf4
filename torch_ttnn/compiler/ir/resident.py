"""Tensors that stay on the device between programs: how one is stored, and which of a graph's tensors do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch_ttnn.compiler.ir.storage_order import Form
from ttnn_emulator.tensors.spec import Spec


@dataclass(frozen=True)
class Resident:
    """How a tensor is stored on the device: the spec there, and the order of its dimensions."""

    spec: Spec
    form: Form


@dataclass(frozen=True)
class Residents:
    """The tensors of one graph that are on the device before or after the program.

    inputs   how the inputs that are there already are stored, by index
    results  whether results stay there
    """

    inputs: Mapping[int, Resident] = field(default_factory=dict)
    results: bool = False

    def __bool__(self) -> bool:
        return bool(self.inputs) or self.results
