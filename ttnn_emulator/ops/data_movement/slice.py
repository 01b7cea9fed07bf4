"""Slices: by numbers, with steps, and by tensors that say where to start."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from ttnn_emulator.enums import DataType, Layout, ShardOrientation
from ttnn_emulator.errors import ChipFault, require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, composite, internal, ttnn
from ttnn_emulator.hardware.boards import Board
from ttnn_emulator.numerics.native.threaded_copies import contiguous
from ttnn_emulator.ops.support.common_checks import into
from ttnn_emulator.ops.support.derived_shards import (
    BLOCK,
    HEIGHT,
    WIDTH,
    cuts_width,
    fresh_shards,
    lacks_shards,
    scaled_shards,
    tile_aligned,
)
from ttnn_emulator.tensors.memory_config import L1_MEMORY_CONFIG, MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up, round_up
from ttnn_emulator.tensors.spec import ROW_MAJOR_BYTES, Spec
from ttnn_emulator.tensors.tensor import Tensor, values_of

Ints = Sequence[int]


@composite("ttnn.slice", ignores=("sub_core_grids",))
def slice_(
    input_tensor: Tensor,
    starts: Ints | Tensor | None = None,
    ends: Ints | Tensor | None = None,
    steps: Ints | None = None,
    slice_start: Ints | None = None,
    slice_end: Ints | None = None,
    slice_step: Ints | None = None,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
    pad_value: float | None = None,
    slice_dim: int | None = None,
    num_devices: int | None = None,
) -> Tensor:
    """The elements from `starts` up to `ends`, every `steps`-th; or the part of one dimension that two tensors name."""
    begins = starts if starts is not None else slice_start
    stops = ends if ends is not None else slice_end
    steps = steps if steps is not None else slice_step
    if isinstance(begins, Tensor) and isinstance(stops, Tensor):
        found = _slice_by_tensors(
            input_tensor, begins, stops, steps, memory_config, output_tensor, slice_dim, num_devices
        )
        if found is not None:
            return found
        begins, stops = (values_of(bound)[0].tolist() for bound in (begins, stops))
    assert not isinstance(begins, Tensor | None) and not isinstance(stops, Tensor | None)
    steps = (1,) * len(begins) if steps is None else steps
    return _Slicing(input_tensor, begins, stops, steps, memory_config, output_tensor).run(pad_value)


class _Slicing:
    """One slice by numbers, in the order in which the library decides."""

    def __init__(
        self,
        source: Tensor,
        begins: Ints,
        ends: Ints,
        steps: Ints,
        memory_config: MemoryConfig | None,
        output: Tensor | None,
    ) -> None:
        self.source, self.spec, self.output = source, source._spec, output
        self.begins, self.ends, self.steps = begins, ends, steps
        self.inherits = memory_config is None and output is None
        self.requested = output._spec.memory_config if output is not None else memory_config or self.spec.memory_config
        self.memory = self.requested  # scaled below when it is inherited

    def run(self, pad_value: float | None) -> Tensor:
        spec, rank = self.spec, self.spec.rank
        if rank == 0:
            return self.source
        require(
            len(self.begins) == len(self.ends) == len(self.steps) == rank,
            f"a tensor of rank {rank} is sliced by as many starts, ends and steps, "
            f"not by {len(self.begins)}, {len(self.ends)} and {len(self.steps)}",
        )
        plain = all(step == 1 for step in self.steps)
        if plain and not any(self.begins) and tuple(self.ends) == spec.shape:
            return self._landed(self._adjusted(self.source))
        first = [begin + size if begin < 0 else begin for begin, size in zip(self.begins, spec.shape)]
        last = [end + size if end < 0 else end for end, size in zip(self.ends, spec.shape)]
        require(all(step != 0 for step in self.steps), f"steps {list(self.steps)} must not be zero")
        aligned = rank > 1 and first[-1] % spec.tile.width == 0 and first[-2] % spec.tile.height == 0
        by_rows = not spec.is_tile or not plain or not aligned
        sizes = [_size(begin, end, step) for begin, end, step in zip(first, last, self.steps)]
        if self.inherits and spec.is_sharded and rank >= 2:
            self.memory = _inherited(spec, sizes, by_rows)
        staged = self._through_interleaved(plain, pad_value)
        if staged is not None:
            return staged
        source = self.source
        if by_rows and spec.is_tile:
            require(plain or spec.dtype is not DataType.BFLOAT8_B, "a slice with steps is not supported for bfloat8_b")
            source = ttnn.to_layout(source, Layout.ROW_MAJOR, memory_config=self.requested)
        for begin, end in zip(first, last):
            require(end >= begin, f"end {end} must not be before start {begin}")
        if 0 in sizes:
            return self._empty(sizes)
        whole = last if by_rows else [*last[:-2], *(round_up(max(end, 1), TILE_SIZE) for end in last[-2:])]
        target = self.output if self.output is not None and self._can_land(source) else None
        result = cut(source, tuple(first), tuple(last), tuple(whole), tuple(self.steps), self.memory, target)
        del source
        return self._landed(self._adjusted(result))

    def _empty(self, sizes: list[int]) -> Tensor:
        require(self.spec.on_device, "a slice of a host tensor cannot be empty")
        if self.output is not None:
            return self.output
        config = self.requested if not self.inherits else self.spec.memory_config
        return ttnn.empty(sizes, self.spec.dtype, self.spec.layout, self.source._device, config)

    def _adjusted(self, result: Tensor) -> Tensor:
        """The result in the requested memory config and layout."""
        if not result._spec.on_device:
            return result
        config = self._resolved(result._spec, result._spec.memory_config.shard_spec)
        if result._spec.memory_config != config:
            result = ttnn.to_memory_config(result, config)
        return result if result._spec.layout is self.spec.layout else ttnn.to_layout(result, self.spec.layout)

    def _landed(self, result: Tensor) -> Tensor:
        """The result in the preallocated output."""
        if self.output is None or not result._spec.on_device or result._storage is self.output._storage:
            return result
        return ttnn.copy(result, self.output)

    def _can_land(self, source: Tensor) -> bool:
        output = self.output
        assert output is not None
        return source._spec.on_device and source._spec.layout is output._spec.layout and source is not output

    def _resolved(
        self, source: Spec, shards: ShardSpec | None, orientation: ShardOrientation | None = None
    ) -> MemoryConfig:
        config = self.memory
        if not lacks_shards(config):
            return config
        if shards is None or source.memory_config.memory_layout is not config.memory_layout:
            shards = fresh_shards(self._board.grid, source.padded_shape, config.memory_layout, orientation)
        return config.with_shard_spec(shards)

    @property
    def _board(self) -> Board:
        device = self.source._device
        return device.board if device is not None else current_board()

    def _through_interleaved(self, plain: bool, pad_value: float | None) -> Tensor | None:
        """Shards of rows that the kernels cannot read or write are staged in interleaved L1."""
        spec, config = self.spec, self.memory
        rows_in = rows_out = False
        if not spec.is_tile:
            rows_in = spec.is_sharded and self._rows_need_staging(config, plain)
            rows_out = cuts_width(config) and (_odd_width(spec) or self._has_unaligned_rows(config))
        without_shards = lacks_shards(config) and config.memory_layout is not spec.memory_config.memory_layout
        if not (rows_in or rows_out or without_shards):
            return None
        source = ttnn.to_memory_config(self.source, L1_MEMORY_CONFIG) if rows_in else self.source
        orientation = spec.shard_spec.orientation if spec.shard_spec is not None else None
        result = slice_(source, self.begins, self.ends, self.steps, memory_config=L1_MEMORY_CONFIG, pad_value=pad_value)
        final = self._resolved(result._spec, None, orientation)
        if result._spec.memory_config != final:
            result = ttnn.to_memory_config(result, final)
        return self._landed(result)

    def _rows_need_staging(self, config: MemoryConfig, plain: bool) -> bool:
        spec = self.spec
        if cuts_width(spec.memory_config):
            return _odd_width(spec) or self.begins[-1] != 0 or self._has_unaligned_rows(spec.memory_config)
        stays_by_height = config.memory_layout is HEIGHT and config.shard_spec is not None and plain
        odd = spec.rank >= 2 and (_odd_width(spec) or spec.shape[-2] % TILE_SIZE != 0)
        return odd and not stays_by_height

    def _has_unaligned_rows(self, config: MemoryConfig) -> bool:
        """Rows of shards whose bytes do not fill the memory's units, which the kernels would take for payload."""
        if config.shard_spec is None:
            return False
        alignment = self._board.dram_alignment if config.is_dram else self._board.l1_alignment
        return config.shard_spec.shape[1] * ROW_MAJOR_BYTES[self.spec.dtype] % alignment != 0


