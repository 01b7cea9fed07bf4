"""The plan of one convolution in L1: input placement, blocks and output."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ttnn_emulator.enums import BufferType, DataType, Layout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.call_context import current_device, specs_only
from ttnn_emulator.execution.launch_memory import Free, Stage
from ttnn_emulator.execution.operation_table import ttnn
from ttnn_emulator.hardware.core_grid import CoreCoord, num_cores_to_corerangeset
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.ops.conv import device_weights as weights
from ttnn_emulator.ops.conv import sharding
from ttnn_emulator.ops.conv.blocks import Blocks, Problem, Settings, choose_blocks, output_grid, output_memory_config
from ttnn_emulator.ops.conv.circular_buffers import buffer_sizes, splits_reader
from ttnn_emulator.ops.conv.device_weights import Preparation
from ttnn_emulator.ops.conv.l1_stages import Course
from ttnn_emulator.ops.conv.pointwise import Product, plan_product
from ttnn_emulator.ops.conv.scheme_choice import choose_scheme
from ttnn_emulator.ops.conv.sharding import BLOCK, HEIGHT, ROWS, WIDTH, Cores
from ttnn_emulator.ops.conv.sliding_window import TILE, Pair, Sides, Window
from ttnn_emulator.ops.data_movement.layout import layout_flow
from ttnn_emulator.ops.flows.memory import memory_flow
from ttnn_emulator.ops.flows.reshape import reshape_flow
from ttnn_emulator.ops.flows.value_flow import Flow
from ttnn_emulator.tensors.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import DEFAULT_TILE, div_up, round_up
from ttnn_emulator.tensors.spec import ROW_MAJOR_BYTES, Spec, tile_bytes
from ttnn_emulator.tensors.storage import Storage
from ttnn_emulator.tensors.tensor import Tensor

L1_STEP = 16
NARROWEST_BYTES = 2  # the narrowest dtype that the library's alignment check considers


@dataclass(frozen=True)
class Run:
    """One convolution on tensors in L1.

    weight, bias  specs of the prepared tensors
    preparation   how to prepare them from host tensors
    problem       the convolution after folding
    fold          how the input was folded into channels, if it was
    product       the matmul that replaces the convolution, if any
    stages        L1 allocations and frees
    placed        the input as the convolution reads it
    pixels_fit    the shard width equals the padded in_channels of the weights
    """

    output: Spec
    weight: Spec
    bias: Spec | None
    preparation: Preparation
    problem: Problem
    settings: Settings
    inputs: Cores
    blocks: Blocks
    l1_bytes: int = 0
    fold: Fold | None = None
    product: Product | None = None
    stages: tuple[Stage, ...] = ()
    pixels_fit: bool = True
    placed: Placed | None = None


@dataclass(frozen=True)
class Fold:
    """Patches of `stride` pixels, after padding, that became channels."""

    stride: Pair
    padding: Sides


# -- folding ----------------------------------------------------------------------------------------------------------


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_utils.cpp, auto_enable_kernel_folding
def folds(settings: Settings, window: Window, config: MemoryConfig, *, in_rows: bool) -> bool:
    """Whether strided patches of an input in `config` are folded into channels; `in_rows`: the input is row-major."""
    if settings.enable_kernel_stride_folding is not None:
        return settings.enable_kernel_stride_folding
    if window.stride != window.kernel or window.stride == (1, 1) or window.dilation != (1, 1):
        return False
    if any((size + pad) % step for size, pad, step in zip(window.size, window.total_padding, window.stride)):
        return False
    if config.memory_layout is HEIGHT:
        return True
    return config.is_dram and (in_rows or window.padding == (0, 0, 0, 0))


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_utils.cpp, compute_kernel_stride_folding_params
def fold_problem(problem: Problem) -> Problem:
    """The convolution on the folded input."""
    window = problem.window
    for size, pad, step in zip(window.size, window.total_padding, window.stride):
        require((size + pad) % step == 0, f"a padded input of {size + pad} cannot be folded by a stride of {step}")
    high, wide = ((size + pad) // step for size, pad, step in zip(window.size, window.total_padding, window.stride))
    kernel = (div_up(window.kernel[0], window.stride[0]), div_up(window.kernel[1], window.stride[1]))
    return replace(
        problem,
        window=replace(window, size=(high, wide), kernel=kernel, stride=(1, 1), padding=(0, 0, 0, 0)),
        in_channels=problem.in_channels * window.stride[0] * window.stride[1],
        as_matmul=window.kernel == window.stride,
    )


def fold_input(x: Spec, window: Window, channels: int) -> Spec:
    """The spec of the folded input: the output of `ttnn.fold`."""
    require(
        all(step <= size for step, size in zip(window.stride, window.kernel)),
        f"an input cannot be folded by a stride of {list(window.stride)}: it exceeds the kernel {list(window.kernel)}",
    )
    if not x.on_device:
        x = x.with_(on_device=True, memory_config=DRAM_MEMORY_CONFIG)
    if x.rank == 4 and x.shape[1:3] != window.size:
        x = reshape_flow(Flow(x), (window.batch, *window.size, channels)).spec
    device = current_device()
    with specs_only():
        tensor = Tensor.of(x, Storage(None, device), device)
        return ttnn.fold(tensor, *window.stride, padding=list(window.padding))._spec


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_utils.cpp, use_matmul_for_1x1_conv
def as_matmul(window: Window, settings: Settings) -> bool:
    """Whether a 1 × 1 convolution runs as a matmul."""
    plain = window.kernel == window.stride == window.dilation == (1, 1) and window.padding == (0, 0, 0, 0)
    return plain and settings.shard_layout is not WIDTH


# -- the input --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Placed:
    """The input in the memory that the convolution reads."""

    spec: Spec
    inputs: Cores
    outputs: Cores
    moved: bool  # a copy was made


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_utils.cpp, shard_or_reshard_tensor_if_required
def place_input(x: Spec, problem: Problem, settings: Settings, auto_sharded: bool) -> Placed:
    """Shard or reshard the input if the convolution requires it."""
    config, moved = _wanted_placement(x, problem, settings)
    inputs = Cores.of(config)
    grid = output_grid(problem.board, settings, inputs)
    outputs = sharding.output_cores(inputs, grid, problem.out_channels, inputs.orientation, problem.as_matmul)
    x = flattened(x)
    if not moved:
        return Placed(x, inputs, outputs, moved=False)
    layout = x.layout
    if problem.as_matmul and layout is Layout.ROW_MAJOR and inputs.scheme is not HEIGHT and x.on_device:
        layout = Layout.TILE
    if auto_sharded and problem.as_matmul:
        interleaved = x.memory_config if x.on_device else DRAM_MEMORY_CONFIG
        return Placed(Spec.of(x.shape, x.dtype, layout, interleaved), inputs, outputs, moved=False)
    shard = config.shard_spec
    assert shard is not None
    if layout is Layout.ROW_MAJOR:
        require(
            shard.shape[1] * max(ROW_MAJOR_BYTES[x.dtype], NARROWEST_BYTES) % L1_STEP == 0,
            f"rows of {shard.shape[1]} values of {x.dtype} are not aligned in L1",
        )
    alignment = () if x.is_sharded else shard.shape
    placed = Spec.of(x.shape, x.dtype, layout, config, alignment=alignment)
    return Placed(placed, inputs, outputs, moved=True)


def flattened(x: Spec) -> Spec:
    """[N, H, W, C] → [1, 1, N × H × W, C]."""
    return flattened_flow(x).spec


def flattened_flow(x: Spec) -> Flow:
    require(x.rank == 4, f"the input must have rank 4, not shape {list(x.shape)}")
    shape, padded = x.shape, x.padded_shape
    return reshape_flow(
        Flow(x),
        (1, 1, shape[0] * shape[1] * shape[2], shape[3]),
        (1, 1, padded[0] * padded[1] * padded[2], padded[3]),
    )


def _wanted_placement(x: Spec, problem: Problem, settings: Settings) -> tuple[MemoryConfig, bool]:
    require(
        not x.on_device or x.is_sharded or settings.shard_layout is not None,
        "the input must be sharded, or shard_layout must be set",
    )
    scheme = settings.shard_layout
    config = x.memory_config
    alignment = sharding.channel_alignment(
        config.memory_layout, x.layout, as_matmul=problem.as_matmul, memory_config=config
    )
    move = not x.on_device or not config.is_sharded()
    current: Cores | None = None
    if not move:
        assert config.shard_spec is not None
        shard = config.shard_spec
        current = Cores.of(config)
        if config.memory_layout is not BLOCK and shard.orientation is not ROWS:
            move = True
        if shard.shape[1] % alignment:
            move = True
        if problem.as_matmul:
            if config.memory_layout is BLOCK and problem.in_channels != current.channels * shard.shape[1]:
                move, scheme = True, BLOCK
            if shard.shape[0] % TILE:
                move = True
        if settings.override_sharding_config:
            move = _overrides(settings, config, shard) or move
    cores = current
    if settings.reshard_if_not_optimal or move:
        best = problem.cores(settings, scheme, alignment)  # type: ignore[arg-type]
        if settings.override_sharding_config:
            require(settings.core_grid is not None, "override_sharding_config needs a core_grid")
            assert settings.core_grid is not None and scheme is not None
            best = Cores(settings.core_grid, scheme, settings.orientation if scheme is BLOCK else ROWS)
        cores = best
        move = move or best != current
    if not move:
        return config, False
    assert cores is not None
    require(x.rank == 4, f"the input must have rank 4, not shape {list(x.shape)}")
    return (
        sharding.input_memory_config(
            scheme,  # type: ignore[arg-type]
            cores,
            rows=x.shape[0] * x.shape[1] * x.shape[2],
            channels=x.shape[3],
            layout=x.layout,
            sliced=False,
            as_matmul=problem.as_matmul,
        ),
        True,
    )


def _overrides(settings: Settings, config: MemoryConfig, shard: ShardSpec) -> bool:
    """Whether the settings override the input's sharding."""
    require(settings.core_grid is not None, "override_sharding_config needs a core_grid")
    require(settings.shard_layout is not None, "override_sharding_config needs a shard_layout")
    if settings.core_grid != shard.grid or settings.shard_layout is not config.memory_layout:
        return True
    transposed = shard.orientation is not ROWS
    return settings.shard_layout is BLOCK and settings.transpose_shards != transposed


