"""Moves from one memory config to another, derived on specs.

Each move has its own conditions, in a `…_problem` function; `memory_flow` picks the first applicable one, as
`ttnn.to_memory_config` does, and falls back to a plain copy.
"""

from __future__ import annotations

from ttnn_emulator.enums import BLOCK_FLOAT_DTYPES, BufferType, DataType, TensorMemoryLayout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.numerics.formats.casts import repacked
from ttnn_emulator.ops.flows.value_flow import Flow
from ttnn_emulator.ops.support.common_checks import require_on_device
from ttnn_emulator.ops.support.derived_shards import BLOCK, HEIGHT
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import DEFAULT_TILE, round_up
from ttnn_emulator.tensors.spec import ROW_MAJOR_BYTES, Spec, padded_spec, tile_bytes

ND = TensorMemoryLayout.ND_SHARDED
L1_PAGE = 16
NO_DRAM_BLOCKS = "blocks cannot be sharded over DRAM"


# -- what each of them cannot do --------------------------------------------------------------------------------------


def _dtype_problem(spec: Spec, dtype: DataType) -> str | None:
    if dtype is not spec.dtype and not spec.is_tile:
        return f"only TILE layout can change its dtype on the way, from {spec.dtype} to {dtype}"
    return None


def _tile_problem(spec: Spec, output: Spec | None) -> str | None:
    if not spec.is_tile:
        return None
    if spec.tile.tile_shape != DEFAULT_TILE.tile_shape:
        return f"tiles must be 32 x 32, not {list(spec.tile.tile_shape)}"
    if output is not None and output.tile != spec.tile:
        return "the output must have the tiles of the input"
    return None


def _output_problem(spec: Spec, config: MemoryConfig, dtype: DataType, output: Spec | None) -> str | None:
    if output is None:
        return None
    if output.memory_config != config:
        return f"the output is in {output.memory_config.brief()}, not in {config.brief()}"
    if output.dtype is not dtype:
        return f"the output is {output.dtype}, not {dtype}"
    if not output.on_device:
        return "the output must be on a device"
    if output.layout is not spec.layout:
        return f"the output is in {output.layout}, the input in {spec.layout}"
    return None


def sharding_problem(spec: Spec, config: MemoryConfig, dtype: DataType, output: Spec | None = None) -> str | None:
    """Why interleaved_to_sharded cannot do it, or None."""
    if not spec.on_device:
        return "the input must be on a device"
    if dtype in BLOCK_FLOAT_DTYPES and not spec.is_tile:
        return f"{dtype} needs TILE layout"
    resolved = config
    if config.memory_layout is ND:
        resolved = Spec.of(spec.shape, dtype, spec.layout, config).memory_config
        if resolved.memory_layout is ND:
            return "these n-dimensional shards have no two-dimensional equal"
    if output is not None and output.shape != spec.shape:
        return f"the output has shape {list(output.shape)}, not {list(spec.shape)}"
    if problem := _output_problem(spec, resolved, dtype, output):
        return problem
    if spec.is_sharded:
        return f"the input must be interleaved, it is {spec.memory_config.brief()}"
    if not config.is_sharded():
        return "the target must be sharded"
    if resolved.memory_layout is BLOCK and resolved.buffer_type is not BufferType.L1:
        return NO_DRAM_BLOCKS
    require(resolved.shard_spec is not None, f"{resolved.brief()} has no shard spec")
    assert resolved.shard_spec is not None
    if not spec.is_tile and resolved.shard_spec.shape[1] * ROW_MAJOR_BYTES[spec.dtype] % L1_PAGE:
        return f"rows of a shard of width {resolved.shard_spec.shape[1]} must be whole 16 B"
    return _dtype_problem(spec, dtype) or _tile_problem(spec, output)


def unsharding_problem(spec: Spec, config: MemoryConfig, dtype: DataType, output: Spec | None = None) -> str | None:
    """Why sharded_to_interleaved cannot do it, or None."""
    if not spec.on_device:
        return "the input must be on a device"
    if not spec.is_sharded:
        return "the input must be sharded"
    if spec.memory_config.buffer_type is not BufferType.L1:
        return "the input must be in L1"
    if problem := _output_problem(spec, config, dtype, output):
        return problem
    if config.is_sharded():
        return "the target must be interleaved"
    if spec.shard_spec is None:
        return "n-dimensional shards are not supported; use ttnn.to_memory_config"
    if not spec.is_tile and spec.shard_spec.shape[1] * ROW_MAJOR_BYTES[spec.dtype] % L1_PAGE:
        return f"rows of a shard of width {spec.shard_spec.shape[1]} must be whole 16 B"
    return _dtype_problem(spec, dtype) or _tile_problem(spec, output)


