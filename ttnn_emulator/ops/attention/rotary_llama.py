"""Llama's rotary position embeddings: adjacent pairs rotated by a 32 × 32 transformation matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ttnn_emulator.enums import DataType, Layout, TensorMemoryLayout
from ttnn_emulator.errors import require
from ttnn_emulator.execution.operation_table import Plan, operation
from ttnn_emulator.numerics.native.threaded_copies import contiguous
from ttnn_emulator.numerics.programs.attention.rotary import Rotation
from ttnn_emulator.numerics.units.matrix_unit import MathConfig
from ttnn_emulator.ops.attention.heads.common import board_cores, faulty, grown
from ttnn_emulator.ops.attention.rotary import rotary_config
from ttnn_emulator.ops.support.common_checks import memory_of, require_on_device, require_tile
from ttnn_emulator.ops.support.derived_shards import HEIGHT
from ttnn_emulator.tensors.memory_config import MemoryConfig, ShardSpec
from ttnn_emulator.tensors.shapes import TILE_SIZE
from ttnn_emulator.tensors.spec import Spec

INTERLEAVED = TensorMemoryLayout.INTERLEAVED
# tt-metal v0.77.0: ttnn/cpp/ttnn/operations/experimental/transformer/rotary_embedding_llama/device/rotary_embedding_llama_device_operation.cpp,  # noqa: E501
# head_dim
WIDEST_HEAD, WIDEST_HEAD_FP32 = 256, 128
ONE_TILE = (TILE_SIZE, TILE_SIZE)
MOST_USERS, MOST_CORES = 32, 64
FACE = 16


def _require_head(width: int, config: MathConfig) -> None:
    require(
        width <= WIDEST_HEAD_FP32 or not config.fp32_acc,
        f"heads of {width} columns are too wide for a 32-bit destination register",
    )


def _layout_of(spec: Spec) -> TensorMemoryLayout:
    return spec.memory_config.memory_layout


def _rotation(config: MathConfig) -> Rotation:
    return Rotation(config, DataType.BFLOAT16, DataType.BFLOAT16, DataType.BFLOAT16)


@operation("ttnn.experimental.rotary_embedding_llama")
def rotary_embedding_llama(
    input_tensor: Spec,
    cos_cache: Spec,
    sin_cache: Spec,
    trans_mat: Spec,
    *,
    is_decode_mode: bool = False,
    memory_config: MemoryConfig | None = None,
    compute_kernel_config: Any = None,
) -> Plan:
    """x × cos + (x @ matrix) × sin: for positions [B, H, S, D], or for users [1, B, H, D]."""
    spec, cos, sin = input_tensor, cos_cache, sin_cache
    config, setting = memory_of(memory_config, spec), rotary_config(compute_kernel_config)
    for each, name in ((spec, "the input"), (cos, "cos"), (sin, "sin"), (trans_mat, "the matrix")):
        require_on_device(each, name)
        require_tile(each, name)
        require(each.dtype is DataType.BFLOAT16, f"{name} is {each.dtype}, only bfloat16 is supported")
    width = spec.shape[-1]
    _require_head(width, setting)
    require(width <= WIDEST_HEAD, f"heads of {width} columns are wider than {WIDEST_HEAD}")
    require(_layout_of(spec) is config.memory_layout, f"the output must have the input's layout, not {config.brief()}")
    require(cos.shape == sin.shape, f"cos has shape {list(cos.shape)}, sin {list(sin.shape)}")
    check, prepare = (_require_decode, _for_users) if is_decode_mode else (_require_prefill, _for_positions)
    check(spec, cos, sin, trans_mat)
    out = Spec.of(spec.shape, spec.dtype, spec.layout, config)
    compute = prepare(spec, cos, trans_mat, _rotation(setting))
    # Cores with several rows of tiles of several heads buffer more of cos and sin than this.
    tiles = 12 * spec.padded_shape[-1] // TILE_SIZE + 1
    l1_bytes = 0 if is_decode_mode or cos.is_sharded or trans_mat.is_sharded else tiles * spec.page_bytes
    return Plan(out, compute, reads=("input_tensor", "cos_cache", "sin_cache", "trans_mat"), l1_bytes=l1_bytes)


def _require_decode(spec: Spec, cos: Spec, sin: Spec, matrix: Spec) -> None:
    require(spec.shape[-1] % TILE_SIZE == 0, f"heads of {spec.shape[-1]} columns are not a multiple of {TILE_SIZE}")
    require(spec.shape[0] == 1, f"dimension 0 must be 1, it is {spec.shape[0]}")
    for each, name in ((spec, "the input"), (cos, "cos"), (sin, "sin"), (matrix, "the matrix")):
        require(_layout_of(each) is HEIGHT, f"{name} must be height sharded, not {each.memory_config.brief()}")
    users = spec.shape[1]
    require(users <= board_cores(), f"{users} users are more than the {board_cores()} cores")
    require(cos.shape[1] == users, f"cos holds {cos.shape[1]} users, the input {users}")
    assert cos.shard_spec is not None and matrix.shard_spec is not None
    require(cos.shard_spec.shape[0] == TILE_SIZE, f"shards of cos must be {TILE_SIZE} rows high")
    require(matrix.shape[0] == matrix.shape[1] == 1, f"the matrix has shape {list(matrix.shape)}")
    require(matrix.shard_spec.shape == ONE_TILE, "every core must hold one tile of the matrix")


def _require_prefill(spec: Spec, cos: Spec, sin: Spec, matrix: Spec) -> None:
    require(not spec.is_sharded, "the input must be interleaved, unless in decode mode")
    require(_layout_of(cos) in (HEIGHT, INTERLEAVED), "cos must be interleaved or height sharded")
    sharded = _layout_of(cos) is HEIGHT
    require(sharded == (_layout_of(sin) is HEIGHT), "cos and sin must both be height sharded or both not")
    width, heads = spec.shape[-1], spec.shape[1]
    require(cos.shape[0] == 1 and cos.shape[-1] == width, f"cos must be [1, .., {width}], it is {list(cos.shape)}")
    require(cos.shape[1] in (heads, 1), f"cos holds {cos.shape[1]} heads, the input {heads}")
    if sharded:
        require(cos.shape[1] == 1, f"sharded, cos must hold one head, not {cos.shape[1]}")
        for each, name in ((cos, "cos"), (sin, "sin")):
            _require_shards(each.shard_spec, (TILE_SIZE, spec.padded_shape[-1]), name)
    require(_layout_of(matrix) in (HEIGHT, INTERLEAVED), "the matrix must be interleaved or height sharded")
    require(matrix.shape[0] == matrix.shape[1] == 1, f"the matrix has shape {list(matrix.shape)}")
    require(matrix.shape[-1] == TILE_SIZE, f"the matrix is {matrix.shape[-1]} wide, not {TILE_SIZE}")
    if _layout_of(matrix) is HEIGHT:
        _require_shards(matrix.shard_spec, ONE_TILE, "the matrix")
    else:
        require(matrix.shape[-2] == TILE_SIZE, f"the matrix is {matrix.shape[-2]} high, not {TILE_SIZE}")


def _require_shards(shards: ShardSpec | None, shape: tuple[int, int], name: str) -> None:
    require(shards is not None, f"{name} has no two-dimensional shards")
    assert shards is not None
    require(shards.shape == shape, f"shards of {name} must be {list(shape)}, not {list(shards.shape)}")


def _for_positions(spec: Spec, cos: Spec, trans_mat: Spec, rotation: Rotation) -> Callable[..., torch.Tensor]:
    """Rows of tiles that cos does not cover become zeros."""
    shape, padded, cos_padded = spec.shape, spec.padded_shape, cos.padded_shape
    rows = min(padded[-2], cos_padded[-2])

    def compute(x: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        parts = [grown(each, cos_padded)[..., :rows, :] for each in (cosines, sines)]
        whole = grown(x, padded)[..., :rows, :]
        result = rotation.by_matrix(whole, parts[0], parts[1], matrix[0, 0, :TILE_SIZE])
        return contiguous(grown(result, padded)[tuple(slice(size) for size in shape)])

    return compute


def _for_users(spec: Spec, cos: Spec, trans_mat: Spec, rotation: Rotation) -> Callable[..., torch.Tensor]:
    """One position per user: the first row of its cos and sin tiles, and the matrix on its core."""
    shape, padded = spec.shape, spec.padded_shape
    own, matrices = _numbers_on(cos, spec, cos.shape[1]), _numbers_on(trans_mat, spec, _tiles_of(trans_mat))
    if own is None or matrices is None:
        return faulty("a user is on a core that holds no cos, sin or matrix")

    def compute(x: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        parts = [each[:, own, :1] for each in (cosines, sines)]
        result = rotation.by_matrix(grown(x, padded), parts[0], parts[1], _matrices(matrix, matrices))
        return contiguous(result[tuple(slice(size) for size in shape)])

    return compute


# -- query and key at once --------------------------------------------------------------------------------------------


@operation("ttnn.experimental.rotary_embedding_llama_fused_qk")
def rotary_embedding_llama_fused_qk(
    q_input_tensor: Spec,
    k_input_tensor: Spec,
    cos_cache: Spec,
    sin_cache: Spec,
    trans_mat: Spec,
    *,
    compute_kernel_config: Any = None,
) -> Plan:
    """Query and key of users [1, B, H, D], on disjoint cores; cos and sin hold B users twice."""
    query, key, cos, sin, matrix = q_input_tensor, k_input_tensor, cos_cache, sin_cache, trans_mat
    setting = rotary_config(compute_kernel_config)
    named = ((query, "the query"), (key, "the key"), (cos, "cos"), (sin, "sin"), (matrix, "the matrix"))
    for each, name in named:
        require_on_device(each, name)
        require(_layout_of(each) is HEIGHT, f"{name} must be height sharded, not {each.memory_config.brief()}")
        require(each.dtype is DataType.BFLOAT16, f"{name} is {each.dtype}, only bfloat16 is supported")
    in_rows = query.layout is Layout.ROW_MAJOR and key.layout is Layout.ROW_MAJOR
    layout = Layout.ROW_MAJOR if in_rows else Layout.TILE
    for each, name in named[:4]:
        require(each.layout is layout, f"{name} is in {each.layout}, not in {layout}")
    require_tile(matrix, "the matrix")
    require(query.shape[0] == key.shape[0] == 1, "dimension 0 of query and key must be 1")
    width = query.shape[-1]
    require(key.shape[-1] == width, f"heads of the key are {key.shape[-1]} wide, those of the query {width}")
    _require_head(width, setting)
    if in_rows:
        for each in (query, key):
            size = each.shape[-2] * width
            require(size == TILE_SIZE * TILE_SIZE, f"in rows, a user's heads must hold a tile's values, not {size}")
    require(width % TILE_SIZE == 0, f"heads of {width} columns are not a multiple of {TILE_SIZE}")
    users = query.shape[1]
    require(key.shape[1] == users, f"the key has {key.shape[1]} users, the query {users}")
    require(users <= MOST_USERS, f"{users} users are more than {MOST_USERS}")
    places = [each.shard_spec for each, _ in named]
    assert all(place is not None for place in places)
    of_query, of_key, _, _, of_matrix = (place for place in places if place is not None)
    cores = of_query.num_cores() + of_key.num_cores()
    require(cores <= MOST_CORES, f"{cores} cores are more than {MOST_CORES}")
    overlap = any(one.intersects(other) for one in of_query.grid.ranges() for other in of_key.grid.ranges())
    require(not overlap, "query and key must be on different cores")
    require(cos.shape == sin.shape, f"cos has shape {list(cos.shape)}, sin {list(sin.shape)}")
    require(cos.shape[1] == 2 * users, f"cos holds {cos.shape[1]} users, not {2 * users}")
    require(of_matrix.num_cores() >= cores, f"the matrix is on fewer than {cores} cores")
    require(of_matrix.shape == ONE_TILE, "every core must hold one tile of the matrix")
    outputs = tuple(Spec.of(each.shape, each.dtype, each.layout, each.memory_config) for each in (query, key))
    compute = _both(query, key, cos, matrix, _rotation(setting), in_rows)
    return Plan(outputs, compute)


def _both(
    query: Spec, key: Spec, cos: Spec, trans_mat: Spec, rotation: Rotation, in_rows: bool
) -> Callable[..., tuple[torch.Tensor, ...]]:
    users = [_numbers_on(cos, each, cos.shape[1]) for each in (query, key)]
    matrices = [_numbers_on(trans_mat, each, _tiles_of(trans_mat)) for each in (query, key)]
    whole_tiles = not in_rows or cos.shape[-2] * cos.shape[-1] == TILE_SIZE * TILE_SIZE
    if None in users or None in matrices or not whole_tiles:
        return faulty("query or key is on cores that hold no cos, sin or matrix for it")

    def compute(
        q: torch.Tensor, k: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor, matrix: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        results = []
        for values, spec, own, tiles in zip((q, k), (query, key), users, matrices):
            assert own is not None and tiles is not None
            parts, turn = [each[:, own] for each in (cosines, sines)], _matrices(matrix, tiles)
            if in_rows:
                seen = [_as_tiles(each) for each in (values, *parts)]
                results.append(_as_rows(rotation.by_matrix(seen[0], seen[1], seen[2], turn), values.shape))
            else:
                whole = grown(values, spec.padded_shape)
                rotated = rotation.by_matrix(whole, parts[0][..., :1, :], parts[1][..., :1, :], turn)
                results.append(rotated[..., : spec.shape[2], :].contiguous())
        return tuple(results)

    return compute


def _tiles_of(trans_mat: Spec) -> int:
    return trans_mat.padded_shape[-2] // TILE_SIZE


def _matrices(matrix: torch.Tensor, numbers: list[int]) -> torch.Tensor:
    """[1, users, 32, 32]: the matrices with these numbers, of a column of matrices."""
    return matrix[0, 0].reshape(-1, TILE_SIZE, TILE_SIZE)[numbers].unsqueeze(0)


def _numbers_on(held: Spec, spec: Spec, count: int) -> list[int] | None:
    """Which of the `count` shards of `held` are on the cores of the users of `spec`; None if a core has none."""
    assert held.shard_spec is not None and spec.shard_spec is not None
    order = {core: number for number, core in enumerate(held.shard_spec.grid.cores())}
    cores = spec.shard_spec.grid.cores()[: spec.shape[1]]
    found = [order.get(core, count) for core in cores]
    fits = len(found) == spec.shape[1] and all(number < count for number in found)
    return found if fits else None


def _as_tiles(values: torch.Tensor) -> torch.Tensor:
    """1024 values per user, viewed as a tile of four faces."""
    faces = values.reshape(*values.shape[:2], 2, 2, FACE, FACE)
    return faces.transpose(3, 4).reshape(*values.shape[:2], TILE_SIZE, TILE_SIZE)


def _as_rows(tiles: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    faces = tiles.reshape(*tiles.shape[:2], 2, FACE, 2, FACE)
    return faces.transpose(3, 4).reshape(shape).contiguous()