def _size(begin: int, end: int, step: int) -> int:
    """Elements from `begin` up to `end` in the library's 32 unsigned bits, in which a negative step is a huge one."""
    step %= 1 << 32
    return (end - begin + step - 1) % (1 << 32) // step


def _odd_width(spec: Spec) -> bool:
    return spec.shape[-1] % TILE_SIZE != 0


def _inherited(spec: Spec, sizes: list[int], by_rows: bool) -> MemoryConfig:
    """The input's sharding with shards of the size that the output needs on the same cores."""
    config, shards = spec.memory_config, spec.shard_spec
    if shards is None or config.memory_layout not in (HEIGHT, WIDTH, BLOCK):
        return config
    steps = (1, 1) if by_rows else spec.tile.tile_shape

    def whole(size: int, axis: int) -> int:
        return size if by_rows else max(round_up(size, steps[axis]), steps[axis])

    height = math.prod([*sizes[:-2], whole(sizes[-2], 0)])
    width = whole(sizes[-1], 1)
    cores = shards.num_cores()
    if config.memory_layout is HEIGHT:
        shape = whole(div_up(height, cores), 0), width
    elif config.memory_layout is WIDTH:
        shape = height, whole(div_up(width, cores), 1)
    else:
        extent = shards.grid.bounding_box().grid_size()
        require(cores == extent.x * extent.y, f"block shards need a full rectangle of cores, not {shards.grid}")
        shape = whole(div_up(height, extent.y), 0), whole(div_up(width, extent.x), 1)
    return config.with_shard_spec(ShardSpec(shards.grid, shape, shards.orientation))