def resharding_problem(spec: Spec, config: MemoryConfig, output: Spec | None = None) -> str | None:
    """Why reshard cannot do it, or None."""
    if not spec.on_device:
        return "the input must be on a device"
    if not spec.is_sharded:
        return "the input must be sharded"
    if output is not None:
        if output.shape != spec.shape or output.dtype is not spec.dtype or output.layout is not spec.layout:
            return f"the output must be like the input: {output.brief()} against {spec.brief()}"
        config = output.memory_config
    if not config.is_sharded():
        return "the target must be sharded"
    source = spec.memory_config
    if any(side.memory_layout is BLOCK and side.is_dram for side in (source, config)):
        return NO_DRAM_BLOCKS
    if not spec.is_tile and (problem := _unaligned_rows(spec, config)):
        return problem
    target = output or Spec.of(spec.shape, spec.dtype, spec.layout, config)
    if _is_legacy_reshard(source, target.memory_config):
        return _tile_problem(spec, output)
    if spec.page_bytes != target.page_bytes:
        return f"pages of {spec.page_bytes} B cannot become pages of {target.page_bytes} B"
    if spec.num_pages != target.num_pages:
        return f"{spec.num_pages} pages cannot become {target.num_pages}"
    return None


def _unaligned_rows(spec: Spec, config: MemoryConfig) -> str | None:
    source = spec.memory_config
    both_height = source.memory_layout is HEIGHT and config.memory_layout is HEIGHT
    restrides = both_height and (source.is_l1 or config.is_l1)
    if restrides or (source.is_dram and config.is_dram):
        return None
    shards = config.shard_spec or config.nd_shard_spec
    require(shards is not None, f"{config.brief()} has no shard spec")
    width = config.shard_spec.shape[1] if config.shard_spec else config.nd_shard_spec.shard_shape[-1]  # type: ignore[union-attr]
    page = page_alignment_of(source)
    if spec.page_bytes % page or width * ROW_MAJOR_BYTES[spec.dtype] % L1_PAGE:
        return f"rows of {spec.page_bytes} B and of {width} values must be aligned to be resharded"
    return None


def page_alignment_of(config: MemoryConfig) -> int:
    board = current_board()
    return board.dram_alignment if config.is_dram else board.l1_alignment


def _is_legacy_reshard(source: MemoryConfig, target: MemoryConfig) -> bool:
    """Kernels that know two-dimensional shards: they need the output, or one side of equal layouts, in L1."""
    if source.shard_spec is None or target.shard_spec is None:
        return False
    if source.memory_layout is target.memory_layout and source.memory_layout not in (BLOCK, ND):
        return source.is_l1 or target.is_l1
    return target.is_l1


# -- the moves --------------------------------------------------------------------------------------------------------


def _refuse(problem: str | None) -> None:
    require(problem is None, problem or "")


def shard_flow(flow: Flow, config: MemoryConfig, dtype: DataType | None = None, output: Spec | None = None) -> Flow:
    """Interleaved to sharded."""
    spec = flow.spec
    dtype = dtype or spec.dtype
    _refuse(sharding_problem(spec, config, dtype, output))
    out = output or Spec.of(spec.shape, dtype, spec.layout, config)
    return flow.into(
        out, None if dtype is spec.dtype else repacked(spec.dtype, dtype), by="InterleavedToShardedDeviceOperation"
    )


def unshard_flow(flow: Flow, config: MemoryConfig, dtype: DataType | None = None, output: Spec | None = None) -> Flow:
    """Sharded to interleaved. Tiles keep their padding, rows lose it."""
    spec = flow.spec
    dtype = dtype or spec.dtype
    _refuse(unsharding_problem(spec, config, dtype, output))
    if output is None and spec.is_tile:
        output = padded_spec(spec.shape, spec.padded_shape, dtype, spec.layout, config)
    out = output or Spec.of(spec.shape, dtype, spec.layout, config)
    return flow.into(
        out, None if dtype is spec.dtype else repacked(spec.dtype, dtype), by="ShardedToInterleavedDeviceOperation"
    )


def reshard_flow(flow: Flow, config: MemoryConfig, output: Spec | None = None) -> Flow:
    """Shards to other shards."""
    spec = flow.spec
    _refuse(resharding_problem(spec, config, output))
    out = output or Spec.of(spec.shape, spec.dtype, spec.layout, config)
    return flow.into(out, by="ReshardDeviceOperation")


def _require_rows(spec: Spec) -> None:
    """The library crashes on rows without elements."""
    require(spec.is_tile or not spec.padded_shape or spec.padded_shape[-1] > 0, "rows of length 0 cannot be copied")


