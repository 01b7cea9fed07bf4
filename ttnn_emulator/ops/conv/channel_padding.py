"""Channel counts of input, weights and call that differ by padding.

The kernel works on sticks of a padded width. It multiplies as many channels as the weights have: additional input
channels are multiplied by zeros, and in_channels only determines the padded width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from ttnn_emulator.errors import ChipFault
from ttnn_emulator.ops.conv.blocks import Problem
from ttnn_emulator.ops.conv.plan import Run
from ttnn_emulator.tensors.shapes import round_up

Compute = Callable[..., torch.Tensor]


def multiplied_channels(run: Run, problem: Problem) -> Problem:
    """The problem with the channel count of the weights, if both are padded to the same width."""
    kernel = problem.window.kernel
    taps = kernel[0] * kernel[1]
    channels, rest = divmod(run.weight.shape[-2], taps)
    if rest or not channels or channels == problem.in_channels:
        return problem
    if problem.groups > 1 or run.fold is not None or problem.depthwise_1d:
        return problem  # their padding is not at the end of a stick
    step = run.inputs.channels * run.preparation.alignment
    if round_up(channels, step) != round_up(problem.in_channels, step):
        return problem
    return replace(problem, in_channels=channels)


def with_channels(convolve: Compute, run: Run, problem: Problem) -> Compute:
    """A computation on sticks that are wider or narrower than the multiplied channels."""
    channels = problem.in_channels
    taps = problem.window.kernel[0] * problem.window.kernel[1]
    volume = problem.window.batch * problem.window.size[0] * problem.window.size[1] * channels

    def compute(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        given = x.shape[-1]
        if given == channels or x.numel() == volume:
            return convolve(x, weight, bias)
        if not run.pixels_fit and x.any():
            raise ChipFault(
                f"the card takes pixels of {given} channels for narrower ones: weights of {channels} channels are "
                "padded to another width",
                hint="Give an input of as many channels as in_channels says, or pad the weights.",
            )
        if given > channels:
            return convolve(x[..., :channels].contiguous(), weight, bias)
        if weight.reshape(taps, channels, -1)[:, given:].any():
            raise ChipFault(f"the weights of {channels} channels multiply padding: the input has {given} channels")
        return convolve(torch.nn.functional.pad(x, (0, channels - given)), weight, bias)

    return compute