@internal("ttnn.prim.slice")
def cut(
    input_tensor: Spec,
    begins: Ints,
    ends: Ints,
    whole_ends: Ints,
    steps: Ints,
    memory_config: MemoryConfig,
    output_tensor: Spec | None = None,
) -> Plan:
    """The slice kernel: rows of any tensor, or tiles from a tile's corner on. `whole_ends` are rounded up to tiles."""
    spec = input_tensor
    require(spec.on_device, "the input tensor must be on a device, it is on the host")
    require(
        len(spec.padded_shape) == len(begins),
        f"a tensor of padded shape {list(spec.padded_shape)} cannot be sliced by {len(begins)} starts",
    )
    for dim, (begin, end, size) in enumerate(zip(begins, whole_ends, spec.padded_shape)):
        require(0 <= begin < size, f"start {begin} of dimension {dim} must be less than its size {size}")
        require(end <= size, f"end {end} of dimension {dim} must not exceed its size {size}")
    require(all(step > 0 for step in steps), f"steps {list(steps)} must be positive")
    sizes = tuple(div_up(end - begin, step) for begin, end, step in zip(begins, ends, steps))
    if lacks_shards(memory_config):
        whole = tuple(div_up(end - begin, step) for begin, end, step in zip(begins, whole_ends, steps))
        memory_config = _with_shards(memory_config, spec, whole)
    out = spec.with_(shape=sizes, memory_config=memory_config)
    if output_tensor is not None:
        require(
            output_tensor.padded_shape == out.padded_shape and (spec.is_tile or output_tensor.shape == out.shape),
            f"the output tensor must have shape {list(out.shape)}, not {list(output_tensor.shape)}",
        )
        require(
            (output_tensor.dtype, output_tensor.layout, output_tensor.memory_config)
            == (out.dtype, out.layout, out.memory_config),
            f"the output tensor must be {out.brief()}, not {output_tensor.brief()}",
        )
    index = tuple(slice(begin, end, step) for begin, end, step in zip(begins, ends, steps))

    def compute(values: torch.Tensor) -> torch.Tensor:
        return contiguous(values[index])

    into_padding = any(end > size for end, size in zip(ends, spec.shape))
    return Plan(
        out,
        compute,
        reads=("input_tensor",),
        into=into(output_tensor),
        narrow=not into_padding,
        padded=spec if into_padding else None,
    )


