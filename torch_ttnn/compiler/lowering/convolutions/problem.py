"""The parameters of one torch convolution: sizes, strides, padding, and output shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch_ttnn.compiler.lowering.support.windows import Windows, spread
from ttnn_emulator import DataType

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Convolution:
    """One `aten.convolution`."""

    batch: int
    in_channels: int
    out_channels: int
    sizes: Sizes
    kernel: Sizes
    stride: Sizes
    padding: Sizes
    dilation: Sizes
    output_padding: Sizes
    transposed: bool
    groups: int
    dtype: DataType

    @classmethod
    def of(
        cls,
        x: Sequence[int],
        weight: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        transposed: bool,
        output_padding: Sequence[int],
        groups: int,
        dtype: DataType,
    ) -> Convolution:
        rank = len(x) - 2
        return cls(
            x[0],
            x[1],
            weight[1] * groups if transposed else weight[0],
            tuple(x[2:]),
            tuple(weight[2:]),
            spread(stride, rank),
            spread(padding, rank),
            spread(dilation, rank),
            spread(output_padding, rank),
            transposed,
            groups,
            dtype,
        )

    @property
    def rank(self) -> int:
        return len(self.sizes)

    @property
    def reach(self) -> Sizes:
        """Pixels that the dilated kernel spans."""
        return tuple([dilation * (taps - 1) + 1 for taps, dilation in zip(self.kernel, self.dilation)])

    @property
    def output(self) -> Sizes:
        rows = zip(self.sizes, self.stride, self.padding, self.reach, self.output_padding)
        if self.transposed:
            return tuple([(size - 1) * step - 2 * pad + reach + more for size, step, pad, reach, more in rows])
        return tuple([(size + 2 * pad - reach) // step + 1 for size, step, pad, reach, _ in rows])

    @property
    def is_linear(self) -> bool:
        """Whether each pixel is independent: a matrix product."""
        plain = set(self.kernel) | set(self.stride) == {1} and not any(self.padding) and not any(self.output_padding)
        return plain and self.groups == 1 and not self.transposed

    @property
    def is_depthwise_line(self) -> bool:
        """Whether it is depthwise, along the width of images of height 1."""
        alone = self.groups == self.in_channels == self.out_channels
        return alone and self.sizes[0] == 1 and self.kernel[0] == 1

    @property
    def is_blocks(self) -> bool:
        """A transposed convolution in the plane whose windows neither overlap nor leave gaps."""
        are_adjacent = self.kernel == self.stride and set(self.dilation) == {1}
        is_unpadded = not any(self.padding) and not any(self.output_padding)
        return self.transposed and self.rank == 2 and self.groups == 1 and are_adjacent and is_unpadded

    @property
    def windows(self) -> Windows:
        return Windows.of(self.sizes, self.kernel, self.stride, self.padding, self.dilation)

    def in_plane(self) -> Convolution:
        """A 1D convolution as a 2D one over images of height 1."""

        def rowed(values: Sizes, fill: int) -> Sizes:
            return (fill, *values)

        return replace(
            self,
            sizes=rowed(self.sizes, 1),
            kernel=rowed(self.kernel, 1),
            stride=rowed(self.stride, 1),
            padding=rowed(self.padding, 0),
            dilation=rowed(self.dilation, 1),
            output_padding=rowed(self.output_padding, 0),
        )