def copy_flow(flow: Flow, config: MemoryConfig, dtype: DataType | None = None, output: Spec | None = None) -> Flow:
    """A copy from any memory config to any other."""
    spec = flow.spec
    dtype = dtype or spec.dtype
    require_on_device(spec)
    _require_rows(spec)
    if output is not None:
        require(output.shape == spec.shape, f"the output has shape {list(output.shape)}, not {list(spec.shape)}")
        require(output.layout is spec.layout, f"the output is in {output.layout}, the input in {spec.layout}")
        require_on_device(output, "the output")
        _refuse(_output_problem(spec, config, dtype, output))
    _refuse(_dtype_problem(spec, dtype))
    if spec.is_tile:
        tile = output.tile if output is not None else DEFAULT_TILE
        require(tile.tile_shape == spec.tile.tile_shape, "input and output must have tiles of the same shape")
    out = output or Spec.of(spec.shape, dtype, spec.layout, config)
    return flow.into(out, None if dtype is spec.dtype else repacked(spec.dtype, dtype), by="CopyDeviceOperation")


def clone_flow(flow: Flow, config: MemoryConfig, dtype: DataType | None = None) -> Flow:
    """A copy that keeps the kind of memory: both sides interleaved, or both with the same shards."""
    spec = flow.spec
    dtype = dtype or spec.dtype
    _refuse(_dtype_problem(spec, dtype))
    require_on_device(spec)
    _require_rows(spec)
    source = spec.memory_config
    if source.is_sharded() or config.is_sharded():
        require(
            source.is_sharded() and config.is_sharded(),
            f"clone cannot change between interleaved and sharded: {source.brief()} to {config.brief()}",
        )
        require(
            source.memory_layout is config.memory_layout and source.shard_spec == config.shard_spec,
            f"clone needs the same shards on both sides: {source.brief()} to {config.brief()}",
        )
    out = padded_spec(spec.shape, spec.padded_shape, dtype, spec.layout, config)
    return flow.into(out, None if dtype is spec.dtype else repacked(spec.dtype, dtype), by="CloneOperation")


def memory_flow(flow: Flow, config: MemoryConfig, dtype: DataType | None = None, output: Spec | None = None) -> Flow:
    """`ttnn.to_memory_config` on a flow."""
    spec = flow.spec
    if spec.memory_config == config and output is None:
        return flow
    require(
        not any(side.memory_layout is BLOCK and side.is_dram for side in (spec.memory_config, config)),
        NO_DRAM_BLOCKS,
    )
    target = dtype or spec.dtype
    if config.is_sharded():
        if spec.is_sharded:
            if not _widths_differ(spec, config):
                if dtype is not None:
                    return copy_flow(flow, config, dtype, output)
                if resharding_problem(spec, config, output) is None:
                    return reshard_flow(flow, config, output)
            if unsharding_problem(spec, DRAM_MEMORY_CONFIG, target) is None and _fits_unshard(
                spec, DRAM_MEMORY_CONFIG, target
            ):
                between = unshard_flow(flow, DRAM_MEMORY_CONFIG, target)
                if _can_shard(between.spec, config, target, output):
                    return shard_flow(between, config, target, output)
        if _can_shard(spec, config, target, output):
            return shard_flow(flow, config, target, output)
    if unsharding_problem(spec, config, target, output) is None and _fits_unshard(spec, config, target):
        return unshard_flow(flow, config, target, output)
    return copy_flow(flow, config, target, output)


def _widths_differ(spec: Spec, config: MemoryConfig) -> bool:
    """Row-major shards of another layout and another width, which reshard cannot split differently."""
    source, target = spec.shard_spec, config.shard_spec
    if source is None or target is None or spec.is_tile:
        return False
    return source.shape[1] != target.shape[1] and spec.memory_config.memory_layout is not config.memory_layout


def _unit_bytes(spec: Spec, dtype: DataType, width: int) -> int:
    return tile_bytes(spec.tile, dtype) if spec.is_tile else width * ROW_MAJOR_BYTES[dtype]


def _units(spec: Spec, shard: ShardSpec) -> int:
    height, width = shard.shape
    return (height // spec.tile.height) * (width // spec.tile.width) if spec.is_tile else height


def _fits_unshard(spec: Spec, config: MemoryConfig, dtype: DataType) -> bool:
    """A changed dtype needs a buffer for the whole converted shard."""
    if dtype is spec.dtype or spec.shard_spec is None:
        return True
    unit = round_up(_unit_bytes(spec, dtype, spec.shard_spec.shape[1]), page_alignment_of(config))
    return _units(spec, spec.shard_spec) * unit < current_board().l1_bank_bytes


def _can_shard(spec: Spec, config: MemoryConfig, dtype: DataType, output: Spec | None) -> bool:
    if sharding_problem(spec, config, dtype, output) is not None:
        return False
    shard = config.shard_spec or Spec.of(spec.shape, dtype, spec.layout, config).shard_spec
    assert shard is not None
    board = current_board()
    unit = _unit_bytes(spec, spec.dtype, shard.shape[1])
    total = 4 * round_up(unit + board.dram_alignment, board.dram_alignment)
    if dtype is not spec.dtype:
        total += _units(spec, shard) * round_up(unit, page_alignment_of(spec.memory_config))
    if config.is_dram:
        total += _units(spec, shard) * round_up(_unit_bytes(spec, dtype, shard.shape[1]), board.dram_alignment)
    return total < board.l1_bank_bytes