# -- all of it --------------------------------------------------------------------------------------------------------


def plan_in_l1(
    x: Spec,
    weight: Spec,
    bias: Spec | None,
    problem: Problem,
    settings: Settings,
    memory_config: MemoryConfig | None,
    math: MathConfig,
) -> Run:
    """Check one convolution whose input is in L1 or is copied there."""
    stride, transposed = problem.window.stride, problem.window.transposed
    course = Course("input_tensor", x, settings.deallocate_activation)
    fold: Fold | None = None
    if not transposed:
        folding = folds(settings, problem.window, x.memory_config, in_rows=not x.is_tile)
        settings = settings.with_(enable_kernel_stride_folding=folding)
        if settings.enable_kernel_stride_folding and stride != (1, 1):
            fold = Fold(stride, problem.window.padding)
            x = fold_input(x, problem.window, problem.in_channels)
            course.copy("folded", x)
            problem = replace(fold_problem(problem), layout=x.layout, in_dtype=x.dtype)
    if settings.enable_activation_reuse:
        settings = settings.with_(enable_act_double_buffer=False, enable_weights_double_buffer=False)
    problem.window.require_output()
    auto_sharded = not x.is_sharded and settings.shard_layout is None
    if auto_sharded:
        settings = choose_scheme(problem, settings.with_(weights_dtype=settings.weights_dtype or weight.dtype))
    if transposed:  # no activation reuse, although the check above considers it
        settings = settings.with_(enable_activation_reuse=False)
    placed = place_input(x, problem, settings, auto_sharded)
    config = placed.spec.memory_config
    alignment = sharding.channel_alignment(
        config.memory_layout, placed.spec.layout, as_matmul=problem.as_matmul, memory_config=config
    )
    channels = round_up(problem.in_channels, placed.inputs.channels * alignment)
    blocks = choose_blocks(problem, settings, placed.inputs, placed.outputs, channels)
    preparation = Preparation(
        dtype=settings.weights_dtype,
        alignment=alignment,
        inputs=placed.inputs,
        outputs=placed.outputs,
        block_rows=blocks.act_w,
        block_columns=blocks.sub_w,
        tall_rows=blocks.act_h,
        groups=problem.groups,
        out_channels=problem.out_channels,
        has_bias=bias is not None,
        image_rows=problem.window.size[0],
        as_plain=problem.as_matmul and auto_sharded,
        folds=bool(settings.enable_kernel_stride_folding) and not transposed,
        whole_kernel=settings.full_inner_dim and not transposed,
        reuses_rows=settings.enable_activation_reuse and not transposed,
        whole_window=problem.reads_whole_window(placed.inputs.scheme, channels),
        stride=(1, 1) if transposed else stride,
    )
    weight, bias = prepared(weight, bias, preparation, settings, any_weight=transposed)
    run = Run(
        placed.spec, weight, bias, preparation, problem, settings, placed.inputs, blocks, fold=fold, placed=placed
    )
    if problem.as_matmul:
        product = plan_product(placed.spec, placed.inputs, blocks, problem, settings, weight, bias, math)
        run = replace(run, output=product.how.output, product=product, l1_bytes=product.how.l1_bytes)
    else:
        run, halo, circular = _as_convolution(run, placed, channels)
    made = output = run.output
    if memory_config is not None and memory_config != made.memory_config:
        output = memory_flow(Flow(made), memory_config).spec
    _place(course, placed, problem)
    if problem.as_matmul:
        frees = settings.deallocate_activation and x.on_device and x.memory_config.is_l1
        course.frees = frees
        course.tilize()
        course.compute([made], [output], run.l1_bytes)
        if frees and course.in_l1:
            course.stages.append(Free(course.name))
    else:
        if _has_halo(placed, problem):
            drops = settings.deallocate_activation or (course.is_copy and not transposed)
            cores = placed.inputs.grid.num_cores()
            course.gather(halo, cores, frees=drops, moves=settings.reallocate_halo_output)
        course.compute([made], [output], circular)
    course.hand_out([made], [output])
    return replace(run, output=output, stages=tuple(course.stages))


