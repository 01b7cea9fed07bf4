"""sparse_matmul: a batched matmul of the batches selected by a sparsity tensor or by indices."""

from __future__ import annotations

import math
from typing import Any

import torch

from ttnn_emulator.enums import FLOAT_DTYPES, DataType, Layout
from ttnn_emulator.errors import ChipFault, NotEmulated, require
from ttnn_emulator.execution.call_context import current_board
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.hardware.core_grid import CoreCoord, CoreGrid, num_cores_to_corerangeset
from ttnn_emulator.numerics.formats.carriers import CARRIER
from ttnn_emulator.ops.matmul.device_operation import Asked, default_math, kernel_config, kernel_of
from ttnn_emulator.ops.matmul.operands import Operands, batch_of, output_tile
from ttnn_emulator.ops.matmul.program_configs import Kind, Program, program_of
from ttnn_emulator.ops.support.common_checks import into
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from ttnn_emulator.tensors.shapes import TILE_SIZE, Tile, div_up
from ttnn_emulator.tensors.spec import Spec


@operation("ttnn.sparse_matmul")
def sparse_matmul(
    input_tensor_a: Spec,
    input_tensor_b: Spec,
    *,
    sparsity: Spec,
    program_config: Any,
    nnz: int | None = None,
    is_input_a_sparse: bool = False,
    is_input_b_sparse: bool = True,
    memory_config: MemoryConfig | None = None,
    dtype: DataType | None = None,
    compute_kernel_config: Any = None,
    core_grid: CoreGrid | None = None,
    output_tile: Tile | None = None,
    optional_output_tensor: Spec | None = None,
    global_cb: Any = None,
    indices: Spec | None = None,
    bias: Spec | None = None,
) -> Plan:
    """A batched product that skips the batches whose `sparsity` is zero; their result is zero.

    With `indices`, the result consists of the named batches of the second operand, in that order.
    """
    if global_cb is not None or bias is not None:
        raise NotEmulated("sparse_matmul with a bias or a global circular buffer is not emulated")
    a, b, output = input_tensor_a, input_tensor_b, optional_output_tensor
    of = Operands(a, b)
    _require_tensors(of, sparsity)
    require(core_grid is None, "give a core_grid or a program_config, not both")
    require(
        is_input_a_sparse or is_input_b_sparse,
        "sparse_matmul requires at least one of is_input_a_sparse or is_input_b_sparse to be true",
    )
    batches = _batches(of, is_input_a_sparse, is_input_b_sparse)
    require(
        sparsity.volume == batches, f"sparsity logical_volume {sparsity.volume} is not the number of batches, {batches}"
    )
    require(nnz is None or 0 < nnz <= batches, f"nnz is {nnz}, of {batches} batches")
    if indices is not None:
        _require_indices(of, indices, nnz, is_input_b_sparse)
    program = program_of(program_config)
    _require_program(of, program)
    shape = _shape(of, is_input_a_sparse, is_input_b_sparse, indices)
    spec = _output(
        of, shape, output, nnz if indices is None else None, memory_config, dtype, output_tile, indices is not None
    )
    asked = Asked(program=program)
    given, _ = kernel_config(compute_kernel_config)
    math_ = given or default_math(of, asked, spec.dtype, current_board().arch)
    product = kernel_of(of, program, math_, spec.dtype, False).compute()
    rows, inner, columns = a.shape[-2], a.shape[-1], b.shape[-1]
    both = is_input_a_sparse and is_input_b_sparse
    compact = output is not None and output.shape != shape

    def compute(x: torch.Tensor, y: torch.Tensor, flags: torch.Tensor, *chosen: torch.Tensor) -> torch.Tensor:
        left, right = x.reshape(-1, rows, inner), y.reshape(-1, *y.shape[-2:])
        if inner != right.shape[-2]:  # only the padding of the last tile may differ
            left, right = (
                _padded(left, (0, -inner % TILE_SIZE)),
                _padded(right, (0, 0, 0, -right.shape[-2] % TILE_SIZE)),
            )
        if chosen:
            picked = right[chosen[0].reshape(-1).long()]
            pairs = (left.unsqueeze(1), picked) if not both else (left, picked)
            return product(*pairs).reshape(spec.shape)
        active = flags.reshape(-1) != 0
        count = int(active.sum())
        if nnz is not None and nnz != count:
            raise ChipFault(f"sparsity names {count} batches and nnz says {nnz}: the card hangs")
        which = active.nonzero().reshape(-1)
        if both:
            results = product(left[which % left.shape[0]], right[which])
        elif is_input_b_sparse:
            results = product(left[which // right.shape[0]], right[which % right.shape[0]])
        else:
            results = product(left[which], right[which % right.shape[0]])
        if compact:
            return results.reshape(spec.shape)
        whole = torch.zeros(batches, rows, columns, dtype=CARRIER[spec.dtype])
        whole[which] = results
        return whole.reshape(spec.shape)

    reads = ("input_tensor_a", "input_tensor_b", "sparsity")
    return Plan(
        spec,
        compute,
        reads if indices is None else (*reads, "indices"),
        into(output, "optional_output_tensor"),
    )


def _padded(values: torch.Tensor, padding: tuple[int, ...]) -> torch.Tensor:
    return torch.nn.functional.pad(values, padding)


def _require_tensors(of: Operands, sparsity: Spec) -> None:
    a, b = of.a, of.b
    require(a.on_device and b.on_device and sparsity.on_device, "all inputs must be on a device")
    for spec, name in ((a, "A"), (b, "B")):
        require(spec.is_tile, f"Input tensor {name} must be TILE layout, not {spec.layout}")
    for spec, name in ((a, "A"), (b, "B")):
        require(spec.dtype in FLOAT_DTYPES, f"Input tensor {name} must be a floating point type, not {spec.dtype}")
    require(sparsity.layout is Layout.ROW_MAJOR, f"Sparsity tensor must be ROW_MAJOR layout, not {sparsity.layout}")
    require(
        a.padded_shape[-1] == b.padded_shape[-2],
        f"the inner dimensions {a.padded_shape[-1]} and {b.padded_shape[-2]} do not match",
    )


def _batches(of: Operands, a_sparse: bool, b_sparse: bool) -> int:
    in_a, in_b = batch_of(of.a.padded_shape), batch_of(of.b.padded_shape)
    if a_sparse and b_sparse:
        return in_b
    return in_a if a_sparse else in_a * in_b


def _require_indices(of: Operands, indices: Spec, nnz: int | None, b_sparse: bool) -> None:
    require(b_sparse, "indices name batches of the second operand, which requires is_input_b_sparse")
    require(indices.on_device, "indices are on the host: Device Operations expect device tensors as inputs")
    require(indices.layout is Layout.ROW_MAJOR, "indices must be in ROW_MAJOR layout")
    require(indices.dtype is DataType.UINT16, f"indices must be UINT16 dtype, not {indices.dtype}")
    require(
        indices.shape[-1] == indices.volume, f"indices of shape {list(indices.shape)} are no single ROW_MAJOR stick"
    )
    require(nnz is None, "nnz must not be supplied together with indices, which say how many batches there are")
    groups = of.b.padded_shape
    require(
        len(groups) >= 3 and batch_of(groups) == groups[-3], f"the second operand {list(groups)} has no one batch axis"
    )
    require(
        indices.volume <= groups[-3], f"{indices.volume} indices must be <= the number of sparse groups, {groups[-3]}"
    )


def _require_program(of: Operands, program: Program) -> None:
    require(program.kind is Kind.MCAST_1D, f"sparse_matmul needs a {Kind.MCAST_1D.value}")
    sizes = (
        "out_subblock_w",
        "out_subblock_h",
        "out_block_w",
        "out_block_h",
        "in0_block_w",
        "per_core_M",
        "per_core_N",
    )
    require(program.out_block_w > 0 and program.out_block_h > 0, "out_block_w and out_block_h must be non-zero")
    for name in sizes:
        require(getattr(program, name) > 0, f"{name} must not be 0")
    for whole, part in (
        ("out_block_w", "out_subblock_w"),
        ("out_block_h", "out_subblock_h"),
        ("per_core_M", "out_block_h"),
        ("per_core_N", "out_block_w"),
    ):
        require(
            getattr(program, whole) % getattr(program, part) == 0,
            f"{whole} {getattr(program, whole)} must be divisible by {part} {getattr(program, part)}",
        )
    require(
        of.inner % program.in0_block_w == 0,
        f"{of.inner} tiles of the inner dimension do not divide into blocks of {program.in0_block_w}",
    )
    require(program.mcast_in0, "sparse_matmul needs mcast_in0")
    blocks = div_up(of.rows(), program.per_core_M) * div_up(of.columns, program.per_core_N)
    cores = math.prod(program.worker_grid)
    require(blocks <= cores, f"{blocks} output blocks exceed {cores} cores")
    used = num_cores_to_corerangeset(blocks, CoreCoord(*program.worker_grid), True)
    require(used.bounding_box().size() == blocks, f"{blocks} cores do not form a rectangle")


def _shape(of: Operands, a_sparse: bool, b_sparse: bool, indices: Spec | None) -> tuple[int, ...]:
    a, b = of.a.shape, of.b.shape
    outer = () if a_sparse and b_sparse else a[:-2]
    groups = () if a_sparse and not b_sparse else b[:-2]
    if indices is not None:
        groups = (*groups[:-1], indices.volume)
    return (*outer, *groups, a[-2], b[-1])


def _output(
    of: Operands,
    shape: tuple[int, ...],
    output: Spec | None,
    nnz: int | None,
    memory_config: MemoryConfig | None,
    dtype: DataType | None,
    tile: Tile | None,
    indexed: bool,
) -> Spec:
    config = memory_config if memory_config is not None else DRAM_MEMORY_CONFIG
    if output is None:
        chosen = output_tile(of, config, tile, None)
        own = chosen if chosen != Tile() else None
        return Spec.of(shape, dtype or of.a.dtype, Layout.TILE, config, tile=own)
    require(tile is None, "give an output_tile or an optional_output_tensor, not both")
    require(
        config in (DRAM_MEMORY_CONFIG, output.memory_config), "memory_config is not that of the output tensor passed"
    )
    require(dtype in (None, output.dtype), f"dtype is {dtype}, the output tensor passed has {output.dtype}")
    allowed = [shape] if nnz is None else [shape, (1, nnz, *shape[-2:])]
    expected = " or ".join(str(list(each)) for each in allowed)
    if indexed:
        expected = f"the indexed output shape {expected}"
    elif nnz is None:
        expected = f"{expected} when nnz is not provided"
    require(output.shape in allowed, f"Optional output tensor shape {list(output.shape)} must match {expected}")
    height, width = output.tile.tile_shape
    require(
        height == of.in0_tile.height,
        f"the tile height {height} of the given output must equal to the in0 tile height {of.in0_tile.height}",
    )
    require(
        width == of.in1_tile.width,
        f"the tile width {width} of the given output must equal to the in1 tile width {of.in1_tile.width}",
    )
    return output
