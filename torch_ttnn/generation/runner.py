"""Runs the steps of a generation as compiled programs, one for each set of shapes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from torch_ttnn.compiler.runtime.program import Program
from torch_ttnn.generation.lengths import padded
from torch_ttnn.generation.programs import Steps, separate
from torch_ttnn.generation.state import DeviceCache, Slots
from torch_ttnn.options import TorchTtnnOption

Tensor = torch.Tensor


Compile = Callable[[Callable[..., Any], TorchTtnnOption], Callable[..., Any]]


def compiled(step: Callable[..., Any], options: TorchTtnnOption) -> Callable[..., Any]:
    """A step as one program for one set of shapes."""
    settings: Any = {"options": options}  # torch's annotation allows plain dicts only
    return torch.compile(step, backend="ttnn", fullgraph=True, dynamic=False, **settings)


@dataclass(frozen=True)
class Compiled:
    """A step for one set of shapes; `options.programs` has its program."""

    call: Callable[..., Any]
    options: TorchTtnnOption


class Runner:
    """The programs of a model, by step and shapes.

    programs  by name of the step and the shapes it is compiled for
    """

    def __init__(self, steps: Steps, options: TorchTtnnOption, compile: Compile) -> None:
        self.steps, self.options, self.compile = steps, options, compile
        self.programs: dict[tuple, Compiled] = {}

    @property
    def count(self) -> int:
        return len(self.programs)

    def last(self, step: str) -> list[Program]:
        """The compiled program of a step that was added last; none if torch compiled it for another backend."""
        found = [each for (name, *_), each in self.programs.items() if name == step]
        return found[-1].options.programs[-1:] if found else []

    def drop(self) -> None:
        self.programs.clear()

    def encode(self, inputs: Tensor) -> Tensor:
        return self._program(self.steps.encode, *inputs.shape)(self.uploaded(inputs))

    def prefill(self, tokens: Tensor, cache: DeviceCache) -> Tensor:
        prompt = padded(tokens) if self.steps.can_pad else tokens
        logits = self._run(self.steps.prefill, prompt, cache, prompt.shape[1])
        cache.used = prompt.shape[1]
        cache.padding = prompt.shape[1] - tokens.shape[1]
        cache.first = (prompt < 0).sum(-1)
        return logits

    def decode(self, tokens: Tensor, cache: DeviceCache) -> Tensor:
        step = torch.stack([tokens[:, 0], torch.full_like(tokens[:, 0], cache.used), cache.first], dim=1)
        logits = self._run(self.steps.decode, step, cache)
        cache.used += 1
        return logits

    def reorder(self, slots: Slots, order: Tensor) -> None:
        self._program(self.steps.reorder, slots.size)(self.uploaded(order), slots.layers)

    def _run(self, step: Callable[..., Any], integers: Tensor, cache: DeviceCache, *lengths: int) -> Tensor:
        """The logits of a step, on the host."""
        slots = cache.slots
        program = self._program(step, slots.size, *lengths)
        return program(self.uploaded(integers), slots.layers, slots.encoded, cache.hidden, cache.encoder_mask).cpu()

    def uploaded(self, tensor: Tensor) -> Tensor:
        tensor = tensor.to(self.steps.model.dtype) if tensor.is_floating_point() else tensor
        return tensor.to(self.steps.model.device)

    def _program(self, step: Callable[..., Any], *sizes: Any) -> Callable[..., Any]:
        key = step.__name__, *sizes
        found = self.programs.get(key)
        if found is None:
            options = copy.deepcopy(self.options)
            found = self.programs[key] = Compiled(self.compile(separate(step), options), options)
        return found.call