def _place(course: Course, placed: Placed, problem: Problem) -> None:
    """The copies of the input before the kernel reads it."""
    flat = flattened_flow(course.spec)
    if flat.moved:
        course.copy("flat", flat.spec, frees=False, drops=False)
    elif course.spec.on_device:
        course.spec = flat.spec
    if placed.spec.layout is not course.spec.layout and course.spec.on_device:
        tiles = layout_flow(Flow(course.spec), placed.spec.layout).spec
        course.copy("tiled", tiles, moves=True)
    if placed.moved:
        course.copy("sharded", placed.spec, moves=True)


def _has_halo(placed: Placed, problem: Problem) -> bool:
    """Whether a halo is needed; sticks without a border are read in place."""
    rows_of_channels = placed.inputs.scheme is WIDTH and placed.spec.layout is Layout.ROW_MAJOR
    return problem.window.transposed or not rows_of_channels or problem.window.total_padding != (0, 0)


def prepared(
    weight: Spec, bias: Spec | None, preparation: Preparation, settings: Settings, *, any_weight: bool
) -> tuple[Spec, Spec | None]:
    """Specs of prepared weights and bias; tensors that are not prepared yet are prepared.

    A transposed convolution treats all device weights as prepared.
    """
    out = preparation.out_channels
    from_host = not weight.on_device
    if weight.on_device and not any_weight:
        from_host = not weights.is_prepared_weight(weight, out, settings.weights_dtype)
    if from_host:
        weight = weights.weight_spec(weight, preparation)
    if bias is not None and not (bias.on_device and weights.is_prepared_bias(bias, out, settings.weights_dtype)):
        require(from_host or not any_weight or bias.on_device, "the bias must be on the device, as the weights are")
        if bias.on_device and any_weight:
            require(bias.rank >= 4, f"a bias must have rank 4, not shape {list(bias.shape)}")
        else:
            bias = weights.bias_spec(bias, preparation, weight.dtype)
    return weight, bias


