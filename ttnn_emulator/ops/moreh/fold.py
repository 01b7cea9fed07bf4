"""ttnn.moreh_fold: columns summed back into images, the inverse of im2col."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch.nn.functional import pad

from ttnn_emulator.enums import DataType
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.numerics.formats.carriers import truncate_bf16
from ttnn_emulator.ops.conv.sliding_window import UINT32
from ttnn_emulator.ops.support.common_checks import into, memory_of, require_on_device
from ttnn_emulator.tensors.memory_config import MemoryConfig
from ttnn_emulator.tensors.spec import Spec

SUMMED_DTYPES = (DataType.BFLOAT16, DataType.FLOAT32)  # the kernel does not sum other dtypes


@operation("ttnn.moreh_fold")
def moreh_fold(
    input: Spec,
    output: Spec | None = None,
    output_size: Sequence[int] = (),
    kernel_size: Sequence[int] = (),
    dilation: Sequence[int] = (1, 1),
    padding: Sequence[int] = (0, 0),
    stride: Sequence[int] = (1, 1),
    memory_config: MemoryConfig | None = None,
) -> Plan:
    """[N, C × kernel, L] or [C × kernel, L] → [N, C, H, W] or [C, H, W]: overlapping patches are added up."""
    require_on_device(input)
    named = {"output_size": output_size, "kernel_size": kernel_size, "dilation": dilation, "padding": padding}
    for name, values in {**named, "stride": stride}.items():
        require(
            len(values) == 2 and all(0 <= value <= UINT32 for value in values),
            f"{name} takes two numbers from 0 on, not {list(values)}",
        )
    require(min(stride) > 0, f"stride must be greater than 0, it is {list(stride)}")
    require(min(kernel_size) > 0, f"kernel_size must be greater than 0, it is {list(kernel_size)}")
    require(not input.is_tile, "the input must be in ROW_MAJOR layout")
    require(input.rank in (2, 3), f"the input must be of rank 2 or 3, not {input.rank}")
    taps = math.prod(kernel_size)
    steps = [
        ((size + 2 * side - apart * (taps_along - 1) - 1) & UINT32) // step + 1
        for size, side, apart, taps_along, step in zip(output_size, padding, dilation, kernel_size, stride)
    ]
    require(input.shape[-1] == steps[0] * steps[1], f"{input.shape[-1]} columns are not the {steps} places of a kernel")
    require(input.shape[-2] % taps == 0, f"{input.shape[-2]} rows are not a multiple of the {taps} values of a kernel")
    shape = (*input.shape[:-2], input.shape[-2] // taps, *output_size)
    if output is not None:
        require(output.rank in (3, 4), f"the output must be of rank 3 or 4, not {output.rank}")
        require(output.shape[-3:] == shape[-3:], f"the output must end in {list(shape[-3:])}, not {list(output.shape)}")
    out = output or Spec.of(shape, input.dtype, input.layout, memory_of(memory_config, input))
    config = (tuple(kernel_size), tuple(dilation), tuple(padding), tuple(stride), (steps[0], steps[1]))

    def compute(columns: torch.Tensor) -> torch.Tensor:
        if input.dtype not in SUMMED_DTYPES:
            raise ChipFault(
                f"the card sums bfloat16 and float32 only; of {input.dtype} it leaves what was there before"
            )
        sums = _folded(columns.reshape(-1, shape[-3], *kernel_size, *steps), tuple(output_size), *config)
        sums = truncate_bf16(sums) if input.dtype is DataType.BFLOAT16 else sums
        return sums.reshape(out.shape)

    return Plan(out, compute, reads=("input",), into=into(output, "output"))


def _folded(
    patches: torch.Tensor,
    size: tuple[int, ...],
    kernel: tuple[int, ...],
    dilation: tuple[int, ...],
    padding: tuple[int, ...],
    stride: tuple[int, ...],
    steps: tuple[int, int],
) -> torch.Tensor:
    """Patches [N, C, kernel, places] added in float32, one tap of the kernel after the other, as the kernel does."""
    reach = [(count - 1) * step + 1 for count, step in zip(steps, stride)]
    room = [
        max(extent + side, (taps - 1) * apart + spread) + 1
        for extent, side, taps, apart, spread in zip(size, padding, kernel, dilation, reach)
    ]
    sums = torch.zeros(*patches.shape[:2], *room)
    for down in range(kernel[0]):
        for across in range(kernel[1]):
            top, left = down * dilation[0], across * dilation[1]
            window = sums[:, :, top : top + reach[0] : stride[0], left : left + reach[1] : stride[1]]
            window += patches[:, :, down, across]
    sums = sums[:, :, padding[0] : padding[0] + size[0], padding[1] : padding[1] + size[1]]
    return pad(sums, (0, size[1] - sums.shape[3], 0, size[0] - sums.shape[2]))