def _with_shards(config: MemoryConfig, spec: Spec, sizes: tuple[int, ...]) -> MemoryConfig:
    """A config without shards gets those of the input in proportion, or fresh ones."""
    shards = None
    if spec.shard_spec is not None and spec.memory_config.memory_layout is config.memory_layout:
        shards = scaled_shards(spec.shard_spec, spec.shape, sizes)
        if shards is not None and spec.is_tile and not tile_aligned(shards):
            shards = None
    if shards is None:
        orientation = spec.shard_spec.orientation if spec.shard_spec is not None else None
        shards = fresh_shards(current_board().grid, sizes, config.memory_layout, orientation)
    return config.with_shard_spec(shards)


# -- starts and ends in tensors ---------------------------------------------------------------------------------------


def _slice_by_tensors(
    source: Tensor,
    starts: Tensor,
    ends: Tensor,
    steps: Ints | None,
    memory_config: MemoryConfig | None,
    output: Tensor | None,
    dim: int | None,
    parts: int | None,
) -> Tensor | None:
    """One of `parts` equal parts of `dim`, chosen on the device; None when the library reads the bounds on the host."""
    for bound in (starts, ends):
        require(bound._spec.rank == 1, f"starts and ends must be of rank 1, not {bound._spec.rank}")
    spec = source._spec
    require(spec.on_device, "the input tensor must be on a device")
    if not spec.is_tile or (steps is not None and any(step != 1 for step in steps)):
        return None
    require(dim is not None and parts is not None, "slice_dim and num_devices must be passed with starts in a tensor")
    require(starts._spec.on_device and ends._spec.on_device, "starts and ends must be on the device")
    memory = output._spec.memory_config if output is not None else memory_config or spec.memory_config
    return cut_part(source, starts, dim, parts, memory, output)


@internal("ttnn.prim.slice")
def cut_part(
    input_tensor: Spec,
    starts: Spec,
    dim: int,
    parts: int,
    memory_config: MemoryConfig,
    output_tensor: Spec | None = None,
) -> Plan:
    """The slice kernel that reads its start from a tensor; the size of its output is fixed when it is planned."""
    spec, rank = input_tensor, input_tensor.rank
    require(len(spec.padded_shape) == rank, f"a tensor of padded shape {list(spec.padded_shape)} cannot be sliced")
    require(0 <= dim < rank, f"slice_dim {dim} must be less than the rank {rank}")
    require(parts > 0 and spec.shape[dim] % parts == 0, f"{spec.shape[dim]} elements do not divide into {parts} parts")
    sizes = tuple(size // parts if axis == dim else size for axis, size in enumerate(spec.shape))
    require(
        all(size % TILE_SIZE == 0 for size in sizes[-2:]), f"the slice must be of whole tiles, not {list(sizes[-2:])}"
    )
    if lacks_shards(memory_config):
        memory_config = _with_shards(memory_config, spec, sizes)
    out = spec.with_(shape=sizes, memory_config=memory_config)
    require(
        output_tensor is None or output_tensor.padded_shape == sizes, f"the output tensor must have shape {list(sizes)}"
    )

    def compute(values: torch.Tensor, begins: torch.Tensor) -> torch.Tensor:
        if begins.is_floating_point() and begins.any():
            raise ChipFault(f"starts of {starts.dtype} are read as integers of 32 bits")
        first = begins.long().tolist()
        index = tuple(slice(begin, begin + size) for begin, size in zip(first, sizes))
        part = values[index]
        if part.shape != sizes:
            raise ChipFault(f"starts {first} reach beyond the tensor: the kernel reads whatever is there")
        return part.contiguous()

    reads = ("input_tensor", "starts")
    return Plan(out, compute, reads=reads, into=into(output_tensor), narrow=True)
