"""Sliding windows over images: sizes, padding, and the halo of each core."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ttnn_emulator.errors import require
from ttnn_emulator.tensors.shapes import div_up

Pair = tuple[int, int]
Sides = tuple[int, int, int, int]  # top, bottom, left, right

TILE = 32
UINT32 = 0xFFFFFFFF


def sides(padding: tuple[int, ...]) -> Sides:
    """Padding of all four sides, from (height, width) or from all of them."""
    if len(padding) == 2:
        return padding[0], padding[0], padding[1], padding[1]
    return padding  # type: ignore[return-value]


@dataclass(frozen=True)
class Window:
    """A window over a batch of images.

    ceil_pad    additional rows and columns of padding for the last window in ceil mode
    transposed  the window of a transposed convolution: the input is dilated by the stride, the window moves by 1
    """

    batch: int
    size: Pair
    kernel: Pair
    stride: Pair = (1, 1)
    padding: Sides = (0, 0, 0, 0)
    dilation: Pair = (1, 1)
    output_padding: Pair = (0, 0)
    ceil_pad: Pair = (0, 0)
    transposed: bool = False

    @property
    def reach(self) -> Pair:
        """Rows and columns that a dilated kernel spans."""
        return tuple(d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation))  # type: ignore[return-value]

    @property
    def total_padding(self) -> Pair:
        top, bottom, left, right = self.padding
        return top + bottom, left + right

    @property
    def output_size(self) -> Pair:
        if self.transposed:
            return tuple(  # type: ignore[return-value]
                (size - 1) * stride - pad + reach + extra
                for size, stride, pad, reach, extra in zip(
                    self.size, self.stride, self.total_padding, self.reach, self.output_padding
                )
            )
        return tuple(  # type: ignore[return-value]
            (size + pad + ceil - reach) // stride + 1
            for size, pad, ceil, reach, stride in zip(
                self.size, self.total_padding, self.ceil_pad, self.reach, self.stride
            )
        )

    # tt-metal v0.77.0: ttnn/cpp/ttnn/operations/sliding_window/sliding_window.cpp, get_transposed_full_input_shape
    @property
    def padded_size(self) -> Pair:
        """Size of the padded (and dilated, if transposed) image."""
        if self.transposed:
            return tuple(out + reach - 1 for out, reach in zip(self.output_size, self.reach))  # type: ignore[return-value]
        return tuple(  # type: ignore[return-value]
            size + pad + ceil for size, pad, ceil in zip(self.size, self.total_padding, self.ceil_pad)
        )

    # tt-metal v0.77.0: ttnn/cpp/ttnn/operations/sliding_window/sliding_window.cpp, get_transposed_real_padding
    @property
    def spread_padding(self) -> Sides:
        """Padding of the dilated input of a transposed convolution, without output padding."""
        return tuple(self.reach[side // 2] - 1 - pad for side, pad in enumerate(self.padding))  # type: ignore[return-value]

    @property
    def rows(self) -> int:
        """Output pixels of the batch."""
        height, width = self.output_size
        return self.batch * height * width

    def require_output(self) -> None:
        """Refuse windows that do not fit: the library's unsigned sizes wrap, and the output cannot be allocated."""
        height, width = self.output_size
        require(
            height > 0 and width > 0 and self.rows <= UINT32,
            f"a kernel of {list(self.kernel)} with dilation {list(self.dilation)} does not fit an input of "
            f"{list(self.size)} with padding {list(self.padding)}",
        )

    def _places(self) -> tuple[int, int, int, int]:
        """Steps between windows in the padded images: of one image, of one output row, of one pixel; and of the last
        pixel of an output row to the first of the next."""
        padded_height, padded_width = self.padded_size
        step_y, step_x = (1, 1) if self.transposed else self.stride
        line = step_y * padded_width
        return padded_height * padded_width, line, step_x, line - (self.output_size[1] - 1) * step_x

    def _rows_per_core(self, cores: int, whole_tiles: bool) -> int:
        return div_up(self.rows, cores * TILE) * TILE if whole_tiles else div_up(self.rows, cores)

    # tt-metal v0.77.0: ttnn/cpp/ttnn/operations/sliding_window/sliding_window.cpp, generate_shard_boundaries and
    # generate_max_out_nsticks_per_core
    def halo_rows(self, cores: int, *, whole_tiles: bool = True) -> int:
        """The largest number of padded input pixels per core when the output is distributed over `cores`."""
        height, width = self.output_size
        image, line, step, _ = self._places()
        beyond = (self.reach[0] - 1) * self.padded_size[1] + self.reach[1] - 1

        def window_start(row: int) -> int:
            number, pixel = divmod(row, height * width)
            y, x = divmod(pixel, width)
            return number * image + y * line + x * step

        rows, per_core = self.rows, self._rows_per_core(cores, whole_tiles)
        most = start = 0
        for _ in range(cores):
            end = min(start + per_core, rows) - 1
            first, last = window_start(min(start, rows - 1)), window_start(end)
            if start and not first:  # a single window: only the first core holds pixels
                first, last = last + 1, last - beyond
            most = max(most, last + beyond - first + 1)
            start = end + 1
        return most

    # tt-metal v0.77.0: ttnn/cpp/ttnn/operations/sliding_window/sliding_window.cpp, generate_sliding_window_op_config
    def index_values(self, cores: int, blocks: tuple[int, ...], *, whole_tiles: bool = True) -> int:
        """Length of the longest index list of a core's readers.

        `blocks` are the output pixels per block of each reader, in turn. A list has two values for every
        block and two for every run of windows that follow each other at the stride.
        """
        height, width = self.output_size
        image, line, step, wrap = self._places()
        row_breaks = wrap != step
        image_breaks = image - (height - 1) * line - (width - 1) * step != step
        rows, per_core = self.rows, self._rows_per_core(cores, whole_tiles)
        longest = 0
        for first in range(0, min(cores * per_core, rows), per_core):
            last, begin, turn, length = min(first + per_core, rows), first, 0, 0
            while begin < last:
                end = min(begin + blocks[turn % len(blocks)], last)
                images = (end - 1) // (height * width) - begin // (height * width)
                lines = (end - 1) // width - begin // width - images
                length += 2 + 2 * (1 + lines * row_breaks + images * image_breaks)
                begin, turn = end, turn + 1
            longest = max(longest, length)
        return longest + longest % 2

    # tt-metal v0.77.0: ttnn/cpp/ttnn/operations/sliding_window/sliding_window.cpp, get_ceil_pad_hw
    def with_ceil_pad(self) -> Window:
        """The same window with the padding of ceil mode, as PyTorch computes it."""
        extra = []
        for axis in (0, 1):
            size, stride, reach = self.size[axis], self.stride[axis], self.reach[axis]
            pad, before = self.total_padding[axis], self.padding[2 * axis]
            count = div_up(size + pad - reach, stride) + 1
            if (count - 1) * stride >= size + before:
                count -= 1
            extra.append(max(stride * (count - 1) + reach - size - pad, 0))
        return replace(self, ceil_pad=(extra[0], extra[1]))
