"""Stages of a computation on buffers with fixed addresses: each appends a nullary function and returns its output.

An operation of several passes is assembled once, for carriers whose addresses do not change (see `Bindable`), and run
again whenever their values change.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ttnn_emulator.enums import DataType
from ttnn_emulator.numerics.formats.carriers import in_parts
from ttnn_emulator.numerics.functions.lookup_tables import applying_table
from ttnn_emulator.numerics.kernels import formats
from ttnn_emulator.numerics.native.addresses import address_of

Values = torch.Tensor
UPPER_HALF = np.int32(-0x10000)


class Stages:
    """Functions called in order; an in-place stage overwrites the output of the one before it."""

    def __init__(self) -> None:
        self.runs: list[Callable[[], Any]] = []
        self._memory: list[Values] = []  # keeps buffers alive: loops only know addresses

    def __call__(self) -> None:
        for run in self.runs:
            run()

    def keep(self, *values: Values) -> None:
        """Keep input buffers alive."""
        self._memory.extend(values)

    def add(self, run: Callable[[], Any], out: Values) -> Values:
        self.runs.append(run)
        self._memory.append(out)
        return out

    def loop(self, loop: Callable[..., Any], source: Values, *arguments: Any, in_place: bool = False) -> Values:
        """A loop over values, by address."""
        out = source if in_place else torch.empty_like(source)
        all_arguments = (address_of(source), address_of(out), source.numel(), (4, 4), *arguments)
        self._memory.append(source)
        return self.add(functools.partial(in_parts, loop, *all_arguments), out)

    def masked(self, source: Values, mask: int) -> Values:
        return self.loop(formats.mask_at, source, np.int32(mask))

    def flushed(self, source: Values, *, in_place: bool = False) -> Values:
        return self.loop(formats.flush_at, source, in_place=in_place)

    def looked_up(self, table: np.ndarray, source: Values) -> Values:
        self._memory.append(source)
        return self.add(*applying_table(table, source))

    def by_torch(self, function: Callable[[], Values], out: Values, loop: Callable[..., Any]) -> Values:
        """The result of a torch function, written by a loop into a fixed buffer."""
        target, count = address_of(out), out.numel()

        def run() -> None:
            result = function()
            in_parts(loop, address_of(result), target, count)

        return self.add(run, out)

    def packed(self, values: Values, dtype: DataType, *, from_fp32: bool) -> Values:
        """`packer.pack` of the output of an earlier stage, for the two dtypes without shared exponents."""
        if dtype is DataType.FLOAT32:
            return values
        if from_fp32:
            values = self.loop(formats.round_half_away_at, values, in_place=True)
        else:
            values = self.loop(formats.mask_at, values, UPPER_HALF, in_place=True)
        return self.flushed(values, in_place=True)
