"""Steps of a computation on memory that stays: each adds a function without arguments and gives the memory it fills.

What an operation computes in several passes is put together from these once, for carriers whose addresses do not change
(see `Bindable`); then it is run as often as their values do.
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
    """Functions to be called one after the other; a stage in place writes over what the one before it made."""

    def __init__(self) -> None:
        self.runs: list[Callable[[], Any]] = []
        self._memory: list[Values] = []  # loops know addresses only

    def __call__(self) -> None:
        for run in self.runs:
            run()

    def keep(self, *values: Values) -> None:
        """Memory that is only read."""
        self._memory.extend(values)

    def add(self, run: Callable[[], Any], made: Values) -> Values:
        self.runs.append(run)
        self._memory.append(made)
        return made

    def loop(self, loop: Callable[..., Any], source: Values, *arguments: Any, in_place: bool = False) -> Values:
        """A loop over values by their addresses."""
        made = source if in_place else torch.empty_like(source)
        given = (address_of(source), address_of(made), source.numel(), (4, 4), *arguments)
        self._memory.append(source)
        return self.add(functools.partial(in_parts, loop, *given), made)

    def masked(self, source: Values, mask: int) -> Values:
        return self.loop(formats.mask_at, source, np.int32(mask))

    def flushed(self, source: Values, *, in_place: bool = False) -> Values:
        return self.loop(formats.flush_at, source, in_place=in_place)

    def looked_up(self, table: np.ndarray, source: Values) -> Values:
        self._memory.append(source)
        return self.add(*applying_table(table, source))

    def by_torch(self, function: Callable[[], Values], made: Values, loop: Callable[..., Any]) -> Values:
        """What a function of torch gives, through a loop into memory that stays."""
        target, count = address_of(made), made.numel()

        def run() -> None:
            result = function()
            in_parts(loop, address_of(result), target, count)

        return self.add(run, made)

    def packed(self, values: Values, dtype: DataType, *, from_fp32: bool) -> Values:
        """`packer.pack` of what a stage before made, for the two dtypes that keep every value by itself."""
        if dtype is DataType.FLOAT32:
            return values
        if from_fp32:
            values = self.loop(formats.round_half_away_at, values, in_place=True)
        else:
            values = self.loop(formats.mask_at, values, UPPER_HALF, in_place=True)
        return self.flushed(values, in_place=True)