def _as_convolution(run: Run, placed: Placed, channels: int) -> tuple[Run, int, int]:
    """The run with its output, and the bytes per core of halo and circular buffers."""
    problem, settings, blocks = run.problem, run.settings, run.blocks
    config = output_memory_config(problem, placed.outputs)
    assert config.shard_spec is not None
    require(placed.spec.is_sharded, "the input must be sharded")
    if placed.inputs.scheme is WIDTH:
        _require_reachable(placed, problem.board)
    if problem.in_dtype is DataType.UINT8 and placed.spec.layout is Layout.ROW_MAJOR:
        width = placed.spec.memory_config.shard_spec.shape[1]  # type: ignore[union-attr]
        require(
            width * problem.value_bytes <= round_up(width, L1_STEP),
            f"rows of {width} values of uint8 leave no room for the values of {problem.value_bytes} B made of them",
        )
    if settings.output_layout is Layout.ROW_MAJOR:
        require(
            problem.out_dtype in (DataType.BFLOAT16, DataType.FLOAT32),
            f"a ROW_MAJOR output must be bfloat16 or float32, not {problem.out_dtype}",
        )
    require(
        blocks.out_h % blocks.act_h == 0,
        f"blocks of {blocks.act_h} tiles do not divide the {blocks.out_h} tiles of a core's output",
    )
    if settings.enable_activation_reuse:
        _require_reuse(run, placed, channels)
    _require_weights_fit(run, placed)
    shard = ShardSpec(config.shard_spec.grid, (blocks.out_h * TILE, blocks.out_w * TILE), config.shard_spec.orientation)
    output = Spec.of(
        (1, 1, problem.window.rows, problem.out_channels),
        problem.out_dtype,
        settings.output_layout,
        MemoryConfig(config.memory_layout, BufferType.L1, shard),
        alignment=(TILE, TILE),
    )
    shard_width = placed.spec.memory_config.shard_spec.shape[1]  # type: ignore[union-attr]
    sizes = buffer_sizes(
        problem,
        settings.with_(weights_dtype=run.weight.dtype),
        placed.inputs.scheme,
        blocks,
        run.weight.padded_shape[-2:],  # type: ignore[arg-type]
        channels,
        no_multicast=_alone(placed),
        index_bytes=_require_indices(run, placed, channels),
    )
    halo = problem.window.halo_rows(placed.inputs.rows) * shard_width * problem.value_bytes
    held = placed.spec.bytes_per_bank(1, L1_STEP) if placed.moved else 0
    # A transposed convolution keeps its sharded input to the end.
    kept = held if problem.window.transposed and not settings.deallocate_activation else 0
    needed = max(held + halo, kept + halo + sizes.output + sizes.circular)
    fit = shard_width * placed.inputs.channels == channels
    return replace(run, output=output, l1_bytes=needed, pixels_fit=fit), halo, sizes.circular


def _splits(run: Run, placed: Placed, channels: int) -> bool:
    tile = tile_bytes(DEFAULT_TILE, run.weight.dtype)
    scheme, depthwise = placed.inputs.scheme, run.problem.depthwise_1d
    return splits_reader(run.problem, run.settings, scheme, run.blocks, channels, tile, depthwise)


def _require_reuse(run: Run, placed: Placed, channels: int) -> None:
    """Conditions of activation reuse between adjacent output rows."""
    window = run.problem.window
    require(placed.inputs.scheme is not BLOCK, "activation reuse does not support block sharding")
    require(
        window.dilation == (1, 1) and (window.transposed or window.stride == (1, 1)),
        f"activation reuse needs a stride and a dilation of 1, not {list(window.stride)} and {list(window.dilation)}",
    )
    require(placed.inputs.scheme is WIDTH or _splits(run, placed, channels), "activation reuse needs the split reader")


def _require_indices(run: Run, placed: Placed, channels: int) -> int:
    """Bytes of the readers' index lists; the library reserves two per output pixel."""
    problem, blocks = run.problem, run.blocks
    readers: tuple[int, ...] = (blocks.act_h * TILE,)
    if _splits(run, placed, channels):
        readers = ((blocks.act_h - blocks.act_h // 2) * TILE, blocks.act_h // 2 * TILE)
    needed, room = 2 * problem.window.index_values(placed.inputs.rows, readers), 2 * blocks.out_h * TILE
    require(
        needed <= room,
        f"indices of output rows of {problem.window.output_size[1]} pixels take {needed} B, room is for {room} B",
        hint="Use a wider output, or other sharding.",
    )
    return needed


# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/conv/conv2d/conv2d_utils.cpp, conv_skip_mcast
def _alone(placed: Placed) -> bool:
    """Whether there is a single core along the channels, so that no multicast is needed."""
    if placed.inputs.scheme is HEIGHT:
        return placed.inputs.rows == 1
    return placed.inputs.channels == 1 and placed.outputs.channels == 1


def _require_reachable(placed: Placed, board: Pair) -> None:
    """Cores along the channels multicast along rows, within the grid of the output or the input."""
    count = placed.inputs.grid.num_cores()
    if count > placed.outputs.grid.num_cores():
        grid = num_cores_to_corerangeset(count, CoreCoord(*board), True)
        require(placed.inputs.grid == grid, f"{count} cores along the channels must fill the board row by row")


def _require_weights_fit(run: Run, placed: Placed) -> None:
    problem, blocks = run.problem, run.blocks
    rows, columns = run.weight.padded_shape[-2:]
    require(
        problem.out_channels <= columns, f"prepared weights of {columns} columns are fewer than {problem.out_channels}"
    )
    shape = run.weight.shape
    require(len(shape) == 4 and shape[:2] == (1, 1), f"prepared weights are a matrix, not of shape {list(shape)}")
    slices, rest = divmod(columns // TILE, blocks.out_w)
    across = 1 if placed.inputs.scheme is HEIGHT else placed.outputs.channels
    fits = across % slices == 0 if placed.inputs.scheme is BLOCK else across == slices
    require(
        not rest and fits,
        f"prepared weights of {columns // TILE} tiles do not divide into blocks of {blocks.out_w} for {across} cores",
    )
    if run.bias is not None and placed.inputs.scheme is not WIDTH:
        require(
            run.bias.padded_shape[-1] == columns,
            f"a prepared bias of {run.bias.padded_shape[-1]} columns does not suit weights of {columns}",
        )
    if placed.inputs.scheme is WIDTH:
        kernel_h, kernel_w = problem.window.kernel
        assert placed.spec.shard_spec is not None
        channels = placed.spec.shard_spec.shape[1] * placed.inputs.channels
        inner = round_up(channels * kernel_w, TILE) * kernel_h
        require(inner == rows, f"prepared weights have {rows} rows, the convolution has {inner} taps and channels")
        count, cores = rows // TILE // blocks.act_w, placed.inputs.channels
        require(count % cores == 0, f"{count} blocks along the channels do not divide over {cores} cores")
